// Excessive gap reduction with kernels: the linear kernel is `egr`, others are a linear problem in the space
// of an explicit feature map, and models say of other data what they say in training.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

TrainOptions with(const SolverOptions& solver, std::uint64_t epochs = 12) {
  TrainOptions options;
  options.solver = solver;
  options.lambda = 0.1;
  options.gap = 0;
  options.max_epochs = epochs;
  options.threads = 1;
  return options;
}

bool has_state_inputs(const Dataset& data) {
  for (std::size_t m = 0; m < data.size(); ++m)
    for (std::size_t i = 0; i < data[m].variables(); ++i)
      if (data.input(data[m].input_of(i)).kind == InputKind::per_state) return true;
  return false;
}

void expect_same_run(const Report& a, const Report& b) {
  ASSERT_EQ(a.trace.size(), b.trace.size());
  for (std::size_t e = 0; e < a.trace.size(); ++e) {
    const double scale = 1 + std::abs(a.trace[e].primal);
    EXPECT_NEAR(a.trace[e].primal, b.trace[e].primal, 1e-8 * scale) << "epoch " << e + 1;
    EXPECT_NEAR(*a.trace[e].dual, *b.trace[e].dual, 1e-8 * scale) << "epoch " << e + 1;
    EXPECT_NEAR(*a.trace[e].gap_bound, *b.trace[e].gap_bound, 1e-8 * (1 + *a.trace[e].gap_bound));
  }
}

TEST(EgrKernel, TheLinearKernelIsEgr) {
  int compared = 0;
  for (const TinyProblem& problem : tiny_problems()) {
    SCOPED_TRACE(problem.name);
    const Dataset data = problem.make();
    // Rounding decides between two steps where both look the same: the paper's constant leaves no choice.
    EgrKernelOptions kernel{.kernel = Kernel::linear, .adaptive = false};
    if (has_state_inputs(data)) {
      EXPECT_THROW(train(data, with(kernel)), UsageError);
      continue;
    }
    const TrainResult plain = train(data, with(EgrOptions{.adaptive = false}));
    for (const std::uint32_t megabytes : {0U, 1024U}) {
      kernel.cache_megabytes = megabytes;
      const TrainResult other = train(data, with(kernel));
      expect_same_run(plain.report, other.report);
      EXPECT_EQ(evaluate(plain.model, data).hamming, evaluate(other.model, data).hamming);
    }
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

// φ(x) = all products of two entries of (x, √offset): <φ(x), φ(x')> = (<x, x'> + offset)².
Dataset with_products(const Dataset& data, double offset) {
  std::vector<Template> templates;
  for (const Template& t : data.templates()) {
    const std::uint64_t n = t.inputs + 1;
    templates.push_back(make_template(t.name, t.states, t.order() == 1 ? n * n : t.inputs, t.kind));
  }
  DatasetBuilder builder{TemplateSet(templates)};
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    const Topology& top = g.topology();
    builder.begin_example();
    for (std::uint32_t i = 0; i < top.variables(); ++i) {
      const InputView view = data.input(g.input_of(i));
      std::vector<float> x(view.value, view.value + view.count);
      EXPECT_EQ(view.kind, InputKind::dense);
      x.push_back(static_cast<float>(std::sqrt(offset)));
      std::vector<float> products;
      for (const float a : x)
        for (const float b : x) products.push_back(a * b);
      builder.add_variable(top.variable_template[i], builder.add_dense(products), g.label(i));
    }
    for (std::size_t c = 0; c < top.factors(); ++c) {
      const InputView view = data.input(g.input_of(top.variables() + c));
      EXPECT_EQ(view.count, 1U);
      builder.add_factor(top.factor_template[c], builder.one(), top.scope_of(c));
    }
    builder.end_example();
  }
  return builder.finish();
}

TEST(EgrKernel, ThePolynomialKernelIsItsFeatureMap) {
  const Dataset data = random_chains(4, {.examples = 15, .states = 3, .longest = 4, .inputs = 5});
  const Dataset products = with_products(data, 4.0);
  const EgrKernelOptions kernel{
      .kernel = Kernel::polynomial, .kernel_offset = 4.0, .kernel_degree = 2, .adaptive = false};
  const Report mapped = train(products, with(EgrOptions{.adaptive = false})).report;
  const Report implicit = train(data, with(kernel)).report;
  ASSERT_EQ(mapped.trace.size(), implicit.trace.size());
  // The features were rounded to single precision.
  for (std::size_t e = 0; e < mapped.trace.size(); ++e)
    EXPECT_NEAR(mapped.trace[e].primal, implicit.trace[e].primal, 1e-5 * (1 + mapped.trace[e].primal));
}

class EveryKernel : public ::testing::TestWithParam<Kernel> {
 protected:
  EgrKernelOptions options_{.kernel = GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel,
                         ::testing::Values(Kernel::linear, Kernel::polynomial, Kernel::rbf));

TEST_P(EveryKernel, ConvergesBelowItsBoundAndIsCertifiedByOtherCode) {
  const Dataset data = random_chains(5, {.examples = 20, .states = 3, .longest = 4, .inputs = 4});
  TrainOptions options = with(options_, 1000);
  options.lambda = 0.3;
  options.gap = 1e-3;
  const auto [model, report] = train(data, options);
  EXPECT_EQ(report.status, Status::converged);
  for (const Evaluation& e : report.trace) {
    EXPECT_TRUE(e.certified);
    EXPECT_LE(e.primal - *e.dual, *e.gap_bound + 1e-10);
  }
  const CertifiedBounds bounds = certify(model, data);
  EXPECT_NEAR(bounds.primal, report.last.primal, 1e-10 * (1 + bounds.primal));
  EXPECT_NEAR(*bounds.dual, *report.last.dual, 1e-5);
  EXPECT_GE(*bounds.gap(), -bounds.rounding);
}

TEST_P(EveryKernel, BitsDoNotDependOnThreadsOrTheCache) {
  const Dataset data = random_chains(6, {.examples = 60, .states = 4, .longest = 5, .inputs = 12});
  std::set<std::vector<double>> coefficients;
  for (const int threads : {1, 2, 7})
    for (const std::uint32_t megabytes : {0U, 1U, 1024U}) {
      options_.cache_megabytes = megabytes;
      TrainOptions options = with(options_, 3);
      options.threads = threads;
      const Model model = train(data, options).model;
      ASSERT_TRUE(model.kernel.has_value());
      coefficients.insert(model.kernel->groups.at(0).coefficient);
    }
  EXPECT_EQ(coefficients.size(), 1U);
}

TEST(EgrKernel, RbfSeparatesWhatLinesCannot) {
  DatasetBuilder builder{TemplateSet({make_template("x", {2}, 2)})};
  for (int n = 0; n < 40; ++n) {
    const float a = n % 2 == 0 ? 1.0F : -1.0F, b = n % 4 < 2 ? 1.0F : -1.0F;
    const auto jitter = static_cast<float>(n) * 0.01F;
    builder.begin_example();
    const float x[] = {a + jitter, b - jitter};
    builder.add_variable(0, builder.add_dense(x), a * b > 0 ? 1 : 0);
    builder.end_example();
  }
  const Dataset data = builder.finish();
  const auto error = [&](Kernel kernel) {
    TrainOptions options = with(EgrKernelOptions{.kernel = kernel}, 60);
    options.lambda = 1e-2;
    return evaluate(train(data, options).model, data).hamming;
  };
  EXPECT_GT(error(Kernel::linear), 0.2);
  EXPECT_EQ(error(Kernel::rbf), 0);
  EXPECT_EQ(error(Kernel::polynomial), 0);
}

}  // namespace
}  // namespace margrave::test
