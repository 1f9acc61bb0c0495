#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <variant>

#include "base/container.hpp"
#include "base/random.hpp"
#include "margrave/error.hpp"
#include "margrave/model.hpp"
#include "support/problems.hpp"
#include "support/scratch_folder.hpp"

namespace margrave {
namespace {

using test::read_file;
using test::ScratchFolder;

constexpr std::string_view names[] = {"settings",    "templates",          "weights",
                                      "weights.set", "weights.value",      "provenance",
                                      "certificate", "certificate.weight", "certificate.marginals"};

// Weights drawn for every place that belongs to a template; `keep` of them not zero.
Model random_model(std::uint64_t seed, double keep = 1) {
  Model model;
  model.templates = test::random_problem(seed).templates();
  model.weights.resize(model.templates.storage());
  Random random(seed, 17);
  for (const Template& t : model.templates)
    for (std::uint64_t d = 0; d < t.inputs; ++d)
      for (std::uint64_t r = 0; r < t.rows; ++r)
        if (random.uniform() < keep) model.weights[t.offset + d * t.stride + r] = random.normal();
  model.lambda = 0.25;
  model.hamming = Hamming::sum;
  model.read.format = seed % 2 == 0 ? "letter" : "multilabel";
  model.read.bias = 0.5;
  if (seed % 2 == 0)
    model.read.train_folds = "1-9";
  else
    model.read.top_labels = 7;
  model.provenance = R"({"margrave":"test"})";
  return model;
}

Certificate random_certificate(std::uint64_t seed, std::uint32_t largest_label) {
  Random random(seed);
  Labellings point;
  point.atom_begin = {0};
  point.label_begin = {0};
  for (int m = 0; m < 20; ++m) {
    const std::uint64_t atoms = 1 + random.below(4), length = 1 + random.below(6);
    for (std::uint64_t a = 0; a < atoms; ++a) {
      point.weight.push_back(1.0 / static_cast<double>(atoms));
      for (std::uint64_t i = 0; i < length; ++i)
        point.label.push_back(static_cast<std::uint32_t>(random.below(std::uint64_t{largest_label} + 1)));
      point.label_begin.push_back(point.label.size());
    }
    point.atom_begin.push_back(point.weight.size());
  }
  point.label.front() = largest_label;
  return {random.bits(), std::move(point)};
}

// Half of the marginals zero; messages with every second seed.
Certificate random_marginals(std::uint64_t seed) {
  Random random(seed, 3);
  CliqueMarginals point;
  point.cell_begin = {0};
  point.message_begin = {0};
  for (int m = 0; m < 20; ++m) {
    const std::uint64_t cells = random.below(30), messages = seed % 2 == 0 ? random.below(20) : 0;
    for (std::uint64_t n = 0; n < cells; ++n)
      point.mu.push_back(random.below(2) == 0 ? 0.0F : static_cast<float>(random.uniform()));
    for (std::uint64_t n = 0; n < messages; ++n) point.delta.push_back(static_cast<float>(random.normal()));
    point.cell_begin.push_back(point.mu.size());
    point.message_begin.push_back(point.delta.size());
  }
  return {random.bits(), std::move(point)};
}

void expect_equal(const Model& a, const Model& b) {
  EXPECT_EQ(a.templates, b.templates);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.read, b.read);
  EXPECT_EQ(a.lambda, b.lambda);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.gamma, b.gamma);
  EXPECT_EQ(a.entropy, b.entropy);
  EXPECT_EQ(a.hamming, b.hamming);
  EXPECT_EQ(a.regularizer, b.regularizer);
  EXPECT_EQ(a.sharpness, b.sharpness);
  EXPECT_EQ(a.provenance, b.provenance);
  ASSERT_EQ(a.certificate.has_value(), b.certificate.has_value());
  if (!a.certificate) return;
  EXPECT_EQ(a.certificate->fingerprint, b.certificate->fingerprint);
  ASSERT_EQ(a.certificate->point.index(), b.certificate->point.index());
  if (const auto* first = std::get_if<Labellings>(&a.certificate->point)) {
    const auto& second = std::get<Labellings>(b.certificate->point);
    EXPECT_EQ(first->atom_begin, second.atom_begin);
    EXPECT_EQ(first->weight, second.weight);
    EXPECT_EQ(first->label_begin, second.label_begin);
    EXPECT_EQ(first->label, second.label);
    return;
  }
  const auto& first = std::get<CliqueMarginals>(a.certificate->point);
  const auto& second = std::get<CliqueMarginals>(b.certificate->point);
  EXPECT_EQ(first.cell_begin, second.cell_begin);
  EXPECT_EQ(first.mu, second.mu);
  EXPECT_EQ(first.message_begin, second.message_begin);
  EXPECT_EQ(first.delta, second.delta);
}

TEST(ModelFile, KeepsEveryPartOfRandomModels) {
  const ScratchFolder directory;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Model model = random_model(seed, seed % 2 == 0 ? 1.0 : 0.1);
    if (seed % 3 == 1) model.certificate = random_certificate(seed, 3);
    if (seed % 3 == 2) model.certificate = random_marginals(seed);
    if (seed % 2 == 0) model.entropy = Entropy::otrw;
    if (seed % 3 == 0) model.regularizer = Regularizer::l1;
    if (seed % 6 == 0) model.sharpness = 7;
    save_model(model, directory.file("m"));
    expect_equal(load_model(directory.file("m")), model);
  }
}

TEST(ModelFile, KeepsNamesOfStatesAndInputs) {
  Template node = make_template("node", {3}, 2);
  node.state_names = {"a", "b", "the third"};
  node.input_names = {"x\ty", ""};
  Model model;
  model.templates =
      TemplateSet({node, make_template("odd", {2, 2}, 1, WeightRows::explicit_, {0, 1, 1, -1})});
  model.weights.resize(model.templates.storage());
  const ScratchFolder directory;
  save_model(model, directory.file("m"));
  expect_equal(load_model(directory.file("m")), model);
}

TEST(ModelFile, StoresLabelsOfEveryWidth) {
  const ScratchFolder directory;
  for (const std::uint32_t largest : {0U, 255U, 256U, 65535U, 65536U, 4294967295U}) {
    Model model = random_model(3);
    model.certificate = random_certificate(5, largest);
    save_model(model, directory.file("m"));
    expect_equal(load_model(directory.file("m")), model);
  }
}

TEST(ModelFile, IsMuchSmallerForSparseWeights) {
  Model model;
  model.templates = TemplateSet({make_template("node", {4}, 10000)});
  model.weights.assign(model.templates.storage(), 1.0);
  const ScratchFolder directory;
  save_model(model, directory.file("dense"));
  model.weights.assign(model.templates.storage(), 0.0);
  model.weights[4] = 2;
  model.weights[39999] = -3;
  save_model(model, directory.file("sparse"));
  expect_equal(load_model(directory.file("sparse")), model);
  EXPECT_LT(read_file(directory.file("sparse")).size() * 30, read_file(directory.file("dense")).size());
}

TEST(ModelFile, HasTheSameBytesForTheSameModel) {
  const ScratchFolder directory;
  Model model = random_model(11);
  for (const Certificate& certificate : {random_certificate(11, 4), random_marginals(12)}) {
    model.certificate = certificate;
    save_model(model, directory.file("a"));
    save_model(load_model(directory.file("a")), directory.file("b"));
    EXPECT_EQ(read_file(directory.file("a")), read_file(directory.file("b")));
  }
}

TEST(ModelFile, RefusesWeightsThatAreNotFinite) {
  const ScratchFolder directory;
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Model model = random_model(2);
    model.weights[0] = bad;
    EXPECT_THROW(save_model(model, directory.file("m")), UsageError);
  }
}

TEST(ModelFile, RefusesForeignAndMissingFiles) {
  const ScratchFolder directory;
  EXPECT_THROW(load_model(directory.file("missing")), IoError);
  EXPECT_THROW(load_model(directory.write("empty", "")), InputError);
  EXPECT_THROW(load_model(directory.write("text", std::string(5000, 'x'))), InputError);
  SectionWriter(FileKind::dataset, 1).write(directory.file("dataset"));
  EXPECT_THROW(load_model(directory.file("dataset")), InputError);
  SectionWriter(FileKind::model, 99).write(directory.file("newer"));
  EXPECT_THROW(load_model(directory.file("newer")), InputError);
  SectionWriter(FileKind::model, 4).write(directory.file("nothing inside"));
  EXPECT_THROW(load_model(directory.file("nothing inside")), InputError);
}

TEST(ModelFile, RefusesEveryTruncationAndEveryChangedByte) {
  const ScratchFolder directory;
  Model model = random_model(4, 0.1);
  for (const Certificate& certificate : {random_certificate(4, 2), random_marginals(4)}) {
    model.certificate = certificate;
    save_model(model, directory.file("m"));
    const std::string good = read_file(directory.file("m"));
    for (std::size_t size = 0; size < good.size(); size += 61)
      EXPECT_THROW(load_model(directory.write("short", good.substr(0, size))), InputError) << size;
    Random random(7);
    for (int n = 0; n < 500; ++n) {
      std::string bad = good;
      const std::size_t at = random.below(bad.size());
      bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1 + random.below(255)));
      try {
        expect_equal(load_model(directory.write("changed", bad)), model);  // padding between sections
      } catch (const InputError&) {
      }
    }
  }
}

// The settings end with the entropy, since version 2, the regularizer, since version 3, a byte each, and the
// sharpness, a number, since version 4.
TEST(ModelFile, OfOlderVersionsAreStillRead) {
  const ScratchFolder directory;
  Model model = random_model(6);
  model.certificate = random_certificate(6, 3);
  model.entropy = Entropy::gini;
  save_model(model, directory.file("m"));
  const auto file = SectionFile::open(directory.file("m"), FileKind::model, 4);
  for (const std::uint32_t version : {1U, 2U, 3U}) {
    SectionWriter writer(FileKind::model, version);
    for (const auto name : names)
      if (const auto bytes = file->find(name))
        writer.add(std::string(name), name == "settings"
                                          ? bytes->first(bytes->size() - sizeof(double) - (3 - version))
                                          : *bytes);
    writer.write(directory.file("old"));
    expect_equal(load_model(directory.file("old")), model);
  }
}

// Sections of a good file with valid checksums around changed
// contents: what is left when the container cannot help.
TEST(ModelFile, SurvivesAnyContentBehindValidChecksums) {
  const ScratchFolder directory;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed, 99);
    if (seed % 100 == 1) {
      Model model = random_model(seed, seed % 200 == 1 ? 0.1 : 1.0);
      model.certificate = seed % 400 < 200 ? random_certificate(seed, 2) : random_marginals(seed);
      save_model(model, directory.file("m"));
    }
    const auto file = SectionFile::open(directory.file("m"), FileKind::model, 4);
    std::vector<std::pair<std::string, std::vector<std::byte>>> sections;
    for (const auto name : names)
      if (const auto bytes = file->find(name))
        sections.emplace_back(name, std::vector(bytes->begin(), bytes->end()));
    auto& bytes = sections[random.below(sections.size())].second;
    const std::uint64_t kind = random.below(4);
    if (kind == 0) {
      bytes.resize(random.below(bytes.size() + 20));
    } else if (!bytes.empty()) {
      // Lengths are 8-byte numbers: extreme bytes at their ends are the nastiest.
      const std::size_t at = random.below(bytes.size());
      bytes[at] = kind == 1   ? std::byte{0xff}
                  : kind == 2 ? std::byte{0x7f}
                              : static_cast<std::byte>(random.below(256));
    }
    SectionWriter writer(FileKind::model, 4);
    for (const auto& [name, content] : sections) writer.add(name, content);
    writer.write(directory.file("bad"));
    try {
      const Model loaded = load_model(directory.file("bad"));
      ASSERT_EQ(loaded.weights.size(), loaded.templates.storage());
      for (const double w : loaded.weights) ASSERT_TRUE(std::isfinite(w));
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(ModelFile, RefusesAWeightInThePaddingOfATemplate) {
  Model model;
  model.templates = TemplateSet({make_template("node", {5}, 3)});
  ASSERT_GT(model.templates[0].stride, 5U);
  model.weights.assign(model.templates.storage(), 1.0);
  const ScratchFolder directory;
  save_model(model, directory.file("m"));
  EXPECT_THROW(load_model(directory.file("m")), InputError);
}

TEST(ModelFile, NamesWhatDiffersBetweenModelAndData) {
  Model model;
  model.templates = TemplateSet({make_template("node", {3}, 4)});
  const auto reason = [&](const Template& t) {
    try {
      require_compatible(model, TemplateSet({t}), "data.txt");
    } catch (const InputError& error) {
      EXPECT_EQ(error.where().file, "data.txt");
      return error.reason();
    }
    return std::string("fits");
  };
  EXPECT_EQ(reason(make_template("node", {3}, 4)), "fits");
  EXPECT_NE(reason(make_template("word", {3}, 4)).find("'node' in the model and 'word' in the data"),
            std::string::npos);
  EXPECT_NE(reason(make_template("node", {2}, 4)).find("states [3] in the model and [2]"), std::string::npos);
  EXPECT_NE(reason(make_template("node", {3}, 5)).find("4 inputs in the model and 5"), std::string::npos);
  EXPECT_NE(
      reason(make_template("node", {3}, 4, WeightRows::explicit_, {-1, 0, 1})).find("shares its weights"),
      std::string::npos);
  EXPECT_THROW(
      require_compatible(model, TemplateSet({make_template("node", {3}, 4), make_template("more", {3}, 4)})),
      InputError);
}

}  // namespace
}  // namespace margrave
