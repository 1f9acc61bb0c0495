// Prediction under a scheme of chunk tags and with given labels, against all labellings enumerated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "support/problem_parts.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave {
namespace {

using Names = std::vector<std::string>;
const Names iob2{"O", "B-NP", "I-NP", "B-VP", "I-VP"};
const Names iobes{"S-NP", "I-NP", "O", "E-NP", "B-NP"};

// The rules once more, from names and in words of their own.
bool legal(Scheme scheme, const std::string& left, const std::string& right) {
  const auto type = [](const std::string& name) { return name.size() > 2 ? name.substr(2) : std::string(); };
  const bool same = type(left) == type(right);
  if (scheme == Scheme::iob2) return right[0] != 'I' || (same && (left[0] == 'B' || left[0] == 'I'));
  if (left[0] == 'B' || left[0] == 'I') return same && (right[0] == 'I' || right[0] == 'E');
  return right[0] == 'O' || right[0] == 'B' || right[0] == 'S';
}

struct TextShape {
  Names names = iob2;
  bool mixed_directions = false;
  double unlabelled_part = 0.5;
  std::size_t longest = 5;
};

// Sentences as chains over one variable template with names.
Dataset text(std::uint64_t seed, const TextShape& shape) {
  const auto k = static_cast<std::uint32_t>(shape.names.size());
  Template node = make_template("tag", {k}, 3);
  node.state_names = shape.names;
  auto b = test::builder_of({node, make_template("transition", {k, k}, 1)});
  Random random(seed);
  for (std::size_t m = 0; m < 8; ++m) {
    b.begin_example();
    const auto length = static_cast<std::uint32_t>(1 + random.below(shape.longest));
    for (std::uint32_t i = 0; i < length; ++i)
      b.add_variable(0, test::dense_input(b, random, 3),
                     random.uniform() < shape.unlabelled_part ? unlabelled : test::any_label(random, k));
    for (std::uint32_t i = 0; i + 1 < length; ++i)
      b.add_factor(
          1, b.one(),
          shape.mixed_directions && random.below(2) == 0 ? test::Scope{i + 1, i} : test::Scope{i, i + 1});
    b.end_example();
  }
  return b.finish();
}

Model model_for(const Dataset& data, std::uint64_t seed, double size = 1) {
  Model model;
  model.templates = data.templates();
  model.weights.resize(model.templates.storage());
  Random random(seed);
  for (const Template& t : model.templates)
    for (std::uint64_t d = 0; d < t.inputs; ++d)
      for (std::uint64_t r = 0; r < t.rows; ++r)
        model.weights[t.offset + d * t.stride + r] = size * random.normal();
  return model;
}

bool allowed(const Dataset& data, const FactorGraph& graph, const PredictOptions& options,
             const test::Labelling& y) {
  for (std::size_t i = 0; options.keep_labels && i < y.size(); ++i)
    if (graph.label(i) != unlabelled && y[i] != static_cast<std::uint32_t>(graph.label(i))) return false;
  if (options.scheme == Scheme::none) return true;
  const Names& names = data.templates()[0].state_names;
  if (!legal(options.scheme, "O", names[y.front()]) || !legal(options.scheme, names[y.back()], "O"))
    return false;
  for (std::size_t i = 0; i + 1 < y.size(); ++i)
    if (!legal(options.scheme, names[y[i]], names[y[i + 1]])) return false;
  return true;
}

struct Enumerated {
  std::vector<double> scores;  // of what is allowed, best first
  std::vector<double> marginals;
};
Enumerated enumerate(const Model& model, const Dataset& data, std::size_t m, const PredictOptions& options) {
  Enumerated result;
  const FactorGraph graph = data[m];
  const auto& offset = graph.topology().clique_offset;
  result.marginals.resize(offset[graph.variables()]);
  double best = -INFINITY;
  const auto score = [&](const test::Labelling& y) {
    const auto phi = test::features(data, graph, y);
    double sum = 0;
    for (std::size_t i = 0; i < phi.size(); ++i) sum += phi[i] * model.weights[i];
    return sum;
  };
  test::for_each_labelling(graph, [&](const test::Labelling& y) {
    if (allowed(data, graph, options, y)) result.scores.push_back(score(y));
  });
  std::sort(result.scores.rbegin(), result.scores.rend());
  if (!result.scores.empty()) best = result.scores.front();
  double total = 0;
  test::for_each_labelling(graph, [&](const test::Labelling& y) {
    if (!allowed(data, graph, options, y)) return;
    const double p = std::exp(score(y) - best);
    total += p;
    for (std::size_t i = 0; i < y.size(); ++i) result.marginals[offset[i] + y[i]] += p;
  });
  for (double& p : result.marginals) p /= total;
  return result;
}

// Best, k best and marginals of every example are those of the labellings that are left.
void expect_enumerated(const Model& model, const Dataset& data, PredictOptions options) {
  constexpr std::size_t listed = 6;
  const auto best = predict(model, data, options);
  options.marginals = true;
  options.nbest = listed;
  const auto many = predict(model, data, options);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const Enumerated expected = enumerate(model, data, m, options);
    ASSERT_FALSE(expected.scores.empty());
    const double size = std::max(1.0, std::abs(expected.scores.front()));
    EXPECT_TRUE(allowed(data, data[m], options, best[m].best.front().labels));
    EXPECT_NEAR(best[m].best.front().score, expected.scores.front(), 1e-9 * size);
    EXPECT_TRUE(best[m].proven);
    ASSERT_EQ(many[m].best.size(), std::min(listed, expected.scores.size()));
    for (std::size_t k = 0; k < many[m].best.size(); ++k) {
      EXPECT_NEAR(many[m].best[k].score, expected.scores[k], 1e-9 * size);
      EXPECT_TRUE(allowed(data, data[m], options, many[m].best[k].labels));
    }
    ASSERT_EQ(many[m].node_marginals.size(), expected.marginals.size());
    for (std::size_t i = 0; i < expected.marginals.size(); ++i)
      EXPECT_NEAR(many[m].node_marginals[i], expected.marginals[i], 1e-9);
  }
}

TEST(Restrictions, SchemesLeaveWhatEnumerationLeaves) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    for (const bool mixed : {false, true}) {
      const Dataset first = text(seed, {.names = iob2, .mixed_directions = mixed});
      expect_enumerated(model_for(first, seed), first, {.scheme = Scheme::iob2});
      const Dataset second = text(seed, {.names = iobes, .mixed_directions = mixed});
      expect_enumerated(model_for(second, seed), second, {.scheme = Scheme::iobes});
    }
}

// Scores so far apart that forward-backward leaves the work to the log domain.
TEST(Restrictions, HoldAtLargeScores) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Dataset data = text(seed, {});
    expect_enumerated(model_for(data, seed, 300), data, {.scheme = Scheme::iob2});
    const Dataset other = text(seed, {.names = iobes});
    expect_enumerated(model_for(other, seed, 300), other, {.scheme = Scheme::iobes});
  }
}

TEST(Restrictions, GivenLabelsAreKept) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Dataset data = text(seed, {});
    expect_enumerated(model_for(data, seed), data, {.keep_labels = true});
    expect_enumerated(model_for(data, seed, 300), data, {.keep_labels = true});
  }
}

TEST(Restrictions, GivenLabelsAndSchemesGoTogether) {
  std::size_t possible = 0, contradictions = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Dataset data = text(seed, {.names = iobes, .unlabelled_part = 0.8});
    const Model model = model_for(data, seed);
    const PredictOptions options{.scheme = Scheme::iobes, .keep_labels = true};
    for (std::size_t m = 0; m < data.size(); ++m) {
      const Dataset one = subset(data, std::vector<std::size_t>{m});
      if (enumerate(model, one, 0, options).scores.empty()) {
        EXPECT_THROW(predict(model, one, options), InputError);
        ++contradictions;
      } else {
        expect_enumerated(model, one, options);
        ++possible;
      }
    }
  }
  EXPECT_GT(possible, 50U);
  EXPECT_GT(contradictions, 50U);
}

// The same data, with about half of its labels.
Dataset half_labelled(const Dataset& data, std::uint64_t seed) {
  DatasetColumns columns = data.columns();
  std::vector<std::int32_t> labels(columns.label.begin(), columns.label.end());
  Random random(seed);
  for (std::int32_t& label : labels)
    if (random.below(2) == 0) label = unlabelled;
  columns.label = Column<std::int32_t>(labels);
  return {data.templates(), columns};
}

TEST(Restrictions, GivenLabelsAreKeptOnAnyGraphByAnyOracle) {
  const PredictOptions kept{.keep_labels = true};
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Dataset data = half_labelled(test::random_problem(seed), seed);
    const Model model = model_for(data, seed);
    const auto exact = predict(model, data, {.marginals = true, .keep_labels = true});
    for (const Inference relaxed : {Inference::msd, Inference::lp}) {
      const auto found = predict(model, data, {.inference = relaxed, .keep_labels = true});
      for (std::size_t m = 0; m < data.size(); ++m) {
        const double best = exact[m].best.front().score, size = std::max(1.0, std::abs(best));
        EXPECT_TRUE(allowed(data, data[m], kept, found[m].best.front().labels));
        EXPECT_LE(found[m].best.front().score, best + 1e-9 * size);
        EXPECT_GE(found[m].bound, best - 1e-7 * size);
      }
    }
    for (std::size_t m = 0; m < data.size(); ++m) {
      const Enumerated expected = enumerate(model, data, m, kept);
      EXPECT_NEAR(exact[m].best.front().score, expected.scores.front(), 1e-8);
      EXPECT_TRUE(allowed(data, data[m], kept, exact[m].best.front().labels));
      for (std::size_t i = 0; i < expected.marginals.size(); ++i)
        EXPECT_NEAR(exact[m].node_marginals[i], expected.marginals[i], 1e-9);
    }
  }
}

TEST(Restrictions, GiveTheSameBitsOnAnyNumberOfThreads) {
  const Dataset data = text(3, {});
  const Model model = model_for(data, 3);
  PredictOptions options{.marginals = true, .threads = 1, .scheme = Scheme::iob2};
  const auto one = predict(model, data, options);
  options.threads = 3;
  const auto three = predict(model, data, options);
  for (std::size_t m = 0; m < data.size(); ++m) {
    EXPECT_EQ(one[m].best.front().labels, three[m].best.front().labels);
    EXPECT_EQ(one[m].node_marginals, three[m].node_marginals);
  }
}

std::string reason(const Dataset& data, const PredictOptions& options) {
  try {
    predict(model_for(data, 1), data, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Restrictions, RefuseWhatCannotBeMeant) {
  const Dataset data = text(1, {});
  const Model model = model_for(data, 1);
  EXPECT_THROW(predict(model, data, {.inference = Inference::msd, .scheme = Scheme::iob2}), UsageError);
  // No tags, tags of another scheme, tags that nothing joins.
  EXPECT_NE(reason(text(1, {.names = {"NN", "VB"}}), {.scheme = Scheme::iob2}).find("has none"),
            std::string::npos);
  EXPECT_NE(reason(text(1, {.names = iobes}), {.scheme = Scheme::iob2}).find("'S-NP'"), std::string::npos);
  Template node = make_template("tag", {3}, 1);
  node.state_names = {"O", "B-X", "I-X"};
  auto b = test::builder_of({node});
  b.begin_example();
  b.add_variable(0, b.one(), 0);
  b.end_example();
  EXPECT_NE(reason(b.finish(), {.scheme = Scheme::iob2}).find("joins no two"), std::string::npos);
}

TEST(Restrictions, NameTheExampleThatNothingIsLeftOf) {
  // One token, which can neither begin and end a chunk nor be outside of one.
  const Dataset data = text(1, {.names = {"B-X", "E-X"}, .longest = 1});
  EXPECT_THROW(predict(model_for(data, 1), data, {.scheme = Scheme::iobes}), InputError);
  EXPECT_NE(
      reason(data, {.marginals = true, .nbest = 3, .scheme = Scheme::iobes}).find("example 0: no labelling"),
      std::string::npos);
}

TEST(Restrictions, RefuseTagsThatNoLegalLabellingHas) {
  for (const auto& [names, scheme, words] : std::vector<std::tuple<Names, Scheme, std::string>>{
           {iob2, Scheme::iobes, "label 'B-NP' can never be used: there is no E-NP; are these IOB2 tags?"},
           {{"O", "I-X"}, Scheme::iob2, "label 'I-X' can never be used: there is no B-X; are these IOB1"},
           {{"O", "I-X", "B-Y"}, Scheme::iob2, "label 'I-X'"},
           {{"O", "I", "E"}, Scheme::iobes, "label 'E' can never be used: there is no B; are these IOE"},
           {{"O", "B-X"}, Scheme::iob2, "none"},
           {{"O", "S-X"}, Scheme::iobes, "none"},
           {{"O", "B-X", "E-X"}, Scheme::iobes, "none"}}) {
    const Dataset data = text(1, {.names = names});
    EXPECT_NE(reason(data, {.scheme = scheme}).find(words), std::string::npos)
        << words << ": " << reason(data, {.scheme = scheme});
  }
  const Dataset data = text(1, {});
  EXPECT_THROW(predict(model_for(data, 1), data, {.scheme = Scheme::iobes}), UsageError);
}

TEST(Restrictions, NameTheGivenLabelThatContradictsTheScheme) {
  Template node = make_template("tag", {3}, 1);
  node.state_names = {"O", "B-X", "I-X"};
  for (const auto& [labels, words] : std::vector<std::pair<std::vector<std::int32_t>, std::string>>{
           {{2, 0}, "example 0 ('s'), variable 0: the given label 'I-X' may not come first"},
           {{0, 2}, "variable 1: the given label 'I-X' may not follow 'O'"},
           {{1, 2}, "none"},
           {{unlabelled, 2}, "none"}}) {
    auto b = test::builder_of({node, make_template("transition", {3, 3}, 1)});
    b.begin_example("s");
    for (const std::int32_t label : labels) b.add_variable(0, b.one(), label);
    b.add_factor(1, b.one(), test::Scope{0, 1});
    b.end_example();
    const Dataset data = b.finish();
    EXPECT_NE(reason(data, {.scheme = Scheme::iob2, .keep_labels = true}).find(words), std::string::npos)
        << words;
  }
}

}  // namespace
}  // namespace margrave
