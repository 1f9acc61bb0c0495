// A trained model: templates, weights, how its data was read, and where it came from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "margrave/dataset.hpp"
#include "margrave/io.hpp"
#include "margrave/options.hpp"

namespace margrave {

/// A dual point as weighted labellings per example: what solvers over exact oracles have.
struct Labellings {
  std::vector<std::uint64_t> atom_begin;   ///< examples + 1
  std::vector<double> weight;              ///< of each labelling; ≥ 0, summing to 1 per example
  std::vector<std::uint64_t> label_begin;  ///< labellings + 1
  std::vector<std::uint32_t> label;        ///< states of all variables, labelling by labelling
};

/// A dual point as marginals of single cliques, each in its simplex, neighbours not quite in agreement: what
/// clique-wise solvers have. The messages bound the primal, whatever they are: good ones make the bound
/// tight. A constant in a message changes nothing; solvers leave zero in its first state.
struct CliqueMarginals {
  std::vector<std::uint64_t> cell_begin;     ///< examples + 1
  std::vector<float> mu;                     ///< example by example, as Topology::clique_offset lays them out
  std::vector<std::uint64_t> message_begin;  ///< examples + 1; all zero where the primal needs no messages
  std::vector<float> delta;                  ///< example by example, as Topology::message_offset
};

/// A dual point: enough to recompute w and the dual bound without any solver.
struct Certificate {
  std::uint64_t fingerprint = 0;  ///< of the training data
  std::variant<Labellings, CliqueMarginals> point;
};

/// k(x, x') of two input vectors, from their inner product and their squared lengths.
struct KernelFunction {
  Kernel kind = Kernel::linear;
  double width = 0;   ///< rbf: exp(−width·|x − x'|²)
  double offset = 0;  ///< polynomial: (<x, x'> + offset)^degree
  std::uint32_t degree = 1;

  double operator()(double product, double squared_length, double other_squared_length) const;
};

/// Weights of variables in the space of a kernel: w_t(row) = Σ_s coefficient(s, t, row)·φ(x_s) over support
/// inputs x_s. The weights of factors stay what they are.
struct KernelExpansion {
  /// Variable templates whose inputs have one length share a kernel and its support.
  struct Group {
    KernelFunction function;
    std::uint64_t inputs = 0;              ///< length of an input vector
    std::vector<std::uint32_t> templates;  ///< increasing
    std::vector<std::uint64_t> begin;      ///< support inputs + 1, into index and value
    std::vector<std::uint32_t> index;      ///< strictly increasing for each input
    std::vector<float> value;
    std::vector<double> coefficient;  ///< per support input the rows of all templates, in order

    std::size_t support() const { return begin.empty() ? 0 : begin.size() - 1; }
    InputView input(std::size_t s) const {
      return {InputKind::sparse, static_cast<std::uint32_t>(begin[s + 1] - begin[s]), index.data() + begin[s],
              value.data() + begin[s]};
    }
  };
  std::vector<Group> groups;
};

struct Model {
  TemplateSet templates;
  /// templates.storage() long, padding zero; zero as well where `kernel` has the template's weights.
  std::vector<double> weights;
  std::optional<KernelExpansion> kernel;
  ReadOptions read;  ///< format resolved, never "auto"
  double lambda = 0;
  Loss loss = Loss::hinge;
  double gamma = 0;
  Entropy entropy = Entropy::gini;  ///< what gamma > 0 smooths by
  Hamming hamming = Hamming::normalized;
  Regularizer regularizer = Regularizer::l2;
  double sharpness = 0;    ///< κ of the Laplace penalty instead of λ/2·|w|₁ (LaplaceM3nOptions); 0: none
  std::string provenance;  ///< JSON: version, options, data fingerprint, final bounds
  std::optional<Certificate> certificate;

  double weight(std::size_t template_index, std::uint32_t row, std::uint64_t input) const {
    const Template& t = templates[template_index];
    return weights[t.offset + input * t.stride + row];
  }
};

/// One versioned, checksummed file. Atomic. Throws IoError.
void save_model(const Model& model, const std::string& path);
/// Throws InputError for foreign, truncated or corrupt files, saying which; IoError where it cannot be read.
Model load_model(const std::string& path);

/// Whether data with these templates can be scored by the model: same templates
/// in the same order, with the same states, inputs and weight rows. Throws
/// InputError saying what differs; `file` (the data's) goes into the message.
void require_compatible(const Model& model, const TemplateSet& templates, const std::string& file = {});

struct DumpOptions {
  /// Only the K largest |w|, largest first: of each weight row of variables, of all rows together of factors,
  /// whose pairs of states are written `a -> b`. 0: all, in order.
  std::uint64_t top = 0;
  bool nonzero = false;  ///< leave zeros out
};
/// One weight a line: template, states, input, value with 17 significant digits, separated by tabs. Pieces go
/// to `sink` in order.
void dump_text(const Model& model, const DumpOptions& options,
               const std::function<void(std::string_view)>& sink);
/// The same as one JSON object, with the settings and the provenance of the model.
void dump_json(const Model& model, const DumpOptions& options,
               const std::function<void(std::string_view)>& sink);

}  // namespace margrave
