// Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt,
// Pletscher 2013) for the structured hinge, over any max-oracle.
//
// Problem: max over μ of D(μ) = (1/M) Σ <μ, Δ> − λ/2·|w(μ)|², one block μ_m per example.
// A visit of example m:
//   1. y = argmax θ(y; w), the loss-augmented oracle; y joins the cached labellings (Algorithm 4, line 4)
//   2. steps over the cached labellings, closed-form line searches (line 6; pairwise and away steps:
//      Osokin et al. 2016, Algorithm 2), through the example's own Gram matrix (simplex_qp.hpp); then 1
//      again, at the scores these steps would make, while the block's gap is large (vertex_blocks.cpp)
//   3. along the direction found, one exact line search against the current w:
//      length = clip01( <μ'−μ, θ> ÷ (|ψ(μ')−ψ(μ)|²/(λM)) )
//   4. w += length/(λM)·(ψ(μ') − ψ(μ))
// An epoch is one pass with oracle calls, in random order or sampled by block gap, then passes over the
// cached labellings alone (Shah, Kolmogorov, Lampert 2015; cached_program.hpp), each extrapolated
// (pass_extrapolation.hpp), until what gap they find is small beside what the oracle found. None of them
// where the oracle found so little that the run may end there.
//
// Cost of a visit: scores of the example, up to `calls_per_visit` oracle calls, O(labellings) numbers per
// step. Memory: O(labellings · (variables + labellings)) per example; no dense vector per example.
//
// Shared state: w alone. Deterministic mode: steps 1-2 run in parallel for a batch
// against frozen w; steps 3-4 follow in batch order, each against the w that the ones
// before left, so the dual never falls and a stale direction gets a shorter step or none.
// Lanes and asynchronous mode: visits on private copies of w that are exchanged after some
// of them (block_ascent.hpp); an example's block belongs to the one task that visits it.
//
// Departs from the paper: averaging, where asked for, is over epochs (epoch k counts k-fold), not over steps.
#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "margrave/error.hpp"
#include "solvers/block_ascent.hpp"
#include "solvers/visit_order.hpp"
#include "solvers/weight_average.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t most_visits = 4;  // of one example in a sampled pass
// Every so many epochs a pass visits all examples and refreshes the block gaps; the others sample by them.
constexpr std::uint64_t full_pass_every = 2;
// Cached passes end when the gap they still find is this part of what the oracle found.
constexpr double cached_accuracy = 0.2;
// Over flat features every second cached pass leaves out the examples in which the one before found less than
// the average: most of what is left is in a few. That saves a tenth of the time on Yeast, Scene, Bibtex and
// RCV1; on OCR words the oracle is asked more often for it, and nothing is won.
constexpr std::uint32_t full_cached_pass_every = 2;
constexpr double least_gain = 1e-3;  // of the epoch's gain so far: less is not worth a cached pass

class Bcfw final : public Solver {
 public:
  Bcfw(const Problem& problem, const BcfwOptions& options)
      : problem_(problem),
        options_(options),
        ascent_(problem,
                options.representation == Representation::labellings ? make_vertex_blocks(problem, options)
                                                                     : make_marginal_blocks(problem),
                options.batch, options),
        order_(problem.data.size()),
        average_(options.averaging, problem.data.templates().storage()) {}

  std::string_view name() const override { return "bcfw"; }

  void prepare() override {
    if (!in_epoch_) ascent_.make_room(most_visits * options_.calls_per_visit);
  }

  bool epoch(EpochControl& control) override {
    if (!in_epoch_) {
      in_epoch_ = true;
      epoch_gain_ = 0;
      begin_pass(0);
    }
    for (;;) {
      if (!run_pass(control)) {
        if (pass_ > 0) ascent_.end_passes();
        return false;
      }
      if (pass_ == 0) {
        oracle_gap_ = pass_gap_;
      } else {
        pass_gain_ += ascent_.follow_pass();
      }
      epoch_gain_ += pass_gain_;
      if (!worth_another_pass(control)) break;
      // Vertices without weight rarely gain any, and are most of the cache: visits with the oracle see them.
      if (pass_ == 0) ascent_.start_passes(Members::weighted);
      begin_pass(pass_ + 1);
    }
    if (pass_ > 0) ascent_.end_passes();
    in_epoch_ = false;
    ++epochs_;
    average_.add(ascent_.weights().span(), epochs_);
    return true;
  }

  const DualPoint* dual_point() const override { return &ascent_.blocks(); }
  std::span<const double> weights() const override { return ascent_.weights().span(); }
  void adopt(std::span<const double> weights) override { ascent_.weights().assign(weights); }
  std::span<double> weights_to_rebuild() override { return ascent_.weights().span_to_assign(); }
  std::optional<std::span<const double>> averaged() const override { return average_.value(); }
  std::optional<Certificate> certificate() const override { return ascent_.blocks().certificate(); }
  std::uint64_t oracle_calls() const override { return ascent_.oracle_calls(); }
  std::uint64_t bytes() const override { return ascent_.bytes(); }
  std::optional<WorkSplit> work() const override { return ascent_.work(); }

  void save(ByteWriter& out) const override {
    ascent_.save(out);
    average_.save(out);
    order_.save(out);
    out.put(epochs_);
    out.put(in_epoch_);
    out.put(pass_);
    out.put(cursor_);
    out.put(pass_gain_);
    out.put(epoch_gain_);
    out.put(pass_gap_);
    out.put(oracle_gap_);
    if (in_epoch_ && pass_ > 0) ascent_.save_passes(out);
  }

  void restore(ByteReader& in) override {
    ascent_.restore(in);
    average_.restore(in, problem_.data.templates());
    order_.restore(in);
    epochs_ = in.get<std::uint64_t>();
    in_epoch_ = in.get<bool>();
    pass_ = in.get<std::uint32_t>();
    cursor_ = in.get<std::uint64_t>();
    pass_gain_ = in.get<double>();
    epoch_gain_ = in.get<double>();
    pass_gap_ = in.get<double>();
    oracle_gap_ = in.get<double>();
    if (cursor_ > order_.size()) in.fail("points behind the end of a pass");
    if (!std::isfinite(pass_gain_) || !std::isfinite(epoch_gain_))
      in.fail("holds a gain that is not a finite number");
    if (!std::isfinite(pass_gap_) || !std::isfinite(oracle_gap_))
      in.fail("holds a gap that is not a finite number");
    if (in_epoch_ && pass_ > 0) ascent_.resume_passes(in);
  }

  void warm_start(ByteReader& in) override { ascent_.blocks().warm_start(in); }

 private:
  bool visits_all(std::uint64_t epoch) const {
    return !options_.gap_sampling || epoch % full_pass_every == 0;
  }
  Visit kind() const { return pass_ == 0 ? Visit::oracle : Visit::cached; }

  void begin_pass(std::uint32_t pass) {
    pass_ = pass;
    cursor_ = 0;
    pass_gain_ = 0;
    pass_gap_ = 0;
    Random random(problem_.seed, epochs_, pass);
    if (pass == 0 && !visits_all(epochs_)) {
      order_.sample(random, ascent_.gaps(), most_visits);
    } else if (pass == 0) {
      order_.permute(random);
    } else {
      order_.permute_runs(random);
      const bool is_flat = ascent_.blocks().flat() != nullptr;
      if (is_flat && pass > 1 && pass % full_cached_pass_every != 0) leave_out_solved();
    }
  }

  void leave_out_solved() {
    const std::span<const double> gaps = ascent_.cached_gaps();
    const double mean = std::accumulate(gaps.begin(), gaps.end(), 0.0) / static_cast<double>(gaps.size());
    order_.keep([&](std::uint32_t m) { return gaps[m] >= mean; });
    // What is left out is as it was.
    for (const double gap : gaps) pass_gap_ += gap < mean ? gap : 0;
  }

  // Whether what the oracle found is so little that the run may end here: whoever asks has it certified.
  // Cached passes would come on top. Examples that the pass left out count with what they had before.
  bool may_be_enough(const EpochControl& control) const {
    const std::span<const double> gaps = ascent_.gaps();
    const double found = visits_all(epochs_) ? oracle_gap_ : std::accumulate(gaps.begin(), gaps.end(), 0.0);
    const double gap = found / static_cast<double>(gaps.size());
    return control.enough(gap / std::max(1e-12, gap + ascent_.dual()));
  }

  // Measured on OCR: new labellings are worth most when the passes before have used up the old ones, so
  // cached passes go on until they are nearly solved, not until an oracle pass would gain more at once.
  bool worth_another_pass(const EpochControl& control) const {
    if (!ascent_.blocks().has_cache() || pass_ >= options_.cached_passes) return false;
    if (pass_ == 0) return !may_be_enough(control);
    return pass_gap_ > cached_accuracy * oracle_gap_ && pass_gain_ > least_gain * epoch_gain_;
  }

  bool run_pass(EpochControl& control) {
    // How much of the epoch a pass is, at most; an epoch may end before its last possible pass.
    const double passes = ascent_.blocks().has_cache() ? options_.cached_passes + 1.0 : 1.0;
    while (cursor_ < order_.size()) {
      // One batch after the other: an example is never visited twice at once.
      const auto batch = order_.batch(cursor_, ascent_.most_visits(kind()));
      const BlockAscent::Result result = ascent_.visit(batch, kind());
      pass_gain_ += result.gain;
      pass_gap_ += result.gap;
      cursor_ += batch.size();
      const double done = static_cast<double>(cursor_) / static_cast<double>(order_.size());
      if (!control.proceed((pass_ + done) / passes)) return false;
    }
    return true;
  }

  Problem problem_;
  BcfwOptions options_;
  BlockAscent ascent_;
  VisitOrder order_;
  WeightAverage average_;

  std::uint64_t epochs_ = 0;
  // Where the epoch under way stands.
  bool in_epoch_ = false;
  std::uint32_t pass_ = 0;
  std::uint64_t cursor_ = 0;
  double pass_gain_ = 0, epoch_gain_ = 0;
  double pass_gap_ = 0, oracle_gap_ = 0;  // Σ of block gaps: of the pass so far, of the pass with the oracle
};

}  // namespace

std::unique_ptr<Solver> make_bcfw(const Problem& problem, const BcfwOptions& options) {
  if (options.representation == Representation::marginals && options.steps != Steps::plain)
    throw UsageError("marginals allow plain steps only: they forget the labellings they are made of");
  return std::make_unique<Bcfw>(problem, options);
}

}  // namespace margrave
