// Dataset: examples as factor graphs over shared templates and shared input vectors. Immutable after load.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "margrave/template.hpp"

namespace margrave {

class Arena;

inline constexpr std::int32_t unlabelled = -1;

/// A read-only array that either owns its memory or keeps a file mapping alive.
template <class T>
class Column {
 public:
  Column() = default;
  Column(std::vector<T> values) {  // NOLINT(google-explicit-constructor): a vector is a column
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    data_ = owner->data();
    size_ = owner->size();
    owner_ = std::move(owner);
  }
  Column(std::shared_ptr<const void> owner, const T* data, std::size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  const T& operator[](std::size_t i) const { return data_[i]; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  std::shared_ptr<const void> owner_;
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

enum class InputKind : std::uint32_t {
  dense,     ///< value[count], one per input
  sparse,    ///< index[count] strictly increasing, value[count]
  unit,      ///< index[count] strictly increasing, every value 1
  per_state  ///< index[count] are the numbers of other input vectors, one per joint state
};

/// One input vector, as stored.
struct InputView {
  InputKind kind = InputKind::dense;
  std::uint32_t count = 0;
  const std::uint32_t* index = nullptr;
  const float* value = nullptr;
};

/// How the factors of an example hang together.
enum class Structure : std::uint8_t {
  independent,  ///< no factors
  chain,        ///< one path through all variables, pairwise factors
  forest,       ///< no cycles, pairwise factors
  general       ///< cycles, parallel factors or factors of higher order
};

/// The shape of an example: which variables and factors there are, over which templates. Shared by all
/// examples of that shape. Cliques are numbered variables first, then factors.
struct Topology {
  std::vector<std::uint32_t> variable_template;
  std::vector<std::uint32_t> states;  // of each variable
  std::vector<std::uint32_t> factor_template;
  std::vector<std::uint32_t> scope_begin;     // factors + 1
  std::vector<std::uint32_t> scope;           // variables of each factor, in the template's order
  std::vector<std::uint32_t> incident_begin;  // variables + 1
  std::vector<std::uint32_t> incident;        // factors of each variable, increasing
  std::vector<std::uint32_t>
      incident_scope;                        // where `scope` names the variable, for each entry of `incident`
  std::vector<std::uint64_t> clique_offset;  // cliques + 1: first cell of each in a table of all marginals
  // Entries of `scope`, + 1: first cell of each message δ_ci, one number per state of i.
  std::vector<std::uint64_t> message_offset;
  Structure structure = Structure::independent;
  std::vector<std::uint32_t> path;  // chain: the variables in path order; empty otherwise

  std::size_t variables() const { return variable_template.size(); }
  std::size_t factors() const { return factor_template.size(); }
  std::size_t cliques() const { return variables() + factors(); }
  std::span<const std::uint32_t> scope_of(std::size_t factor) const {
    return {scope.data() + scope_begin[factor], scope.data() + scope_begin[factor + 1]};
  }
  std::span<const std::uint32_t> factors_of(std::size_t variable) const {
    return {incident.data() + incident_begin[variable], incident.data() + incident_begin[variable + 1]};
  }
  std::uint32_t template_of(std::size_t clique) const {
    return clique < variables() ? variable_template[clique] : factor_template[clique - variables()];
  }
  /// Cells of all cliques' joint-state tables.
  std::uint64_t cells() const { return clique_offset.back(); }
  /// Cells of all messages.
  std::uint64_t message_cells() const { return message_offset.back(); }
  /// Entries of `scope`, and so messages, that name the variable.
  std::span<const std::uint32_t> messages_of(std::size_t variable) const {
    return {incident_scope.data() + incident_begin[variable],
            incident_scope.data() + incident_begin[variable + 1]};
  }
};

/// One example: its shape, its inputs, its labels. A view: valid while the dataset lives.
class FactorGraph {
 public:
  const Topology& topology() const { return *topology_; }
  std::size_t topology_index() const { return topology_index_; }
  std::size_t variables() const { return topology_->variables(); }
  std::size_t factors() const { return topology_->factors(); }
  std::size_t cliques() const { return topology_->cliques(); }
  /// Number of the clique's input vector, for Dataset::input.
  std::uint32_t input_of(std::size_t clique) const {
    return clique < variables() ? variable_input_[clique] : factor_input_[clique - variables()];
  }
  /// The same of all factors; examples with equal ones share the memory.
  std::span<const std::uint32_t> factor_inputs() const { return {factor_input_, factors()}; }
  /// True state of each variable, or `unlabelled`.
  std::span<const std::int32_t> labels() const { return {label_, variables()}; }
  std::int32_t label(std::size_t variable) const { return label_[variable]; }
  /// Weight of the variable's Hamming term.
  float loss(std::size_t variable) const { return loss_ == nullptr ? 1.0F : loss_[variable]; }

 private:
  friend class Dataset;
  const Topology* topology_ = nullptr;
  std::size_t topology_index_ = 0;
  const std::uint32_t* variable_input_ = nullptr;
  const std::uint32_t* factor_input_ = nullptr;
  const std::int32_t* label_ = nullptr;
  const float* loss_ = nullptr;
};

/// The flat arrays behind a Dataset: what the binary cache maps and the builder fills.
struct DatasetColumns {
  struct Input {
    std::uint64_t index_begin;
    std::uint64_t value_begin;
    std::uint32_t count;
    InputKind kind;
  };
  struct Example {
    std::uint64_t topology;
    std::uint64_t variable_begin;  // into label and variable_input
    std::uint64_t factor_begin;    // into factor_input; examples with the same factor inputs share a run
    std::uint64_t loss_begin;      // into loss, or no_loss where every weight is 1
  };
  static constexpr std::uint64_t no_loss = ~std::uint64_t{0};

  Column<Input> inputs;
  Column<std::uint32_t> index;
  Column<float> value;
  Column<Example> examples;
  Column<std::int32_t> label;
  Column<std::uint32_t> variable_input;
  Column<std::uint32_t> factor_input;
  Column<float> loss;
  // Topology t has the variables from topology_variable_begin[t] up to topology_variable_begin[t + 1], its
  // factors likewise; scopes hold variable numbers.
  Column<std::uint64_t> topology_variable_begin;
  Column<std::uint64_t> topology_factor_begin;
  Column<std::uint32_t> topology_variable_template;
  Column<std::uint32_t> topology_factor_template;
  Column<std::uint64_t> topology_scope_begin;  // one per factor of all topologies, plus one
  Column<std::uint32_t> topology_scope;
  // Example names; both empty where examples have none.
  Column<std::uint64_t> id_begin;
  Column<char> id_text;
};

class Dataset {
 public:
  Dataset() = default;
  /// Checks every index in the columns against every other (a mapped file may hold anything) and builds the
  /// topologies. Throws UsageError naming the first thing that is wrong.
  Dataset(TemplateSet templates, DatasetColumns columns);
  /// Of data that is made from other data again and again, by the library itself: `fingerprint` tells what it
  /// was made from, and spares a pass over the columns; all threads check.
  Dataset(TemplateSet templates, DatasetColumns columns, std::uint64_t fingerprint, Arena& arena);

  std::size_t size() const { return columns_.examples.size(); }
  FactorGraph operator[](std::size_t m) const;
  /// The example's name, or empty.
  std::string_view id(std::size_t m) const;

  const TemplateSet& templates() const { return templates_; }
  std::size_t topologies() const { return topologies_.size(); }
  const Topology& topology(std::size_t t) const { return topologies_[t]; }

  std::size_t inputs() const { return columns_.inputs.size(); }
  InputView input(std::uint32_t number) const {
    const auto& in = columns_.inputs[number];
    return {in.kind, in.count, columns_.index.data() + in.index_begin,
            columns_.value.data() + in.value_begin};
  }
  const DatasetColumns& columns() const { return columns_; }

  /// Bytes held by columns and topologies.
  std::uint64_t memory_bytes() const;
  /// A number that depends on what training sees: every template's shape and every column but the names of
  /// states, inputs and examples. Equal data has equal fingerprints, unless they were given.
  std::uint64_t fingerprint() const { return fingerprint_; }
  /// Whether every variable of every example has a label.
  bool fully_labelled() const { return fully_labelled_; }
  std::uint64_t variables() const { return columns_.label.size(); }

 private:
  // On the arena's threads, where there is one.
  void check(Arena* arena);

  TemplateSet templates_;
  DatasetColumns columns_;
  std::vector<Topology> topologies_;
  std::uint64_t fingerprint_ = 0;
  bool fully_labelled_ = true;
};

/// Builds a Dataset one example at a time. Equal input vectors, shapes and runs of factor inputs are stored
/// once. Every call throws UsageError with a plain reason when its arguments are wrong; readers add the place
/// in the file.
class DatasetBuilder {
 public:
  explicit DatasetBuilder(TemplateSet templates);
  ~DatasetBuilder();
  DatasetBuilder(DatasetBuilder&&) noexcept;
  DatasetBuilder& operator=(DatasetBuilder&&) noexcept;

  const TemplateSet& templates() const;

  /// Input vectors. Stored dense, sparse or unit, whichever is smallest to read. Values must be finite.
  std::uint32_t add_dense(std::span<const float> values);
  /// Indices strictly increasing, below `length`, the number of inputs of the templates it will be used with.
  std::uint32_t add_sparse(std::uint64_t length, std::span<const std::uint32_t> index,
                           std::span<const float> value);
  /// One input vector per joint state, each a number returned by add_dense or add_sparse.
  std::uint32_t add_per_state(std::span<const std::uint32_t> inputs);
  /// The vector [1].
  std::uint32_t one();

  void begin_example(std::string_view id = {});
  /// Returns the variable's number within the example.
  std::uint32_t add_variable(std::size_t template_index, std::uint32_t input, std::int32_t label,
                             float loss = 1.0F);
  void add_factor(std::size_t template_index, std::uint32_t input, std::span<const std::uint32_t> variables);
  void end_example();

  /// Examples completed so far.
  std::size_t size() const;
  Dataset finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The examples of `data` with these numbers, in this order; templates are kept.
Dataset subset(const Dataset& data, std::span<const std::size_t> examples);

}  // namespace margrave
