// Blocks as marginals: μ_α for every clique, in the MarginalStore. Memory never
// grows, whatever vertices turn up; the price is that only plain Frank-Wolfe
// steps are possible, because the vertices that μ is made of are forgotten.
#include <algorithm>

#include "model/clique_scores.hpp"
#include "solvers/dual_blocks.hpp"
#include "solvers/marginal_point.hpp"

namespace margrave {

namespace {

class MarginalBlocks final : public DualBlocks {
 public:
  explicit MarginalBlocks(const Problem& problem)
      : problem_(problem), point_(problem), store_(point_.store()) {
    store_.start_at_truth(problem.data);
  }

  void propose(const double* w, std::uint64_t version, Visit visit, BlockWorker& worker,
               BlockStep& step) override {
    const FactorGraph g = problem_.data[step.example];
    const Topology& top = g.topology();
    const auto mu = store_[step.example];
    step.changes.clear();
    step.loss_change = step.curvature = step.block_gap = 0;
    if (visit != Visit::oracle) return;
    worker.potentials.fill(problem_.data, g, w, version);
    const double truth = worker.potentials.score(g, g.labels());
    worker.potentials.add_loss(g, problem_.objective.loss_scale(g));
    const double mean = expected_score(g, worker.potentials, mu) - truth;  // <μ, θ>
    const Answer answer = problem_.oracle->maximise(g, worker.potentials, worker.scratch, step.vertex);
    step.block_gap = std::max(0.0, answer.bound - truth - mean);
    ++step.oracle_calls;
    if (answer.score - truth <= mean) return;
    double* target = worker.gradient.reserve(mu.size());
    std::fill_n(target, mu.size(), 0.0);
    for (const Mass& e : step.vertex) target[top.clique_offset[e.clique] + e.joint] += e.mass;
    for (std::uint32_t a = 0; a < top.cliques(); ++a) {
      for (std::uint64_t y = top.clique_offset[a]; y < top.clique_offset[a + 1]; ++y) {
        const auto joint = static_cast<std::uint32_t>(y - top.clique_offset[a]);
        const double change = target[y] - mu[y];
        if (change != 0) step.changes.push_back({top.template_of(a), g.input_of(a), joint, change});
      }
    }
    step.loss_change =
        point_.expected_loss(step.example, {target, mu.size()}) - point_.expected_loss(step.example, mu);
    step.curvature = squared_norm(step.changes, worker.gram);
  }

  void apply(const BlockStep& step, double length) override {
    const Topology& top = problem_.data[step.example].topology();
    const auto mu = store_[step.example];
    for (double& mass : mu) mass *= 1 - length;
    for (const Mass& e : step.vertex) mu[top.clique_offset[e.clique] + e.joint] += length * e.mass;
  }

  void masses(std::size_t m, std::vector<Mass>& out) const override { point_.masses(m, out); }

  bool has_cache() const override { return false; }
  void make_room(std::uint32_t) override {}
  void reserve_step(BlockStep& step) const override {
    for (std::size_t m = 0; m < store_.size(); ++m) {
      step.changes.reserve(store_[m].size());
      step.vertex.reserve(store_[m].size());
    }
  }
  void reserve_worker(BlockWorker& worker) const override {
    for (std::size_t m = 0; m < store_.size(); ++m) worker.gradient.reserve(store_[m].size());
  }
  std::optional<Certificate> certificate() const override { return point_.certificate(); }
  std::uint64_t bytes() const override { return point_.bytes(); }

  void save(ByteWriter& out) const override { point_.save(out); }
  void restore(ByteReader& in) override { point_.restore(in); }

 private:
  static double expected_score(const FactorGraph& g, const Potentials& potentials,
                               std::span<const double> mu) {
    const Topology& top = g.topology();
    double sum = 0;
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      for (std::uint64_t y = top.clique_offset[a]; y < top.clique_offset[a + 1]; ++y)
        if (mu[y] != 0) sum += mu[y] * potentials.score(top, a, y - top.clique_offset[a]);
    }
    return sum;
  }

  // |Σ changes|² by scattering into a worker's weight vector of zeros.
  double squared_norm(const std::vector<CliqueChange>& changes, FeatureGram::Scratch& scratch) const {
    const Dataset& data = problem_.data;
    double* block = scratch.zeros(data.templates().storage());
    for (const CliqueChange& c : changes) {
      for_each_weight(data, data.templates()[c.template_index], c.input, c.joint, c.coefficient,
                      [&](std::uint64_t at, double value) { block[at] += value; });
    }
    double sum = 0;
    for (const CliqueChange& c : changes) {
      for_each_weight(data, data.templates()[c.template_index], c.input, c.joint, c.coefficient,
                      [&](std::uint64_t at, double) {
                        sum += block[at] * block[at];
                        block[at] = 0;
                      });
    }
    return sum;
  }

  Problem problem_;
  MarginalPoint point_;
  MarginalStore<double>& store_;
};

}  // namespace

std::unique_ptr<DualBlocks> make_marginal_blocks(const Problem& problem) {
  return std::make_unique<MarginalBlocks>(problem);
}

}  // namespace margrave
