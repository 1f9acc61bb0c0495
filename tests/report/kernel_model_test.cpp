// Models with kernels: what is saved is loaded, scores are those of the definition, dump names the support,
// and files that do not fit together are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "margrave/error.hpp"
#include "margrave/model.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "model/clique_scores.hpp"
#include "support/problems.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

Model trained(const Dataset& data, Kernel kernel) {
  TrainOptions options;
  options.solver = EgrKernelOptions{.kernel = kernel};
  options.lambda = 0.1;
  options.max_epochs = 3;
  options.gap = 0;
  options.threads = 1;
  return train(data, options).model;
}
Dataset words(std::uint64_t seed) {
  return random_chains(seed, {.examples = 12, .states = 3, .shortest = 1, .longest = 4, .inputs = 5});
}

TEST(KernelModel, IsLoadedAsItWasSaved) {
  const ScratchFolder folder;
  const Dataset data = words(1);
  for (const Kernel kernel : {Kernel::linear, Kernel::polynomial, Kernel::rbf}) {
    const Model model = trained(data, kernel);
    save_model(model, folder.file("model"));
    const Model loaded = load_model(folder.file("model"));
    ASSERT_TRUE(loaded.kernel.has_value());
    ASSERT_EQ(loaded.kernel->groups.size(), 1U);
    const KernelExpansion::Group &a = model.kernel->groups[0], &b = loaded.kernel->groups[0];
    EXPECT_EQ(a.function.kind, kernel);
    EXPECT_EQ(a.function.kind, b.function.kind);
    EXPECT_EQ(a.function.width, b.function.width);
    EXPECT_EQ(a.function.offset, b.function.offset);
    EXPECT_EQ(a.function.degree, b.function.degree);
    EXPECT_EQ(a.inputs, b.inputs);
    EXPECT_EQ(a.templates, b.templates);
    EXPECT_EQ(a.begin, b.begin);
    EXPECT_EQ(a.index, b.index);
    EXPECT_EQ(a.value, b.value);
    EXPECT_EQ(a.coefficient, b.coefficient);
    EXPECT_EQ(loaded.weights, model.weights);
  }
}

// Scores of other data, from the definition of the kernels.
TEST(KernelModel, ScoresOtherDataByItsSupport) {
  const Dataset data = words(2), other = words(3);
  for (const Kernel kernel : {Kernel::linear, Kernel::polynomial, Kernel::rbf}) {
    const Model model = trained(data, kernel);
    const KernelExpansion::Group& group = model.kernel->groups.at(0);
    const auto value = [&](const InputView& x, const InputView& z) {
      const double product = input_product(x, z);
      if (kernel == Kernel::linear) return product;
      if (kernel == Kernel::polynomial) return std::pow(product + 1, 2.0);
      return std::exp(-group.function.width * (input_product(x, x) + input_product(z, z) - 2 * product));
    };
    const auto predictions = predict(model, other);
    for (std::size_t m = 0; m < other.size(); ++m) {
      const FactorGraph g = other[m];
      const auto& best = predictions[m].best.at(0);
      double score = 0;
      for (std::size_t a = 0; a < g.cliques(); ++a) {
        const std::size_t joint = joint_state(g.topology(), a, best.labels);
        if (a >= g.variables()) {
          score += state_score(other, other.templates()[g.topology().template_of(a)], g.input_of(a), joint,
                               model.weights.data());
          continue;
        }
        for (std::size_t s = 0; s < group.support(); ++s)
          score += group.coefficient[s * 3 + joint] * value(other.input(g.input_of(a)), group.input(s));
      }
      EXPECT_NEAR(best.score, score, 1e-9 * (1 + std::abs(score)));
    }
  }
}

TEST(KernelModel, DumpListsCoefficientsOfTheSupport) {
  const Model model = trained(words(4), Kernel::rbf);
  std::string text, json;
  dump_text(model, {}, [&](std::string_view piece) { text += piece; });
  dump_json(model, {.top = 1}, [&](std::string_view piece) { json += piece; });
  EXPECT_NE(text.find("support0\t"), std::string::npos);
  EXPECT_NE(text.find("support" + std::to_string(model.kernel->groups[0].support() - 1) + "\t"),
            std::string::npos);
  EXPECT_NE(json.find("\"kernel\":\"rbf\""), std::string::npos);
}

TEST(KernelModel, SmoothLossesAreNotCertified) {
  const Dataset data = words(6);
  Model model = trained(data, Kernel::rbf);
  EXPECT_GE(certify(model, data).gap().value(), 0);
  model.loss = Loss::log;
  model.gamma = 1;
  for (const Entropy entropy : {Entropy::shannon, Entropy::gini}) {
    model.entropy = entropy;
    EXPECT_THROW(certify(model, data), InputError);
  }
}

TEST(KernelModel, WhatDoesNotFitIsRefused) {
  const ScratchFolder folder;
  const Model good = trained(words(5), Kernel::rbf);
  const auto refused = [&](const std::function<void(KernelExpansion::Group&)>& change) {
    Model model = good;
    change(model.kernel->groups[0]);
    EXPECT_THROW(save_model(model, folder.file("model")), UsageError);
  };
  refused([](auto& g) { g.coefficient.pop_back(); });
  refused([](auto& g) { g.coefficient[0] = NAN; });
  refused([](auto& g) { g.index[0] = 1000; });
  refused([](auto& g) { g.templates[0] = 1; });
  refused([](auto& g) { g.templates[0] = 9; });
  refused([](auto& g) { g.begin.pop_back(); });
  refused([](auto& g) { g.function.width = -1; });
  refused([](auto& g) { g.function.degree = 1000; });
}

}  // namespace
}  // namespace margrave::test
