// Oracle: the answer to "which labelling scores best" and
// "what are the marginals", const and shared by all workers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.hpp"
#include "inference/potentials.hpp"
#include "inference/roof_matrix.hpp"
#include "margrave/dataset.hpp"
#include "model/mass.hpp"

namespace margrave {

class Arena;

// A worker's memory for oracle calls: grow-only, so that nothing is allocated after warm-up.
struct alignas(cache_line) Scratch {
  static constexpr std::size_t slots = 8;
  Buffer<double> reals[slots];
  Buffer<std::uint32_t> integers[slots];
  std::vector<std::uint32_t> labels;  // of maximise()
  Buffer<Kernels::PathStep> path;     // of forward_backward()
  // The exponentials of a shared table, kept for the examples
  // that follow with the same table (see forward_backward.hpp).
  struct Exponentials {
    Buffer<double> cells, transposed;
    TableKey key;
    bool reversed = false, narrow = false;
    double shift = 0;
  } exponentials;
  // The transpose of a shared table that was asked for often, for Viterbi's way back.
  struct Transposed {
    Buffer<double> cells;
    TableKey key;
    std::uint32_t uses = 0;
  } transposed;
  RoofCouplings couplings;   // shared tables as roof duality needs them, kept likewise
  std::vector<Mass> masses;  // of vertex()
};

struct ScoredLabelling {
  double score = 0;
  std::vector<std::uint32_t> labels;
};

// The score of what an oracle found beside an upper bound on the score of everything it searched among.
struct Answer {
  double score = 0, bound = 0;
  std::uint32_t persistent = 0;  // variables of the labelling that are known to be so in a best one
  // Whether what was found is a best one, up to rounding.
  bool proven() const { return score >= bound - 1e-9 * std::max(1.0, std::abs(bound)); }
};

class Oracle {
 public:
  Oracle() = default;
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;
  virtual ~Oracle() = default;

  virtual std::string_view name() const = 0;
  // Whether argmax returns a maximiser and marginals are those of the model, for every graph it accepts.
  virtual bool exact() const = 0;
  // Whether the masses that vertex() finds are 0, 1/2 or 1 throughout.
  virtual bool half_integral() const { return exact(); }

  // Writes a best labelling and returns its score. Ties go to the lexicographically first choice of the
  // algorithm, always the same.
  virtual double argmax(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                        std::span<std::uint32_t> labels) const = 0;
  // argmax with a bound beside it; exact oracles answer with the score twice.
  virtual Answer solve(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                       std::span<std::uint32_t> labels) const;
  // A point μ of the set the oracle searches, <μ, θ> as large as it can make it, and the bound of that set:
  // labellings for exact oracles; the local polytope for relaxations, whose μ may be fractional. `masses` are
  // replaced: the non-zero ones, grouped by clique in increasing order. The default is solve()'s labelling.
  virtual Answer maximise(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                          std::vector<Mass>& masses) const;
  // The same point as split_masses() leaves it: a labelling, and the masses where it is none.
  virtual Answer vertex(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                        std::span<std::uint32_t> labels, std::vector<Mass>& fractional) const;
  // The bound alone.
  virtual double bound(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch) const;
  // The bound with what proves it: messages δ (inference/messages.hpp; Topology::message_offset) whose bound
  // it is. Throws UsageError where the oracle has none, as those that search among labellings.
  virtual double messages(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                          double* delta) const;
  // Whether a single graph is work enough for all threads, and solve() on all of them: the same bits at any
  // number of threads. Not to be called from within another of the arena's blocks. One scratch per thread.
  virtual bool large(const FactorGraph& graph) const;
  virtual Answer solve_large(const FactorGraph& graph, const Potentials& potentials, Arena& arena,
                             std::span<Scratch> workers, std::span<std::uint32_t> labels) const;
  // Writes the marginals of all cliques (Topology::clique_offset; factor tables unpadded, last variable
  // fastest) and returns log Σ_y exp(score(y)).
  virtual double marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                           std::span<double> marginals) const = 0;
  // The same for sums over a graph's factors: where all of them share one table, an oracle may write the sum
  // of their marginals in place of the first factor's and nothing for the others, and says so by `summed`.
  virtual double summed_marginals(const FactorGraph& graph, const Potentials& potentials, Scratch& scratch,
                                  std::span<double> marginals, bool& summed) const;
  // The k best labellings, best first; fewer where there
  // are fewer. Throws UsageError where the oracle cannot.
  virtual std::vector<ScoredLabelling> k_best(const FactorGraph& graph, const Potentials& potentials,
                                              Scratch& scratch, std::size_t k) const;
};

// Chains and independent variables: Viterbi, shift-normalised forward-backward, k-best.
std::unique_ptr<Oracle> make_chain_oracle(const Dataset& data);
// Forests: max-product and sum-product.
std::unique_ptr<Oracle> make_tree_oracle(const Dataset& data);
// Any graph whose largest elimination clique has at most `max_cells` joint states, and all of them together
// at most 64·max_cells.
std::unique_ptr<Oracle> make_junction_tree_oracle(const Dataset& data, std::uint64_t max_cells = 1U << 20U);
// Enumerates all labellings; for tests.
std::unique_ptr<Oracle> make_brute_force_oracle(const Dataset& data,
                                                std::uint64_t max_labellings = 1U << 24U);
// Every factory above throws UsageError with the reason (and
// the first example) where the dataset's graphs do not fit.

// Max-sum diffusion (inference/messages.hpp) for any graph: a labelling with the dual bound of the LP
// relaxation beside it. Not exact; proven() says where it was.
struct MsdOptions {
  std::uint32_t sweeps = 400;  // at most; fewer where the labelling is proven before, or nothing moves
  double tolerance = 1e-7;     // a sweep that lowers the bound by less, relative to it, ends the sweeps
  // K of soft-max sweeps that follow where max stalls unproven (more than two states only); infinity: none.
  double inverse_temperature = std::numeric_limits<double>::infinity();
  std::uint64_t large_cells = 20000;  // joint states from which one graph takes all threads
  std::uint32_t tighten = 0;          // rounds of triplet clusters where the labelling is not proven
};
std::unique_ptr<Oracle> make_msd_oracle(const Dataset& data, const MsdOptions& options = {});

// The maximum of the LP relaxation itself, at a vertex of the local polytope; the labelling is rounded from
// it. Not exact; proven() says where it was.
//
// Roof duality: one maximum flow. Throws UsageError with the first example unless every variable has two
// states and every factor two variables. Best labellings with all persistent labels exist; models whose pairs
// are submodular, or become so when variables are flipped, are solved exactly.
std::unique_ptr<Oracle> make_roof_dual_oracle(const Dataset& data);
// The simplex method, for any graph.
std::unique_ptr<Oracle> make_lp_oracle(const Dataset& data);

// The cheapest exact oracle for each shape in the dataset;
// throws UsageError with the reason where there is none.
std::unique_ptr<Oracle> make_exact_oracle(const Dataset& data);

}  // namespace margrave
