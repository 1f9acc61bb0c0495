// The linear program of the l1 cutting planes: working sets of vertices per example, a working set of
// features, and the vertices' weights α, which are a dual point.
//
// The problem over the working sets S_m (003 §4.1), times M and in its dual form:
//   max Σ_m Σ_{a∈S_m} α_ma·Δ_ma   over α ≥ 0,  Σ_a α_ma ≤ 1,  |Σ α_ma ψ_ma,k| ≤ λM/2 for every feature k
// What Σ_a α_ma lacks to 1 is the truth's. The multipliers of the last rows are the weights, those of the
// others the slacks ξ_m. In this form a vertex is a column and a feature one row with two sides; the paper's
// form has two columns per feature and one row per vertex, most of which are never tight.
//
// Features join when their row is violated (the paper's program has all of them, which is where it gave up):
// rows that are left out have weight zero, and their violation is what price() looks for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/stream.hpp"
#include "margrave/model.hpp"
#include "optim/range_lp.hpp"
#include "solvers/solver.hpp"
#include "state/weight_accumulator.hpp"

namespace margrave {

class L1Master final : public DualPoint {
 public:
  explicit L1Master(const Problem& problem);

  // max(0, max_{a∈S_m} [Δ_a + score(a)] − score of the truth) at the scores in `potentials`, without the
  // loss: what the working set knows of the hinge there.
  double known_hinge(std::size_t m, const Potentials& potentials) const;
  // A vertex joins, unless it is the truth or there already. Whether it did. One thread per example.
  bool add(std::size_t m, std::span<const Mass> masses);

  // The features with the largest weights join the program, `most` of them.
  void add_features(std::span<const double> weights, std::size_t most);

  // Solves the program over all vertices; features join until no row is violated (`complete`), or once,
  // `columns` at most at a time. `proceed` is asked on the way; after a stop, solve() goes on with the basis
  // as it was.
  enum class Outcome : std::uint8_t { solved, incomplete, stopped, failed };
  Outcome solve(std::uint32_t columns, bool complete, const std::function<bool()>& proceed);
  // The last solution becomes the dual point.
  void show();
  // Drops vertices that had no weight for so many solutions, but for those of the dual point.
  void prune(std::uint32_t rounds);
  // Drops features whose rows are far from their bounds at the last solution.
  void drop_features();

  std::span<const double> weights() const { return weights_; }
  // The optimum over the working sets, divided by M: no P(w) is below it.
  double value() const { return value_; }
  std::size_t vertices() const;
  std::size_t features() const { return features_.size(); }

  void masses(std::size_t m, std::vector<Mass>& out) const override;
  std::optional<Certificate> certificate() const;
  std::uint64_t bytes() const;
  void save(ByteWriter& out) const;
  void restore(ByteReader& in);
  // The working sets without what belongs to the program they come from.
  void warm_start(ByteReader& in);

 private:
  struct Entry {
    std::int32_t row;  // of a feature, counted behind the examples
    double value;
  };
  struct Vertex {
    std::vector<CachedLabel> labels;
    std::vector<Mass> fractional;  // as split_masses() leaves them
    double loss = 0;
    double weight = 0;       // α at the last solution
    double shown = 0;        // α of the dual point
    std::uint32_t idle = 0;  // solutions without weight
    std::uint8_t status = LpBasis::low;
    std::vector<Entry> column;
    VertexView view() const { return {labels.data(), fractional}; }
  };
  static constexpr std::int32_t absent = -1;

  double bound() const {
    return problem_.objective.lambda * static_cast<double>(problem_.objective.examples) / 2;
  }
  void add_feature(std::uint64_t place);
  void list_features();
  void fill_column(std::size_t m, Vertex& vertex, std::vector<double>& scratch) const;
  void fill_columns();
  LpSolution solve_program(const std::function<bool()>& proceed);
  // The largest violated rows join. Whether there were any.
  bool price(std::uint32_t columns);

  Problem problem_;
  std::vector<std::vector<Vertex>> sets_;  // per example
  std::vector<std::uint64_t> features_;    // storage places, in order of their rows
  std::vector<std::int32_t> row_of_;       // per storage place, or absent
  // The features of a template's weight row: a dense input is asked for these alone.
  struct Listed {
    std::uint32_t input;
    std::int32_t row;
  };
  std::vector<std::vector<std::vector<Listed>>> listed_;  // per template and weight row
  std::vector<std::uint8_t> example_status_, feature_status_;
  std::vector<double> weights_;
  double value_ = 0;
  RangeLp lp_;
  WeightAccumulator sums_;
  std::vector<double> sum_;
  std::vector<CliqueChange> changes_;
  std::vector<Mass> scratch_masses_;
  bool columns_fresh_ = false;  // the columns of all vertices know all features
};

}  // namespace margrave
