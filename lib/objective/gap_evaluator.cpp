#include "objective/gap_evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/compensated.hpp"
#include "model/clique_scores.hpp"
#include "model/topology.hpp"
#include "objective/labelling_entropy.hpp"

namespace margrave {

namespace {

// Examples whose changes are committed together: so many, and fewer where they are large, because a wave's
// changes are all in memory. Nothing in the result depends on where waves end.
constexpr std::size_t most_wave_examples = 512;
constexpr std::uint64_t most_wave_cells = std::uint64_t{1} << 20U;
constexpr std::size_t wave_grain = 16;
constexpr std::size_t example_grain = 8;  // examples per block of oracle calls
constexpr std::size_t cell_grain = 1U << 14U;

// Examples in the wave that begins with `first`; at least one.
std::size_t wave_length(const Dataset& data, std::size_t first) {
  const std::size_t most = std::min(most_wave_examples, data.size() - first);
  std::uint64_t cells = 0;
  for (std::size_t k = 0; k < most; ++k) {
    cells += data[first + k].topology().cells();
    if (cells > most_wave_cells) return std::max<std::size_t>(k, 1);
  }
  return most;
}

// What the states of a factor's variables have in a joint state, last variable first: visit(place in the
// scope, state).
template <class Visit>
void for_each_state(const Topology& top, std::span<const std::uint32_t> scope, std::uint32_t joint,
                    Visit&& visit) {
  for (std::size_t j = scope.size(); j-- > 1;) {
    const std::uint32_t k = top.states[scope[j]];
    visit(j, joint % k);
    joint /= k;
  }
  visit(0, joint);
}

// Σ x², in sums side by side: a single one would wait for itself and not for memory.
CompensatedSum compensated_squares(std::span<const double> x) {
  constexpr std::size_t side_by_side = 8;
  double sum[side_by_side] = {};
  double error[side_by_side] = {};
  std::size_t i = 0;
  for (; i + side_by_side <= x.size(); i += side_by_side) {
#pragma omp simd
    for (std::size_t j = 0; j < side_by_side; ++j) {
      const TwoSum t = two_sum(sum[j], x[i + j] * x[i + j]);
      sum[j] = t.sum;
      error[j] += t.error;
    }
  }
  CompensatedSum total;
  for (; i < x.size(); ++i) total.add(x[i] * x[i]);
  for (std::size_t j = 0; j < side_by_side; ++j) total.add(sum[j]);
  for (std::size_t j = 0; j < side_by_side; ++j) total.add(error[j]);
  return total;
}

}  // namespace

GapEvaluator::GapEvaluator(const Dataset& data, const Objective& objective, const Oracle* oracle,
                           Arena& arena, Entropy entropy, WeightSpace* space)
    : data_(data),
      objective_(objective),
      oracle_(oracle),
      arena_(arena),
      entropy_(entropy),
      space_(space),
      forests_(all_forests(data)),
      accumulator_(data),
      rounded_accumulator_(data),
      workers_(static_cast<std::size_t>(arena.threads())),
      wave_changes_(std::min(most_wave_examples, data.size())),
      wave_rounded_(wave_changes_.size()) {
  for (std::size_t t = 0; t < data.topologies(); ++t)
    message_plans_.push_back(plan_messages(data.topology(t)));
  if (objective.gamma > 0 && oracle != nullptr && oracle->exact())
    smooth_ = std::make_unique<SmoothRisk>(data, objective, *oracle, arena);
}

Bounds GapEvaluator::evaluate(const DualPoint& point, std::span<double> weights) {
  const Rebuilt rebuilt = rebuild(point, weights);
  Bounds bounds;
  bounds.squared_norm = squared_norm(weights);
  bounds.infeasibility = rebuilt.infeasibility;
  bounds.primal = objective_.lambda / 2 * bounds.squared_norm + risk(weights);
  bounds.dual = objective_.mean(rebuilt.loss + objective_.gamma * rebuilt.entropy) -
                objective_.lambda / 2 * bounds.squared_norm;
  return bounds;
}

// The sum over μ is rebuilt as w(μ) would be, and scaled back.
Bounds GapEvaluator::evaluate_pair(const DualPoint& point, std::span<const double> weights) {
  gradient_.resize(weights.size());
  const Rebuilt rebuilt = rebuild(point, gradient_);
  kernels().scale(gradient_.data(), gradient_.size(), objective_.lambda);
  Bounds bounds;
  bounds.squared_norm = squared_norm(weights);
  bounds.infeasibility = rebuilt.infeasibility;
  bounds.primal = primal(weights);
  bounds.dual = sparse_dual(objective_.penalty, objective_.lambda, objective_.mean(rebuilt.loss), gradient_);
  return bounds;
}

double GapEvaluator::primal(std::span<const double> weights) { return regularizer(weights) + risk(weights); }

// With p_m the distributions at w and g = ∇R(w) = −(1/M) Σ_m Ψ_m μ_m:
//   (1/M) Σ_m [<μ_m, Δ> + γ H(p_m)] = R(w) − <w, g>                      since H_m(w) = <μ_m, θ> + γ H(p_m)
//   l2: D = R(w) − <w, g> − |g|²/(2λ), the dual at w(μ) = −g/λ; P(w) − D = |λw + g|²/(2λ)
//   l1: the dual asks for |g|_∞ ≤ λ/2 (penalty.hpp).
Bounds GapEvaluator::evaluate_at(std::span<const double> weights) {
  gradient_.resize(weights.size());
  const double risk = smooth_->value_and_gradient(weights, gradient_);
  oracle_calls_ += data_.size();
  CompensatedSum product, gradient_norm;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    product.add(weights[i] * gradient_[i]);
    gradient_norm.add(gradient_[i] * gradient_[i]);
  }
  Bounds bounds;
  bounds.squared_norm = squared_norm(weights);
  bounds.primal = regularizer(weights) + risk;
  const double lambda = objective_.lambda;
  const double value = risk - product.value();
  bounds.dual = objective_.penalty.sparse() ? sparse_dual(objective_.penalty, lambda, value, gradient_)
                                            : value - gradient_norm.value() / (2 * lambda);
  return bounds;
}

double GapEvaluator::risk(std::span<const double> weights) {
  if (!smooth_) return objective_.mean(hinge_sum(weights));
  oracle_calls_ += data_.size();
  return smooth_->value(weights);
}

double GapEvaluator::regularizer(std::span<const double> weights) {
  if (objective_.penalty.sparse()) return sparse_penalty(objective_.penalty, objective_.lambda, weights);
  return objective_.lambda / 2 * squared_norm(weights);
}

// w(μ) = (1/(λM)) Σ_m Σ_α Σ_y μ_α(y) ψ_α(y), with Σ_y μ_α(y) ψ_α(y) = φ_α(y*) − Σ_y μ_α(y) φ_α(y).
GapEvaluator::Rebuilt GapEvaluator::rebuild(const DualPoint& point, std::span<double> weights) {
  if (point.dense() || space_ != nullptr) return rebuild_dense(point, weights);
  if (accumulator_.parts() > 0) return rebuild_in_parts(point, weights);
  bool at_truth = true;  // so far, where w is 0
  CompensatedSum loss, entropy;
  Rebuilt result;
  std::vector<Rebuilt> parts(wave_changes_.size());
  for (std::size_t first = 0; first < data_.size();) {
    const std::size_t count = wave_length(data_, first);
    arena_.for_each_block(count, wave_grain, [&](std::size_t begin, std::size_t end, int worker) {
      for (std::size_t k = begin; k < end; ++k) {
        Worker& own = workers_[static_cast<std::size_t>(worker)];
        own.masses.clear();
        point.masses(first + k, own.masses);
        parts[k] = add_block(first + k, own.masses, &wave_changes_[k], own);
      }
    });
    bool changes = false;
    for (std::size_t k = 0; k < count; ++k) {
      loss.add(parts[k].loss);
      entropy.add(parts[k].entropy);
      result.infeasibility = std::max(result.infeasibility, parts[k].infeasibility);
      changes = changes || !wave_changes_[k].empty();
    }
    first += count;
    if (!changes) continue;
    if (std::exchange(at_truth, false)) accumulator_.start(weights);
    accumulator_.commit(arena_, std::span(std::as_const(wave_changes_)).first(count));
  }
  if (at_truth) {
    std::fill(weights.begin(), weights.end(), 0.0);
  } else {
    accumulator_.finish(arena_, objective_.weight_scale());
  }
  result.loss = loss.value();
  result.entropy = entropy.value();
  return result;
}

GapEvaluator::Rebuilt GapEvaluator::rebuild_in_parts(const DualPoint& point, std::span<double> weights) {
  struct Part {
    CompensatedSum loss, entropy;
    double infeasibility = 0;
  };
  const std::size_t count = accumulator_.parts();
  std::vector<Part> parts(count);
  accumulator_.start_parts();
  arena_.for_each_block(count, 1, [&](std::size_t p, std::size_t, int index) {
    Worker& own = workers_[static_cast<std::size_t>(index)];
    Part sum;
    accumulator_.start_part(p);
    for (std::size_t m = data_.size() * p / count; m < data_.size() * (p + 1) / count; ++m) {
      own.masses.clear();
      point.masses(m, own.masses);
      const Rebuilt block = add_block(m, own.masses, &own.changes, own);
      accumulator_.add(p, own.changes);
      sum.loss.add(block.loss);
      sum.entropy.add(block.entropy);
      sum.infeasibility = std::max(sum.infeasibility, block.infeasibility);
    }
    parts[p] = sum;
  });
  accumulator_.finish_parts(arena_, objective_.weight_scale(), weights);
  Part all;
  for (const Part& part : parts) {
    all.loss.add(part.loss);
    all.entropy.add(part.entropy);
    all.infeasibility = std::max(all.infeasibility, part.infeasibility);
  }
  return {all.loss.value(), all.entropy.value(), all.infeasibility};
}

GapEvaluator::Rebuilt GapEvaluator::rebuild_dense(const DualPoint& point, std::span<double> weights) {
  std::vector<Rebuilt> parts(data_.size());
  const auto residuals = [&](std::size_t m, int index, double* cells) {
    Worker& worker = workers_[static_cast<std::size_t>(index)];
    const FactorGraph g = data_[m];
    const Topology& top = g.topology();
    worker.masses.clear();
    point.masses(m, worker.masses);
    parts[m] = add_block(m, worker.masses, nullptr, worker);
    std::fill_n(cells, top.cells(), 0.0);
    if (parts[m].infeasibility == std::numeric_limits<double>::infinity()) return;
    for (const Mass& e : worker.masses) cells[top.clique_offset[e.clique] + e.joint] = e.mass;
    if (objective_.gamma > 0) {
      worker.zeros.resize(std::max<std::size_t>(worker.zeros.size(), top.cells()));
      parts[m].entropy = labelling_entropy(top, cells, worker.zeros.data(), 0).value;
    }
    for (std::size_t i = 0; i < top.cells(); ++i) cells[i] = -cells[i];
    for (std::size_t a = 0; a < top.cliques(); ++a)
      cells[top.clique_offset[a] + joint_state(top, a, g.labels())] += 1;
  };
  if (space_ != nullptr) {
    space_->sum(arena_, residuals, weights);
  } else {
    if (!sums_) sums_ = std::make_unique<FeatureSums>(data_);
    sums_->sum(arena_, residuals, weights);
  }
  kernels().scale(weights.data(), weights.size(), objective_.weight_scale());
  CompensatedSum loss, entropy;
  Rebuilt result;
  for (const Rebuilt& part : parts) {
    loss.add(part.loss);
    entropy.add(part.entropy);
    result.infeasibility = std::max(result.infeasibility, part.infeasibility);
  }
  result.loss = loss.value();
  result.entropy = entropy.value();
  return result;
}

// Turns one example's masses into changes of w; returns <μ, Δ>, its entropy, and how far μ is from the local
// polytope. Joint states without a weight row change nothing.
GapEvaluator::Rebuilt GapEvaluator::add_block(std::size_t m, const std::vector<Mass>& masses,
                                              std::vector<CliqueChange>* changes, Worker& worker) const {
  const FactorGraph g = data_[m];
  const Topology& top = g.topology();
  if (changes != nullptr) changes->clear();
  double infeasibility = 0;
  const double scale = objective_.loss_scale(g);
  CompensatedSum loss, entropy;
  const bool smooth = objective_.gamma > 0 && changes != nullptr;  // of dense points all at once
  std::size_t at = 0;
  worker.mass_begin.clear();
  for (std::uint32_t a = 0; a < top.cliques(); ++a) {
    const bool variable = a < top.variables();
    const std::uint32_t t = top.template_of(a);
    const std::uint32_t input = g.input_of(a);
    const std::int32_t* const row_of = data_.templates()[t].row_of.data();
    const auto truth = static_cast<std::uint32_t>(joint_state(top, a, g.labels()));
    // What the clique's entropy counts in that of the labelling, on a forest.
    const double share = smooth && variable ? 1.0 - static_cast<double>(top.factors_of(a).size()) : 1.0;
    double total = 0;
    double truth_mass = 0;
    const std::size_t first = at;
    const std::uint64_t states = top.clique_offset[a + 1] - top.clique_offset[a];
    for (; at < masses.size() && masses[at].clique == a && masses[at].joint < states; ++at) {
      const Mass& e = masses[at];
      total += e.mass;
      infeasibility = std::max(infeasibility, -e.mass);
      if (smooth && e.mass > 0) entropy.add(-(share * e.mass) * std::log(e.mass));
      if (e.joint == truth) {
        truth_mass += e.mass;
      } else {
        if (row_of[e.joint] >= 0 && e.mass != 0 && changes != nullptr)
          changes->push_back({t, input, e.joint, -e.mass});
        if (variable) loss.add(e.mass * scale * static_cast<double>(g.loss(a)));
      }
    }
    if (changes != nullptr && truth_mass != 1 && row_of[truth] >= 0)
      changes->push_back({t, input, truth, 1 - truth_mass});
    infeasibility = std::max(infeasibility, std::abs(total - 1));
    if (variable) {
      worker.mass_begin.push_back(first);
      if (a + 1 == top.variables()) worker.mass_begin.push_back(at);
    } else {
      const std::span<const Mass> own(masses.data() + first, at - first);
      infeasibility = std::max(infeasibility, disagreement(top, a - top.variables(), own, masses, worker));
    }
  }
  // Masses that belong to no clique or joint state, or are out of order, were never reached.
  if (at != masses.size()) infeasibility = std::numeric_limits<double>::infinity();
  return {loss.value(), entropy.value(), infeasibility};
}

// Aμ: the largest difference of a factor's marginals and its variables', of which `masses` are the example's.
double GapEvaluator::disagreement(const Topology& top, std::size_t factor, std::span<const Mass> own,
                                  std::span<const Mass> masses, Worker& worker) {
  const auto scope = top.scope_of(factor);
  const auto masses_of = [&](std::uint32_t i) {
    return masses.subspan(worker.mass_begin[i], worker.mass_begin[i + 1] - worker.mass_begin[i]);
  };
  double largest = 0;
  if (scope.size() == 2 && top.states[scope[0]] == 2 && top.states[scope[1]] == 2) {
    double mass[4] = {};
    double first[2] = {};
    double second[2] = {};
    for (const Mass& e : own) mass[e.joint] += e.mass;
    for (const Mass& e : masses_of(scope[0])) first[e.joint] += e.mass;
    for (const Mass& e : masses_of(scope[1])) second[e.joint] += e.mass;
    for (const double difference : {first[0] - (mass[0] + mass[1]), first[1] - (mass[2] + mass[3]),
                                    second[0] - (mass[0] + mass[2]), second[1] - (mass[1] + mass[3])})
      largest = std::max(largest, std::abs(difference));
    return largest;
  }
  if (own.size() == 1) {
    bool same = true;
    for_each_state(top, scope, own[0].joint, [&](std::size_t j, std::uint32_t state) {
      const auto of_variable = masses_of(scope[j]);
      same = same && of_variable.size() == 1 && of_variable[0].joint == state;
      if (same) largest = std::max(largest, std::abs(of_variable[0].mass - own[0].mass));
    });
    if (same) return largest;
    largest = 0;
  }
  // Only where there are masses; the rest of the differences stays zero from factor to factor.
  worker.places.clear();
  std::vector<double>& difference = worker.difference;
  if (difference.size() < top.clique_offset[top.variables()])
    difference.resize(top.clique_offset[top.variables()], 0.0);
  for (const std::uint32_t i : scope)
    for (const Mass& e : masses_of(i)) {
      worker.places.push_back(top.clique_offset[i] + e.joint);
      difference[worker.places.back()] += e.mass;
    }
  for (const Mass& e : own)
    for_each_state(top, scope, e.joint, [&](std::size_t j, std::uint32_t state) {
      worker.places.push_back(top.clique_offset[scope[j]] + state);
      difference[worker.places.back()] -= e.mass;
    });
  for (const std::uint64_t place : worker.places) {
    largest = std::max(largest, std::abs(difference[place]));
    difference[place] = 0;
  }
  return largest;
}

// Σ_m max_y Σ_α θ_α(y_α), θ relative to the truth; of a relaxation, its bound.
double GapEvaluator::hinge_sum(std::span<const double> weights) {
  ++version_;
  oracle_calls_ += data_.size();
  return ordered_reduce<CompensatedSum>(arena_, data_.size(), example_grain,
                                        [&](std::size_t begin, std::size_t end, int index) {
                                          Worker& worker = workers_[static_cast<std::size_t>(index)];
                                          CompensatedSum sum;
                                          for (std::size_t m = begin; m < end; ++m) {
                                            const FactorGraph g = data_[m];
                                            if (space_ != nullptr) {
                                              space_->fill(g, weights, version_, worker.potentials);
                                            } else {
                                              worker.potentials.fill(data_, g, weights.data(), version_);
                                            }
                                            const double truth = worker.potentials.score(g, g.labels());
                                            worker.potentials.add_loss(g, objective_.loss_scale(g));
                                            sum.add(oracle_->bound(g, worker.potentials, worker.scratch));
                                            sum.add(-truth);
                                          }
                                          return sum;
                                        })
      .value();
}

double GapEvaluator::squared_norm(std::span<const double> weights) {
  if (space_ != nullptr) return space_->squared_norm(arena_, weights);
  const auto block = [&](std::size_t begin, std::size_t end, int) {
    return compensated_squares(weights.subspan(begin, end - begin));
  };
  return ordered_reduce<CompensatedSum>(arena_, weights.size(), cell_grain, block).value();
}

}  // namespace margrave
