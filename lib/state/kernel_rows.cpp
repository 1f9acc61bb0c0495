#include "state/kernel_rows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/kernels.hpp"
#include "model/clique_scores.hpp"

namespace margrave {

namespace {

double power(double x, std::uint32_t degree) {
  double result = 1;
  for (std::uint32_t n = 0; n < degree; ++n) result *= x;
  return result;
}

// f(d, x_d) for the inputs that are stored.
template <class F>
void for_each_input(const InputView& x, F&& f) {
  for (std::uint32_t n = 0; n < x.count; ++n)
    f(x.kind == InputKind::dense ? n : x.index[n],
      x.kind == InputKind::unit ? 1.0 : static_cast<double>(x.value[n]));
}

}  // namespace

double KernelFunction::operator()(double product, double squared_length, double other_squared_length) const {
  switch (kind) {
    case Kernel::linear:
      return product;
    case Kernel::polynomial:
      return power(product + offset, degree);
    case Kernel::rbf:
      return std::exp(-width * std::max(0.0, squared_length + other_squared_length - 2 * product));
  }
  return 0;
}

double squared_length_of(const InputView& x) { return input_product(x, x); }

KernelRows::KernelRows(const KernelFunction& function, std::uint64_t length, std::vector<InputView> inputs,
                       std::uint64_t most_table_bytes)
    : function_(function), inputs_(std::move(inputs)) {
  for (const InputView& x : inputs_) squared_length_.push_back(squared_length_of(x));
  const std::size_t stride = padded(inputs_.size());
  if (stride == 0 || length > most_table_bytes / sizeof(double) / stride) return;
  stride_ = stride;
  table_.reserve(length * stride);
  std::fill_n(table_.data(), length * stride, 0.0);
  for (std::size_t s = 0; s < inputs_.size(); ++s)
    for_each_input(inputs_[s], [&](std::size_t d, double x) { table_[d * stride + s] = x; });
}

void KernelRows::products(const InputView& x, std::size_t first, std::size_t count, double* out) const {
  if (stride_ == 0) {
    for (std::size_t j = 0; j < count; ++j) out[j] = input_product(x, inputs_[first + j]);
    return;
  }
  const Kernels& k = kernels();
  const std::size_t width = padded(count);
  const double* table = table_.data() + first;
  std::fill_n(out, width, 0.0);
  switch (x.kind) {
    case InputKind::dense:
      k.add_dense_rows(table, stride_, width, x.value, x.count, out);
      break;
    case InputKind::sparse:
      k.add_sparse_rows(table, stride_, width, x.index, x.value, x.count, out);
      break;
    case InputKind::unit:
      k.add_unit_rows(table, stride_, width, x.index, x.count, out);
      break;
    case InputKind::per_state:
      break;  // refused where spaces and scorers are made
  }
}

void KernelRows::values(const InputView& x, double squared_length, std::size_t first, std::size_t count,
                        double* out) const {
  products(x, first, count, out);
  if (function_.kind == Kernel::polynomial) {
    for (std::size_t j = 0; j < count; ++j) out[j] = power(out[j] + function_.offset, function_.degree);
  } else if (function_.kind == Kernel::rbf) {
    for (std::size_t j = 0; j < count; ++j)
      out[j] = -function_.width * std::max(0.0, squared_length + squared_length_[first + j] - 2 * out[j]);
    // In place, which the kernel does not promise: by way of a few numbers beside.
    constexpr std::size_t step = 64;
    double beside[step];
    for (std::size_t j = 0; j < count; j += step) {
      const std::size_t n = std::min(step, count - j);
      std::copy_n(out + j, n, beside);
      kernels().exp_shifted(beside, n, 0.0, out + j);
    }
  }
}

}  // namespace margrave
