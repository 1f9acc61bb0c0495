#include "solvers/visit_order.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace margrave {

VisitOrder::VisitOrder(std::size_t examples) : examples_(examples), count_(examples) {
  order_.reserve(2 * examples);
  round_end_.reserve(16);
}

void VisitOrder::in_turn() {
  order_.resize(examples_);
  std::iota(order_.begin(), order_.end(), 0U);
  round_end_.assign(1, order_.size());
}

void VisitOrder::permute(Random random) {
  in_turn();
  random.shuffle(std::span(order_));
}

void VisitOrder::permute_runs(Random random) {
  const std::size_t runs = (examples_ + run - 1) / run;
  for (std::uint32_t r = 0; r < runs; ++r) count_[r] = r;
  random.shuffle(std::span(count_).first(runs));
  order_.clear();
  for (std::size_t r = 0; r < runs; ++r)
    for (std::size_t m = count_[r] * run; m < std::min(examples_, (count_[r] + 1) * run); ++m)
      order_.push_back(static_cast<std::uint32_t>(m));
  round_end_.assign(1, order_.size());
}

void VisitOrder::sample(Random random, std::span<const double> gap, std::uint32_t most_visits) {
  const double total = std::accumulate(gap.begin(), gap.end(), 0.0);
  const double unit = static_cast<double>(examples_) / total;
  if (!(total > 0) || !std::isfinite(total) || !std::isfinite(unit)) {
    permute(random);
    return;
  }
  double position = random.uniform();
  double reached = 0;
  for (std::size_t m = 0; m < examples_; ++m) {
    reached += gap[m] * unit;
    count_[m] = 0;
    while (position < reached) {
      position += 1;
      ++count_[m];
    }
    count_[m] = std::min(count_[m], most_visits);
  }
  order_.clear();
  round_end_.clear();
  for (std::uint32_t round = 0; round < most_visits; ++round) {
    const std::size_t first = order_.size();
    for (std::uint32_t m = 0; m < examples_; ++m)
      if (count_[m] > round) order_.push_back(m);
    if (order_.size() == first) break;
    random.shuffle(std::span(order_).subspan(first));
    round_end_.push_back(order_.size());
  }
}

std::span<const std::uint32_t> VisitOrder::batch(std::size_t begin, std::size_t batch) const {
  const std::size_t round = *std::upper_bound(round_end_.begin(), round_end_.end(), begin);
  return std::span(order_).subspan(begin, std::min(batch, round - begin));
}

void VisitOrder::save(ByteWriter& out) const {
  out.put_array(std::span<const std::uint32_t>(order_));
  out.put_array(std::span<const std::uint64_t>(round_end_));
}

void VisitOrder::restore(ByteReader& in) {
  order_ = in.get_array<std::uint32_t>();
  round_end_ = in.get_array<std::uint64_t>();
  const bool rounds_fit = order_.empty() ? true : !round_end_.empty() && round_end_.back() == order_.size();
  if (!rounds_fit || !std::is_sorted(round_end_.begin(), round_end_.end()))
    in.fail("has rounds that do not fit");
  // An example twice in one round would be visited by two threads at once.
  std::vector<std::size_t> last_round(examples_, round_end_.size());
  std::size_t round = 0;
  for (std::size_t k = 0; k < order_.size(); ++k) {
    while (k >= round_end_[round]) ++round;
    if (order_[k] >= examples_) in.fail("visits an example that does not exist");
    if (std::exchange(last_round[order_[k]], round) == round) in.fail("visits an example twice in one round");
  }
}

}  // namespace margrave
