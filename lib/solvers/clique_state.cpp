#include "solvers/clique_state.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/buffer.hpp"
#include "model/clique_scores.hpp"
#include "model/marginalise.hpp"
#include "state/clique_store.hpp"

namespace margrave {

namespace {

constexpr std::size_t example_grain = 8;

template <class Real>
class State final : public CliqueState {
 public:
  State(const Dataset& data, const CliqueOptions& options, double rho)
      : data_(data), rho_(rho), layouts_(data, options.compact_above), mu_(data, layouts_) {
    if (options.multiplier_every > 0) xi_ = std::make_unique<MessageStore<Real>>(data);
    for (std::size_t m = 0; m < data.size(); ++m)
      options.start == Start::truth ? start_at_truth(m) : start_uniform(m);
  }

  double rho() const override { return rho_; }
  void set_rho(double rho) override { rho_ = rho; }
  const CliqueLayouts& layouts() const override { return layouts_; }
  const CliqueLayout* compact_layout(std::size_t m) const override {
    return layouts_.any_compact() ? &layouts_.of(m) : nullptr;
  }

  void marginals(std::size_t m, std::size_t first, std::size_t last, double* out) const override {
    const CliqueLayout& layout = layouts_.of(m);
    for (std::size_t a = first; a < last; ++a)
      load_clique(m, a, out + (layout.cell_begin[a] - layout.cell_begin[first]));
  }

  void multipliers(std::size_t m, std::size_t first, std::size_t last, double* out) const override {
    const Topology& top = data_[m].topology();
    const std::uint64_t begin = top.message_offset[first];
    const std::uint64_t n = top.message_offset[last] - begin;
    if (!xi_) {
      std::fill_n(out, n, 0.0);
      return;
    }
    const auto xi = std::as_const(*xi_)[m];
    for (std::uint64_t i = 0; i < n; ++i) out[i] = static_cast<double>(xi[begin + i]);
  }

  void move(std::size_t example, const CliquePart& part, const double* start, const double* target,
            double length) override {
    const CliqueLayout& layout = layouts_.of(example);
    const auto mu = mu_[example];
    for (std::size_t a = 0; a < part.cliques.size(); ++a) {
      Real* cell = mu.data() + layout.cell_begin[part.cliques[a]];
      for (std::uint64_t y = part.cell_begin[a]; y < part.cell_begin[a + 1]; ++y)
        *cell++ = static_cast<Real>(length == 1 ? target[y] : start[y] + length * (target[y] - start[y]));
    }
  }

  double violation(Arena& arena) const override {
    std::vector<Buffer<double>> scratch(static_cast<std::size_t>(arena.threads()));
    struct Sum {
      double value = 0;
      void add(const Sum& other) { value += other.value; }
    };
    return ordered_reduce<Sum>(arena, data_.size(), example_grain,
                               [&](std::size_t begin, std::size_t end, int worker) {
                                 Sum sum;
                                 for (std::size_t m = begin; m < end; ++m)
                                   for_each_apart(
                                       m, scratch[static_cast<std::size_t>(worker)],
                                       [&](std::uint64_t, double apart) { sum.value += apart * apart; });
                                 return sum;
                               })
        .value;
  }

  void update_multipliers(Arena& arena) override {
    if (!xi_) return;
    std::vector<Buffer<double>> scratch(static_cast<std::size_t>(arena.threads()));
    arena.for_each_block(data_.size(), example_grain, [&](std::size_t begin, std::size_t end, int worker) {
      for (std::size_t m = begin; m < end; ++m) {
        const auto xi = (*xi_)[m];
        for_each_apart(m, scratch[static_cast<std::size_t>(worker)], [&](std::uint64_t i, double apart) {
          xi[i] = static_cast<Real>(static_cast<double>(xi[i]) - apart / rho_);
        });
      }
    });
  }

  std::uint64_t bytes() const override { return mu_.bytes() + (xi_ ? xi_->bytes() : 0); }

  void save(ByteWriter& out) const override {
    out.put(static_cast<std::uint8_t>(sizeof(Real)));
    for (std::size_t m = 0; m < mu_.size(); ++m) out.put_array(mu_[m]);
    out.put(static_cast<bool>(xi_));
    if (xi_)
      for (std::size_t m = 0; m < mu_.size(); ++m) out.put_array(std::as_const(*xi_)[m]);
  }

  void restore(ByteReader& in) override {
    if (in.get<std::uint8_t>() != sizeof(Real)) in.fail("was written with another --precision");
    restore_store(in, mu_, 0.0, 1.0 + 1e-6);
    for (std::size_t m = 0; m < mu_.size(); ++m) check_masses(in, m);
    if (in.get<bool>() != static_cast<bool>(xi_)) in.fail("has other multipliers than these options ask for");
    constexpr double most = 1e30;
    if (xi_) restore_store(in, *xi_, -most, most);
  }

 private:
  // The runs of cells of a clique that each hold a distribution: f(first cell, cells). A compact factor's
  // masses per weight row are none where some of its states have no row.
  template <class F>
  void for_each_distribution(std::size_t m, std::size_t a, F&& f) const {
    const CliqueLayout& layout = layouts_.of(m);
    if (layout.compact[a] == 0) return f(layout.cell_begin[a], layout.cells(a));
    const Topology& top = data_[m].topology();
    std::uint64_t cell = layout.cell_begin[a] + data_.templates()[top.template_of(a)].rows;
    for (const std::uint32_t v : top.scope_of(a - top.variables())) {
      f(cell, std::uint64_t{top.states[v]});
      cell += top.states[v];
    }
  }

  void start_at_truth(std::size_t m) {
    const FactorGraph graph = data_[m];
    const Topology& top = graph.topology();
    const CliqueLayout& layout = layouts_.of(m);
    const auto mu = mu_[m];
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      const std::size_t truth = joint_state(top, a, graph.labels());
      if (layout.compact[a] == 0) {
        mu[layout.cell_begin[a] + truth] = Real{1};
        continue;
      }
      const std::int32_t row = data_.templates()[top.template_of(a)].row_of[truth];
      if (row >= 0) mu[layout.cell_begin[a] + static_cast<std::uint64_t>(row)] = Real{1};
      const std::uint32_t* variable = top.scope_of(a - top.variables()).data();
      for_each_distribution(m, a, [&](std::uint64_t first, std::uint64_t) {
        mu[first + static_cast<std::uint64_t>(graph.label(*variable++))] = Real{1};
      });
    }
  }
  void start_uniform(std::size_t m) {
    const Topology& top = data_[m].topology();
    const CliqueLayout& layout = layouts_.of(m);
    const auto mu = mu_[m];
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      for_each_distribution(m, a, [&](std::uint64_t first, std::uint64_t n) {
        std::fill_n(mu.data() + first, n, static_cast<Real>(1.0 / static_cast<double>(n)));
      });
      if (layout.compact[a] == 0) continue;
      const Template& t = data_.templates()[top.template_of(a)];
      for (const std::int32_t row : t.row_of)
        if (row >= 0)
          mu[layout.cell_begin[a] + static_cast<std::uint64_t>(row)] +=
              static_cast<Real>(1.0 / static_cast<double>(t.joint_states()));
    }
  }

  template <class Store>
  static void restore_store(ByteReader& in, Store& store, double low, double high) {
    for (std::size_t m = 0; m < store.size(); ++m) {
      const auto values = in.get_array<Real>();
      const auto cells = store[m];
      if (values.size() != cells.size()) in.fail("does not fit the data or the options");
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!(values[i] >= low && values[i] <= high)) in.fail("has a marginal or multiplier out of range");
        cells[i] = values[i];
      }
    }
  }
  void check_masses(ByteReader& in, std::size_t m) const {
    const auto mu = mu_[m];
    for (std::size_t a = 0; a < data_[m].cliques(); ++a)
      for_each_distribution(m, a, [&](std::uint64_t first, std::uint64_t n) {
        const double sum = std::accumulate(mu.begin() + static_cast<std::ptrdiff_t>(first),
                                           mu.begin() + static_cast<std::ptrdiff_t>(first + n), 0.0);
        if (!(std::abs(sum - 1) < 1e-3)) in.fail("has a clique whose masses do not sum to one");
      });
  }

  // μ of one clique; what rounding took or added when it was stored is given back.
  void load_clique(std::size_t m, std::size_t a, double* out) const {
    const CliqueLayout& layout = layouts_.of(m);
    const std::uint64_t begin = layout.cell_begin[a];
    const Real* mu = mu_[m].data() + begin;
    for (std::uint64_t y = 0; y < layout.cells(a); ++y) out[y] = static_cast<double>(mu[y]);
    for_each_distribution(m, a, [&](std::uint64_t first, std::uint64_t n) {
      double* cells = out + (first - begin);
      double sum = 0;
      for (std::uint64_t y = 0; y < n; ++y) sum += cells[y];
      const double scale = 1 / sum;
      for (std::uint64_t y = 0; y < n; ++y) cells[y] *= scale;
    });
  }

  // f(place of the message cell, Aμ there) for every cell of example m, in order.
  template <class F>
  void for_each_apart(std::size_t m, Buffer<double>& scratch, F&& f) const {
    const Topology& top = data_[m].topology();
    const CliqueLayout& layout = layouts_.of(m);
    double* node = scratch.reserve(top.clique_offset[top.variables()] + largest_factor(top, layout));
    double* table = node + top.clique_offset[top.variables()];
    for (std::size_t i = 0; i < top.variables(); ++i) load_clique(m, i, node + top.clique_offset[i]);
    for (std::size_t c = 0; c < top.factors(); ++c) {
      const std::size_t a = top.variables() + c;
      load_clique(m, a, table);
      double* marginal = table + layout.cells(a);
      if (layout.compact[a] != 0) {
        marginal = table + data_.templates()[top.template_of(a)].rows;
      } else {
        factor_marginals(top, c, table, marginal);
      }
      for (std::uint32_t s = top.scope_begin[c]; s < top.scope_begin[c + 1]; ++s) {
        const double* mu = node + top.clique_offset[top.scope[s]];
        for (std::uint64_t i = top.message_offset[s]; i < top.message_offset[s + 1]; ++i)
          f(i, *mu++ - *marginal++);
      }
    }
  }
  static std::uint64_t largest_factor(const Topology& top, const CliqueLayout& layout) {
    std::uint64_t most = 0;
    for (std::size_t c = 0; c < top.factors(); ++c)
      most = std::max(most, layout.cells(top.variables() + c) + top.message_offset[top.scope_begin[c + 1]] -
                                top.message_offset[top.scope_begin[c]]);
    return most;
  }

  const Dataset& data_;
  double rho_;
  CliqueLayouts layouts_;
  MarginalStore<Real> mu_;
  std::unique_ptr<MessageStore<Real>> xi_;
};

}  // namespace

std::unique_ptr<CliqueState> make_clique_state(const Dataset& data, const CliqueOptions& options,
                                               double rho) {
  const bool compact = options.compact_above > 0 && CliqueLayouts(data, options.compact_above).any_compact();
  if (options.precision == Precision::single_ && !compact)
    return std::make_unique<State<float>>(data, options, rho);
  return std::make_unique<State<double>>(data, options, rho);
}

}  // namespace margrave
