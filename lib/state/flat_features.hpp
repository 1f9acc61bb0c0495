// FlatFeatures: binary models over variables and pairs in minimal parameters, every clique with weights of
// its own, as those of multi-label data are.
//
// A variable has features x_i where its state is 1, a factor x_c where both of its states are 1, and none
// elsewhere; no two cliques of an example share weights. Then a vertex a is one number per clique beside the
// truth, z_c(a) = μ_c(1) − [y*_c = 1], and
//
//     φ(a) − φ(y*) = Σ_c z_c(a)·x_c        <ψ(a), ψ(b)> = Σ_c |x_c|²·z_c(a)·z_c(b)
//
// so that all that is done with vertices is arithmetic on short rows of numbers. In single precision:
// labellings and the vertices of roof duality are half-integral, and halves are exact.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/kernels.hpp"
#include "inference/potentials.hpp"
#include "margrave/dataset.hpp"
#include "model/mass.hpp"

namespace margrave {

class FlatFeatures {
  // Examples of one topology whose factors have the same inputs.
  struct Shape {
    std::uint32_t stride;
    // Cliques from here on have the input vector [1]: their scores are weights.
    std::uint32_t first_single;
    std::vector<std::uint64_t> place;  // of each clique's first weight, or the only one that counts
  };

 public:
  // Whether every example is such, fully labelled, and of at most `most_cliques` cliques: rows are as long as
  // these are many, however few of them differ from the truth.
  static constexpr std::size_t most_cliques = 256;
  static bool fit(const Dataset& data);

  explicit FlatFeatures(const Dataset& data);

  // Numbers of a row: one for each clique, then zeros.
  std::size_t stride(std::size_t m) const { return shapes_[shape_of_[m]].stride; }
  // The row of a vertex, which is given as split_masses() leaves it.
  template <class Labels>
  void write(std::size_t m, const Labels& labels, std::span<const Mass> fractional, float* row) const;
  // The masses of a row's vertex where it is no labelling, as split_masses() leaves them.
  void fractional(std::size_t m, const float* row, std::vector<Mass>& out) const;
  // visit(clique, joint, mass) for all joint states of all cliques in order: of a row's vertex, or of a
  // mixture of vertices, whose weights have the sum `whole`, from the mixture of their rows. What rounding
  // may have left of a mass is none. Those without are shown as well: which have some is not to be predicted.
  template <class Number, class Visit>
  void for_each_mass(std::size_t m, const Number* row, Number whole, Visit&& visit) const;
  // The row of what the truth has, [y*_c = 1].
  const float* truth(std::size_t m) const { return truth_.data() + truth_begin_[m]; }

  // out[c] = <w, x_c> of a row's cliques, from scores without the loss; then zeros.
  void scores(std::size_t m, const Potentials& potentials, double* out) const;
  // out[c] = |x_c|²·row[c]
  void weigh(std::size_t m, const float* row, double* out) const;
  // Scores after w += coefficient·x_c.
  void add_to_scores(std::size_t m, std::uint32_t c, double coefficient, Potentials& potentials) const;

  // One example's cliques beside weights.
  class Example {
   public:
    // <w, x_c>
    double score(std::uint32_t c, const double* w) const {
      const double* row = w + shape_->place[c];
      if (c >= shape_->first_single) return *row;
      return shared_ != nullptr ? kernels_->dot(shared_, row, shared_count_) : input_score(c, row);
    }
    // out[j] = <w, x_c> of the cliques, which are in order.
    void scores(std::span<const std::uint32_t> cliques, const double* w, double* out) const {
      const std::uint64_t* place = shape_->place.data();
      std::size_t j = 0;
      if (shared_ != nullptr) {
        std::array<std::uint64_t, most_cliques> rows;
        for (; j < cliques.size() && cliques[j] < shape_->first_single; ++j) rows[j] = place[cliques[j]];
        kernels_->dot_places(shared_, shared_count_, w, rows.data(), j, out);
      } else {
        for (; j < cliques.size() && cliques[j] < shape_->first_single; ++j)
          out[j] = input_score(cliques[j], w + place[cliques[j]]);
      }
      for (; j < cliques.size(); ++j) out[j] = w[place[cliques[j]]];
    }
    // w += Σ_j coefficient(j)·x_c, c = clique(j), of `count` cliques in order; zeros are left out.
    template <class Clique, class Coefficient>
    void add(std::size_t count, Clique&& clique, Coefficient&& coefficient, double* w) const {
      const std::uint64_t* place = shape_->place.data();
      std::size_t j = 0;
      if (shared_ != nullptr) {
        std::array<std::uint64_t, most_cliques> rows;
        std::array<double, most_cliques> factors;
        std::size_t found = 0;
        for (; j < count && clique(j) < shape_->first_single; ++j) {
          rows[found] = place[clique(j)];
          factors[found] = coefficient(j);
          if (factors[found] != 0) ++found;
        }
        kernels_->add_to_places(shared_, shared_count_, factors.data(), rows.data(), found, w);
      } else {
        for (; j < count && clique(j) < shape_->first_single; ++j)
          if (const double factor = coefficient(j); factor != 0)
            add_input(clique(j), factor, w + place[clique(j)]);
      }
      for (; j < count; ++j) w[place[clique(j)]] += coefficient(j);
    }
    // Numbers of the input vector.
    std::uint32_t inputs(std::uint32_t c) const {
      return c >= shape_->first_single ? 1 : data_->input(graph_.input_of(c)).count;
    }

   private:
    friend class FlatFeatures;
    double input_score(std::uint32_t c, const double* row) const;
    void add_input(std::uint32_t c, double coefficient, double* row) const;
    const Dataset* data_;
    const Shape* shape_;
    FactorGraph graph_;
    const Kernels* kernels_;
    const float* shared_;  // the input vector of all cliques before the first single one, where it is dense
    std::uint32_t shared_count_;
  };
  Example example(std::size_t m) const {
    Example e;
    e.data_ = data_;
    e.shape_ = &shapes_[shape_of_[m]];
    e.graph_ = (*data_)[m];
    e.kernels_ = &kernels();
    const InputView x = shared_input_[m] != 0 ? data_->input(e.graph_.input_of(0)) : InputView{};
    e.shared_ = x.value;
    e.shared_count_ = x.count;
    return e;
  }

  // Asks for the input vector that the example's cliques share.
  void prefetch(std::size_t m) const {
    if (shared_input_[m] == 0) return;
    const InputView x = data_->input((*data_)[m].input_of(0));
    for (std::size_t i = 0; i < x.count; i += cache_line / sizeof(float)) __builtin_prefetch(x.value + i);
  }

  std::uint64_t bytes() const;

 private:
  // [y_c = 1] of all cliques.
  template <class Labels>
  static void write_states(const Topology& top, const Labels& labels, float* row);

  const Dataset* data_;
  std::vector<Shape> shapes_;
  std::vector<std::uint32_t> shape_of_;  // of each example
  std::vector<std::uint8_t> shared_input_;
  std::vector<double> square_;  // of each input vector
  std::vector<std::uint64_t> truth_begin_;
  Buffer<float> truth_;
};

template <class Labels>
void FlatFeatures::write_states(const Topology& top, const Labels& labels, float* row) {
  const std::size_t n = top.variables();
  for (std::size_t i = 0; i < n; ++i) row[i] = static_cast<float>(labels[i]);
  for (std::size_t c = 0; c < top.factors(); ++c)
    row[n + c] = row[top.scope[std::size_t{2} * c]] * row[top.scope[std::size_t{2} * c + 1]];
}

template <class Number, class Visit>
void FlatFeatures::for_each_mass(std::size_t m, const Number* row, Number whole, Visit&& visit) const {
  // A few roundings of numbers up to one; what is less than zero by more is shown.
  constexpr Number least = 32 * std::numeric_limits<Number>::epsilon();
  const Topology& top = (*data_)[m].topology();
  const float* base = truth(m);
  const auto n = static_cast<std::uint32_t>(top.variables());
  const auto mass = [&](std::size_t a) { return row[a] + whole * static_cast<Number>(base[a]); };
  const auto show = [&](std::uint32_t a, std::uint32_t joint, Number value) {
    visit(a, joint, std::abs(value) > least ? value : Number{0});
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    const Number one = mass(i);
    show(i, 0U, whole - one);
    show(i, 1U, one);
  }
  for (std::uint32_t c = 0; c < top.factors(); ++c) {
    const Number first = mass(top.scope[std::size_t{2} * c]);
    const Number second = mass(top.scope[std::size_t{2} * c + 1]);
    const Number both = mass(n + c);
    show(n + c, 0U, whole - first - second + both);
    show(n + c, 1U, second - both);
    show(n + c, 2U, first - both);
    show(n + c, 3U, both);
  }
}

template <class Labels>
void FlatFeatures::write(std::size_t m, const Labels& labels, std::span<const Mass> fractional,
                         float* row) const {
  const Topology& top = (*data_)[m].topology();
  write_states(top, labels, row);
  const std::size_t n = top.variables();
  for (std::size_t k = 0; k < fractional.size(); ++k) {
    const Mass& e = fractional[k];
    if (k == 0 || fractional[k - 1].clique != e.clique) row[e.clique] = 0;
    if (e.joint == (e.clique < n ? 1U : 3U)) row[e.clique] += static_cast<float>(e.mass);
  }
  const float* true_row = truth(m);
  for (std::size_t c = 0; c < top.cliques(); ++c) row[c] -= true_row[c];
  std::fill(row + top.cliques(), row + stride(m), 0.0F);
}

}  // namespace margrave
