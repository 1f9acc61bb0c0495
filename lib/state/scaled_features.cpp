#include "state/scaled_features.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "base/hash.hpp"
#include "margrave/error.hpp"

namespace margrave {

namespace {

// Below this share of non-zeros a vector is kept as a sparse one, as DatasetBuilder does.
constexpr double dense_share = 0.4;
constexpr std::size_t together = 64;  // inputs that one thread scales in a row
constexpr std::uint32_t nothing = 0;  // number of the vector of zeros, which fits every template
constexpr std::uint64_t most_inputs = std::numeric_limits<std::uint32_t>::max();

// Vectors are counted first and written then, so that each thread knows its places in columns that are
// allocated once: there is one vector for every weight row, many times the data.
class FeatureScaler {
 public:
  FeatureScaler(const Dataset& data, std::span<const double> scale, Arena& arena)
      : data_(data), scale_(scale), arena_(arena) {}

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
        variable_input.push_back(job_of(top.template_of(i), graph.input_of(i)));
      const auto [run, is_new] =
          runs.try_emplace({examples[m].topology, examples[m].factor_begin}, factor_input.size());
      examples[m].factor_begin = run->second;
      for (std::size_t a = top.variables(); is_new && a < top.cliques(); ++a)
        factor_input.push_back(job_of(top.template_of(a), graph.input_of(a)));
    }
    scale_inputs(columns);
    const auto name = [&](std::uint32_t& job) { job = jobs_[job].number; };
    std::for_each(variable_input.begin(), variable_input.end(), name);
    std::for_each(factor_input.begin(), factor_input.end(), name);
    columns.examples = std::move(examples);
    columns.variable_input = std::move(variable_input);
    columns.factor_input = std::move(factor_input);
    return {data_.templates(), std::move(columns), hash_span(scale_, data_.fingerprint()), arena_};
  }

 private:
  struct Extent {
    std::uint64_t inputs = 0, index = 0, value = 0;
  };
  // A clique's input, made once for each template it is used with.
  struct Job {
    std::uint32_t template_index, input;
    Extent extent;         // of its vectors: how much, and then where from
    std::uint32_t number;  // of what it becomes
  };
  // Where vectors go: nowhere while they are counted.
  struct Place {
    DatasetColumns::Input* inputs = nullptr;
    std::uint32_t* index = nullptr;
    float* value = nullptr;
    Extent at;

    std::uint32_t append(InputKind kind, std::span<const std::uint32_t> new_index,
                         std::span<const float> new_value) {
      if (inputs != nullptr) {
        const std::size_t count = std::max(new_index.size(), new_value.size());
        inputs[at.inputs] = {at.index, at.value, static_cast<std::uint32_t>(count), kind};
        std::copy(new_index.begin(), new_index.end(), index + at.index);
        std::copy(new_value.begin(), new_value.end(), value + at.value);
      }
      at.index += new_index.size();
      at.value += new_value.size();
      return static_cast<std::uint32_t>(at.inputs++);
    }
  };
  // A thread's memory.
  struct Scratch {
    std::vector<std::uint32_t> index, of_row, of_state;
    std::vector<float> value, dense;
  };

  std::uint32_t job_of(std::uint32_t template_index, std::uint32_t input) {
    const std::uint64_t key = std::uint64_t{template_index} << 32U | input;
    const auto [known, is_new] = known_.try_emplace(key, static_cast<std::uint32_t>(jobs_.size()));
    if (is_new) jobs_.push_back({template_index, input, {}, nothing});
    return known->second;
  }

  void scale_inputs(DatasetColumns& columns) {
    for_each_job([](Job& job, const Place& counted) { job.extent = counted.at; },
                 [](const Job&) { return Place{}; });
    Extent sum{1, 0, 0};  // behind the vector of zeros
    for (Job& job : jobs_) {
      const Extent begin = sum;
      sum.inputs += job.extent.inputs;
      sum.index += job.extent.index;
      sum.value += job.extent.value;
      job.extent = begin;
    }
    if (sum.inputs > most_inputs) throw UsageError("more than 2^32 - 1 scaled input vectors");
    const auto inputs = std::make_shared<Buffer<DatasetColumns::Input>>(sum.inputs);
    const auto index = std::make_shared<Buffer<std::uint32_t>>(sum.index);
    const auto value = std::make_shared<Buffer<float>>(sum.value);
    (*inputs)[nothing] = {0, 0, 0, InputKind::sparse};
    for_each_job([](Job&, const Place&) {},
                 [&](const Job& job) {
                   return Place{inputs->data(), index->data(), value->data(), job.extent};
                 });
    columns.inputs = {inputs, inputs->data(), sum.inputs};
    columns.index = {index, index->data(), sum.index};
    columns.value = {value, value->data(), sum.value};
  }

  // Appends what each job makes to place(job); after(job, where that ended).
  template <class After, class PlaceOf>
  void for_each_job(After after, PlaceOf place) {
    arena_.for_each_block(jobs_.size(), together, [&](std::size_t begin, std::size_t end, int) {
      Scratch scratch;
      for (std::size_t j = begin; j < end; ++j) {
        Place out = place(jobs_[j]);
        jobs_[j].number = scaled(jobs_[j], scratch, out);
        after(jobs_[j], out);
      }
    });
  }

  // The number of a clique's scaled input.
  std::uint32_t scaled(const Job& job, Scratch& scratch, Place& out) const {
    const Template& t = data_.templates()[job.template_index];
    const InputView x = data_.input(job.input);
    const bool plain = x.kind != InputKind::per_state;
    if (plain && t.rows <= 1)
      return add(t, 0, x, scratch, out);  // one row: its scales are those of all states
    scratch.of_row.clear();
    scratch.of_state.resize(t.joint_states());
    for (std::uint32_t row = 0; plain && row < t.rows; ++row)
      scratch.of_row.push_back(add(t, row, x, scratch, out));
    for (std::size_t y = 0; y < scratch.of_state.size(); ++y) {
      const std::int32_t row = t.row_of[y];
      if (row < 0) {
        scratch.of_state[y] = nothing;
      } else {
        const auto r = static_cast<std::uint32_t>(row);
        scratch.of_state[y] = plain ? scratch.of_row[r] : add(t, r, data_.input(x.index[y]), scratch, out);
      }
    }
    return out.append(InputKind::per_state, scratch.of_state, {});
  }

  // x times the scales of one weight row.
  std::uint32_t add(const Template& t, std::uint32_t row, const InputView& x, Scratch& scratch,
                    Place& out) const {
    std::vector<std::uint32_t>& index = scratch.index;
    std::vector<float>& value = scratch.value;
    index.clear();
    value.clear();
    for (std::uint32_t n = 0; n < x.count && t.rows > 0; ++n) {
      const std::uint32_t d = x.kind == InputKind::dense ? n : x.index[n];
      const double input = x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[n]);
      const auto product = static_cast<float>(input * scale_[t.offset + d * t.stride + row]);
      if (product == 0) continue;
      index.push_back(d);
      value.push_back(product);
    }
    if (index.empty()) return nothing;
    if (static_cast<double>(index.size()) < dense_share * static_cast<double>(t.inputs))
      return out.append(InputKind::sparse, index, value);
    scratch.dense.assign(t.inputs, 0.0F);
    for (std::size_t n = 0; n < index.size(); ++n) scratch.dense[index[n]] = value[n];
    return out.append(InputKind::dense, {}, scratch.dense);
  }

  const Dataset& data_;
  std::span<const double> scale_;
  Arena& arena_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // jobs
  std::vector<Job> jobs_;
};

}  // namespace

Dataset scale_features(const Dataset& data, std::span<const double> scale, Arena& arena) {
  return FeatureScaler(data, scale, arena).run();
}

}  // namespace margrave
