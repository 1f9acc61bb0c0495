// Blocks as weighted vertices: μ_m = Σ_a α_a·[vertex a], labellings where the oracle is exact.
//
// With g_a = Δ(a) − <w, ψ(a)> (= M·∂D/∂α_a) and Q_ab = <ψ(a), ψ(b)>, a block's part of the dual is the small
// quadratic program of optim/simplex_qp.hpp with s = 1/(λM): many steps cost O(vertices) each and touch
// neither inputs nor w.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/kernels.hpp"
#include "margrave/error.hpp"
#include "model/clique_scores.hpp"
#include "optim/simplex_qp.hpp"
#include "solvers/dual_blocks.hpp"
#include "solvers/vertex_steps.hpp"
#include "state/vertex_cache.hpp"

namespace margrave {

namespace {

constexpr double negligible = 1e-14;      // gaps and gradient differences below are rounding
constexpr std::uint32_t keep_unused = 2;  // labellings without weight that outlive an epoch
constexpr double block_accuracy = 0.1;    // a visit ends when the block's gap is this part of what it was
constexpr double rounding = 1e-12;        // of a sum of weights
constexpr double same_score = 1e-9;       // two sums of one score differ by less
constexpr double same_product = 1e-9;  // two sums of one inner product differ by less, as part of the lengths

class VertexBlocks final : public DualBlocks {
 public:
  VertexBlocks(const Problem& problem, const BcfwOptions& options)
      : problem_(problem),
        options_(options),
        gram_(problem.data, problem.arena),
        flat_(problem.oracle->half_integral() && FlatFeatures::fit(problem.data)
                  ? std::make_unique<FlatFeatures>(problem.data)
                  : nullptr),
        cache_(problem.data, flat_.get()) {}

  void propose(const double* w, std::uint64_t version, Visit visit, BlockWorker& worker,
               BlockStep& step) override {
    step.clear();
    const std::size_t m = step.example;
    const FactorGraph g = problem_.data[m];
    Potentials& potentials = worker.potentials;
    potentials.fill(problem_.data, g, w, version);
    VertexCache::Block b = cache_.block(m);
    double* gradient = flat_ ? flat_gradients(m, b, worker) : gradients(g.topology(), b, worker);
    double truth = 0;
    if (flat_) truth = kernels().dot(flat_->truth(m), worker.scores.data(), b.row_stride);
    potentials.add_loss(g, problem_.objective.loss_scale(g));
    if (!flat_) truth = potentials.score(g, g.labels());
    step.target.assign(b.weight, b.weight + b.count);
    worker.labels.resize(g.variables());
    const double scale = worker.company * problem_.objective.weight_scale();
    double first_gap = 0;
    for (std::uint32_t call = 0; call < options_.calls_per_visit; ++call) {
      const Answer answer = ask(g, worker);
      const double hinge = answer.score - truth;
      const double gap = hinge - std::inner_product(step.target.begin(), step.target.end(), gradient, 0.0);
      ++step.oracle_calls;
      if (call == 0) {
        first_gap = gap;
        step.block_gap = std::max(0.0, gap + answer.bound - answer.score);
      }
      if (gap <= std::max(negligible, block_accuracy * first_gap)) break;
      // What scores higher than all that is cached is not among it.
      const double best = *std::max_element(gradient, gradient + b.count);
      std::uint32_t vertex = hinge > best + same_score * (1 + std::abs(best))
                                 ? VertexCache::absent
                                 : cache_.find(m, worker.labels, worker.fractional);
      if (vertex == VertexCache::absent) {
        vertex = cache_.add(m, worker.labels, worker.fractional, gram_, worker.gram);
        if (vertex == VertexCache::absent) break;
        b = cache_.block(m);
        b.loss[vertex] = loss(g, b, vertex);
        step.target.resize(b.count, 0.0);
        gradient[vertex] = hinge;
      }
      if (visit == Visit::collect) break;
      step.before.assign(step.target.begin(), step.target.end());
      const SimplexQp qp{b.count, b.capacity, b.gram, scale, step.target.data(), gradient};
      if (take_steps(qp, options_, vertex) == 0 || call + 1 == options_.calls_per_visit) break;
      follow(m, b, scale, step, potentials);
      truth = potentials.score(g, g.labels());
    }
    merge_changes(b, b.weight, step);
    measure_moves(b.loss, b.gram, b.capacity, step);
  }

  void prefetch(std::size_t m) const override {
    cache_.prefetch(m);
    const FactorGraph g = problem_.data[m];
    for (std::size_t i = 0; i < g.variables(); ++i)
      if (i == 0 || g.input_of(i) != g.input_of(i - 1)) prefetch_input(problem_.data.input(g.input_of(i)));
  }

  void apply(const BlockStep& step, double length) override {
    const VertexCache::Block b = cache_.block(step.example);
    move_weights({b.weight, b.count}, step.target.data(), length);
  }

  void masses(std::size_t m, std::vector<Mass>& out) const override {
    const Topology& top = problem_.data[m].topology();
    const VertexCache::Block b = cache_.block(m);
    if (flat_) {
      append_flat_masses(m, b, out);
      return;
    }
    std::vector<std::size_t> cursor(b.fractional != nullptr ? b.count : 0);
    std::vector<std::uint32_t> weighted;
    for (std::uint32_t k = 0; k < b.count; ++k)
      if (b.weight[k] != 0) weighted.push_back(k);
    if (weighted.empty()) return;
    // Where all agree, they have one joint state, with the mass of all.
    const std::vector<std::uint8_t> differs = differing(top, b, weighted);
    const double all = whole(b);
    for (std::uint32_t a = 0; a < top.cliques(); ++a) {
      if (b.fractional == nullptr && none_marked(top, a, differs)) {
        const CachedLabel* labels = b.labels + std::size_t{weighted.front()} * top.variables();
        out.push_back({a, static_cast<std::uint32_t>(joint_state(top, a, labels)), all});
        continue;
      }
      const auto first = static_cast<std::ptrdiff_t>(out.size());
      for (const std::uint32_t k : weighted) {
        visit_clique(top, b, k, a, cursor.data(), [&](std::uint32_t joint, double mass) {
          const auto known =
              std::find_if(out.begin() + first, out.end(), [&](const Mass& e) { return e.joint == joint; });
          if (known == out.end()) {
            out.push_back({a, joint, b.weight[k] * mass});
          } else {
            known->mass += b.weight[k] * mass;
          }
        });
      }
    }
  }

  bool at_truth() const override {
    for (std::size_t m = 0; m < cache_.size(); ++m)
      if (cache_.count(m) > 1) return false;
    return true;
  }

  bool has_cache() const override { return options_.steps != Steps::plain; }
  const VertexCache* cache() const override { return has_cache() ? &cache_ : nullptr; }
  const FlatFeatures* flat() const override { return flat_.get(); }
  void make_room(std::uint32_t visits) override {
    cache_.make_room(problem_.arena, visits, keep_unused);
    measure();
  }
  void reserve_step(BlockStep& step) const override {
    step.target.reserve(most_labellings_);
    step.before.reserve(most_labellings_);
    step.moved.reserve(most_labellings_);
    step.difference.reserve(most_labellings_);
    step.coefficient.reserve(2 * most_changes_);
    step.deviations.reserve(most_changes_);
    step.terms.reserve(2 * most_changes_);
  }
  void reserve_worker(BlockWorker& worker) const override {
    worker.gradient.reserve(2 * most_labellings_);
    worker.scores.reserve(2 * most_changes_);
    worker.gram.block_out.reserve(most_labellings_);
  }
  std::uint64_t bytes() const override {
    return cache_.bytes() + gram_.bytes() + (flat_ ? flat_->bytes() : 0);
  }
  void save(ByteWriter& out) const override { cache_.save(out); }
  void restore(ByteReader& in) override {
    restore_vertices(in);
    for (std::size_t m = 0; m < cache_.size(); ++m) check_products(in, m);
  }
  void warm_start(ByteReader& in) override {
    restore_vertices(in);
    problem_.arena.for_each_block(cache_.size(), 16, [&](std::size_t begin, std::size_t end, int) {
      FeatureGram::Scratch scratch;
      for (std::size_t m = begin; m < end; ++m) make_products(m, scratch);
    });
  }

  std::optional<Certificate> certificate() const override {
    if (!problem_.oracle->exact())
      return Certificate{problem_.data.fingerprint(), stored_point(problem_.data, *this, true)};
    Labellings c;
    c.atom_begin.push_back(0);
    c.label_begin.push_back(0);
    for (std::size_t m = 0; m < cache_.size(); ++m) {
      const VertexCache::Block b = cache_.block(m);
      const std::size_t variables = problem_.data[m].variables();
      for (std::uint32_t k = 0; k < b.count; ++k) {
        if (b.weight[k] == 0) continue;
        c.weight.push_back(b.weight[k]);
        const CachedLabel* labels = b.vertex(k, variables).labels;
        c.label.insert(c.label.end(), labels, labels + variables);
        c.label_begin.push_back(c.label.size());
      }
      c.atom_begin.push_back(c.weight.size());
    }
    return Certificate{problem_.data.fingerprint(), std::move(c)};
  }

 private:
  static void prefetch_input(const InputView& x) {
    const auto ask = [&](const auto* memory) {
      for (std::size_t i = 0; i < x.count; i += cache_line / sizeof(*memory)) __builtin_prefetch(memory + i);
    };
    if (x.kind == InputKind::unit || x.kind == InputKind::sparse) ask(x.index);
    if (x.kind == InputKind::dense || x.kind == InputKind::sparse) ask(x.value);
  }

  // Which variables have several labels among the given vertices, not counting fractional masses.
  static std::vector<std::uint8_t> differing(const Topology& top, const VertexCache::Block& b,
                                             std::span<const std::uint32_t> vertices) {
    std::vector<std::uint8_t> differs(top.variables(), 0);
    const auto labels = [&](std::uint32_t k) { return b.labels + std::size_t{k} * top.variables(); };
    for (const std::uint32_t k : vertices)
      for (std::size_t i = 0; i < differs.size(); ++i)
        if (labels(k)[i] != labels(vertices.front())[i]) differs[i] = 1;
    return differs;
  }

  // g_a = Δ(a) + Σ mass · <w, deviation> of every vertex, from scores without the loss.
  static double* gradients(const Topology& top, const VertexCache::Block& b, BlockWorker& worker) {
    double* scores = worker.scores.reserve(b.deviations.size());
    for (std::size_t j = 0; j < b.deviations.size(); ++j) {
      const Deviation& d = b.deviations[j];
      const double* at = worker.potentials.scores(top, d.clique);
      scores[j] = at[d.place] - at[d.truth_place];
    }
    double* gradient = worker.gradient.reserve(std::size_t{2} * b.capacity);
    for (std::uint32_t k = 0; k < b.count; ++k) {
      double sum = b.loss[k];
      b.for_each_part(k, [&](std::uint32_t j, double mass) { sum += mass * scores[j]; });
      gradient[k] = sum;
    }
    return gradient;
  }

  double* flat_gradients(std::size_t m, const VertexCache::Block& b, BlockWorker& worker) const {
    double* scores = worker.scores.reserve(b.row_stride);
    flat_->scores(m, worker.potentials, scores);
    double* gradient = worker.gradient.reserve(std::size_t{2} * b.capacity);
    kernels().dot_rows(b.rows, b.row_stride, b.count, scores, b.row_stride, gradient);
    for (std::uint32_t k = 0; k < b.count; ++k) gradient[k] += b.loss[k];
    return gradient;
  }

  // The oracle's vertex goes to the worker's labels and fractional masses.
  Answer ask(const FactorGraph& g, BlockWorker& worker) const {
    return problem_.oracle->vertex(g, worker.potentials, worker.scratch, worker.labels, worker.fractional);
  }

  // visit(joint, mass) for what vertex k has in clique a. `cursor`: one number per vertex, zero before the
  // first clique, where there are fractional ones.
  template <class Visit>
  static void visit_clique(const Topology& top, const VertexCache::Block& b, std::uint32_t k, std::uint32_t a,
                           std::size_t* cursor, Visit&& visit) {
    if (b.fractional == nullptr) {
      visit(static_cast<std::uint32_t>(joint_state(top, a, b.labels + std::size_t{k} * top.variables())),
            1.0);
    } else {
      cursor[k] = visit_masses(top, b.vertex(k, top.variables()), a, cursor[k], visit);
    }
  }

  // <μ, Δ> of vertex k. Of a flat row: what a variable has less of its label than the truth.
  double loss(const FactorGraph& g, const VertexCache::Block& b, std::uint32_t k) const {
    if (!flat_) return problem_.objective.loss(g, b.vertex(k, g.variables()));
    const float* row = b.row(k);
    double sum = 0;
    for (std::size_t i = 0; i < g.variables(); ++i) sum += static_cast<double>(std::abs(row[i]) * g.loss(i));
    return sum * problem_.objective.loss_scale(g);
  }

  // Σ of the weights. Where they miss one by rounding alone, it is one: cliques whose vertices agree with the
  // truth then change nothing, and are most of all.
  static double whole(const VertexCache::Block& b) {
    const double sum = std::accumulate(b.weight, b.weight + b.count, 0.0);
    return std::abs(sum - 1) <= rounding ? 1.0 : sum;
  }

  // Rows are linear in their vertices: that of the mixture is made first, then its masses.
  void append_flat_masses(std::size_t m, const VertexCache::Block& b, std::vector<Mass>& out) const {
    std::array<double, FlatFeatures::most_cliques> row;
    std::fill_n(row.begin(), b.row_stride, 0.0);
    for (std::uint32_t k = 0; k < b.count; ++k)
      if (b.weight[k] != 0) kernels().add_outer(b.row(k), b.row_stride, &b.weight[k], 1, 1, row.data());
    flat_->for_each_mass(m, row.data(), whole(b), [&](std::uint32_t a, std::uint32_t joint, double mass) {
      out.push_back({a, joint, mass});
    });
  }

  void restore_vertices(ByteReader& in) {
    cache_.restore(in, problem_.data);
    std::vector<Mass> memory;
    // A warm start may come from a run with another Hamming loss; after a resumed one these are the same
    // bits.
    for (std::size_t m = 0; m < cache_.size(); ++m) {
      const FactorGraph g = problem_.data[m];
      const VertexCache::Block b = cache_.block(m);
      for (std::uint32_t k = 0; problem_.oracle->exact() && k < b.count; ++k)
        if (!cache_.vertex(m, k, memory).fractional.empty())
          in.fail("holds fractional vertices of a relaxation, and the oracle of this run is exact");
      for (std::uint32_t k = 0; k < b.count; ++k) b.loss[k] = loss(g, b, k);
    }
  }

  // row(k, products of vertex k with all of them)
  template <class Row>
  void for_each_row(std::size_t m, FeatureGram::Scratch& scratch, Row&& row) const {
    const VertexCache::Block b = cache_.block(m);
    std::vector<double> products(b.count);
    for (std::uint32_t k = 0; k < b.count; ++k) {
      cache_.products(m, k, gram_, scratch, products.data());
      row(k, products);
    }
  }

  void make_products(std::size_t m, FeatureGram::Scratch& scratch) const {
    const VertexCache::Block b = cache_.block(m);
    for_each_row(m, scratch, [&](std::uint32_t k, const std::vector<double>& products) {
      for (std::uint32_t j = 0; j <= k; ++j)
        b.gram[std::size_t{k} * b.capacity + j] = b.gram[std::size_t{j} * b.capacity + k] = products[j];
    });
  }

  // Steps along wrong products would be wrong without a sign of it, or end in numbers that are not finite.
  void check_products(const ByteReader& in, std::size_t m) const {
    const VertexCache::Block b = cache_.block(m);
    FeatureGram::Scratch scratch;
    std::vector<double> length(b.count);
    double largest = 0;
    for_each_row(m, scratch, [&](std::uint32_t k, const std::vector<double>& expected) {
      const double* row = b.gram + std::size_t{k} * b.capacity;
      length[k] = std::sqrt(std::max(0.0, expected[k]));
      largest = std::max(largest, expected[k]);
      for (std::uint32_t j = 0; j <= k; ++j) {
        const double tolerance = same_product * (length[k] * length[j] + same_product * largest);
        if (!(std::abs(row[j] - expected[j]) <= tolerance) ||
            !(std::abs(b.gram[std::size_t{j} * b.capacity + k] - expected[j]) <= tolerance))
          in.fail("holds inner products that are not those of the data");
      }
    });
  }

  // The largest block, and the most changes any example can ask for.
  void measure() {
    const bool exact = problem_.oracle->exact();
    for (std::size_t m = 0; m < cache_.size(); ++m) {
      const std::uint64_t capacity = cache_.capacity(m);
      most_labellings_ = std::max<std::size_t>(most_labellings_, capacity);
      const Topology& top = problem_.data[m].topology();
      if (!exact) {
        most_changes_ = std::max<std::size_t>(most_changes_, top.cells());
        continue;
      }
      std::uint64_t changes = 0;
      // A clique's states are listed before those that cancel are struck out.
      for (std::size_t a = 0; a < top.cliques(); ++a) {
        const std::uint64_t states = top.clique_offset[a + 1] - top.clique_offset[a];
        changes += std::min(capacity, states);
      }
      most_changes_ = std::max<std::size_t>(most_changes_, changes);
    }
  }

  // Brings the scores up to the weights that the steps from step.before to step.target would make.
  void follow(std::size_t m, const VertexCache::Block& b, double scale, BlockStep& step,
              Potentials& potentials) const {
    merge_changes(b, step.before.data(), step);
    for (const DeviationChange& c : step.deviations)
      gram_.add_to_scores(m, c.deviation, -scale * c.coefficient, potentials);
    for (const TermChange& c : step.terms)
      flat_->add_to_scores(m, c.term, -scale * c.coefficient, potentials);
  }

  // The direction from `from` to step.target into step.deviations, or step.terms where features are flat.
  static void merge_changes(const VertexCache::Block& b, const double* from, BlockStep& step) {
    step.deviations.clear();
    step.terms.clear();
    const double largest = find_moves({from, b.count}, step);
    if (step.moved.empty()) return;
    if (b.rows != nullptr) {
      step.coefficient.resize(b.row_stride);
      kernels().sum_rows(b.rows, b.row_stride, step.moved.data(), step.difference.data(), step.moved.size(),
                         b.row_stride, step.coefficient.data());
      step.terms.resize(b.row_stride);
      std::size_t found = 0;
      for (std::uint32_t c = 0; c < b.row_stride; ++c) {
        step.terms[found] = {c, step.coefficient[c]};
        if (std::abs(step.coefficient[c]) > cancelling * largest) ++found;
      }
      step.terms.resize(found);
      return;
    }
    step.coefficient.assign(b.deviations.size(), 0.0);
    for (std::size_t i = 0; i < step.moved.size(); ++i)
      b.for_each_part(step.moved[i], [&](std::uint32_t j, double mass) {
        step.coefficient[j] += step.difference[i] * mass;
      });
    // Where labellings agree, their changes cancel out.
    for (std::size_t j = 0; j < b.deviations.size(); ++j)
      if (std::abs(step.coefficient[j]) > cancelling * largest)
        step.deviations.push_back({b.deviations[j], step.coefficient[j]});
  }

  Problem problem_;
  BcfwOptions options_;
  FeatureGram gram_;
  std::unique_ptr<FlatFeatures> flat_;  // where features are so, and vertices half-integral
  VertexCache cache_;
  std::size_t most_labellings_ = 0, most_changes_ = 0;
};

}  // namespace

std::unique_ptr<DualBlocks> make_vertex_blocks(const Problem& problem, const BcfwOptions& options) {
  return std::make_unique<VertexBlocks>(problem, options);
}

}  // namespace margrave
