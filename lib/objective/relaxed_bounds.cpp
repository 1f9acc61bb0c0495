// Bounds of the LP-relaxed problem at the point of a clique-wise solver.
//
//   primal     λ/2|w|² + (1/M) Σ_m min over the messages tried of Σ_α smax θ̂_α   ≥ the optimum, at w = w(μ)
//   dual       (1/M)(<μ̄, Δ> + γ Σ h(μ̄)) − λ/2|w(μ̄)|²                             ≤ the optimum, Aμ̄ = 0
//   soft       P_ρ(w, δ, ξ) and D_ρ(μ, ξ), which enclose the optimum of the soft problem
//
// One pass over μ for w(μ) and w(μ̄), one over the scores at w(μ). An example with very many cliques is split
// among the threads, phase by phase; the others are handed out whole.
#include <algorithm>
#include <cmath>

#include "base/compensated.hpp"
#include "inference/messages.hpp"
#include "model/marginalise.hpp"
#include "objective/gap_evaluator.hpp"

namespace margrave {

namespace {

constexpr std::uint64_t large_cells = std::uint64_t{1} << 16U;  // an example that is split
constexpr std::size_t most_wave = 256;
constexpr std::uint64_t most_wave_cells = std::uint64_t{1} << 20U;
constexpr std::size_t example_grain = 4;
constexpr std::size_t clique_grain = 256;
// Diffusion from the solver's messages: few sweeps, because they are nearly optimal at the end of a run, and
// far from it where nobody minds.
constexpr DiffusionOptions diffusion{.sweeps = 30, .tolerance = 1e-6};

}  // namespace

bool GapEvaluator::is_large(std::size_t m) const { return data_[m].topology().cells() > large_cells; }

// Phases 1 and 2 of an example.
void GapEvaluator::prepare(std::size_t m, const LocalPoint& point, Worker& worker, bool split,
                           LocalTerms& terms) {
  const Topology& top = data_[m].topology();
  worker.local.start(data_, m, point);
  if (!split) {
    worker.local.load(0, top.cliques());
    terms.add(worker.local.couple(0, top.variables()));
    return;
  }
  arena_.for_each_block(top.cliques(), clique_grain,
                        [&](std::size_t begin, std::size_t end, int) { worker.local.load(begin, end); });
  terms.add(ordered_reduce<LocalTerms>(
      arena_, top.variables(), clique_grain,
      [&](std::size_t begin, std::size_t end, int) { return worker.local.couple(begin, end); }));
}

LocalTerms GapEvaluator::rebuild(const LocalPoint& point, std::span<double> weights, double& rounded_norm) {
  accumulator_.start(weights);
  rounded_weights_.resize(weights.size());
  rounded_accumulator_.start(rounded_weights_);
  LocalTerms sum;
  std::vector<LocalTerms> terms(most_wave);
  std::vector<CliqueChange> rounded;
  for (std::size_t first = 0; first < data_.size();) {
    std::size_t count = 0;
    changes_.clear();
    rounded.clear();
    if (is_large(first)) {
      count = 1;
      Worker& owner = workers_[0];
      prepare(first, point, owner, true, sum);
      const std::size_t cliques = data_[first].cliques();
      const std::size_t blocks = (cliques + clique_grain - 1) / clique_grain;
      std::vector<std::vector<CliqueChange>> raw_of(blocks);
      std::vector<std::vector<CliqueChange>> rounded_of(blocks);
      sum.add(ordered_reduce<LocalTerms>(
          arena_, cliques, clique_grain, [&](std::size_t begin, std::size_t end, int index) {
            return owner.local.round(objective_, entropy_, begin, end,
                                     workers_[static_cast<std::size_t>(index)].table,
                                     raw_of[begin / clique_grain], rounded_of[begin / clique_grain]);
          }));
      for (std::size_t b = 0; b < blocks; ++b) {
        changes_.insert(changes_.end(), raw_of[b].begin(), raw_of[b].end());
        rounded.insert(rounded.end(), rounded_of[b].begin(), rounded_of[b].end());
      }
    } else {
      std::uint64_t cells = 0;
      while (count < std::min(most_wave, wave_changes_.size()) && first + count < data_.size() &&
             !is_large(first + count) && cells < most_wave_cells)
        cells += data_[first + count++].topology().cells();
      arena_.for_each_block(count, example_grain, [&](std::size_t begin, std::size_t end, int index) {
        Worker& worker = workers_[static_cast<std::size_t>(index)];
        for (std::size_t k = begin; k < end; ++k) {
          terms[k] = {};
          wave_changes_[k].clear();
          wave_rounded_[k].clear();
          prepare(first + k, point, worker, false, terms[k]);
          terms[k].add(worker.local.round(objective_, entropy_, 0, data_[first + k].cliques(), worker.table,
                                          wave_changes_[k], wave_rounded_[k]));
        }
      });
      for (std::size_t k = 0; k < count; ++k) {
        sum.add(terms[k]);
        changes_.insert(changes_.end(), wave_changes_[k].begin(), wave_changes_[k].end());
        rounded.insert(rounded.end(), wave_rounded_[k].begin(), wave_rounded_[k].end());
      }
    }
    accumulator_.commit(arena_, changes_);
    rounded_accumulator_.commit(arena_, rounded);
    first += count;
  }
  accumulator_.finish(arena_, objective_.weight_scale());
  rounded_accumulator_.finish(arena_, objective_.weight_scale());
  rounded_norm = squared_norm(rounded_weights_);
  return sum;
}

// Σ of smax θ̂ over a range of cliques, at the messages of `owner`'s example.
double GapEvaluator::soft_sum(const FactorGraph& graph, const Worker& owner, Buffer<double>& scratch,
                              std::size_t first, std::size_t last) const {
  const Topology& top = graph.topology();
  const double* delta = owner.local.messages();
  CompensatedSum sum;
  for (std::size_t a = first; a < last; ++a) {
    const std::uint64_t n = top.clique_offset[a + 1] - top.clique_offset[a];
    if (a < top.variables()) {
      double* theta = scratch.reserve(4 * n);
      std::copy_n(owner.potentials.node(a), n, theta);
      for (const std::uint32_t s : top.messages_of(a))
        for (std::uint64_t y = 0; y < n; ++y) theta[y] += delta[top.message_offset[s] + y];
      sum.add(entropy_.smoothed_maximum(top, a, theta, objective_.gamma, theta + n));
      continue;
    }
    const std::size_t c = a - top.variables();
    const std::uint64_t message = top.message_offset[top.scope_begin[c]];
    const std::uint64_t messages = top.message_offset[top.scope_begin[c + 1]] - message;
    double* theta = scratch.reserve(4 * n + messages);
    const std::size_t width = top.states[top.scope_of(c).back()];
    const double* table = owner.potentials.table(c);
    for (std::size_t line = 0; line * width < n; ++line)
      std::copy_n(table + line * padded(width), width, theta + line * width);
    add_messages(top, c, delta + message, -1.0, theta);
    sum.add(entropy_.smoothed_maximum(top, a, theta, objective_.gamma, theta + n));
  }
  return sum.value();
}

// Of one example whose potentials and messages stand in `worker`; the messages are changed.
GapEvaluator::RelaxedHinge GapEvaluator::relaxed_hinge(const FactorGraph& graph, Worker& worker,
                                                       bool split) const {
  const Topology& top = graph.topology();
  const double truth = worker.potentials.score(graph, graph.labels());
  worker.potentials.add_loss(graph, objective_.loss_scale(graph));
  RelaxedHinge result;
  if (split) {
    // Each thread needs a scratch table of its own: one per block.
    std::vector<Buffer<double>> tables(workers_.size());
    result.soft =
        ordered_reduce<CompensatedSum>(
            arena_, top.cliques(), clique_grain,
            [&](std::size_t begin, std::size_t end, int index) {
              CompensatedSum part;
              part.add(soft_sum(graph, worker, tables[static_cast<std::size_t>(index)], begin, end));
              return part;
            })
            .value() -
        truth;
  } else {
    result.soft = soft_sum(graph, worker, worker.table, 0, top.cliques()) - truth;
  }
  result.upper = result.soft;
  const MessagePlan& plan = message_plans_[graph.topology_index()];
  if (objective_.gamma > 0) return result;
  // An exact oracle bounds the relaxed hinge where the local polytope is all there is.
  if (oracle_ != nullptr && (forests_ || !oracle_->exact())) {
    result.upper = oracle_->bound(graph, worker.potentials, worker.scratch) - truth;
  } else if (split) {
    std::vector<Scratch> scratch(workers_.size());
    result.upper =
        diffuse(top, plan, worker.potentials, worker.local.messages(), diffusion, arena_, scratch) - truth;
  } else {
    result.upper =
        diffuse(top, plan, worker.potentials, worker.local.messages(), diffusion, worker.scratch) - truth;
  }
  return result;
}

GapEvaluator::RelaxedHinge GapEvaluator::relaxed_hinge(const LocalPoint& point,
                                                       std::span<const double> weights) {
  ++version_;
  struct Sum {
    CompensatedSum soft, upper;
    void add(const Sum& other) {
      soft.add(other.soft);
      upper.add(other.upper);
    }
  };
  const auto one = [&](std::size_t m, Worker& worker, bool split, Sum& sum) {
    LocalTerms ignored;
    prepare(m, point, worker, split, ignored);
    worker.potentials.fill(data_, data_[m], weights.data(), version_);
    const RelaxedHinge hinge = relaxed_hinge(data_[m], worker, split);
    sum.soft.add(hinge.soft);
    sum.upper.add(hinge.upper);
  };
  Sum total = ordered_reduce<Sum>(arena_, data_.size(), example_grain,
                                  [&](std::size_t begin, std::size_t end, int index) {
                                    Sum sum;
                                    for (std::size_t m = begin; m < end; ++m)
                                      if (!is_large(m))
                                        one(m, workers_[static_cast<std::size_t>(index)], false, sum);
                                    return sum;
                                  });
  for (std::size_t m = 0; m < data_.size(); ++m)
    if (is_large(m)) one(m, workers_[0], true, total);
  return {total.soft.value(), total.upper.value()};
}

RelaxedBounds GapEvaluator::evaluate(const LocalPoint& point, std::span<double> weights) {
  double rounded_norm = 0;
  const LocalTerms terms = rebuild(point, weights, rounded_norm);
  const double regularizer = objective_.lambda / 2 * squared_norm(weights);
  const RelaxedHinge hinge = relaxed_hinge(point, weights);
  const double penalty = terms.violation / (2 * point.rho());  // = ρ/2·|δ − ξ|²
  RelaxedBounds bounds;
  bounds.primal = regularizer + objective_.mean(hinge.upper);
  bounds.dual = objective_.mean(terms.rounded_loss + objective_.gamma * terms.rounded_entropy) -
                objective_.lambda / 2 * rounded_norm;
  bounds.soft_primal = regularizer + objective_.mean(hinge.soft + penalty);
  bounds.soft_dual =
      objective_.mean(terms.loss + objective_.gamma * terms.entropy + terms.coupling - penalty) - regularizer;
  bounds.violation = objective_.mean(terms.violation);
  bounds.infeasibility = terms.infeasibility;
  return bounds;
}

double GapEvaluator::primal(const LocalPoint& point, std::span<const double> weights) {
  return objective_.lambda / 2 * squared_norm(weights) + objective_.mean(relaxed_hinge(point, weights).upper);
}

}  // namespace margrave
