#include "state/scaled_weights.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/kernels.hpp"
#include "model/stored_weights.hpp"

namespace margrave {

namespace {
// Fewer changes are not worth a parallel commit; the bits are the same.
constexpr std::size_t least_parallel = 512;

double norm_of(const WeightStore& w) { return kernels().dot_dd(w.data(), w.data(), w.size()); }
}  // namespace

ScaledWeights::ScaledWeights(const TemplateSet& templates, bool averaging)
    : templates_(&templates), averaging_(averaging), vector_(templates), rest_(templates) {}

void ScaledWeights::shrink(double factor) {
  if (factor > 0) {
    scale_ *= factor;
    return;
  }
  // w = 0. What the average holds of v moves to u.
  if (averaging_) {
    std::vector<double> sum(size());
    for (std::uint64_t i = 0; i < size(); ++i) sum[i] = rest_.data()[i] + share_ * vector_.data()[i];
    rest_.assign(sum);
  }
  vector_.assign(std::vector<double>(size(), 0.0));
  scale_ = 1;
  share_ = 0;
  vector_norm_ = 0;
}

void ScaledWeights::commit(WeightStore& store, Arena& arena, const Dataset& data,
                           std::span<const std::vector<CliqueChange>> lists, bool parallel, double scale) {
  if (parallel) {
    store.commit(arena, data, lists, scale);
  } else {
    for (const auto& changes : lists) store.commit(data, changes, scale);
  }
}

void ScaledWeights::add(Arena& arena, const Dataset& data, std::span<const std::vector<CliqueChange>> lists,
                        double step) {
  std::size_t changes = 0;
  for (const auto& list : lists) changes += list.size();
  if (changes == 0) return;
  const double length = step / scale_;
  // |v + l·g|² − |v|² = l·(<v, g> + <v + l·g, g>)
  const bool few = changes < size();
  const auto product = [&] {
    double sum = 0;
    for (const auto& list : lists) sum += vector_.product(data, list);
    return sum;
  };
  const bool parallel = changes >= least_parallel;
  const double before = few ? product() : 0;
  commit(vector_, arena, data, lists, parallel, length);
  vector_norm_ = few ? std::max(0.0, vector_norm_ + length * (before + product())) : norm_of(vector_);
  if (averaging_ && share_ != 0) commit(rest_, arena, data, lists, parallel, -share_ * length);
}

void ScaledWeights::average(double weight) {
  if (!averaging_) return;
  share_ += weight * scale_;
  total_ += weight;
}

void ScaledWeights::settle() {
  std::vector<double> w(size());
  write(w);
  vector_.assign(w);
  share_ /= scale_;
  scale_ = 1;
  vector_norm_ = norm_of(vector_);
}

void ScaledWeights::write(std::span<double> w) const {
  for (std::uint64_t i = 0; i < size(); ++i) w[i] = scale_ * vector_.data()[i];
}

void ScaledWeights::write_average(std::span<double> w) const {
  for (std::uint64_t i = 0; i < size(); ++i) w[i] = (share_ * vector_.data()[i] + rest_.data()[i]) / total_;
}

void ScaledWeights::save(ByteWriter& out) const {
  out.put_array(vector_.span());
  out.put(averaging_);
  if (averaging_) out.put_array(rest_.span());
  for (const double number : {scale_, vector_norm_, share_, total_}) out.put(number);
}

void ScaledWeights::restore(ByteReader& in) {
  const auto finite = [](double x) { return std::isfinite(x); };
  vector_.assign(take_weights(in, *templates_));
  if (in.get<bool>() != averaging_) in.fail("does not fit the data or the options");
  if (averaging_) rest_.assign(take_weights(in, *templates_));
  scale_ = in.get<double>();
  vector_norm_ = in.get<double>();
  share_ = in.get<double>();
  total_ = in.get<double>();
  if (!(scale_ > 0) || !finite(scale_) || !(vector_norm_ >= 0) || !finite(vector_norm_) || !finite(share_) ||
      !(total_ >= 0) || !finite(total_))
    in.fail("holds a scale of the weights that is none");
}

}  // namespace margrave
