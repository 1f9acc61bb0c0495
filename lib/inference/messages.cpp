#include "inference/messages.hpp"

#include <algorithm>
#include <cmath>

#include "inference/diffusion_sweeps.hpp"

namespace margrave {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
constexpr std::size_t no_position = ~std::size_t{0};

// One example's scores and messages, seen from one worker's memory.
class Messages {
 public:
  Messages(const Topology& top, const Potentials& potentials, double* delta, Scratch& scratch, double k)
      : top_(top), potentials_(potentials), delta_(delta), scratch_(scratch), k_(k) {}

  void star(std::size_t variable);
  // smax θ̂ of a clique.
  double top_of_variable(std::size_t variable);
  double top_of_factor(std::size_t factor);

 private:
  bool hard() const { return k_ == hard_maximum; }
  std::size_t states(std::size_t entry) const { return top_.states[top_.scope[entry]]; }
  const double* message(std::size_t entry) const { return delta_ + top_.message_offset[entry]; }

  // γ of an entry of `scope`: the factor's max-marginals of that variable, its own message left out. Written
  // up to the padding.
  void marginals(std::size_t factor, std::size_t entry, double* out);
  void pair_marginals(std::size_t factor, std::size_t entry, double* out);
  // θ_c − Σ δ over all variables but the one at `position`, whose states become rows of `rest` cells.
  double* gather(std::size_t factor, std::size_t position, std::size_t& rest);
  // smax of n numbers, which are scaled in place where K is finite.
  double smax(double* values, std::size_t n);
  // −δ of an entry, padded with −inf.
  const double* negated(std::size_t entry);
  void star_with_forbidden_states(std::size_t variable, const double* gamma, const double* average,
                                  std::size_t stride);

  const Topology& top_;
  const Potentials& potentials_;
  double* delta_;
  Scratch& scratch_;
  double k_;
};

double Messages::smax(double* values, std::size_t n) {
  const Kernels& k = kernels();
  if (hard()) return k.max_value(values, n);
  k.scale(values, n, k_);
  const double shift = k.max_value(values, n);
  if (!std::isfinite(shift)) return shift;
  double* exponentials = scratch_.reals[3].reserve(n);
  k.exp_shifted(values, n, shift, exponentials);
  return (shift + std::log(k.sum_and_least(exponentials, n).sum)) / k_;
}

const double* Messages::negated(std::size_t entry) {
  const std::size_t k = states(entry);
  double* out = scratch_.reals[3].reserve(padded(k));
  const double* in = message(entry);
  for (std::size_t y = 0; y < k; ++y) out[y] = -in[y];
  for (std::size_t y = k; y < padded(k); ++y) out[y] = minus_infinity;
  return out;
}

void Messages::pair_marginals(std::size_t factor, std::size_t entry, double* out) {
  const std::size_t first = top_.scope_begin[factor];
  const std::size_t rows = states(first);
  const std::size_t width = states(first + 1);
  const double* table = potentials_.table(factor);
  if (entry == first) {
    kernels().max_plus_transposed(negated(first + 1), rows, table, padded(width), width, out);
  } else {
    kernels().max_plus(negated(first), rows, table, padded(width), width, out);
  }
}

double* Messages::gather(std::size_t factor, std::size_t position, std::size_t& rest) {
  const std::size_t begin = top_.scope_begin[factor];
  const std::size_t last = top_.scope_begin[factor + 1] - begin - 1;
  const std::size_t width = states(begin + last);
  std::size_t lines = 1;
  for (std::size_t j = 0; j < last; ++j) lines *= states(begin + j);
  const std::size_t rows = position == no_position ? 1 : states(begin + position);
  rest = lines * width / rows;
  double* out = scratch_.reals[2].reserve(lines * width);
  // Lines after the position's variable run fastest: `block` of them share one of its states.
  std::size_t block = 1;
  for (std::size_t j = last; j-- > 0 && j != position;) block *= states(begin + j);
  std::uint32_t* at = scratch_.integers[0].reserve(last + 1);
  std::fill_n(at, last + 1, 0U);
  const double* line = potentials_.table(factor);
  const double* last_message = message(begin + last);
  for (std::size_t l = 0; l < lines; ++l, line += padded(width)) {
    double sum = 0;
    for (std::size_t j = 0; j < last; ++j)
      if (j != position) sum += message(begin + j)[at[j]];
    if (position == last) {
      for (std::size_t b = 0; b < width; ++b) out[b * rest + l] = line[b] - sum;
    } else {
      // The line's number among those of its row.
      const std::size_t number = position == no_position ? l : l / (block * rows) * block + l % block;
      const std::size_t row = position == no_position ? 0 : at[position];
      double* to = out + row * rest + number * width;
      for (std::size_t b = 0; b < width; ++b) to[b] = line[b] - sum - last_message[b];
    }
    for (std::size_t j = last; j-- > 0;) {
      if (++at[j] < states(begin + j)) break;
      at[j] = 0;
    }
  }
  return out;
}

void Messages::marginals(std::size_t factor, std::size_t entry, double* out) {
  const std::size_t begin = top_.scope_begin[factor];
  if (hard() && top_.scope_begin[factor + 1] - begin == 2) return pair_marginals(factor, entry, out);
  std::size_t rest = 0;
  double* values = gather(factor, entry - begin, rest);
  for (std::size_t y = 0; y < states(entry); ++y) out[y] = smax(values + y * rest, rest);
}

void Messages::star(std::size_t variable) {
  const auto factors = top_.factors_of(variable);
  if (factors.empty()) return;
  const auto entries = top_.messages_of(variable);
  const std::size_t k = top_.states[variable];
  const std::size_t stride = padded(k);
  double* gamma = scratch_.reals[0].reserve(factors.size() * stride);
  double* average = scratch_.reals[1].reserve(stride);
  std::copy_n(potentials_.node(variable), k, average);
  for (std::size_t e = 0; e < factors.size(); ++e) {
    double* row = gamma + e * stride;
    marginals(factors[e], entries[e], row);
    for (std::size_t y = 0; y < k; ++y) average[y] += row[y];
  }
  const auto shares = static_cast<double>(1 + factors.size());
  double check = 0;  // becomes NaN where a score is not finite
  for (std::size_t y = 0; y < k; ++y) {
    average[y] /= shares;
    check += average[y] * 0;
  }
  if (check != 0) return star_with_forbidden_states(variable, gamma, average, stride);
  for (std::size_t e = 0; e < factors.size(); ++e) {
    const double* row = gamma + e * stride;
    double* own = delta_ + top_.message_offset[entries[e]];
    for (std::size_t y = 0; y < k; ++y) own[y] = row[y] - average[y];
  }
}

// Scores made by hand may forbid a state with −inf. Messages stay finite: where one of the variable's cliques
// forbids a state, that clique can take any amount from the others, and each of them is lowered to the best
// average of the allowed states. No clique's maximum exceeds that average afterwards, so the bound does not
// rise.
void Messages::star_with_forbidden_states(std::size_t variable, const double* gamma, const double* average,
                                          std::size_t stride) {
  const auto entries = top_.messages_of(variable);
  const std::size_t k = top_.states[variable];
  double most = minus_infinity;
  for (std::size_t y = 0; y < k; ++y)
    if (std::isfinite(average[y])) most = std::max(most, average[y]);
  if (most == minus_infinity) return;
  for (std::size_t y = 0; y < k; ++y) {
    double sum = potentials_.node(variable)[y];
    double* sink = nullptr;
    for (std::size_t e = 0; e < entries.size(); ++e) {
      double& own = delta_[top_.message_offset[entries[e]] + y];
      const double value = gamma[e * stride + y];
      if (std::isfinite(average[y])) {
        own = value - average[y];
      } else if (std::isfinite(value)) {
        own = value - std::min(value - own, most);
      } else {
        sink = &own;
      }
      sum += own;
    }
    if (!std::isfinite(average[y]) && std::isfinite(sum) && sum > most && sink != nullptr)
      *sink -= sum - most;
  }
}

double Messages::top_of_variable(std::size_t variable) {
  const std::size_t k = top_.states[variable];
  double* row = scratch_.reals[1].reserve(padded(k));
  std::copy_n(potentials_.node(variable), k, row);
  for (const std::uint32_t entry : top_.messages_of(variable)) {
    const double* own = message(entry);
    for (std::size_t y = 0; y < k; ++y) row[y] += own[y];
  }
  return smax(row, k);
}

double Messages::top_of_factor(std::size_t factor) {
  const std::size_t begin = top_.scope_begin[factor];
  if (hard() && top_.scope_begin[factor + 1] - begin == 2) {
    const std::size_t k = states(begin + 1);
    double* row = scratch_.reals[1].reserve(padded(k));
    pair_marginals(factor, begin + 1, row);
    const double* own = message(begin + 1);
    for (std::size_t y = 0; y < k; ++y) row[y] -= own[y];
    return smax(row, k);
  }
  std::size_t cells = 0;
  double* values = gather(factor, no_position, cells);
  return smax(values, cells);
}

// Any graph; every worker has a scratch.
class GeneralRule {
 public:
  GeneralRule(const Topology& top, const Potentials& potentials, double* delta, double inverse_temperature,
              Arena* arena, std::span<Scratch> workers)
      : top_(top),
        potentials_(potentials),
        delta_(delta),
        k_(inverse_temperature),
        arena_(arena),
        workers_(workers) {}

  void update(std::size_t variable, int worker) { messages(worker).star(variable); }
  double bound() {
    return sum_over_cliques(arena_, top_.cliques(), [&](std::size_t a, std::size_t end, int worker) {
      Messages own = messages(worker);
      const std::size_t n = top_.variables();
      CompensatedSum part;
      for (; a < end; ++a) part.add(a < n ? own.top_of_variable(a) : own.top_of_factor(a - n));
      return part;
    });
  }

 private:
  Messages messages(int worker) {
    return {top_, potentials_, delta_, workers_[static_cast<std::size_t>(worker)], k_};
  }
  const Topology& top_;
  const Potentials& potentials_;
  double* delta_;
  double k_;
  Arena* arena_;
  std::span<Scratch> workers_;
};

double diffuse_with(const Topology& top, const MessagePlan& plan, const Potentials& potentials, double* delta,
                    const DiffusionOptions& options, Arena* arena, std::span<Scratch> workers) {
  double bound = 0;
  if (plan.binary_pairwise && options.inverse_temperature == hard_maximum &&
      diffuse_binary(top, plan, potentials, delta, options, arena, workers.front(), bound))
    return bound;
  GeneralRule rule(top, potentials, delta, options.inverse_temperature, arena, workers);
  return run_sweeps(top, plan, options, arena, rule);
}

}  // namespace

double message_bound(const Topology& top, const Potentials& potentials, const double* delta, Scratch& scratch,
                     double inverse_temperature) {
  // The rule writes messages in update() only.
  return GeneralRule(top, potentials, const_cast<double*>(delta), inverse_temperature, nullptr, {&scratch, 1})
      .bound();
}

void star_update(const Topology& top, const Potentials& potentials, std::size_t variable, double* delta,
                 Scratch& scratch, double inverse_temperature) {
  Messages(top, potentials, delta, scratch, inverse_temperature).star(variable);
}

double diffuse(const Topology& top, const MessagePlan& plan, const Potentials& potentials, double* delta,
               const DiffusionOptions& options, Scratch& scratch) {
  return diffuse_with(top, plan, potentials, delta, options, nullptr, {&scratch, 1});
}

double diffuse(const Topology& top, const MessagePlan& plan, const Potentials& potentials, double* delta,
               const DiffusionOptions& options, Arena& arena, std::span<Scratch> workers) {
  return diffuse_with(top, plan, potentials, delta, options, &arena, workers);
}

}  // namespace margrave
