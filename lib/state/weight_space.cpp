#include "state/weight_space.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/compensated.hpp"
#include "model/clique_scores.hpp"

namespace margrave {

namespace {

constexpr std::size_t cell_grain = 1U << 14U;

class LinearSpace final : public WeightSpace {
 public:
  explicit LinearSpace(const Dataset& data) : data_(data), sums_(data) {}

  std::size_t size() const override { return data_.templates().storage(); }
  void fill(const FactorGraph& graph, std::span<const double> w, std::uint64_t version,
            Potentials& potentials) const override {
    potentials.fill(data_, graph, w.data(), version);
  }
  void sum(Arena& arena, FeatureSums::Residuals residuals, std::span<double> sums) override {
    sums_.sum(arena, residuals, sums);
  }
  double squared_norm(Arena& arena, std::span<const double> w) const override {
    return squared_length(arena, w);
  }
  double input_norm(std::uint32_t /*template_index*/, std::uint32_t input) const override {
    const InputView x = data_.input(input);
    return input_product(x, x);
  }
  std::uint64_t bytes() const override { return sums_.bytes(); }

 private:
  const Dataset& data_;
  FeatureSums sums_;
};

// max over y of |ψ_α(y)|, of per-state inputs a bound of it.
double clique_difference(const Dataset& data, const WeightSpace& space, std::uint32_t number,
                         std::uint32_t input, std::size_t truth) {
  const Template& t = data.templates()[number];
  const InputView x = data.input(input);
  if (x.kind == InputKind::per_state) {
    const auto length = [&](std::size_t y) {
      return t.row_of[y] < 0 ? 0.0 : std::sqrt(space.input_norm(number, x.index[y]));
    };
    double largest = 0;
    for (std::size_t y = 0; y < t.joint_states(); ++y)
      if (y != truth) largest = std::max(largest, length(y));
    return t.joint_states() == 1 ? 0.0 : length(truth) + largest;
  }
  const bool some_without = std::any_of(t.row_of.begin(), t.row_of.end(), [](auto row) { return row < 0; });
  double rows = 0;  // how many of the two labellings' features do not cancel, at most
  if (t.row_of[truth] < 0) {
    rows = t.rows > 0 ? 1 : 0;
  } else {
    rows = t.rows > 1 ? 2 : some_without ? 1 : 0;
  }
  return std::sqrt(rows * space.input_norm(number, input));
}

}  // namespace

std::unique_ptr<WeightSpace> make_linear_space(const Dataset& data) {
  return std::make_unique<LinearSpace>(data);
}

double squared_length(Arena& arena, std::span<const double> v) {
  return ordered_reduce<CompensatedSum>(arena, v.size(), cell_grain,
                                        [&](std::size_t begin, std::size_t end, int) {
                                          CompensatedSum sum;
                                          for (std::size_t i = begin; i < end; ++i) sum.add(v[i] * v[i]);
                                          return sum;
                                        })
      .value();
}

double largest_difference(const Dataset& data, const WeightSpace& space) {
  double largest = 0;
  std::vector<double> length(data.templates().size());
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph g = data[m];
    const Topology& top = g.topology();
    std::fill(length.begin(), length.end(), 0.0);
    for (std::size_t a = 0; a < top.cliques(); ++a)
      length[top.template_of(a)] +=
          clique_difference(data, space, top.template_of(a), g.input_of(a), joint_state(top, a, g.labels()));
    double sum = 0;
    for (const double x : length) sum += x * x;
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace margrave
