#include <gtest/gtest.h>

#include <cmath>
#include <variant>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "margrave/predict.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

namespace margrave {
namespace {

Labellings& labellings(Model& model) { return std::get<Labellings>(model.certificate.value().point); }

// Random labellings with random weights on the simplex, and the weights they stand for.
Model certified_model(const Dataset& data, std::uint64_t seed, Hamming hamming) {
  Random random(seed, 5);
  Model model;
  model.templates = data.templates();
  model.lambda = 0.3;
  model.hamming = hamming;
  Labellings certificate;
  certificate.atom_begin = {0};
  certificate.label_begin = {0};
  for (std::size_t m = 0; m < data.size(); ++m) {
    double total = 0;
    for (int a = 0; a < 3; ++a) {
      certificate.weight.push_back(random.uniform());
      total += certificate.weight.back();
      for (const std::uint32_t k : data[m].topology().states)
        certificate.label.push_back(static_cast<std::uint32_t>(random.below(k)));
      certificate.label_begin.push_back(certificate.label.size());
    }
    for (std::size_t a = certificate.weight.size() - 3; a < certificate.weight.size(); ++a)
      certificate.weight[a] /= total;
    certificate.atom_begin.push_back(certificate.weight.size());
  }
  model.weights = test::rebuild(data, model.lambda, hamming, certificate).weights;
  model.certificate = {data.fingerprint(), std::move(certificate)};
  return model;
}

TEST(Certify, AgreesWithBruteForceOnRandomProblems) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Dataset data = test::random_problem(seed);
    const Hamming hamming = seed % 2 == 0 ? Hamming::normalized : Hamming::sum;
    Model model = certified_model(data, seed, hamming);
    const CertifiedBounds bounds = certify(model, data);
    const double primal = test::brute_force_primal(data, model.lambda, hamming, model.weights);
    EXPECT_NEAR(bounds.primal, primal, 1e-10 * std::max(1.0, std::abs(primal)));
    ASSERT_TRUE(bounds.dual.has_value());
    EXPECT_NEAR(*bounds.dual, test::rebuild(data, model.lambda, hamming, labellings(model)).dual, 1e-10);
    EXPECT_LE(*bounds.dual, bounds.primal);
    EXPECT_LT(bounds.weight_distance.value(), 1e-10);
    EXPECT_LT(bounds.infeasibility, 1e-12);
  }
}

TEST(Certify, HasTheSameBitsAtAnyNumberOfThreads) {
  const Dataset data = test::random_chains(2, {.examples = 100});
  const Model model = certified_model(data, 2, Hamming::normalized);
  const CertifiedBounds one = certify(model, data, 1);
  for (const int threads : {2, 5}) {
    const CertifiedBounds many = certify(model, data, threads);
    EXPECT_EQ(one.primal, many.primal);
    EXPECT_EQ(one.dual, many.dual);
  }
}

TEST(Certify, StaysBelowTheOptimumForACertificateOffTheSimplex) {
  const Dataset data = test::random_chains(4, {.examples = 6, .longest = 4});
  Model model = certified_model(data, 4, Hamming::normalized);
  for (double& weight : labellings(model).weight) weight *= 10;
  labellings(model).weight[1] = -1;
  const CertifiedBounds bounds = certify(model, data);
  EXPECT_GT(bounds.infeasibility, 1);
  EXPECT_LE(*bounds.dual, test::reference_optimum(data, model.lambda).primal + 1e-9);
}

TEST(Certify, SeesWeightsThatAreNotThoseOfTheCertificate) {
  const Dataset data = test::random_chains(6, {.examples = 10});
  Model model = certified_model(data, 6, Hamming::normalized);
  const CertifiedBounds before = certify(model, data);
  model.weights[0] += 0.5;
  const CertifiedBounds after = certify(model, data);
  EXPECT_NEAR(after.weight_distance.value(), 0.5, 1e-12);
  EXPECT_EQ(after.dual, before.dual);
  EXPECT_NE(after.primal, before.primal);
}

TEST(Certify, RefusesOtherDataAndBrokenCertificates) {
  const Dataset data = test::random_chains(8, {.examples = 10});
  Model model = certified_model(data, 8, Hamming::normalized);
  EXPECT_THROW(certify(model, test::random_chains(9, {.examples = 10})), InputError);
  const Labellings good = labellings(model);
  labellings(model).label.front() = 77;
  EXPECT_THROW(certify(model, data), InputError);
  labellings(model) = good;
  labellings(model).weight.assign(good.weight.size(), 0);
  EXPECT_THROW(certify(model, data), InputError);
  labellings(model) = good;
  model.loss = Loss::log;
  EXPECT_THROW(certify(model, data), UsageError);
  model.loss = Loss::hinge;
  model.sharpness = 10;
  EXPECT_THROW(certify(model, data), InputError) << "a Laplace penalty beside l2";
  model.sharpness = 0;
  model.certificate.reset();
  const CertifiedBounds bounds = certify(model, data);
  EXPECT_FALSE(bounds.dual.has_value());
  EXPECT_FALSE(bounds.gap().has_value());
}

}  // namespace
}  // namespace margrave
