#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "inference/oracle.hpp"
#include "margrave/generate.hpp"
#include "solvers/solver.hpp"

namespace margrave::test {
namespace {

// Counts what it is asked between blocks of visits.
class Asking final : public EpochControl {
 public:
  explicit Asking(double gap) : gap_(gap) {}
  bool proceed(double) override {
    ++blocks;
    return true;
  }
  bool enough(double relative_gap) const override { return relative_gap <= gap_; }
  std::size_t blocks = 0;

 private:
  double gap_;
};

class Bcfw : public ::testing::Test {
 protected:
  Bcfw() {
    MultilabelOptions options;
    options.examples = 60;
    options.variables = 6;
    options.states = 2;
    data = generate(options);
    objective = Objective{.lambda = 0.01, .examples = data.size()};
    oracle = make_roof_dual_oracle(data);
  }
  // Epochs until the gap is certified; `foreseen`: whether the solver may know what is asked.
  struct Outcome {
    int epochs = 0;
    std::size_t blocks = 0, last_blocks = 0;
    double relative_gap = 1;
  };
  Outcome solve(double asked, bool foreseen) {
    const Problem problem{data, objective, oracle.get(), arena};
    const auto solver = make_bcfw(problem, BcfwOptions{});
    GapEvaluator evaluator(data, objective, oracle.get(), arena);
    Outcome outcome;
    std::vector<double> w(solver->weights().size());
    while (outcome.relative_gap > asked && outcome.epochs < 100) {
      Asking control(foreseen ? asked : -1.0);
      solver->prepare();
      EXPECT_TRUE(solver->epoch(control));
      const Bounds bounds = evaluator.evaluate(*solver->dual_point(), w);
      solver->adopt(w);
      outcome.relative_gap = bounds.gap() / bounds.primal;
      outcome.blocks += control.blocks;
      outcome.last_blocks = control.blocks;
      ++outcome.epochs;
    }
    return outcome;
  }
  Dataset data;
  Objective objective;
  std::unique_ptr<Oracle> oracle;
  Arena arena{1};
};

TEST_F(Bcfw, EndsAnEpochAfterItsOracleCallsWhereTheseFindLittle) {
  std::size_t blind_blocks = 0, foreseeing_blocks = 0;  // of last epochs
  for (const double asked : {1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4}) {
    SCOPED_TRACE(asked);
    const Outcome blind = solve(asked, false);
    const Outcome foreseeing = solve(asked, true);
    ASSERT_LE(blind.relative_gap, asked);
    EXPECT_LE(foreseeing.relative_gap, asked);
    blind_blocks += blind.last_blocks;
    foreseeing_blocks += foreseeing.last_blocks;
  }
  EXPECT_LT(foreseeing_blocks, blind_blocks) << "last epochs had cached passes";
}

}  // namespace
}  // namespace margrave::test
