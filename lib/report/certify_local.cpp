// The bounds of the LP-relaxed problem from marginals μ that need not agree (notation:
// lib/solvers/README.md). Plain code on purpose: of what the solvers use it shares the data structures,
// max-sum diffusion and the projection onto the simplex, and neither of the last two can make a bound wrong.
//
//   μ̄      node marginals averaged with those of the node's factors; factor tables scaled down axis by axis
//   until
//          they nowhere exceed them, and what is missing added as a product. Aμ̄ = 0 up to rounding.
//   D(μ̄) = (1/M) Σ_m [ <μ̄, Δ> + γ Σ_α h(μ̄_α) ] − λ/2 |w(μ̄)|²
//   P(w) ≤ λ/2 |w|² + (1/M) Σ_m Σ_α max over the simplex of <θ̂_α, μ> + γ h(μ), for any messages δ in θ̂.
//
// With γ = 0 the messages are first lowered by diffusion, and the maximum is the largest score. With γ > 0
// they are taken as they are, and the maximum is bounded by the tangent of its concave objective at a point
// that projected ascent brings close to the maximiser: the bound holds wherever that point is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/buffer.hpp"
#include "inference/messages.hpp"
#include "margrave/error.hpp"
#include "model/clique_scores.hpp"
#include "optim/simplex_projection.hpp"
#include "parallel/arena.hpp"
#include "report/certify_parts.hpp"

namespace margrave {
namespace {

constexpr std::size_t examples_per_block = 4;
constexpr std::uint32_t most_sweeps = 1000;
constexpr double sweep_tolerance = 1e-9;  // relative
constexpr int most_ascent_steps = 500;
constexpr double ascent_tolerance = 1e-11;  // relative

using Numbers = std::vector<double>;

// f(cell, state of the factor's variable j) for all cells of the factor's table.
template <class F>
void for_each_cell(const Topology& top, std::size_t factor, std::size_t j, F&& f) {
  const auto scope = top.scope_of(factor);
  const std::size_t clique = top.variables() + factor;
  const std::uint64_t cells = top.clique_offset[clique + 1] - top.clique_offset[clique];
  std::uint64_t below = 1;
  for (std::size_t later = j + 1; later < scope.size(); ++later) below *= top.states[scope[later]];
  for (std::uint64_t y = 0; y < cells; ++y) f(y, y / below % top.states[scope[j]]);
}

Numbers marginal(const Topology& top, std::size_t factor, std::size_t j, const double* table) {
  Numbers out(top.states[top.scope_of(factor)[j]]);
  for_each_cell(top, factor, j, [&](std::uint64_t y, std::uint64_t state) { out[state] += table[y]; });
  return out;
}

// h(μ_α) = constant − ½ μᵀQμ, by the definitions in lib/objective/entropy.hpp.
struct EntropyOf {
  const Topology& top;
  std::size_t clique;
  Entropy kind;

  std::uint64_t cells() const { return top.clique_offset[clique + 1] - top.clique_offset[clique]; }
  double share(std::uint32_t variable) const {  // r_i
    return 1.0 / (1.0 + static_cast<double>(top.factors_of(variable).size()));
  }
  double condition(std::size_t j) const {  // q_ci
    const auto scope = top.scope_of(clique - top.variables());
    double sum = 0;
    for (std::size_t other = 0; other < scope.size(); ++other)
      if (other != j) sum += share(scope[other]);
    return sum / static_cast<double>(scope.size() - 1);
  }
  // f(j, q_cj, states of variable j) for the variables of a factor under otrw.
  template <class F>
  void for_each_condition(F&& f) const {
    if (kind != Entropy::otrw || clique < top.variables()) return;
    const auto scope = top.scope_of(clique - top.variables());
    for (std::size_t j = 0; j < scope.size(); ++j)
      f(j, condition(j), static_cast<double>(top.states[scope[j]]));
  }
  // The multiple of the identity in Q, its largest eigenvalue.
  double scale() const {
    if (kind == Entropy::gini) return 2;
    const auto k = static_cast<double>(cells());
    if (clique < top.variables()) return share(static_cast<std::uint32_t>(clique)) * k;
    double sum = 0;
    for_each_condition([&](std::size_t, double q, double) { sum += q; });
    return sum * k;
  }
  double constant() const {
    if (kind == Entropy::gini) return 1;
    const auto k = static_cast<double>(cells());
    if (clique < top.variables()) return share(static_cast<std::uint32_t>(clique)) * (std::log(k) + 0.5);
    double sum = 0;
    for_each_condition([&](std::size_t, double q, double states) { sum += q * std::log(k / states); });
    return sum;
  }
  // out = Qμ
  void product(const double* mu, double* out) const {
    const double factor = scale();
    for (std::uint64_t y = 0; y < cells(); ++y) out[y] = factor * mu[y];
    for_each_condition([&](std::size_t j, double q, double states) {
      const std::size_t c = clique - top.variables();
      const Numbers sums = marginal(top, c, j, mu);
      for_each_cell(top, c, j,
                    [&](std::uint64_t y, std::uint64_t state) { out[y] -= q * states * sums[state]; });
    });
  }
  double value(const double* mu) const {
    Numbers product_of(cells());
    product(mu, product_of.data());
    CompensatedSum sum;
    for (std::uint64_t y = 0; y < cells(); ++y) sum.add(mu[y] * product_of[y]);
    return constant() - sum.value() / 2;
  }
};

// The file's numbers onto the simplices; returns how far they were from there.
double normalise(const Topology& top, std::span<const float> stored, std::size_t m, Numbers& mu) {
  mu.assign(stored.begin(), stored.end());
  double distance = 0;
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    CompensatedSum total, negative;
    const std::span<double> table(mu.data() + top.clique_offset[a], mu.data() + top.clique_offset[a + 1]);
    for (double& x : table) {
      negative.add(std::max(0.0, -x));
      x = std::max(0.0, x);
      total.add(x);
    }
    if (!(total.value() > 0))
      throw InputError({}, fmt::format("the model's certificate has a clique without mass in example {}", m));
    distance = std::max(distance, negative.value() + std::abs(total.value() - 1));
    for (double& x : table) x /= total.value();
  }
  return distance;
}

// Moves a factor's table onto the marginals that its nodes have in `nodes`.
void round_factor(const Topology& top, std::size_t factor, const Numbers& nodes, double* table) {
  const auto scope = top.scope_of(factor);
  const auto wanted = [&](std::size_t j) { return nodes.data() + top.clique_offset[scope[j]]; };
  for (std::size_t j = 0; j < scope.size(); ++j) {
    Numbers ratio = marginal(top, factor, j, table);
    for (std::size_t y = 0; y < ratio.size(); ++y)
      ratio[y] = ratio[y] > wanted(j)[y] ? wanted(j)[y] / ratio[y] : 1.0;
    for_each_cell(top, factor, j, [&](std::uint64_t y, std::uint64_t state) { table[y] *= ratio[state]; });
  }
  std::vector<Numbers> missing(scope.size());
  double mass = 1;  // the same on every axis, up to rounding
  for (std::size_t j = 0; j < scope.size(); ++j) {
    missing[j] = marginal(top, factor, j, table);
    CompensatedSum sum;
    for (std::size_t y = 0; y < missing[j].size(); ++y) {
      missing[j][y] = std::max(0.0, wanted(j)[y] - missing[j][y]);
      sum.add(missing[j][y]);
    }
    mass = std::min(mass, sum.value());
    if (sum.value() > 0)
      for (double& x : missing[j]) x /= sum.value();
  }
  if (!(mass > 0)) return;
  const std::size_t clique = top.variables() + factor;
  Numbers product(top.clique_offset[clique + 1] - top.clique_offset[clique], mass);
  for (std::size_t j = 0; j < scope.size(); ++j)
    for_each_cell(top, factor, j,
                  [&](std::uint64_t y, std::uint64_t state) { product[y] *= missing[j][state]; });
  for (std::size_t y = 0; y < product.size(); ++y) table[y] += product[y];
}

// μ̄ of μ; returns the largest |Aμ|.
double round_example(const Topology& top, const Numbers& mu, Numbers& rounded) {
  rounded = mu;
  double disagreement = 0;
  for (std::size_t c = 0; c < top.factors(); ++c)
    for (std::size_t j = 0; j < top.scope_of(c).size(); ++j) {
      const Numbers own = marginal(top, c, j, mu.data() + top.clique_offset[top.variables() + c]);
      const std::uint64_t node = top.clique_offset[top.scope_of(c)[j]];
      for (std::size_t y = 0; y < own.size(); ++y) {
        disagreement = std::max(disagreement, std::abs(own[y] - mu[node + y]));
        rounded[node + y] += own[y];
      }
    }
  for (std::size_t i = 0; i < top.variables(); ++i) {
    const std::span<double> node(rounded.data() + top.clique_offset[i],
                                 rounded.data() + top.clique_offset[i + 1]);
    CompensatedSum sum;
    for (const double x : node) sum.add(x);
    for (double& x : node) x /= sum.value();
  }
  for (std::size_t c = 0; c < top.factors(); ++c)
    round_factor(top, c, rounded, rounded.data() + top.clique_offset[top.variables() + c]);
  return disagreement;
}

// w += scale · Σ_α [ φ_α(y*) − Σ_y μ_α(y) φ_α(y) ]
void add_weights(const Dataset& data, const FactorGraph& graph, std::span<const double> mu, double scale,
                 std::vector<CompensatedSum>& w) {
  const Topology& top = graph.topology();
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    const Template& t = data.templates()[top.template_of(a)];
    const std::size_t truth = joint_state(top, a, graph.labels());
    for (std::uint64_t y = 0; y < top.clique_offset[a + 1] - top.clique_offset[a]; ++y) {
      const double coefficient = (y == truth ? 1.0 : 0.0) - mu[top.clique_offset[a] + y];
      if (coefficient != 0)
        for_each_weight(data, t, graph.input_of(a), y, coefficient * scale,
                        [&](std::uint64_t at, double x) { w[at].add(x); });
    }
  }
}

Numbers values_of(const std::vector<CompensatedSum>& sums) {
  Numbers out;
  out.reserve(sums.size());
  for (const CompensatedSum& sum : sums) out.push_back(sum.value());
  return out;
}

// max over the simplex of <θ, μ> + γ h(μ), from above. `mu` is where the ascent starts, and is changed.
double smoothed_maximum(const EntropyOf& entropy, double gamma, const Numbers& theta, Numbers& mu) {
  const double largest = *std::max_element(theta.begin(), theta.end());
  if (gamma == 0) return largest;
  const double L = gamma * entropy.scale();
  const double tolerance = ascent_tolerance * std::max(1.0, std::abs(largest));
  Numbers gradient(theta.size()), ahead(theta.size());
  double upper = std::numeric_limits<double>::infinity();
  for (int step = 0; step <= most_ascent_steps; ++step) {
    entropy.product(mu.data(), gradient.data());
    CompensatedSum quadratic, slope;
    for (std::size_t y = 0; y < theta.size(); ++y) {
      quadratic.add(mu[y] * gradient[y]);
      gradient[y] = theta[y] - gamma * gradient[y];
      slope.add(mu[y] * gradient[y]);
    }
    // The tangent at μ: <θ, μ> + γ h(μ) + <gradient, · − μ>, at its best vertex.
    const double best = *std::max_element(gradient.begin(), gradient.end());
    upper = std::min(upper, best + gamma * (entropy.constant() + quadratic.value() / 2));
    if (best - slope.value() <= tolerance) break;
    bool finite = true;
    for (std::size_t y = 0; y < theta.size(); ++y) {
      ahead[y] = mu[y] + gradient[y] / L;
      finite = finite && std::isfinite(ahead[y]);
    }
    if (!finite) break;
    project_to_simplex(ahead.data(), ahead.size(), mu.data());
  }
  return upper;
}

struct Worker {
  Potentials potentials;
  Scratch scratch;
  Buffer<double> rows;
  Numbers mu, delta, theta, start;
};

// An upper bound of the relaxed hinge of one example at the messages in worker.delta.
void add_bound(const Model& model, const Dataset& data, const FactorGraph& graph, Worker& worker,
               HingeSum& sum) {
  const Topology& top = graph.topology();
  for (std::size_t a = 0; a < top.cliques(); ++a) {
    const Template& t = data.templates()[top.template_of(a)];
    Numbers& theta = worker.theta;
    theta.resize(top.clique_offset[a + 1] - top.clique_offset[a]);
    const std::size_t last =
        a < top.variables() ? top.states[a] : top.states[top.scope_of(a - top.variables()).back()];
    clique_scores(data, t, graph.input_of(a), model.weights.data(), last, worker.rows.reserve(padded(t.rows)),
                  theta.data());
    const double truth = theta[joint_state(top, a, graph.labels())];
    for (double& score : theta) score -= truth;
    sum.magnitude.add(std::abs(truth));
    const auto add_message = [&](std::uint32_t entry, double sign, auto&& for_each) {
      const double* message = worker.delta.data() + top.message_offset[entry];
      for_each([&](std::uint64_t y, std::uint64_t state) { theta[y] += sign * message[state]; });
      double largest = 0;
      for (std::uint64_t at = top.message_offset[entry]; at < top.message_offset[entry + 1]; ++at)
        largest = std::max(largest, std::abs(worker.delta[at]));
      sum.magnitude.add(largest);
    };
    if (a < top.variables()) {
      const double loss = loss_scale(model, graph) * static_cast<double>(graph.loss(a));
      for (std::size_t y = 0; y < theta.size(); ++y)
        if (static_cast<std::int64_t>(y) != graph.label(a)) theta[y] += loss;
      for (const std::uint32_t entry : top.messages_of(a))
        add_message(entry, 1, [&](auto&& f) {
          for (std::uint64_t y = 0; y < theta.size(); ++y) f(y, y);
        });
    } else {
      const std::size_t c = a - top.variables();
      for (std::size_t j = 0; j < top.scope_of(c).size(); ++j)
        add_message(top.scope_begin[c] + static_cast<std::uint32_t>(j), -1,
                    [&](auto&& f) { for_each_cell(top, c, j, f); });
    }
    worker.start.assign(worker.mu.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[a]),
                        worker.mu.begin() + static_cast<std::ptrdiff_t>(top.clique_offset[a + 1]));
    const double upper = smoothed_maximum({top, a, model.entropy}, model.gamma, theta, worker.start);
    sum.value.add(upper);
    sum.magnitude.add(std::abs(upper));
  }
}

}  // namespace

double for_each_rounded(
    const CliqueMarginals& point, const Dataset& data,
    const std::function<void(std::size_t, std::span<const double>, std::span<const double>)>& visit) {
  const auto misfit = [] {
    throw InputError({}, "the model's certificate holds marginals that do not fit this data");
  };
  if (point.cell_begin.size() != data.size() + 1 || point.message_begin.size() != data.size() + 1) misfit();
  double infeasibility = 0;
  Numbers mu, rounded;
  for (std::size_t m = 0; m < data.size(); ++m) {
    const Topology& top = data[m].topology();
    const std::uint64_t messages = point.message_begin[m + 1] - point.message_begin[m];
    if (point.cell_begin[m + 1] - point.cell_begin[m] != top.cells() ||
        (messages != 0 && messages != top.message_cells()))
      misfit();
    const double off = normalise(top, {point.mu.data() + point.cell_begin[m], top.cells()}, m, mu);
    infeasibility = std::max({infeasibility, off, round_example(top, mu, rounded)});
    visit(m, mu, rounded);
  }
  return infeasibility;
}

RebuiltDual rebuild_marginals(const Model& model, const CliqueMarginals& point, const Dataset& data) {
  const auto examples = static_cast<double>(data.size());
  const double scale = 1.0 / (model.lambda * examples);
  std::vector<CompensatedSum> w(model.weights.size()), rounded_w(model.weights.size());
  CompensatedSum value;
  RebuiltDual result;
  const auto add = [&](std::size_t m, std::span<const double> mu, std::span<const double> rounded) {
    const FactorGraph graph = data[m];
    const Topology& top = graph.topology();
    add_weights(data, graph, mu, scale, w);
    add_weights(data, graph, rounded, scale, rounded_w);
    for (std::size_t i = 0; i < top.variables(); ++i)
      value.add(loss_scale(model, graph) * static_cast<double>(graph.loss(i)) *
                (1 - rounded[top.clique_offset[i] + static_cast<std::size_t>(graph.label(i))]));
    for (std::size_t a = 0; model.gamma > 0 && a < top.cliques(); ++a)
      value.add(model.gamma * EntropyOf{top, a, model.entropy}.value(rounded.data() + top.clique_offset[a]));
  };
  result.infeasibility = for_each_rounded(point, data, add);
  result.weights = values_of(w);
  result.dual = dual_bound(model, value.value() / examples, values_of(rounded_w));
  return result;
}

HingeSum relaxed_hinge_sum(const Model& model, const CliqueMarginals* point, const Dataset& data,
                           int threads) {
  std::vector<MessagePlan> plans;
  for (std::size_t t = 0; t < data.topologies(); ++t) plans.push_back(plan_messages(data.topology(t)));
  Arena arena(threads);
  std::vector<Worker> workers(static_cast<std::size_t>(arena.threads()));
  const auto block = [&](std::size_t begin, std::size_t end, int number) {
    Worker& worker = workers[static_cast<std::size_t>(number)];
    HingeSum sum;
    for (std::size_t m = begin; m < end; ++m) {
      const FactorGraph graph = data[m];
      const Topology& top = graph.topology();
      worker.mu.assign(top.cells(), 0.0);
      worker.delta.assign(top.message_cells(), 0.0);
      if (point != nullptr) {
        normalise(top, {point->mu.data() + point->cell_begin[m], top.cells()}, m, worker.mu);
        std::copy(point->delta.begin() + static_cast<std::ptrdiff_t>(point->message_begin[m]),
                  point->delta.begin() + static_cast<std::ptrdiff_t>(point->message_begin[m + 1]),
                  worker.delta.begin());
      }
      if (model.gamma == 0) {
        worker.potentials.fill(data, graph, model.weights.data(), 1);
        worker.potentials.add_loss(graph, loss_scale(model, graph));
        const double before = message_bound(top, worker.potentials, worker.delta.data(), worker.scratch);
        const DiffusionOptions options{.sweeps = most_sweeps,
                                       .tolerance = sweep_tolerance * std::max(1.0, std::abs(before))};
        diffuse(top, plans[graph.topology_index()], worker.potentials, worker.delta.data(), options,
                worker.scratch);
      }
      add_bound(model, data, graph, worker, sum);
    }
    return sum;
  };
  return ordered_reduce<HingeSum>(arena, data.size(), examples_per_block, block);
}

}  // namespace margrave
