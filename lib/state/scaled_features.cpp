#include "state/scaled_features.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "margrave/error.hpp"

namespace margrave {

namespace {

// Below this share of non-zeros a vector is kept as a sparse one, as DatasetBuilder does.
constexpr double dense_share = 0.4;

class FeatureScaler {
 public:
  FeatureScaler(const Dataset& data, std::span<const double> scale) : data_(data), scale_(scale) {}

  Dataset run() {
    DatasetColumns columns = data_.columns();  // shares what it does not replace
    std::vector<DatasetColumns::Example> examples(columns.examples.begin(), columns.examples.end());
    std::vector<std::uint32_t> variable_input, factor_input;
    variable_input.reserve(columns.variable_input.size());
    // Examples may share a run of factor inputs and still differ in templates.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> runs;
    for (std::size_t m = 0; m < examples.size(); ++m) {
      const FactorGraph graph = data_[m];
      const Topology& top = graph.topology();
      for (std::size_t i = 0; i < top.variables(); ++i)
        variable_input.push_back(scaled(top.template_of(i), graph.input_of(i)));
      const auto [run, is_new] =
          runs.try_emplace({examples[m].topology, examples[m].factor_begin}, factor_input.size());
      examples[m].factor_begin = run->second;
      for (std::size_t a = top.variables(); is_new && a < top.cliques(); ++a)
        factor_input.push_back(scaled(top.template_of(a), graph.input_of(a)));
    }
    columns.examples = std::move(examples);
    columns.variable_input = std::move(variable_input);
    columns.factor_input = std::move(factor_input);
    columns.inputs = std::move(inputs_);
    columns.index = std::move(index_);
    columns.value = std::move(value_);
    return {data_.templates(), std::move(columns)};
  }

 private:
  // The number of a clique's scaled input, made once for each template it is used with.
  std::uint32_t scaled(std::uint32_t template_index, std::uint32_t input) {
    const std::uint64_t key = std::uint64_t{template_index} << 32U | input;
    const auto known = numbers_.find(key);
    if (known != numbers_.end()) return known->second;
    const Template& t = data_.templates()[template_index];
    const InputView x = data_.input(input);
    const bool plain = x.kind != InputKind::per_state;
    std::uint32_t number = 0;
    if (plain && t.rows <= 1) {
      number = add(t, 0, x);  // one row: the scales are those of all states
    } else {
      std::vector<std::uint32_t> of_row, of_state(t.joint_states());
      for (std::uint32_t row = 0; plain && row < t.rows; ++row) of_row.push_back(add(t, row, x));
      for (std::size_t y = 0; y < of_state.size(); ++y) {
        const std::int32_t row = t.row_of[y];
        if (row < 0) {
          of_state[y] = nothing();
        } else {
          const auto r = static_cast<std::uint32_t>(row);
          of_state[y] = plain ? of_row[r] : add(t, r, data_.input(x.index[y]));
        }
      }
      number = append(InputKind::per_state, static_cast<std::uint32_t>(of_state.size()));
      index_.insert(index_.end(), of_state.begin(), of_state.end());
    }
    numbers_.emplace(key, number);
    return number;
  }

  // x times the scales of one weight row.
  std::uint32_t add(const Template& t, std::uint32_t row, const InputView& x) {
    new_index_.clear();
    new_value_.clear();
    for (std::uint32_t n = 0; n < x.count && t.rows > 0; ++n) {
      const std::uint32_t d = x.kind == InputKind::dense ? n : x.index[n];
      const double value = x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[n]);
      const auto product = static_cast<float>(value * scale_[t.offset + d * t.stride + row]);
      if (product == 0) continue;
      new_index_.push_back(d);
      new_value_.push_back(product);
    }
    if (new_index_.empty()) return nothing();
    const auto length = static_cast<double>(t.inputs);
    if (static_cast<double>(new_index_.size()) < dense_share * length) {
      const std::uint32_t number = append(InputKind::sparse, static_cast<std::uint32_t>(new_index_.size()));
      index_.insert(index_.end(), new_index_.begin(), new_index_.end());
      value_.insert(value_.end(), new_value_.begin(), new_value_.end());
      return number;
    }
    const std::uint32_t number = append(InputKind::dense, static_cast<std::uint32_t>(t.inputs));
    const std::size_t begin = value_.size();
    value_.resize(begin + t.inputs, 0.0F);
    for (std::size_t n = 0; n < new_index_.size(); ++n) value_[begin + new_index_[n]] = new_value_[n];
    return number;
  }

  // The vector of zeros, which fits every template.
  std::uint32_t nothing() {
    if (nothing_ == none) nothing_ = append(InputKind::sparse, 0);
    return nothing_;
  }

  std::uint32_t append(InputKind kind, std::uint32_t count) {
    if (inputs_.size() >= none) throw UsageError("more than 2^32 - 1 scaled input vectors");
    inputs_.push_back({index_.size(), value_.size(), count, kind});
    return static_cast<std::uint32_t>(inputs_.size() - 1);
  }

  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  const Dataset& data_;
  std::span<const double> scale_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::vector<DatasetColumns::Input> inputs_;
  std::vector<std::uint32_t> index_, new_index_;
  std::vector<float> value_, new_value_;
  std::uint32_t nothing_ = none;
};

}  // namespace

Dataset scale_features(const Dataset& data, std::span<const double> scale) {
  return FeatureScaler(data, scale).run();
}

}  // namespace margrave
