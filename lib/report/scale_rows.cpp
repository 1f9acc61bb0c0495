#include <algorithm>
#include <array>

#include "report/scale_parts.hpp"
#include "report/statistics.hpp"

namespace margrave {

namespace {

bool same_row(const ScaleRow& row, const ScaleRun& run) {
  return row.scaling == run.scaling && row.threads == run.threads;
}

// What two rows took, of the repeats in which both reached the gap.
struct Pairs {
  std::array<std::vector<double>, 2> seconds, passes, per_pass;

  void add(std::size_t side, const GapReached& reached) {
    seconds[side].push_back(reached.seconds);
    passes[side].push_back(reached.passes);
    per_pass[side].push_back(reached.passes > 0 ? reached.seconds / reached.passes : 0);
  }
};

Pairs pairs_of(std::span<const ScaleRun* const> base, std::span<const ScaleRun* const> runs,
               std::size_t gap) {
  Pairs pairs;
  for (const ScaleRun* run : runs)
    for (const ScaleRun* other : base) {
      if (other->repeat != run->repeat || !other->reached[gap] || !run->reached[gap]) continue;
      pairs.add(0, *other->reached[gap]);
      pairs.add(1, *run->reached[gap]);
    }
  return pairs;
}

std::optional<Estimate> scaled(std::optional<Estimate> estimate, double factor) {
  if (!estimate) return estimate;
  estimate->value *= factor;
  if (estimate->low) *estimate->low *= factor;
  if (estimate->high) *estimate->high *= factor;
  return estimate;
}

ScaleTarget make_target(std::span<const ScaleRun* const> base, std::span<const ScaleRun* const> runs,
                        std::size_t gap_index, double gap) {
  ScaleTarget target;
  target.gap = gap;
  std::vector<double> seconds, passes, epochs;
  for (const ScaleRun* run : runs) {
    const auto& reached = run->reached[gap_index];
    if (!reached) continue;
    ++target.reached;
    seconds.push_back(reached->seconds);
    passes.push_back(reached->passes);
    epochs.push_back(static_cast<double>(reached->epochs));
  }
  target.seconds = mean_estimate(seconds);
  target.passes = mean_estimate(passes);
  target.epochs = mean_estimate(epochs);
  const Pairs pairs = pairs_of(base, runs, gap_index);
  target.speed_up = ratio_estimate(pairs.seconds[0], pairs.seconds[1]);
  target.hardware = ratio_estimate(pairs.per_pass[0], pairs.per_pass[1]);
  target.algorithmic = ratio_estimate(pairs.passes[0], pairs.passes[1]);
  if (!runs.empty() && !base.empty()) {
    const double share = static_cast<double>(base.front()->threads) / runs.front()->threads;
    target.efficiency = scaled(target.speed_up, runs.front()->scaling == Scaling::strong ? share : 1.0);
  }
  return target;
}

TimeSplit mean_split(std::span<const ScaleRun* const> runs) {
  TimeSplit split;
  const auto count = static_cast<double>(runs.size());
  WorkSplit sum;
  double adds = 0, retries = 0, trained = 0;
  bool measured = !runs.empty();
  for (const ScaleRun* run : runs) {
    split.evaluate += run->threads * run->evaluate_seconds / count;
    trained += run->threads * run->train_seconds;
    measured = measured && run->work;
    if (!run->work) continue;
    sum.oracle_seconds += run->work->oracle_seconds;
    sum.commit_seconds += run->work->commit_seconds;
    adds += static_cast<double>(run->work->atomic_adds);
    retries += static_cast<double>(run->work->retries);
  }
  if (!measured) return split;
  split.oracle = sum.oracle_seconds / count;
  split.commit = sum.commit_seconds / count;
  // Commit times of asynchronous runs are estimates, and may come out a little too long.
  split.idle = std::max(0.0, (trained - sum.oracle_seconds - sum.commit_seconds) / count);
  if (adds > 0) {
    split.atomic_adds = adds / count;
    split.retries = retries / count;
  }
  return split;
}

}  // namespace

std::vector<std::optional<GapReached>> gaps_reached(std::span<const Evaluation> trace,
                                                    std::span<const double> gaps, std::size_t examples) {
  std::vector<std::optional<GapReached>> reached(gaps.size());
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const auto first = std::find_if(trace.begin(), trace.end(), [&](const Evaluation& e) {
      const auto gap = e.relative_gap();
      return e.certified && gap && *gap <= gaps[i];
    });
    if (first == trace.end()) continue;
    reached[i] = GapReached{first->train_seconds, first->epoch,
                            static_cast<double>(first->oracle_calls) / static_cast<double>(examples)};
  }
  return reached;
}

std::vector<ScaleRow> make_rows(std::span<const ScaleRun> runs, std::span<const double> gaps) {
  std::vector<ScaleRow> rows;
  for (const ScaleRun& run : runs) {
    if (run.repeat == 0) continue;
    const auto known =
        std::find_if(rows.begin(), rows.end(), [&](const ScaleRow& row) { return same_row(row, run); });
    if (known != rows.end()) continue;
    ScaleRow& row = rows.emplace_back();
    row.scaling = run.scaling;
    row.threads = run.threads;
    row.examples = run.examples;
  }
  std::sort(rows.begin(), rows.end(), [](const ScaleRow& a, const ScaleRow& b) {
    return a.scaling != b.scaling ? a.scaling < b.scaling : a.threads < b.threads;
  });
  std::vector<const ScaleRun*> base;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ScaleRow& row = rows[i];
    std::vector<const ScaleRun*> own;
    for (const ScaleRun& run : runs)
      if (run.repeat > 0 && same_row(row, run)) own.push_back(&run);
    if (i == 0 || rows[i - 1].scaling != row.scaling) base = own;  // the fewest threads
    row.repeats = static_cast<std::uint32_t>(own.size());
    row.split = mean_split(own);
    for (std::size_t gap = 0; gap < gaps.size(); ++gap)
      row.targets.push_back(make_target(base, own, gap, gaps[gap]));
  }
  return rows;
}

}  // namespace margrave
