// Blocks as marginals: μ_α for every clique, in the MarginalStore. Memory never
// grows, whatever vertices turn up; the price is that only plain Frank-Wolfe
// steps are possible, because the vertices that μ is made of are forgotten.
#include <algorithm>

#include "model/topology.hpp"
#include "solvers/dual_blocks.hpp"
#include "solvers/marginal_point.hpp"

namespace margrave {

namespace {

class MarginalBlocks final : public DualBlocks {
 public:
  explicit MarginalBlocks(const Problem& problem) : problem_(problem), store_(problem.data) {
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
    const double mean = expected_score(top, worker.potentials, mu) - truth;  // <μ, θ>
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
        expected_loss(problem_.objective, g, {target, mu.size()}) - expected_loss(problem_.objective, g, mu);
    step.curvature = squared_norm(problem_.data, step.changes, worker.gram);
  }

  void apply(const BlockStep& step, double length) override {
    const Topology& top = problem_.data[step.example].topology();
    const auto mu = store_[step.example];
    for (double& mass : mu) mass *= 1 - length;
    for (const Mass& e : step.vertex) mu[top.clique_offset[e.clique] + e.joint] += length * e.mass;
  }

  void masses(std::size_t m, std::vector<Mass>& out) const override {
    append_marginals(problem_.data[m].topology(), store_[m], out);
  }

  bool dense() const override { return true; }
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
  std::optional<Certificate> certificate() const override { return marginal_certificate(problem_, *this); }
  std::uint64_t bytes() const override { return store_.bytes(); }

  void save(ByteWriter& out) const override {
    out.put(problem_.oracle->exact());
    save_marginals(store_, out);
  }
  void restore(ByteReader& in) override {
    if (!in.get<bool>() && problem_.oracle->exact() && !all_forests(problem_.data))
      in.fail("holds marginals of a relaxation, and the oracle of this run is exact");
    restore_marginals(problem_.data, in, store_);
  }

 private:
  Problem problem_;
  MarginalStore<double> store_;
};

}  // namespace

std::unique_ptr<DualBlocks> make_marginal_blocks(const Problem& problem) {
  return std::make_unique<MarginalBlocks>(problem);
}

}  // namespace margrave
