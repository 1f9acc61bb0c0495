#include "solvers/gibbs_state.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/kernels.hpp"
#include "solvers/marginal_point.hpp"

namespace margrave {

namespace {

constexpr std::size_t example_grain = 4;
constexpr std::size_t cell_grain = 1U << 14U;

// f(first cell, scores, length) for the runs of a clique's scores that lie without padding in between.
template <class Scores, class F>
void for_each_line(const Topology& top, std::size_t clique, Scores& potentials, F&& f) {
  const std::uint64_t begin = top.clique_offset[clique];
  if (clique < top.variables()) {
    f(begin, potentials.node(clique), top.states[clique]);
    return;
  }
  const std::size_t factor = clique - top.variables();
  const std::size_t last = top.states[top.scope_of(factor).back()];
  auto* line = potentials.table(factor);
  for (std::uint64_t at = begin; at < top.clique_offset[clique + 1]; at += last, line += padded(last))
    f(at, line, last);
}

}  // namespace

double kl_divergence(const Gibbs& of, const Gibbs& from) {
  double sum = 0;
  for (std::size_t y = 0; y < of.t.size(); ++y) sum += of.mu[y] * (of.t[y] - from.t[y]);
  return std::max(0.0, sum - (of.log_partition - from.log_partition));
}

double symmetric_divergence(const Gibbs& a, const Gibbs& b) {
  double sum = 0;
  for (std::size_t y = 0; y < a.t.size(); ++y) sum += (a.mu[y] - b.mu[y]) * (a.t[y] - b.t[y]);
  return std::max(0.0, sum);
}

GibbsState::GibbsState(const Problem& problem, double bonus)
    : problem_(problem), t_(problem.data), mu_(problem.data), log_partition_(problem.data.size(), 0.0) {
  for (std::size_t m = 0; m < t_.size(); ++m) {
    const FactorGraph g = problem.data[m];
    const Topology& top = g.topology();
    for (std::size_t i = 0; i < top.variables(); ++i) {
      const auto own = t_[m].subspan(top.clique_offset[i], top.states[i]);
      std::fill(own.begin(), own.end(), -bonus);
      own[static_cast<std::size_t>(g.label(i))] = 0;
    }
  }
  distribute_all();
}

void GibbsState::set(std::size_t m, const Gibbs& p) {
  std::copy(p.t.begin(), p.t.end(), t_[m].begin());
  std::copy(p.mu.begin(), p.mu.end(), mu_[m].begin());
  log_partition_[m] = p.log_partition;
}

void GibbsState::swap(GibbsState& other) noexcept {
  std::swap(t_, other.t_);
  std::swap(mu_, other.mu_);
  log_partition_.swap(other.log_partition_);
}

void GibbsState::score(std::size_t m, const double* w, std::uint64_t version, Worker& worker) const {
  const FactorGraph g = problem_.data[m];
  worker.scores.fill(problem_.data, g, w, version);
  if (const double scale = problem_.objective.loss_scale(g); scale != 0) worker.scores.add_loss(g, scale);
}

double GibbsState::move(std::size_t m, double keep, double rate, Worker& worker, std::span<double> t,
                        std::span<double> mu) const {
  const Kernels& k = kernels();
  const Topology& top = problem_.data[m].topology();
  for (std::size_t y = 0; y < t.size(); ++y) t[y] = keep * t_[m][y];
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    for_each_line(top, a, std::as_const(worker.scores),
                  [&](std::uint64_t at, const double* line, std::size_t n) {
                    k.add_scaled(line, n, rate, t.data() + at);
                  });
    const auto clique = t.subspan(top.clique_offset[a], top.clique_offset[a + 1] - top.clique_offset[a]);
    const double shift = k.max_value(clique.data(), clique.size());
    for (double& x : clique) x -= shift;
  }
  return distribute(m, t, worker, mu);
}

double GibbsState::distribute(std::size_t m, std::span<const double> t, Worker& worker,
                              std::span<double> mu) const {
  const FactorGraph g = problem_.data[m];
  worker.own.reset(problem_.data, g);
  for (std::size_t a = 0; a < g.cliques(); ++a)
    for_each_line(g.topology(), a, worker.own, [&](std::uint64_t at, double* line, std::size_t n) {
      std::copy_n(t.data() + at, n, line);
    });
  return problem_.oracle->marginals(g, worker.own, worker.scratch, mu);
}

void GibbsState::distribute_all() {
  std::vector<Worker> workers(static_cast<std::size_t>(problem_.arena.threads()));
  problem_.arena.for_each_block(t_.size(), example_grain, [&](std::size_t begin, std::size_t end, int index) {
    for (std::size_t m = begin; m < end; ++m)
      log_partition_[m] = distribute(m, t_[m], workers[static_cast<std::size_t>(index)], mu_[m]);
  });
}

void GibbsState::residual(std::size_t m, double* cells) const {
  const FactorGraph g = problem_.data[m];
  const Topology& top = g.topology();
  std::copy(mu_[m].begin(), mu_[m].end(), cells);
  for (std::size_t a = 0; a < top.cliques(); ++a)
    cells[top.clique_offset[a] + joint_state(top, a, g.labels())] -= 1;
}

void GibbsState::masses(std::size_t m, std::vector<Mass>& out) const {
  append_marginals(problem_.data[m].topology(), mu_[m], out);
}

std::uint64_t GibbsState::bytes() const {
  return t_.bytes() + mu_.bytes() + log_partition_.size() * sizeof(double);
}

void GibbsState::save(ByteWriter& out) const { save_marginals(t_, out); }

void GibbsState::restore(ByteReader& in) {
  for (std::size_t m = 0; m < t_.size(); ++m) {
    const auto t = in.get_array<double>();
    if (t.size() != t_[m].size()) in.fail("does not fit the data");
    if (!std::all_of(t.begin(), t.end(), [](double x) { return x <= 0 && x >= -1e15; }))
      in.fail("holds a log-potential that is none");
    std::copy(t.begin(), t.end(), t_[m].begin());
  }
  distribute_all();
  for (std::size_t m = 0; m < mu_.size(); ++m)
    if (const char* wrong = wrong_marginals(problem_.data[m].topology(), mu_[m])) in.fail(wrong);
}

void weights_of(const Problem& problem, FeatureSums& sums, FeatureSums::Residuals residuals,
                std::span<double> weights) {
  sums.sum(problem.arena, residuals, weights);
  const double scale = -problem.objective.weight_scale();
  problem.arena.for_each_block(weights.size(), cell_grain, [&](std::size_t begin, std::size_t end, int) {
    kernels().scale(weights.data() + begin, end - begin, scale);
  });
}

}  // namespace margrave
