// CachedProgram: the quadratic program over the cached vertices of all examples, laid out for passes.
//
// Between two oracle passes the vertices stay what they are, and many passes step over them. Visited where
// the blocks keep them, their numbers, deviations and inputs come from a dozen places in memory per visit,
// and waiting for these costs more than the arithmetic. Here they are copied, once, to arrays that a pass
// reads from start to end. Weights go back to the blocks when the passes are done.
//
// All vertices take part, or those that have weight when the passes start, which is all that most of an
// epoch's gain is made of and a third of the memory (shrinking, Joachims 1999). Examples left with one vertex
// are left out.
//
// What passes need are differences of vertices. So features, losses and products of an example are those
// relative to the first of its vertices, the base, which is the truth where that takes part. The base has
// no terms, and what the others share with it is gone. A vertex is a list of parts, ψ(base) − ψ(a) =
// Σ mass·term; a term is a difference of two weight rows (or one of them) times an input vector. Where
// features are flat, a vertex is a row of numbers, one for each clique in which some of the example's
// vertices differ.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "margrave/options.hpp"
#include "solvers/dual_blocks.hpp"
#include "solvers/solver.hpp"
#include "state/row_layout.hpp"
#include "state/vertex_cache.hpp"
#include "state/weight_store.hpp"

namespace margrave {

// Which vertices take part in passes.
enum class Members : std::uint8_t { all, weighted };

class CachedProgram {
 public:
  // A visit's exact step on the program's own weights and on w: its gain in M·D, and the gap before.
  struct Step {
    double gain, gap;
  };

  // `flat`: the features that terms stand for, where the cache has them so.
  CachedProgram(const Problem& problem, const BcfwOptions& options, const FlatFeatures* flat = nullptr);

  // The order in which all that follows wants w.
  const RowLayout& layout() const { return layout_; }

  // Room for about what was compiled last, and more.
  void make_room();
  void compile(const VertexCache& cache, Members members);
  void store_weights(const VertexCache& cache) const;
  // Whether visits are so short that handing them to other threads costs more than they do.
  bool has_short_visits() const;

  // Steps over the example's vertices against weights w.
  void propose(const double* w, BlockWorker& worker, BlockStep& step) const;
  // Most examples have two vertices, between which a step is a division.
  bool is_pair(std::size_t m) const { return begin_[m + 1] - begin_[m] == 2; }
  Step visit_pair(std::size_t m, double* w, double company);
  // Asks for the memory that a visit of the example needs.
  void prefetch(std::size_t m) const;
  void apply(const BlockStep& step, double length) {
    move_weights_of(step.example, step.target.data(), length);
  }
  void move_weights_of(std::size_t m, const double* target, double length);

  // <w, step> but for the loss, and w += scale·step.
  double product(const BlockStep& step, const double* w) const;
  void commit(const BlockStep& step, double scale, double* w) const;

  // All weights and losses, example by example; those of example m start at begin(m).
  std::span<const double> weights() const { return weight_; }
  std::span<double> weights_of(std::size_t m) { return {weight_.data() + begin_[m], count(m)}; }
  std::span<const double> losses() const { return loss_; }
  std::size_t examples() const { return problem_.data.size(); }
  std::uint64_t begin(std::size_t m) const { return begin_[m]; }
  std::size_t count(std::size_t m) const { return begin_[m + 1] - begin_[m]; }
  // How many numbers of inputs a visit of the example is about.
  std::size_t size(std::size_t m) const { return size_[m]; }
  // Σ over the examples of their largest |ψ(vertex)|².
  double squared_features() const;
  // w += Σ_k coefficient[k]·(φ(vertex k) − φ(base)): the base does not matter where coefficients sum to 0
  void add_features(std::size_t m, const double* coefficient, std::vector<double>& scratch, double* w) const;

  std::uint64_t bytes() const;

  // Which vertices take part; all else is in the cache.
  void save(ByteWriter& out) const;
  void restore(ByteReader& in, const VertexCache& cache);

 private:
  static constexpr std::uint32_t no_row = ~std::uint32_t{0};
  static constexpr std::uint32_t no_list = ~std::uint32_t{0};
  // An input vector and the template whose weights it meets: `count` numbers of inputs from `index` on in the
  // shelf's words, their values behind them; or values that lie in the data, one for each input; or a mask
  // for `count` inputs, in the words from `index` on.
  struct List {
    std::uint64_t offset;  // of the template's first weight
    const float* value;
    std::uint32_t count;
    std::uint32_t index;
    std::uint32_t stride;  // what is left to multiply the numbers with
    InputKind kind;
    bool is_mask;
    // Dense, and the weights of a row lie in a row.
    bool is_vector() const { return kind == InputKind::dense && stride == 1; }
  };
  // Where the input vector is [1], as those of most factors, there is no list and rows are places in w.
  struct Term {
    std::uint32_t plus, minus;  // where weight rows start in their templates, or no_row
    std::uint32_t list;
  };
  struct Part {
    double mass;
    std::uint32_t term;  // counted from the example's
  };
  // Where an example's share of its shelf starts.
  struct Record {
    std::uint32_t gram, run, part, term, list, word;
    std::uint32_t row;
  };
  // The examples of one block of the data.
  struct Shelf {
    std::vector<std::uint32_t> chosen;  // numbers of the vertices that take part
    std::uint64_t inputs = 0;           // that visits of all these examples are about
    std::vector<Record> record;         // one more than examples
    std::vector<double> gram;           // count × count
    std::vector<std::uint32_t> run;     // of each vertex, the end of its parts, counted from the example's
    std::vector<Part> part;
    std::vector<Term> term;
    std::vector<List> list;
    std::vector<std::uint32_t> word;
    // In place of all but the Gram matrix, where features are flat: rows of the vertices but the base,
    // padded; `word` has the cliques that these are of.
    std::vector<float> row;
    // Scratch of compile(): input and template of the example's lists; the parts of the base; of each
    // deviation, what a vertex has more of it than the base, and where its terms begin.
    std::vector<std::uint64_t> list_key;
    std::vector<Part> base;
    std::vector<double> net;
    std::vector<std::uint32_t> first_term;
  };
  static constexpr std::size_t shelf_examples = 64;
  // An example's share of a shelf of flat features.
  struct FlatView {
    std::span<const std::uint32_t> cliques;
    const float* rows;
    std::size_t stride;
    // Of vertex k > 0.
    const float* row(std::size_t k) const { return rows + (k - 1) * stride; }
  };

  void choose_members(const VertexCache& cache, Members members);
  void make_shelves();
  void fill_shelves(const VertexCache& cache);
  std::uint64_t count_inputs(const Shelf& shelf, std::size_t first, std::size_t last) const;
  void add_example(const VertexCache& cache, std::size_t m, Shelf& shelf);
  // Weights, losses and products.
  void add_numbers(const VertexCache::Block& block, std::size_t m, Shelf& shelf);
  void add_parts(const VertexCache::Block& block, std::size_t m, Shelf& shelf);
  void add_rows(const VertexCache::Block& block, std::size_t m, Shelf& shelf) const;
  FlatView flat_view(std::size_t m) const;
  void propose_flat(const double* w, BlockWorker& worker, BlockStep& step) const;
  // Steps from gradients on, up to what is left to describe; false where there are none.
  bool propose_moves(double* gradient, const double* gram, double company, BlockStep& step,
                     double& largest) const;
  void add_flat_features(std::size_t m, const double* coefficient, std::vector<double>& scratch,
                         double* w) const;
  Step visit_flat_pair(std::size_t m, double* w, double company);
  // Of a pair, by the slope of moving mass to vertex 1; `change` is what ψ(base) − ψ(1) is added to w with.
  Step move_pair(std::size_t m, double slope, double company, double& change);
  void add_terms(Shelf& shelf, std::size_t first_list, const Deviation& deviation) const;
  std::uint32_t add_list(Shelf& shelf, std::size_t first_list, std::uint32_t input,
                         std::uint32_t template_index) const;
  // Σ value·at(cell) over the inputs of a list; cells are counted from the first of a row.
  template <class At>
  static double sum_inputs(const Shelf& shelf, const List& list, At&& at);
  static double term_score(const Shelf& shelf, const Term& term, const double* w);
  static void add_term(const Shelf& shelf, const Term& term, double coefficient, double* w);
  // The parts of vertex k.
  static std::span<const Part> parts(const Shelf& shelf, const Record& record, std::size_t k);

  Problem problem_;
  BcfwOptions options_;
  const FlatFeatures* flat_;
  RowLayout layout_;
  bool per_state_;  // inputs of their own for every joint state: deviations of two terms
  std::vector<std::uint64_t> begin_;
  std::vector<std::uint32_t> number_;  // of the vertices in their blocks
  std::vector<double> weight_, loss_;
  std::vector<std::uint32_t> size_;  // of each example
  std::vector<Shelf> shelves_;
};

}  // namespace margrave
