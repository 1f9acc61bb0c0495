#include "solvers/cached_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "inference/oracle.hpp"
#include "solvers/pass_extrapolation.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave::test {
namespace {

constexpr double lambda = 0.05;

// A cache of random labellings with random weights, its program, and the w they make.
class Fixture {
 public:
  Fixture(const Dataset& of, std::uint64_t seed, bool as_rows = false)
      : data(of),
        arena(1),
        objective{.lambda = lambda, .examples = data.size()},
        problem{data, objective, nullptr, arena},
        gram(data, arena),
        flat(as_rows ? std::make_unique<FlatFeatures>(data) : nullptr),
        cache(data, flat.get()),
        weights(data.templates()),
        program(problem, BcfwOptions{}, flat.get()) {
    Random random(seed);
    cache.make_room(arena, 4, 4);
    for (std::size_t m = 0; m < data.size(); ++m) {
      const FactorGraph g = data[m];
      for (int k = 0; k < 4; ++k) {
        Labelling y(g.variables());
        for (std::size_t i = 0; i < y.size(); ++i)
          y[i] = static_cast<std::uint32_t>(random.below(g.topology().states[i]));
        if (cache.find(m, y) != VertexCache::absent) continue;
        const std::uint32_t at = cache.add(m, y, {}, gram, scratch);
        cache.block(m).loss[at] = objective.loss(g, y);
      }
      const VertexCache::Block b = cache.block(m);
      std::fill_n(b.weight, b.count, 0.0);
      b.weight[random.below(b.count)] += 0.5;
      b.weight[random.below(b.count)] += 0.5;
    }
    program.make_room();
    program.compile(cache, Members::all);
    weights.assign(made_weights());
  }

  // w as the program wants it, and back.
  std::vector<double> for_program(const std::vector<double>& w) const {
    std::vector<double> rows(w.size());
    program.layout().to_rows(w.data(), rows.data());
    return rows;
  }
  std::vector<double> from_program(std::span<const double> rows) const {
    std::vector<double> w(rows.size());
    program.layout().from_rows(rows.data(), w.data());
    return w;
  }

  // Dense features of a vertex, in w's own order.
  std::vector<double> own_psi(std::size_t m, std::size_t k) const {
    const CachedLabel* labels = cache.block(m).vertex(k, data[m].variables()).labels;
    return feature_difference(data, data[m], Labelling(labels, labels + data[m].variables()));
  }
  std::vector<double> psi(std::size_t m, std::size_t k) const { return for_program(own_psi(m, k)); }
  // w(μ) of the program's point, from dense features, as the program wants it.
  std::vector<double> made_weights() const {
    std::vector<double> w(data.templates().storage(), 0.0);
    for (std::size_t m = 0; m < data.size(); ++m)
      for (std::size_t k = 0; k < program.count(m); ++k) {
        const double weight = program.weights()[program.begin(m) + k];
        if (weight == 0) continue;
        const std::vector<double> difference = own_psi(m, k);
        for (std::size_t i = 0; i < w.size(); ++i) w[i] += objective.weight_scale() * weight * difference[i];
      }
    return for_program(w);
  }
  // M·D of the program's point and of w.
  double dual() const {
    double loss = 0;
    for (std::size_t i = 0; i < program.weights().size(); ++i)
      loss += program.weights()[i] * program.losses()[i];
    double norm = 0;
    for (const double x : weights.span()) norm += x * x;
    return loss - norm / (2 * objective.weight_scale());
  }
  // A pass of exact steps, one example after the other.
  void pass() {
    for (std::uint32_t m = 0; m < data.size(); ++m) {
      step.example = m;
      program.propose(weights.data(), worker, step);
      if (step.terms.empty()) continue;
      weights.change([&](double* w) { program.commit(step, -objective.weight_scale(), w); });
      program.apply(step, 1.0);
    }
  }
  void expect_true_weights() const {
    const std::vector<double> wanted = made_weights();
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(weights.span()[i], wanted[i], 1e-10 * (1 + std::abs(wanted[i])));
  }

  const Dataset& data;
  Arena arena;
  Objective objective;
  Problem problem;
  FeatureGram gram;
  FeatureGram::Scratch scratch;
  std::unique_ptr<FlatFeatures> flat;
  VertexCache cache;
  WeightStore weights;
  CachedProgram program;
  BlockWorker worker;
  BlockStep step;
};

// All tiny problems, and some with inputs of all kinds that are worth rows of their own; those with flat
// features once more, vertices as rows.
void for_each_problem(const std::function<void(const Dataset&, bool as_rows)>& test) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = random_problem(seed, 12, 5, 30 * (seed % 3) + 7);
    EXPECT_TRUE(RowLayout(data).differs());
    test(data, false);
  }
  int flat = 0;
  for (const TinyProblem& tiny : tiny_problems()) {
    SCOPED_TRACE(tiny.name);
    const Dataset data = tiny_problem(tiny.name);
    test(data, false);
    if (!FlatFeatures::fit(data)) continue;
    SCOPED_TRACE("rows");
    test(data, true);
    ++flat;
  }
  EXPECT_GE(flat, 1);
}

double product(std::span<const double> a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// What a visit finds, from dense features: the gap, and along the step its slope and its change of w.
TEST(CachedProgram, VisitsAgreeWithDenseFeatures) {
  for_each_problem([](const Dataset& data, bool as_rows) {
    Fixture f(data, 7, as_rows);
    for (std::uint32_t m = 0; m < data.size(); ++m) {
      f.step.example = m;
      f.program.propose(f.weights.data(), f.worker, f.step);
      const VertexCache::Block b = f.cache.block(m);
      std::vector<double> gradient;
      double mean = 0;
      for (std::size_t k = 0; k < b.count; ++k) {
        gradient.push_back(b.loss[k] - product(f.weights.span(), f.psi(m, k)));
        mean += b.weight[k] * gradient[k];
      }
      EXPECT_NEAR(f.step.block_gap, *std::max_element(gradient.begin(), gradient.end()) - mean, 1e-10);
      if (f.step.terms.empty()) continue;
      double slope = 0;
      std::vector<double> change(data.templates().storage(), 0.0);
      std::vector<double> wanted(change);
      for (std::size_t k = 0; k < b.count; ++k) {
        const double moved = f.step.target[k] - b.weight[k];
        slope += moved * gradient[k];
        const std::vector<double> difference = f.psi(m, k);
        for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] -= 2 * moved * difference[i];
      }
      EXPECT_NEAR(f.step.slope, slope, 1e-10);
      EXPECT_NEAR(f.step.loss_change + f.program.product(f.step, f.weights.data()), slope, 1e-10);
      f.program.commit(f.step, 2, change.data());
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(change[i], wanted[i], 1e-10);
    }
  });
}

// Vertices without weight left out, the others relative to one of them: the same visits, where only these may
// move. Half of the examples are left with a pair or none.
TEST(CachedProgram, WeightedMembersAreVisitedAsIfTheOthersWereNotThere) {
  for_each_problem([](const Dataset& data, bool as_rows) {
    Fixture f(data, 11, as_rows);
    for (std::size_t m = 0; m < data.size(); m += 2) {
      const VertexCache::Block b = f.cache.block(m);
      std::fill_n(b.weight, b.count, 1.0 / b.count);
    }
    f.program.compile(f.cache, Members::all);
    f.weights.assign(f.made_weights());
    f.program.compile(f.cache, Members::weighted);
    for (std::uint32_t m = 0; m < data.size(); ++m) {
      const VertexCache::Block b = f.cache.block(m);
      std::vector<std::uint32_t> members;
      for (std::uint32_t k = 0; k < b.count; ++k)
        if (b.weight[k] > 0) members.push_back(k);
      if (members.size() == 1) members.clear();
      ASSERT_EQ(f.program.count(m), members.size());
      if (members.empty()) continue;
      double mean = 0;
      double most = -1e300;
      std::vector<double> gradient;
      for (const std::uint32_t k : members) {
        gradient.push_back(b.loss[k] - product(f.weights.span(), f.psi(m, k)));
        mean += b.weight[k] * gradient.back();
        most = std::max(most, gradient.back());
      }
      f.step.example = m;
      f.program.propose(f.weights.data(), f.worker, f.step);
      EXPECT_NEAR(f.step.block_gap, most - mean, 1e-10);
      if (f.step.terms.empty()) continue;
      double slope = 0;
      std::vector<double> change(data.templates().storage(), 0.0);
      std::vector<double> wanted(change);
      for (std::size_t i = 0; i < members.size(); ++i) {
        const double moved = f.step.target[i] - b.weight[members[i]];
        slope += moved * gradient[i];
        const std::vector<double> difference = f.psi(m, members[i]);
        for (std::size_t j = 0; j < wanted.size(); ++j) wanted[j] -= moved * difference[j];
      }
      EXPECT_NEAR(f.step.slope, slope, 1e-10);
      f.program.commit(f.step, 1, change.data());
      double curvature = 0;
      for (std::size_t j = 0; j < wanted.size(); ++j) {
        EXPECT_NEAR(change[j], wanted[j], 1e-10);
        curvature += wanted[j] * wanted[j];
      }
      EXPECT_NEAR(f.step.curvature, curvature, 1e-9 * (1 + curvature));
    }
  });
}

// A pair's own visit does what the general one does.
TEST(CachedProgram, VisitsOfPairsAreExactSteps) {
  std::size_t pairs = 0;
  for_each_problem([&](const Dataset& data, bool as_rows) {
    Fixture f(data, 13, as_rows);
    f.program.compile(f.cache, Members::weighted);
    for (std::uint32_t m = 0; m < data.size(); ++m) {
      if (!f.program.is_pair(m)) continue;
      ++pairs;
      f.step.example = m;
      f.program.propose(f.weights.data(), f.worker, f.step);
      std::vector<double> wanted(f.weights.span().begin(), f.weights.span().end());
      if (!f.step.terms.empty()) f.program.commit(f.step, -f.objective.weight_scale(), wanted.data());
      const double gain = f.step.slope - f.objective.weight_scale() * f.step.curvature / 2;
      CachedProgram::Step taken{};
      f.weights.change([&](double* w) { taken = f.program.visit_pair(m, w, 1.0); });
      EXPECT_NEAR(taken.gap, f.step.block_gap, 1e-10);
      EXPECT_NEAR(taken.gain, f.step.terms.empty() ? 0 : gain, 1e-10);
      for (std::size_t i = 0; i < 2; ++i)
        EXPECT_NEAR(f.program.weights()[f.program.begin(m) + i], f.step.target[i], 1e-10);
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(f.weights.span()[i], wanted[i], 1e-10);
    }
  });
  EXPECT_GT(pairs, 20U);
}

// Fractional vertices, the first of a shelf among them, against the cache's own deviations.
TEST(CachedProgram, KeepsTheMassesOfFractionalVertices) {
  const Dataset data = tiny_problem("loop_potts");
  Fixture f(data, 8);
  f.cache.make_room(f.arena, 1, 8);
  const Labelling y = truth_of(data[0]);
  const std::vector<Mass> halves{{0, 0, 0.5}, {0, 1, 0.5}};
  const std::uint32_t half = f.cache.add(0, y, halves, f.gram, f.scratch);
  f.program.compile(f.cache, Members::all);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const VertexCache::Block b = f.cache.block(m);
    std::vector<double> term;
    for (std::uint32_t k = 0; k < b.count; ++k) {
      std::vector<double> wanted(data.templates().storage(), 0.0);
      std::vector<double> made(wanted);
      b.for_each_part(k, [&](std::uint32_t part, double mass) {
        add_deviation(data, b.deviations[part], mass, wanted.data());
      });
      std::vector<double> one(b.count, 0.0);
      one[k] = 1;
      f.program.add_features(m, one.data(), term, made.data());
      made = f.from_program(made);
      for (std::size_t i = 0; i < wanted.size(); ++i)
        EXPECT_NEAR(made[i], wanted[i], 1e-12) << "example " << m << ", vertex " << k << " of " << half;
    }
  }
}

// The same of flat features, against the deviations of a cache without them.
TEST(CachedProgram, KeepsTheRowsOfFractionalVertices) {
  const Dataset data = tiny_problem("multilabel_minimal");
  Fixture f(data, 8, true);
  Fixture lists(data, 8);
  f.cache.make_room(f.arena, 1, 8);
  lists.cache.make_room(lists.arena, 1, 8);
  const Labelling y(data[0].variables(), 0);
  // The first two variables are halves, opposite in their factor; the others are 0.
  std::vector<Mass> halves;
  for (const std::uint32_t a : {0U, 1U})
    for (const std::uint32_t joint : {0U, 1U}) halves.push_back({a, joint, 0.5});
  for (const std::uint32_t joint : {1U, 2U}) halves.push_back({4, joint, 0.5});
  for (const std::uint32_t factor : {5U, 6U, 7U, 8U})
    for (const std::uint32_t joint : {0U, 2U}) halves.push_back({factor, joint, 0.5});
  f.cache.add(0, y, halves, f.gram, f.scratch);
  lists.cache.add(0, y, halves, lists.gram, lists.scratch);
  f.program.compile(f.cache, Members::all);
  const VertexCache::Block rows = f.cache.block(0);
  const VertexCache::Block b = lists.cache.block(0);
  ASSERT_EQ(rows.count, b.count);
  std::vector<double> term;
  for (std::uint32_t k = 0; k < b.count; ++k) {
    for (std::uint32_t j = 0; j < b.count; ++j)
      EXPECT_NEAR(rows.gram[std::size_t{k} * rows.capacity + j], b.gram[std::size_t{k} * b.capacity + j],
                  1e-12);
    std::vector<double> wanted(data.templates().storage(), 0.0);
    std::vector<double> made(wanted);
    b.for_each_part(k, [&](std::uint32_t part, double mass) {
      add_deviation(data, b.deviations[part], mass, wanted.data());
    });
    std::vector<double> one(b.count, 0.0);
    one[k] = 1;
    f.program.add_features(0, one.data(), term, made.data());
    made = f.from_program(made);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(made[i], wanted[i], 1e-12) << "vertex " << k;
  }
}

// Passes and extrapolations: D rises by what is said, w stays that of the point, and a long run solves the
// program: no vertex promises more than those that have weight.
TEST(PassExtrapolation, RaisesTheDualAndSolvesTheProgram) {
  const Dataset data =
      random_chains(82, {.examples = 100, .states = 4, .shortest = 2, .longest = 6, .inputs = 8});
  Fixture f(data, 9);
  PassExtrapolation extrapolation(f.problem, f.program, f.weights);
  extrapolation.make_room(f.cache);
  extrapolation.start();
  double gained = 0;
  for (int pass = 0; pass < 60; ++pass) {
    const double before = f.dual();
    f.pass();
    const double between = f.dual();
    EXPECT_GE(between, before - 1e-10);
    const double gain = extrapolation.extrapolate();
    EXPECT_GE(gain, 0);
    EXPECT_NEAR(f.dual(), between + gain, 1e-9 * (1 + std::abs(between)));
    gained += gain;
    if (pass % 20 == 0) f.expect_true_weights();
  }
  EXPECT_GT(gained, 0) << "extrapolation never did anything";
  f.expect_true_weights();
  for (std::uint32_t m = 0; m < data.size(); ++m) {
    f.step.example = m;
    f.program.propose(f.weights.data(), f.worker, f.step);
    EXPECT_LT(f.step.block_gap, 1e-3);
  }
  f.program.store_weights(f.cache);
  EXPECT_EQ(f.cache.block(3).weight[0], f.program.weights()[f.program.begin(3)]);
}

}  // namespace
}  // namespace margrave::test
