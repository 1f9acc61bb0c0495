// n-slack cutting planes (Tsochantaridis, Joachims, Hofmann, Altun 2005, Algorithm 1) for the structured
// hinge, over any oracle: one slack, and one working set of vertices, per example.
//
// Problem: the dual of bcfw.cpp, max over μ of D(μ) = (1/M) Σ <μ, Δ> − λ/2·|w(μ)|². An epoch is a round:
//   1. y_m = argmax θ(y; w) for all examples, in parallel against frozen w; violated ones
//      join their working sets (Algorithm 1, lines 5-8, with ε = 0)
//   2. the quadratic program over all working sets, warm-started at the last solution (line 9): passes of
//      exact steps over the blocks (simplex_qp.hpp, block_ascent.hpp) until the gap within the working sets
//      is `qp-accuracy` of what step 1 found
// Vertices that have no weight are dropped between rounds, all but the youngest.
//
// Cost of a round: one oracle call per example, then passes that cost O(vertices) numbers and the example's
// scores per visit. Memory as bcfw. Shared state and its safety: block_ascent.hpp.
//
// Departs from the paper: the program is solved once per round, not after every example; that is what makes
// the oracle calls parallel, and costs rounds, not accuracy.
#include <cmath>

#include "base/random.hpp"
#include "solvers/block_ascent.hpp"
#include "solvers/visit_order.hpp"

namespace margrave {

namespace {

// Visits one after the other, each against the weights the last one left, find about this part of the gap
// that the working sets have at one w (measured on OCR).
constexpr double gap_found = 0.1;

BcfwOptions block_options(const NSlackOptions& options) {
  BcfwOptions blocks;
  blocks.calls_per_visit = 1;
  blocks.inner_steps = options.inner_steps;
  blocks.lanes = options.lanes;
  return blocks;
}

class NSlack final : public Solver {
 public:
  NSlack(const Problem& problem, const NSlackOptions& options)
      : problem_(problem),
        options_(options),
        ascent_(problem, make_vertex_blocks(problem, block_options(options)), options.batch,
                block_options(options)),
        order_(problem.data.size()) {}

  std::string_view name() const override { return "n-slack"; }

  void prepare() override {
    if (!in_epoch_) ascent_.make_room(1);
  }

  bool epoch(EpochControl& control) override {
    if (!in_epoch_) {
      in_epoch_ = true;
      begin_pass(0);
    }
    for (;;) {
      if (!run_pass(control)) {
        if (pass_ > 0) ascent_.end_passes();
        return false;
      }
      if (pass_ == 0) {
        violation_ = pass_gap_;
      } else {
        ascent_.follow_pass();
      }
      const bool solved = pass_ > 0 && pass_gap_ <= gap_found * options_.qp_accuracy * violation_;
      if (pass_ >= options_.qp_passes || solved) break;
      if (pass_ == 0) ascent_.start_passes(Members::all);
      begin_pass(pass_ + 1);
    }
    if (pass_ > 0) ascent_.end_passes();
    in_epoch_ = false;
    ++rounds_;
    return true;
  }

  const DualPoint* dual_point() const override { return &ascent_.blocks(); }
  std::span<const double> weights() const override { return ascent_.weights().span(); }
  void adopt(std::span<const double> weights) override { ascent_.weights().assign(weights); }
  std::span<double> weights_to_rebuild() override { return ascent_.weights().span_to_assign(); }
  std::optional<Certificate> certificate() const override { return ascent_.blocks().certificate(); }
  std::uint64_t oracle_calls() const override { return ascent_.oracle_calls(); }
  std::uint64_t bytes() const override { return ascent_.bytes(); }
  std::optional<WorkSplit> work() const override { return ascent_.work(); }

  void save(ByteWriter& out) const override {
    ascent_.save(out);
    order_.save(out);
    out.put(rounds_);
    out.put(in_epoch_);
    out.put(pass_);
    out.put(cursor_);
    out.put(pass_gap_);
    out.put(violation_);
    if (in_epoch_ && pass_ > 0) ascent_.save_passes(out);
  }

  void restore(ByteReader& in) override {
    ascent_.restore(in);
    order_.restore(in);
    rounds_ = in.get<std::uint64_t>();
    in_epoch_ = in.get<bool>();
    pass_ = in.get<std::uint32_t>();
    cursor_ = in.get<std::uint64_t>();
    pass_gap_ = in.get<double>();
    violation_ = in.get<double>();
    if (cursor_ > order_.size()) in.fail("points behind the end of a pass");
    if (!std::isfinite(pass_gap_) || !std::isfinite(violation_))
      in.fail("holds a gap that is not a finite number");
    if (in_epoch_ && pass_ > 0) ascent_.resume_passes(in);
  }

  void warm_start(ByteReader& in) override { ascent_.blocks().warm_start(in); }

 private:
  void begin_pass(std::uint32_t pass) {
    pass_ = pass;
    cursor_ = 0;
    pass_gap_ = 0;
    if (pass == 0) {
      order_.permute(Random(problem_.seed, rounds_, pass));
    } else {
      order_.permute_runs(Random(problem_.seed, rounds_, pass));
    }
  }

  bool run_pass(EpochControl& control) {
    const Visit kind = pass_ == 0 ? Visit::collect : Visit::cached;
    while (cursor_ < order_.size()) {
      const auto batch = order_.batch(cursor_, ascent_.most_visits(kind));
      pass_gap_ += ascent_.visit(batch, kind).gap;
      cursor_ += batch.size();
      const double done = static_cast<double>(cursor_) / static_cast<double>(order_.size());
      // Half of a round is the oracle's, for want of a better guess.
      if (!control.proceed(pass_ == 0 ? done / 2 : 0.5 + 0.5 * (pass_ - 1 + done) / options_.qp_passes))
        return false;
    }
    return true;
  }

  Problem problem_;
  NSlackOptions options_;
  BlockAscent ascent_;
  VisitOrder order_;

  std::uint64_t rounds_ = 0;
  // Where the round under way stands.
  bool in_epoch_ = false;
  std::uint32_t pass_ = 0;
  std::uint64_t cursor_ = 0;
  double pass_gap_ = 0;   // Σ_m of block gaps of the pass so far
  double violation_ = 0;  // the same of the pass with the oracle
};

}  // namespace

std::unique_ptr<Solver> make_n_slack(const Problem& problem, const NSlackOptions& options) {
  return std::make_unique<NSlack>(problem, options);
}

}  // namespace margrave
