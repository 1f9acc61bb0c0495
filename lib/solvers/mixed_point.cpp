#include "solvers/mixed_point.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace margrave {

namespace {

constexpr std::size_t example_grain = 8;

bool before(const Mass& a, const Mass& b) {
  return std::tie(a.clique, a.joint) < std::tie(b.clique, b.joint);
}

}  // namespace

void MixedPoint::add(const DualPoint& next, double loss, std::span<const double> gradient) {
  ++count_;
  const double share = 3 / static_cast<double>(count_ + 2);
  if (count_ == 1) {
    loss_ = 0;
    std::fill(gradient_.begin(), gradient_.end(), 0.0);
    for (auto& masses : masses_) masses.clear();
  }
  dense_ = next.dense();
  problem_.arena.for_each_block(masses_.size(), example_grain,
                                [&](std::size_t begin, std::size_t end, int index) {
                                  Worker& worker = workers_[static_cast<std::size_t>(index)];
                                  for (std::size_t m = begin; m < end; ++m) {
                                    worker.next.clear();
                                    next.masses(m, worker.next);
                                    mix(masses_[m], share, worker);
                                  }
                                });
  loss_ += share * (loss - loss_);
  for (std::size_t k = 0; k < gradient_.size(); ++k) gradient_[k] += share * (gradient[k] - gradient_[k]);
}

// masses ← (1 − share)·masses + share·next
void MixedPoint::mix(std::vector<Mass>& masses, double share, Worker& worker) {
  std::sort(worker.next.begin(), worker.next.end(), before);
  worker.merged.clear();
  auto old = masses.begin();
  const auto keep_until = [&](auto&& stop) {
    for (; old != masses.end() && stop(*old); ++old)
      worker.merged.push_back({old->clique, old->joint, (1 - share) * old->mass});
  };
  for (const Mass& e : worker.next) {
    keep_until([&](const Mass& o) { return before(o, e); });
    double mass = share * e.mass;
    if (old != masses.end() && !before(e, *old)) mass += (1 - share) * (old++)->mass;
    worker.merged.push_back({e.clique, e.joint, mass});
  }
  keep_until([](const Mass&) { return true; });
  masses.assign(worker.merged.begin(), worker.merged.end());
}

std::uint64_t MixedPoint::bytes() const {
  std::uint64_t sum = gradient_.size() * sizeof(double);
  for (const auto& masses : masses_) sum += masses.capacity() * sizeof(Mass);
  return sum;
}

void MixedPoint::save(ByteWriter& out) const {
  out.put(count_);
  if (empty()) return;
  out.put(loss_);
  out.put(dense_);
  out.put_array(std::span<const double>(gradient_));
  for (const auto& masses : masses_) out.put_array(std::span<const Mass>(masses));
}

void MixedPoint::restore(ByteReader& in) {
  count_ = in.get<std::uint64_t>();
  if (empty()) return;
  loss_ = in.get<double>();
  dense_ = in.get<bool>();
  const auto gradient = in.get_array<double>();
  if (gradient.size() != gradient_.size() || !std::isfinite(loss_) ||
      !std::all_of(gradient.begin(), gradient.end(), [](double g) { return std::isfinite(g); }))
    in.fail("holds a mixture of dual points that does not fit the data");
  gradient_ = gradient;
  for (std::size_t m = 0; m < masses_.size(); ++m) {
    masses_[m] = in.get_array<Mass>();
    if (const char* wrong = wrong_masses(problem_.data[m].topology(), masses_[m])) in.fail(wrong);
    if (!std::is_sorted(masses_[m].begin(), masses_[m].end(), before)) in.fail("has masses out of order");
  }
}

}  // namespace margrave
