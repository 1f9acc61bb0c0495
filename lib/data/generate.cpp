// Synthetic problems; the header says how each is drawn. Streams: Random(model_seed, 1, kind) draws the
// model, Random(seed, 2 + kind, example) an example, so that example m does not depend on how many there are.
#include "margrave/generate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

constexpr std::uint64_t most_cells = std::uint64_t{1} << 40U;
constexpr int sweeps = 200;

enum class Family : std::uint64_t { potts, sequence, multilabel };

Random model_stream(std::uint64_t seed, Family family) {
  return Random(seed, 1, static_cast<std::uint64_t>(family));
}
Random example_stream(std::uint64_t seed, Family family, std::uint64_t example) {
  return Random(seed, 2 + static_cast<std::uint64_t>(family), example);
}

void require(bool condition, const char* what) {
  if (!condition) throw UsageError(std::string("generate: ") + what);
}

void require_size(std::uint64_t examples, std::uint64_t per_example) {
  require(examples > 0, "at least one example is needed");
  require(per_example > 0 && examples <= most_cells / per_example, "the sizes are too large");
}

// Draws a state with probability proportional to exp(score).
std::uint32_t draw(Random& random, const std::vector<double>& score) {
  const double top = *std::max_element(score.begin(), score.end());
  double total = 0;
  for (const double s : score) total += std::exp(s - top);
  double left = random.uniform() * total;
  for (std::uint32_t k = 0; k + 1 < score.size(); ++k) {
    left -= std::exp(score[k] - top);
    if (left < 0) return k;
  }
  return static_cast<std::uint32_t>(score.size() - 1);
}

std::vector<double> normals(Random& random, std::size_t count, double scale = 1.0) {
  std::vector<double> values(count);
  for (double& v : values) v = scale * random.normal();
  return values;
}

}  // namespace

Dataset generate(const PottsOptions& options) {
  const std::uint64_t nodes = std::uint64_t{options.rows} * options.columns;
  require(nodes > 0 && nodes < (std::uint64_t{1} << 31U), "a grid needs rows and columns, below 2^31 nodes");
  require(options.states >= 2 && options.states <= 4096, "2 to 4096 states are needed");
  require(std::isfinite(options.coupling), "the coupling must be finite");
  require(options.noise > 0 && options.noise < 1e6, "the noise must be positive");
  require_size(options.examples, nodes * options.states);
  const std::uint32_t k = options.states;

  Random model = model_stream(options.model_seed, Family::potts);
  std::vector<double> mean(k);
  std::vector<double> deviation(k);
  for (std::uint32_t s = 0; s < k; ++s) {
    mean[s] = s - 0.5 * (k - 1) + 0.1 * model.normal();
    deviation[s] = options.noise * std::exp(0.1 * model.normal());
  }

  Template node = make_template("pixel", {k}, 3);
  node.input_names = {"x", "x^2", "bias"};
  DatasetBuilder builder(TemplateSet({std::move(node), make_template("neighbours", {k, k}, 1)}));

  std::vector<std::array<std::uint32_t, 2>> edges;
  std::vector<std::vector<std::uint32_t>> neighbours(nodes);
  for (std::uint32_t r = 0; r < options.rows; ++r) {
    for (std::uint32_t c = 0; c < options.columns; ++c) {
      const std::uint32_t i = r * options.columns + c;
      if (c + 1 < options.columns) edges.push_back({i, i + 1});
      if (r + 1 < options.rows) edges.push_back({i, i + options.columns});
    }
  }
  for (const auto& [a, b] : edges) {
    neighbours[a].push_back(b);
    neighbours[b].push_back(a);
  }

  std::vector<std::uint32_t> label(nodes);
  std::vector<double> score(k);
  for (std::uint64_t m = 0; m < options.examples; ++m) {
    Random random = example_stream(options.seed, Family::potts, m);
    for (auto& y : label) y = static_cast<std::uint32_t>(random.below(k));
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (std::size_t i = 0; i < nodes; ++i) {
        std::fill(score.begin(), score.end(), 0.0);
        for (const std::uint32_t j : neighbours[i]) score[label[j]] += options.coupling;
        label[i] = draw(random, score);
      }
    }
    builder.begin_example("grid" + std::to_string(m));
    for (std::size_t i = 0; i < nodes; ++i) {
      const double x = mean[label[i]] + deviation[label[i]] * random.normal();
      const std::array<float, 3> inputs{static_cast<float>(x), static_cast<float>(x * x), 1.0F};
      builder.add_variable(0, builder.add_dense(inputs), static_cast<std::int32_t>(label[i]));
    }
    for (const auto& edge : edges) builder.add_factor(1, builder.one(), edge);
    builder.end_example();
  }
  return builder.finish();
}

Dataset generate(const SequenceOptions& options) {
  require(options.length > 0 && options.length < (1U << 24U), "chains need a length, below 2^24");
  require(options.states >= 2 && options.states <= 4096, "2 to 4096 states are needed");
  require(options.inputs > 0 && options.inputs <= (1U << 24U), "1 to 2^24 inputs are needed");
  require(options.relevant <= options.inputs, "there cannot be more relevant inputs than inputs");
  require(options.group > 0, "a group needs at least one input");
  require(options.noise >= 0 && options.noise < 1e6, "the noise must not be negative");
  require_size(options.examples, std::uint64_t{options.length} * std::max(options.inputs, options.states));
  const std::size_t k = options.states;
  const std::size_t d = options.inputs;

  Random model = model_stream(options.model_seed, Family::sequence);
  const std::vector<double> weight = normals(model, options.relevant * k);  // of input i and state s: i·k + s
  const std::vector<double> transition = normals(model, k * k);

  Template node = make_template("state", {options.states}, d);
  for (std::uint32_t i = 0; i < d; ++i) {
    node.input_names.push_back(i < options.relevant ? "group" + std::to_string(i / options.group) + "_" +
                                                          std::to_string(i % options.group)
                                                    : "noise" + std::to_string(i - options.relevant));
  }
  DatasetBuilder builder(
      TemplateSet({std::move(node), make_template("transition", {options.states, options.states}, 1)}));

  std::vector<float> x(options.length * d);
  std::vector<double> local(options.length * k);
  std::vector<std::uint32_t> label(options.length);
  std::vector<double> score(k);
  for (std::uint64_t m = 0; m < options.examples; ++m) {
    Random random = example_stream(options.seed, Family::sequence, m);
    std::fill(local.begin(), local.end(), 0.0);
    for (std::size_t l = 0; l < options.length; ++l) {
      double shared = 0;
      for (std::size_t i = 0; i < d; ++i) {
        if (i < options.relevant && i % options.group == 0) shared = random.normal();
        const double value =
            i < options.relevant ? shared + options.noise * random.normal() : random.normal();
        x[l * d + i] = static_cast<float>(value);
        if (i >= options.relevant) continue;
        for (std::size_t s = 0; s < k; ++s) local[l * k + s] += weight[i * k + s] * value;
      }
    }
    for (auto& y : label) y = static_cast<std::uint32_t>(random.below(k));
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (std::size_t l = 0; l < options.length; ++l) {
        for (std::size_t s = 0; s < k; ++s) {
          score[s] = local[l * k + s];
          if (l > 0) score[s] += transition[label[l - 1] * k + s];
          if (l + 1 < options.length) score[s] += transition[s * k + label[l + 1]];
        }
        label[l] = draw(random, score);
      }
    }
    builder.begin_example("chain" + std::to_string(m));
    for (std::size_t l = 0; l < options.length; ++l)
      builder.add_variable(0, builder.add_dense({x.data() + l * d, d}), static_cast<std::int32_t>(label[l]));
    for (std::uint32_t l = 0; l + 1 < options.length; ++l)
      builder.add_factor(1, builder.one(), std::array<std::uint32_t, 2>{l, l + 1});
    builder.end_example();
  }
  return builder.finish();
}

Dataset generate(const MultilabelOptions& options) {
  const std::size_t n = options.variables;
  const std::size_t k = options.states;
  require(n >= 1 && n <= 1000, "1 to 1000 variables are needed");
  require(k >= 2 && k <= 256, "2 to 256 states are needed");
  require(std::isfinite(options.coupling), "the coupling must be finite");
  require_size(options.examples, std::uint64_t{n} * n * k);

  Random model = model_stream(options.model_seed, Family::multilabel);
  const std::vector<double> node_weight = normals(model, n * k);
  std::vector<std::vector<double>> pair_weight(n * n);  // of i < j at i·n + j
  std::vector<Template> templates;
  for (std::size_t i = 0; i < n; ++i)
    templates.push_back(make_template("node" + std::to_string(i), {options.states}, 1));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      pair_weight[i * n + j] = normals(model, k * k, options.coupling);
      templates.push_back(make_template("pair" + std::to_string(i) + "_" + std::to_string(j),
                                        {options.states, options.states}, 1));
    }
  }
  DatasetBuilder builder{TemplateSet(std::move(templates))};

  std::vector<std::uint32_t> label(n);
  std::vector<double> score(k);
  std::vector<float> x(n);
  for (std::uint64_t m = 0; m < options.examples; ++m) {
    Random random = example_stream(options.seed, Family::multilabel, m);
    for (float& v : x) v = static_cast<float>(random.normal());
    const auto best_state = [&](std::size_t i, bool with_pairs) {
      for (std::size_t s = 0; s < k; ++s) {
        score[s] = node_weight[i * k + s] * x[i];
        for (std::size_t j = 0; with_pairs && j < n; ++j) {
          if (j < i) score[s] += pair_weight[j * n + i][label[j] * k + s];
          if (j > i) score[s] += pair_weight[i * n + j][s * k + label[j]];
        }
      }
      return static_cast<std::uint32_t>(std::max_element(score.begin(), score.end()) - score.begin());
    };
    for (std::size_t i = 0; i < n; ++i) label[i] = best_state(i, false);
    // The score rises with every change, so this ends; the limit only guards against rounding.
    bool changed = true;
    for (int sweep = 0; changed && sweep < 1000; ++sweep) {
      changed = false;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t best = best_state(i, true);
        changed = changed || best != label[i];
        label[i] = best;
      }
    }
    builder.begin_example("sample" + std::to_string(m));
    for (std::size_t i = 0; i < n; ++i)
      builder.add_variable(i, builder.add_dense({&x[i], 1}), static_cast<std::int32_t>(label[i]));
    std::size_t block = n;
    for (std::uint32_t i = 0; i < n; ++i)
      for (std::uint32_t j = i + 1; j < n; ++j)
        builder.add_factor(block++, builder.one(), std::array<std::uint32_t, 2>{i, j});
    builder.end_example();
  }
  return builder.finish();
}

}  // namespace margrave
