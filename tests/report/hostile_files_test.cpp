// Files whose checksums are right and whose contents are not: all that reads them refuses them with
// InputError, or works with what they say. A numerical failure or an internal error would blame the program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <variant>

#include "base/container.hpp"
#include "base/random.hpp"
#include "base/stream.hpp"
#include "margrave/error.hpp"
#include "margrave/generate.hpp"
#include "margrave/io.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "support/problems.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t dataset_version = 1, model_version = 4, checkpoint_version = 10;

template <class T, std::size_t Count>
void put_any(Bytes& bytes, Random& random, const T (&values)[Count]) {
  if (bytes.size() < sizeof(T)) return;
  // Numbers lie at multiples of their size in most sections.
  std::size_t at = random.below(bytes.size() / sizeof(T)) * sizeof(T);
  if (random.below(3) == 0) at = random.below(bytes.size() - sizeof(T) + 1);
  std::memcpy(bytes.data() + at, &values[random.below(Count)], sizeof(T));
}

void change(Bytes& bytes, Random& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double numbers[] = {
      0,     -0.0,   1,     -1,    1e-300,   1e-16,     1e8,
      1e154, -1e160, 1e300, 1e308, infinity, -infinity, -std::numeric_limits<double>::quiet_NaN()};
  constexpr std::uint64_t lengths[] = {0, 1, 2, 255, 65536, 1U << 24U, 1ULL << 32U, 1ULL << 62U, ~0ULL};
  constexpr std::uint32_t counts[] = {0, 1, 2, 255, 65535, 1U << 24U, 1U << 31U, ~0U};
  switch (random.below(6)) {
    case 0:
      bytes.resize(random.below(bytes.size() + 20));
      break;
    case 1:
      put_any(bytes, random, numbers);
      break;
    case 2:
      put_any(bytes, random, lengths);
      break;
    case 3:
      put_any(bytes, random, counts);
      break;
    default:
      if (!bytes.empty()) bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
  }
}

// A copy of a file with one or two sections changed, and new checksums.
void change_file(const std::string& from, const std::string& to, FileKind kind,
                 std::span<const std::string_view> names, Random& random) {
  const std::uint32_t version = kind == FileKind::dataset ? dataset_version
                                : kind == FileKind::model ? model_version
                                                          : checkpoint_version;
  const auto file = SectionFile::open(from, kind, version);
  std::vector<std::pair<std::string, Bytes>> sections;
  for (const std::string_view name : names)
    if (const auto bytes = file->find(name)) sections.emplace_back(name, Bytes(bytes->begin(), bytes->end()));
  const std::uint64_t changes = 1 + random.below(2);
  for (std::uint64_t n = 0; n < changes; ++n) change(sections[random.below(sections.size())].second, random);
  SectionWriter writer(kind, version);
  for (const auto& [name, bytes] : sections) writer.add(name, bytes);
  writer.write(to);
}

// True where the file was refused.
template <class F>
bool refused(F&& use) {
  try {
    use();
    return false;
  } catch (const InputError&) {
    return true;
  }
}

TrainOptions short_run() {
  TrainOptions options;
  options.lambda = 0.1;
  options.gap = 0;
  options.max_epochs = 3;
  options.threads = 1;
  return options;
}

Dataset chains() {
  ChainShape shape;
  shape.examples = 6;
  shape.longest = 3;
  return random_chains(1, shape);
}

// Changes the model's file again and again and does with it all that can be done.
void use_changed_models(const Model& good, const Dataset& data, int times) {
  constexpr std::string_view names[] = {"settings",    "templates",          "weights",
                                        "weights.set", "weights.value",      "provenance",
                                        "certificate", "certificate.weight", "certificate.marginals",
                                        "kernel"};
  const ScratchFolder folder;
  save_model(good, folder.file("good"));
  int used = 0;
  for (int seed = 1; seed <= times; ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed), 5);
    change_file(folder.file("good"), folder.file("bad"), FileKind::model, names, random);
    Model model;
    if (refused([&] { model = load_model(folder.file("bad")); })) continue;
    ++used;
    std::size_t written = 0;
    const auto count = [&](std::string_view text) { written += text.size(); };
    dump_text(model, {}, count);
    dump_json(model, {}, count);
    refused([&] {
      PredictOptions options;
      options.threads = 1;
      options.marginals = true;
      predict(model, data, options);
      evaluate(model, data, options);
    });
    const bool plain = model.loss == Loss::hinge && model.gamma == 0;
    if (plain || (model.certificate && std::holds_alternative<CliqueMarginals>(model.certificate->point)))
      refused([&] {
        const CertifiedBounds bounds = certify(model, data, 1);
        EXPECT_TRUE(std::isfinite(bounds.primal));
        if (bounds.dual) {
          EXPECT_GE(*bounds.gap(), -bounds.rounding);
        }
      });
  }
  EXPECT_GT(used, times / 15);
}

TEST(HostileFiles, ModelsAreRefusedOrUsed) {
  const Dataset data = chains();
  use_changed_models(train(data, short_run()).model, data, 1500);
}

TEST(HostileFiles, ModelsOfMarginalsAreRefusedOrUsed) {
  const Dataset data = chains();
  TrainOptions options = short_run();
  for (const double gamma : {0.0, 0.3})
    for (const Entropy entropy : {Entropy::gini, Entropy::otrw}) {
      IdalOptions idal;
      idal.entropy = entropy;
      options.solver = idal;
      options.gamma = gamma;
      use_changed_models(train(data, options).model, data, 500);
    }
}

TEST(HostileFiles, ModelsWithKernelsAreRefusedOrUsed) {
  const Dataset data = chains();
  TrainOptions options = short_run();
  for (const Kernel kernel : {Kernel::polynomial, Kernel::rbf}) {
    options.solver = EgrKernelOptions{.kernel = kernel};
    use_changed_models(train(data, options).model, data, 400);
  }
}

// Behind deflation single changed bytes rarely pass: here the numbers themselves are changed.
TEST(HostileFiles, TamperedMarginalsGiveLooserBoundsOrAreRefused) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float numbers[] = {0, -1, 1, 0.5F, 1e-30F, 1e-7F, 10, 1e8F, -1e20F, 3e38F, -3e38F, infinity};
  const ScratchFolder folder;
  for (const double gamma : {0.0, 0.2})
    for (std::uint64_t problem = 1; problem <= 6; ++problem) {
      const Dataset data = random_problem(problem);
      TrainOptions options = short_run();
      options.solver = IdalOptions{};
      options.gamma = gamma;
      const Model good = train(data, options).model;
      for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(fmt::format("gamma {} problem {} seed {}", gamma, problem, seed));
        Random random(seed, problem);
        Model model = good;
        auto& point = std::get<CliqueMarginals>(model.certificate.value().point);
        const std::uint64_t changes = 1 + random.below(5);
        for (std::uint64_t n = 0; n < changes; ++n) {
          auto& values = random.below(2) == 0 || point.delta.empty() ? point.mu : point.delta;
          values[random.below(values.size())] = numbers[random.below(std::size(numbers))];
        }
        save_model(model, folder.file("bad"));
        refused([&] {
          const CertifiedBounds bounds = certify(load_model(folder.file("bad")), data, 1);
          EXPECT_GE(*bounds.gap(), -bounds.rounding);
        });
      }
    }
}

void expect_checkpoints_are_refused_or_continued(const Dataset& data, TrainOptions options,
                                                 std::uint64_t seeds) {
  std::vector<std::string_view> names{"data", "options", "solver", "run", "state", "best"};
  const ScratchFolder folder;
  options.checkpoint = folder.file("good");
  // Primal methods start from no point.
  const bool primal = !train(data, options).report.last.dual;
  options.checkpoint.clear();
  options.max_epochs = 5;
  std::uint64_t resumed = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed, 6);
    change_file(folder.file("good"), folder.file("bad"), FileKind::checkpoint, names, random);
    TrainOptions resume = options, warm = options;
    resume.resume = warm.warm_start = folder.file("bad");
    for (const TrainOptions& next : {resume, primal ? resume : warm})
      if (!refused([&] { EXPECT_NE(train(data, next).report.status, Status::numerical_failure); })) ++resumed;
  }
  EXPECT_GT(resumed, seeds / 12);
}

TEST(HostileFiles, CheckpointsAreRefusedOrContinued) {
  expect_checkpoints_are_refused_or_continued(chains(), short_run(), 600);
}

TEST(HostileFiles, CheckpointsOfEverySolverAreRefusedOrContinued) {
  const Dataset data = chains();
  for (const SolverOptions& solver : std::vector<SolverOptions>{
           BcfwOptions{.steps = Steps::plain, .representation = Representation::marginals}, NSlackOptions{},
           OneSlackOptions{}, IdalOptions{}, GdmmOptions{}, SoftBcfwOptions{}, DlpwOptions{},
           ExponentiatedGradientOptions{}, ExponentiatedGradientOptions{.updates = Updates::batch},
           ExtragradientOptions{}, SmoOptions{}, EgrOptions{}, EgrOptions{.adaptive = false},
           EgrKernelOptions{}}) {
    SCOPED_TRACE(solver.index());
    TrainOptions options = short_run();
    options.solver = solver;
    expect_checkpoints_are_refused_or_continued(data, options, 120);
  }
}

TEST(HostileFiles, CheckpointsOfSmoothSolversAreRefusedOrContinued) {
  const Dataset data = chains();
  for (const SolverOptions& solver :
       std::vector<SolverOptions>{SdcaOptions{}, LbfgsOptions{}, OwlQnOptions{}}) {
    SCOPED_TRACE(solver.index());
    TrainOptions options = short_run();
    options.loss = Loss::log;
    options.solver = solver;
    if (std::holds_alternative<OwlQnOptions>(solver)) options.regularizer = Regularizer::l1;
    expect_checkpoints_are_refused_or_continued(data, options, 120);
  }
}

TEST(HostileFiles, CheckpointsUnderSparsePenaltiesAreRefusedOrContinued) {
  const Dataset data = chains();
  for (const SolverOptions& solver : std::vector<SolverOptions>{
           L1CuttingPlaneOptions{.start_rounds = 0}, L1CuttingPlaneOptions{}, L1SubgradientOptions{},
           L1SubgradientOptions{.radius = 1}, L1EmOptions{}, LaplaceM3nOptions{}}) {
    SCOPED_TRACE(solver.index());
    TrainOptions options = short_run();
    options.regularizer = Regularizer::l1;
    options.solver = solver;
    expect_checkpoints_are_refused_or_continued(data, options, 120);
  }
}

// Fractional vertices.
TEST(HostileFiles, CheckpointsOverARelaxationAreRefusedOrContinued) {
  const Dataset data =
      generate(MultilabelOptions{.examples = 6, .variables = 4, .states = 3, .coupling = 2.0, .seed = 3});
  for (const SolverOptions& solver : std::vector<SolverOptions>{BcfwOptions{}, OneSlackOptions{}}) {
    SCOPED_TRACE(solver.index());
    TrainOptions options = short_run();
    options.solver = solver;
    options.inference = Inference::lp;
    expect_checkpoints_are_refused_or_continued(data, options, 60);
  }
}

// `from` with another section "best".
void add_best(const std::string& from, const std::string& to, std::span<const double> weights, double primal,
              double dual) {
  const auto file = SectionFile::open(from, FileKind::checkpoint, checkpoint_version);
  SectionWriter writer(FileKind::checkpoint, checkpoint_version);
  for (const std::string name : {"data", "options", "solver", "run", "state"})
    writer.add(name, file->section(name));
  ByteWriter best;
  best.put<std::uint64_t>(1);
  best.put(0.0);
  best.put(0.0);
  best.put<std::uint64_t>(1);
  best.put(primal);
  best.put(true);
  best.put(dual);
  best.put(true);
  best.put_array(weights);
  writer.add("best", best.bytes());
  writer.write(to);
}

TEST(HostileFiles, BestWeightsThatCannotBeAreRefused) {
  const Dataset data = chains();
  const std::size_t size = data.templates().storage();
  const ScratchFolder folder;
  const auto refuses = [&](TrainOptions options, std::vector<double> weights, double primal, double dual) {
    options.checkpoint = folder.file("good");
    train(data, options);
    options.checkpoint.clear();
    options.max_epochs = 5;
    add_best(folder.file("good"), folder.file("bad"), weights, primal, dual);
    options.resume = folder.file("bad");
    return refused([&] { train(data, options); });
  };
  TrainOptions options = short_run();
  for (const SolverOptions& solver :
       std::vector<SolverOptions>{EgrKernelOptions{}, BcfwOptions{}, IdalOptions{}}) {
    options.solver = solver;
    EXPECT_TRUE(refuses(options, std::vector<double>(size), 1e300, 0));
  }
  options.solver = LbfgsOptions{};
  options.loss = Loss::log;
  EXPECT_FALSE(refuses(options, std::vector<double>(size), 1e300, 0));
  EXPECT_TRUE(refuses(options, std::vector<double>(size + 8), 1e300, 0));
  EXPECT_TRUE(refuses(options, std::vector<double>(size), 1e300, NAN));
  EXPECT_TRUE(refuses(options, std::vector<double>(size), NAN, 0));
  EXPECT_TRUE(refuses(options, std::vector<double>(size), 1, 2));
  // Bounds that fit each other, but not the problem.
  EXPECT_TRUE(refuses(options, std::vector<double>(size), 1e6, 1e5));
  EXPECT_TRUE(refuses(options, std::vector<double>(size), 1e-6, 0));
}

// Places between the rows of weights, which models must have 0: none of a good checkpoint, and refused.
TEST(HostileFiles, WeightsThatBelongToNoTemplateAreRefused) {
  const Dataset data = random_chains(2, {.examples = 6, .states = 5, .longest = 3, .inputs = 4});
  const Template& first = data.templates()[0];
  ASSERT_GT(first.stride, first.rows);
  const ScratchFolder folder;
  TrainOptions options = short_run();
  for (const SolverOptions& solver : std::vector<SolverOptions>{
           BcfwOptions{.averaging = true}, OneSlackOptions{}, IdalOptions{}, DlpwOptions{}, PegasosOptions{},
           ExtragradientOptions{}, EgrOptions{}, EgrKernelOptions{}, ExponentiatedGradientOptions{},
           SdcaOptions{}, LbfgsOptions{}}) {
    SCOPED_TRACE(solver.index());
    options.solver = solver;
    const bool smooth =
        std::holds_alternative<SdcaOptions>(solver) || std::holds_alternative<LbfgsOptions>(solver);
    options.loss = smooth ? Loss::log : Loss::hinge;
    options.checkpoint = folder.file("good");
    train(data, options);
    TrainOptions again = options;
    again.checkpoint.clear();
    again.max_epochs = 5;
    again.resume = folder.file("good");
    save_model(train(data, again).model, folder.file("model"));
    EXPECT_NO_THROW(load_model(folder.file("model")));
  }
  // Of lbfgs, as the loop left it.
  std::vector<double> weights(data.templates().storage());
  weights[first.rows] = 1;
  add_best(folder.file("good"), folder.file("bad"), weights, 1e300, 0);
  options.checkpoint.clear();
  options.max_epochs = 5;
  options.resume = folder.file("bad");
  EXPECT_TRUE(refused([&] { train(data, options); }));
  weights[first.rows] = 0;
  const auto with_state = [&](std::size_t cell) {
    const auto file = SectionFile::open(folder.file("good"), FileKind::checkpoint, checkpoint_version);
    SectionWriter writer(FileKind::checkpoint, checkpoint_version);
    const auto state = file->section("state");
    Bytes bytes(state.begin(), state.end());
    constexpr double one = 1;
    // Two truth values, the value and a length come before the weights.
    std::memcpy(bytes.data() + 2 + 2 * sizeof(double) + cell * sizeof(double), &one, sizeof(double));
    for (const std::string name : {"data", "options", "solver", "run", "best"})
      writer.add(name, file->section(name));
    writer.add("state", bytes);
    writer.write(folder.file("bad"));
    return refused([&] { train(data, options); });
  };
  EXPECT_FALSE(with_state(0));
  EXPECT_TRUE(with_state(first.rows));
  EXPECT_TRUE(with_state(weights.size() + 1 + first.rows));  // of the gradient
}

TEST(HostileFiles, CachesAreRefusedOrRead) {
  constexpr std::string_view names[] = {"templates",
                                        "read_options",
                                        "inputs",
                                        "index",
                                        "value",
                                        "examples",
                                        "label",
                                        "variable_input",
                                        "factor_input",
                                        "loss",
                                        "topology_variable_begin",
                                        "topology_factor_begin",
                                        "topology_variable_template",
                                        "topology_factor_template",
                                        "topology_scope_begin",
                                        "topology_scope",
                                        "id_begin",
                                        "id_text"};
  const ScratchFolder folder;
  const ReadOptions read;
  write_data(random_problem(3), folder.file("good.mgd"), "auto", &read);
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed, 7);
    change_file(folder.file("good.mgd"), folder.file("bad.mgd"), FileKind::dataset, names, random);
    refused([&] {
      const Dataset data = read_data(folder.file("bad.mgd"), {}).data;
      write_data(data, folder.file("again.jsonl"));
    });
  }
}

TEST(HostileFiles, DeeplyNestedProvenanceIsRefused) {
  const ScratchFolder folder;
  Model model = train(chains(), short_run()).model;
  model.provenance = std::string(100000, '[') + std::string(100000, ']');
  save_model(model, folder.file("deep"));
  EXPECT_TRUE(refused([&] { load_model(folder.file("deep")); }));
}

}  // namespace
}  // namespace margrave::test
