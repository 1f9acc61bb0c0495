// SIMD kernels, compiled once per instruction set and chosen once per process.
//
// Label-contiguous: a row holds the scores of all labels (or joint states) for one input or one previous
// label, padded to a multiple of 4 doubles. Every kernel gives the same bits for the same arguments whatever
// their address; different instruction sets may differ in the last bits (fused multiply-add).
//
// Padding: where stride ≥ padded(width), rows (and `right`) are read, and results over b are written, up to
// padded(width); what lands in the padding follows from the padding that was read. Where stride <
// padded(width), nothing beyond `width` is touched. Arguments that are sized by n or by rows are read and
// written exactly. Inputs and outputs do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace margrave {

struct Kernels {
  std::string_view isa;  // "baseline", "avx2", "avx512"

  // out[0..width) += Σ_n w[index[n]·stride ..+width); width ≤ stride.
  void (*add_unit_rows)(const double* w, std::size_t stride, std::size_t width, const std::uint32_t* index,
                        std::size_t n, double* out);
  // out[0..width) += Σ_n value[n]·w[index[n]·stride ..+width)
  void (*add_sparse_rows)(const double* w, std::size_t stride, std::size_t width, const std::uint32_t* index,
                          const float* value, std::size_t n, double* out);
  // out[0..width) += Σ_d x[d]·w[d·stride ..+width)
  void (*add_dense_rows)(const double* w, std::size_t stride, std::size_t width, const float* x,
                         std::size_t n, double* out);
  // The same for several vectors at once: out[k·out_stride ..+width) += Σ_d x[k][d]·w[d·stride ..+width), k <
  // count. Reads w once for every few vectors. The sums run in another order than those of add_dense_rows,
  // and do not depend on `count`.
  void (*add_dense_block)(const double* w, std::size_t stride, std::size_t width, const float* const* x,
                          std::size_t count, std::size_t n, double* out, std::size_t out_stride);
  // Σ_d x[d]·w[d]
  double (*dot)(const float* x, const double* w, std::size_t n);
  // Σ_d a[d]·b[d] in double
  double (*dot_ff)(const float* a, const float* b, std::size_t n);
  double (*dot_dd)(const double* a, const double* b, std::size_t n);
  // Many at once, each with the same bits whatever the others are: out[k] = Σ_d rows[k·stride + d]·x[d], and
  // out[k] = Σ_d x[d]·w[place[k] + d], k < count.
  void (*dot_rows)(const float* rows, std::size_t stride, std::size_t count, const double* x, std::size_t n,
                   double* out);
  void (*dot_places)(const float* x, std::size_t n, const double* w, const std::uint64_t* place,
                     std::size_t count, double* out);
  // w[place[k] + d] += factor[k]·x[d], k < count: the transpose; places of different rows.
  void (*add_to_places)(const float* x, std::size_t n, const double* factor, const std::uint64_t* place,
                        std::size_t count, double* w);
  // out[i] = Σ_k factor[k]·rows[index[k]·stride + i], i < n, k < count
  void (*sum_rows)(const float* rows, std::size_t stride, const std::uint32_t* index, const double* factor,
                   std::size_t count, std::size_t n, double* out);
  // out[i] += factor·in[i]
  void (*add_scaled)(const double* in, std::size_t n, double factor, double* out);
  // cells[i] += factor·(own[i] − seen[i]), and own[i] = seen[i] = cells[i]
  void (*exchange)(double* own, double* seen, std::size_t n, double factor, double* cells);
  // out[d·stride + b] += x[d]·row[b], b < width ≤ stride: the transpose of add_dense_rows. Written exactly.
  void (*add_outer)(const float* x, std::size_t n, const double* row, std::size_t width, std::size_t stride,
                    double* out);
  // out[index[n]·stride + b] += row[b], b < width: the transpose of add_unit_rows; indices differ.
  void (*add_to_unit_rows)(const double* row, std::size_t width, std::size_t stride,
                           const std::uint32_t* index, std::size_t n, double* out);
  // out[index[n]·stride + b] += value[n]·row[b]: the transpose of add_sparse_rows.
  void (*add_to_sparse_rows)(const double* row, std::size_t width, std::size_t stride,
                             const std::uint32_t* index, const float* value, std::size_t n, double* out);

  // Inputs that are 0 or 1 as masks, bit i % 32 of word i / 32 for input i < n; bits behind n are 0. Σ
  // row[i], Σ plus[i] − minus[i], row[i] += factor, and plus[i] += factor with minus[i] −= factor, over the i
  // whose bit is set. Rows are read, and written with what they hold, at others too.
  double (*masked_sum)(const double* row, const std::uint32_t* bits, std::size_t n);
  double (*masked_difference)(const double* plus, const double* minus, const std::uint32_t* bits,
                              std::size_t n);
  void (*add_masked)(const std::uint32_t* bits, std::size_t n, double factor, double* row);
  void (*add_masked_difference)(const std::uint32_t* bits, std::size_t n, double factor, double* plus,
                                double* minus);

  // out[b] = max_a value[a] + table[a·stride + b], b < width. A NaN is skipped.
  void (*max_plus)(const double* value, std::size_t rows, const double* table, std::size_t stride,
                   std::size_t width, double* out);
  // One Viterbi position: best[b] = max_a value[a] +
  // table[a·stride + b] and out[b] = best[b] + node[b], b < width.
  void (*max_plus_node)(const double* value, std::size_t rows, const double* table, std::size_t stride,
                        std::size_t width, const double* node, double* best, double* out);
  // out[a] = max_b table[a·stride + b] + value[b], a < rows, b < width. A NaN is skipped. Paddings of `value`
  // must be −inf and those of `table` finite.
  void (*max_plus_transposed)(const double* value, std::size_t rows, const double* table, std::size_t stride,
                              std::size_t width, double* out);
  // The first a < rows with value[a] + column[a·stride] = target, or 0 where there is none. With a target
  // from max_plus this is the argmax, without keeping it for every b.
  std::size_t (*find_sum)(const double* value, std::size_t rows, const double* column, std::size_t stride,
                          double target);
  // out[b] = Σ_a value[a]·table[a·stride + b], b < width.
  void (*sum_product)(const double* value, std::size_t rows, const double* table, std::size_t stride,
                      std::size_t width, double* out);
  // out[a] = Σ_b table[a·stride + b]·value[b], a < rows, b < width. Paddings of `value` must be 0 and those
  // of `table` finite.
  void (*sum_product_transposed)(const double* value, std::size_t rows, const double* table,
                                 std::size_t stride, std::size_t width, double* out);
  // out[a·width + b] = left[a]·table[a·stride + b]·right[b] and row_sum[a] = Σ_b of these; `out` is written
  // exactly. Paddings of `right` must be 0 and those of `table` finite. row_sum = nullptr: no sums.
  void (*pair_product)(const double* left, std::size_t rows, const double* table, std::size_t stride,
                       std::size_t width, const double* right, double* out, double* row_sum);
  // out[a·width + b] = table[a·stride + b]·Σ_n left[n·step + a]·right[n·step + b], b < width, n < count;
  // `out` is written exactly. Rows of `right` are read up to padded(width) where stride ≥ padded(width).
  void (*outer_sums)(const double* left, const double* right, std::size_t step, std::size_t count,
                     std::size_t rows, const double* table, std::size_t stride, std::size_t width,
                     double* out);
  // out[b] = log Σ_a exp(value[a] + table[a·stride + b]), b < width, safe at any magnitude; −inf where every
  // term is −inf.
  void (*log_sum_exp)(const double* value, std::size_t rows, const double* table, std::size_t stride,
                      std::size_t width, double* out);
  // out[i] = exp(in[i] − shift); −inf gives 0. `shift` is finite.
  void (*exp_shifted)(const double* in, std::size_t n, double shift, double* out);
  // max of n ≥ 1 numbers; a NaN is skipped.
  double (*max_value)(const double* in, std::size_t n);
  // Σ of n non-negative numbers, and the smallest of those that are not 0 (+inf where there is none).
  struct SumAndLeast {
    double sum, least;
  };
  SumAndLeast (*sum_and_least)(const double* in, std::size_t n);
  // The smallest of n numbers that is not −inf (+inf where there is none).
  double (*least_finite)(const double* in, std::size_t n);
  // With m_i = mass[i] + length·change[i], no less than 1e-300: −Σ m_i log m_i and its derivative in `length`
  // (but for −Σ change[i]), −Σ change[i]·log m_i.
  struct EntropyAlong {
    double value, slope;
  };
  EntropyAlong (*entropy_along)(const double* mass, const double* change, std::size_t n, double length);
  // data[i] *= factor
  void (*scale)(double* data, std::size_t n, double factor);
  // out[i] = a[i]·b[i]; `out` may be one of them.
  void (*multiply_each)(const double* a, const double* b, std::size_t n, double* out);

  // A variable of a path, all of them with equally many states, and the table from it to the next one; rows
  // of both padded.
  struct PathStep {
    const double* node;
    const double* table;
    const double* transposed;  // of the table
    double* marginal;          // for sum_product_path
  };
  // Viterbi along such a path: value_0 = node[0], best_t[b] = max_a value_{t−1}[a] + table[t−1](a, b) and
  // value_t = best_t + node[t], 0 < t < length; rows of both lie whole_lines(states) apart. Returns the best
  // score, and its labels where there is room for them: the first of equal ones from the end on. These are
  // found faster where a transposed table is at hand; nullptr: it is not.
  double (*max_plus_path)(const PathStep* step, std::size_t length, std::size_t states, double* best,
                          double* value, std::uint32_t* labels);
  // max of n ≥ 1 numbers with the first place where it is, NaN skipped; −inf and 0 where every number is −inf
  // or NaN.
  struct Maximum {
    double value;
    std::size_t place;
  };
  Maximum (*first_maximum)(const double* in, std::size_t n);

  // Forward-backward along a path of `length` ≥ 1 variables with equally many states. Rows lie
  // whole_lines(states) apart, those of tables padded(states) with paddings of 0; nodes are read exactly.
  //   weight_t   = exp(node[t] − shift_t), shift_t = max node[t]
  //   forward_t  = weight_t·Σ_a forward_{t−1}(a)·table[t−1](a, ·) / sum_{t−1},  sum_t = Σ forward_t
  //   message_t  = Σ_b backward_{t+1}(b)·transposed[t](b, ·),  1 at the end, where it is not written
  //   backward_t = weight_t·message_t / Σ backward_{t+1}
  //   marginal_t = forward_t·message_t / Σ forward_t·message_t
  // In the end forward_t, t + 1 < length, is divided by Σ forward_t·message_t as well: then forward_t(a)·
  // table[t](a, b)·backward_{t+1}(b) are the marginals of pairs. Marginals are written exactly.
  struct SumPath {
    const PathStep* step;
    std::size_t length, states;
    double *weight, *forward, *backward, *message;
    double *shift, *sum;  // one number per variable
  };
  // The smallest node[t] − shift_t that is not −inf (but −inf where a shift is not finite), the smallest
  // number of forward (before the division) and backward that is not 0, and the smallest Σ forward·message.
  // +inf where there is none.
  struct PathLeast {
    double score, cell, overlap;
  };
  PathLeast (*sum_product_path)(const SumPath& path);
};

// The best set this machine runs; MARGRAVE_ISA=baseline|avx2|avx512 chooses a lower one.
const Kernels& kernels();
// One set by name, or nullptr where the machine does not run it (for tests and benchmarks).
const Kernels* kernels_for(std::string_view isa);

// Rows are padded to this many doubles.
inline constexpr std::size_t row_padding = 4;
constexpr std::size_t padded(std::size_t n) { return (n + row_padding - 1) / row_padding * row_padding; }
// The same to whole cache lines: what is written to be read at once is not to lie on two of them.
constexpr std::size_t whole_lines(std::size_t n) { return (n + 7) / 8 * 8; }

}  // namespace margrave
