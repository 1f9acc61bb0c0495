// Every kernel of every instruction set this machine runs, against naive loops.
#include "base/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "base/buffer.hpp"
#include "base/random.hpp"

namespace margrave {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double guard = -12345.0;

class KernelsOf : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<double> numbers(std::size_t n, double scale = 1) {
    std::vector<double> x(n);
    for (double& v : x) v = scale * random_.normal();
    return x;
  }
  std::vector<float> floats(std::size_t n) {
    std::vector<float> x(n);
    for (float& v : x) v = static_cast<float>(random_.normal());
    return x;
  }
  const Kernels* k_ = kernels_for(GetParam());
  Random random_{41};
};

// The instruction sets that this machine runs; baseline is always one.
std::vector<const char*> runnable() {
  std::vector<const char*> names{"baseline", "avx2", "avx512"};
  std::erase_if(names, [](const char* name) { return kernels_for(name) == nullptr; });
  return names;
}

// The results of a row kernel in [0, width), and nothing written beyond padded(width) (or width where rows
// are not padded).
void expect_row(const std::vector<double>& got, const std::vector<double>& wanted, std::size_t stride) {
  const std::size_t width = wanted.size();
  for (std::size_t b = 0; b < width; ++b)
    ASSERT_NEAR(got[b], wanted[b], 1e-12 * std::max(1.0, std::abs(wanted[b])))
        << "width " << width << " column " << b;
  for (std::size_t b = stride >= padded(width) ? padded(width) : width; b < got.size(); ++b)
    ASSERT_EQ(got[b], guard);
}

struct Size {
  std::size_t width, stride, rows;
};
// Padded rows, rows that happen to be longer, and rows without
// padding (whose last one ends where the memory ends).
std::vector<Size> sizes() {
  std::vector<Size> all;
  for (std::size_t width = 1; width <= 40; ++width)
    for (const std::size_t rows : {0UL, 1UL, 2UL, 3UL, 7UL, 8UL, 9UL, 26UL})
      for (const std::size_t stride : {padded(width), padded(width) + 4, width})
        all.push_back({width, stride, rows});
  for (const std::size_t width : {63UL, 64UL, 65UL, 100UL, 130UL}) all.push_back({width, padded(width), 5});
  return all;
}

TEST_P(KernelsOf, RowSumsEqualNaiveLoops) {
  for (const auto& [width, stride, rows] : sizes()) {
    const std::vector<double> w = numbers(rows * stride);
    std::vector<std::uint32_t> index(rows);
    for (auto& i : index) i = static_cast<std::uint32_t>(random_.below(rows));
    const std::vector<float> x = floats(rows);
    std::vector<double> start(width);
    for (double& v : start) v = random_.normal();
    std::vector<double> unit = start;
    std::vector<double> sparse = start;
    std::vector<double> dense = start;
    for (std::size_t n = 0; n < rows; ++n)
      for (std::size_t b = 0; b < width; ++b) {
        unit[b] += w[index[n] * stride + b];
        sparse[b] += static_cast<double>(x[n]) * w[index[n] * stride + b];
        dense[b] += static_cast<double>(x[n]) * w[n * stride + b];
      }
    const auto fresh = [&] {
      std::vector<double> out(padded(width) + 8, guard);
      std::copy(start.begin(), start.end(), out.begin());
      return out;
    };
    auto out = fresh();
    k_->add_unit_rows(w.data(), stride, width, index.data(), rows, out.data());
    expect_row(out, unit, stride);
    out = fresh();
    k_->add_sparse_rows(w.data(), stride, width, index.data(), x.data(), rows, out.data());
    expect_row(out, sparse, stride);
    out = fresh();
    k_->add_dense_rows(w.data(), stride, width, x.data(), rows, out.data());
    expect_row(out, dense, stride);
  }
}

// Written exactly: what lies between the rows, and behind the last, stays.
TEST_P(KernelsOf, OuterProductsEqualNaiveLoopsAndLeaveThePaddingAlone) {
  for (const auto& [width, stride, rows] : sizes()) {
    const std::vector<float> x = floats(rows);
    const std::vector<double> row = numbers(width);
    std::vector<double> out(rows * stride + 8, guard);
    std::vector<double> wanted = out;
    for (std::size_t d = 0; d < rows; ++d)
      for (std::size_t b = 0; b < width; ++b) {
        out[d * stride + b] = random_.normal();
        wanted[d * stride + b] = out[d * stride + b] + static_cast<double>(x[d]) * row[b];
      }
    k_->add_outer(x.data(), rows, row.data(), width, stride, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (wanted[i] == guard) {
        ASSERT_EQ(out[i], guard) << "width " << width << " stride " << stride << " cell " << i;
      } else {
        ASSERT_NEAR(out[i], wanted[i], 1e-13) << "width " << width << " stride " << stride << " cell " << i;
      }
    }
  }
}

TEST_P(KernelsOf, RowsAddedToManyRowsEqualNaiveLoops) {
  for (const auto& [width, stride, rows] : sizes()) {
    const std::vector<double> row = numbers(std::max(width, std::min(stride, padded(width))));
    const std::vector<float> x = floats(rows);
    std::vector<std::uint32_t> index;
    for (std::uint32_t d = 0; d < rows; ++d)
      if (d % 3 != 1) index.push_back(d);
    std::vector<double> start(rows * stride + 8);
    for (double& v : start) v = random_.normal();
    std::vector<double> unit = start;
    std::vector<double> sparse = start;
    k_->add_to_unit_rows(row.data(), width, stride, index.data(), index.size(), unit.data());
    k_->add_to_sparse_rows(row.data(), width, stride, index.data(), x.data(), index.size(), sparse.data());
    std::vector<double> by(rows, 0.0);
    std::vector<double> weighted(rows, 0.0);
    for (std::size_t n = 0; n < index.size(); ++n) {
      by[index[n]] = 1;
      weighted[index[n]] = static_cast<double>(x[n]);
    }
    const std::size_t written = stride >= padded(width) ? padded(width) : width;
    for (std::size_t i = 0; i < start.size(); ++i) {
      const std::size_t d = i / stride;
      const std::size_t b = i % stride;
      if (d < rows && b >= width && b < written) continue;
      const bool hit = d < rows && b < width;
      ASSERT_NEAR(unit[i], start[i] + (hit ? by[d] * row[b] : 0), 1e-13)
          << width << " " << stride << " " << i;
      ASSERT_NEAR(sparse[i], start[i] + (hit ? weighted[d] * row[b] : 0), 1e-13)
          << width << " " << stride << " " << i;
    }
  }
}

TEST_P(KernelsOf, OuterSumsEqualNaiveLoopsAndAreWrittenExactly) {
  for (const auto& [width, stride, rows] : sizes())
    for (const std::size_t count : {1UL, 2UL, 5UL}) {
      const std::size_t step = std::max(padded(width), padded(rows));
      const std::vector<double> left = numbers(count * step);
      const std::vector<double> right = numbers(count * step);
      const std::vector<double> table = numbers(rows * stride);
      std::vector<double> out(rows * width + 8, guard);
      k_->outer_sums(left.data(), right.data(), step, count, rows, table.data(), stride, width, out.data());
      for (std::size_t a = 0; a < rows; ++a)
        for (std::size_t b = 0; b < width; ++b) {
          double sum = 0;
          for (std::size_t n = 0; n < count; ++n) sum += left[n * step + a] * right[n * step + b];
          ASSERT_NEAR(out[a * width + b], table[a * stride + b] * sum, 1e-12)
              << width << " " << stride << " " << a << " " << b;
        }
      for (std::size_t i = rows * width; i < out.size(); ++i) ASSERT_EQ(out[i], guard);
    }
}

TEST_P(KernelsOf, DenseBlockEqualsItsVectorsOneByOneWhateverTheCount) {
  for (std::size_t width = 1; width <= 40; ++width) {
    const std::size_t stride = padded(width);
    const std::size_t inputs = 11;
    const std::vector<double> w = numbers(inputs * stride);
    std::vector<std::vector<float>> x;
    std::vector<const float*> pointers;
    for (int i = 0; i < 14; ++i) x.push_back(floats(inputs));
    for (const auto& v : x) pointers.push_back(v.data());
    std::vector<double> all(x.size() * stride, 0.0);
    k_->add_dense_block(w.data(), stride, width, pointers.data(), x.size(), inputs, all.data(), stride);
    for (std::size_t count = 0; count <= x.size(); ++count) {
      std::vector<double> out(x.size() * stride, 0.0);
      k_->add_dense_block(w.data(), stride, width, pointers.data(), count, inputs, out.data(), stride);
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t b = 0; b < width; ++b) ASSERT_EQ(out[i * stride + b], all[i * stride + b]);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::vector<double> one(stride, 0.0);
      k_->add_dense_rows(w.data(), stride, width, x[i].data(), inputs, one.data());
      for (std::size_t b = 0; b < width; ++b) ASSERT_NEAR(all[i * stride + b], one[b], 1e-12);
    }
  }
}

TEST_P(KernelsOf, TableKernelsEqualNaiveLoops) {
  for (const auto& [width, stride, rows] : sizes()) {
    std::vector<double> table = numbers(rows * stride);
    if (random_.below(3) == 0)
      for (double& v : table)
        if (random_.below(5) == 0) v = -infinity;
    const std::vector<double> value = numbers(rows);
    const std::vector<double> node = numbers(padded(width));
    std::vector<double> best(width, -infinity);
    std::vector<double> log_sum(width, -infinity);
    std::vector<double> with_node(width);
    for (std::size_t b = 0; b < width; ++b) {
      for (std::size_t a = 0; a < rows; ++a) best[b] = std::max(best[b], value[a] + table[a * stride + b]);
      double sum = 0;
      for (std::size_t a = 0; a < rows; ++a)
        if (best[b] > -infinity) sum += std::exp(value[a] + table[a * stride + b] - best[b]);
      if (best[b] > -infinity) log_sum[b] = best[b] + std::log(sum);
      with_node[b] = best[b] + node[b];
    }
    std::vector<double> out(padded(width) + 8, guard);
    std::vector<double> out_node(padded(width) + 8, guard);
    k_->max_plus(value.data(), rows, table.data(), stride, width, out.data());
    for (std::size_t b = 0; b < width; ++b) ASSERT_EQ(out[b], best[b]);
    k_->max_plus_node(value.data(), rows, table.data(), stride, width, node.data(), out.data(),
                      out_node.data());
    for (std::size_t b = 0; b < width; ++b) ASSERT_EQ(out[b], best[b]);
    for (std::size_t b = 0; b < width; ++b) ASSERT_EQ(out_node[b], with_node[b]);
    for (std::size_t b = 0; b < width && rows > 0; ++b) {
      std::size_t first = 0;
      while (first < rows && value[first] + table[first * stride + b] != best[b]) ++first;
      ASSERT_EQ(k_->find_sum(value.data(), rows, table.data() + b, stride, best[b]), first);
    }
    std::vector<double> right(padded(width), -infinity);
    for (std::size_t b = 0; b < width; ++b) right[b] = random_.normal();
    std::vector<double> across(rows + 8, guard);
    k_->max_plus_transposed(right.data(), rows, table.data(), stride, width, across.data());
    for (std::size_t a = 0; a < rows; ++a) {
      double most = -infinity;
      for (std::size_t b = 0; b < width; ++b) most = std::max(most, table[a * stride + b] + right[b]);
      ASSERT_EQ(across[a], most);
    }
    for (std::size_t a = rows; a < across.size(); ++a) ASSERT_EQ(across[a], guard);
    k_->log_sum_exp(value.data(), rows, table.data(), stride, width, out.data());
    for (std::size_t b = 0; b < width; ++b) {
      if (log_sum[b] == -infinity) {
        ASSERT_EQ(out[b], -infinity);
      } else {
        ASSERT_NEAR(out[b], log_sum[b], 1e-12 * std::max(1.0, std::abs(log_sum[b])));
      }
    }
    for (std::size_t b = stride >= padded(width) ? padded(width) : width; b < out.size(); ++b) {
      ASSERT_EQ(out[b], guard);
      ASSERT_EQ(out_node[b], guard);
    }
  }
}

// A path is its positions one after the other, to the bit: a maximum is never rounded.
TEST_P(KernelsOf, PathsEqualTheirPositionsOneByOne) {
  for (std::size_t states = 1; states <= 70; ++states) {
    const std::size_t row = padded(states);
    const std::size_t apart = whole_lines(states);
    for (const std::size_t length : {1UL, 2UL, 3UL, 8UL}) {
      std::vector<std::vector<double>> tables, nodes;
      std::vector<Kernels::PathStep> steps;
      for (std::size_t t = 0; t < length; ++t) {
        tables.push_back(numbers(states * row));
        nodes.push_back(numbers(row));
      }
      for (std::size_t t = 0; t < length; ++t)
        steps.push_back({nodes[t].data(), tables[t].data(), nullptr, nullptr});
      std::vector<double> best(length * apart + 8, guard), value(length * apart + 8, guard);
      std::vector<std::uint32_t> labels(length + 1, 12345);
      const double score =
          k_->max_plus_path(steps.data(), length, states, best.data(), value.data(), labels.data());
      std::vector<double> from = nodes[0];
      for (std::size_t t = 1; t < length; ++t) {
        std::vector<double> next(row);
        for (std::size_t b = 0; b < states; ++b) {
          double top = -infinity;
          for (std::size_t a = 0; a < states; ++a) top = std::max(top, from[a] + tables[t - 1][a * row + b]);
          ASSERT_EQ(best[t * apart + b], top) << states << " states, position " << t << ", state " << b;
          next[b] = top + nodes[t][b];
          ASSERT_EQ(value[t * apart + b], next[b]);
        }
        from = next;
      }
      ASSERT_EQ(score, *std::max_element(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(states)));
      double sum = nodes[0][labels[0]];
      for (std::size_t t = 1; t < length; ++t)
        sum = sum + tables[t - 1][labels[t - 1] * row + labels[t]] + nodes[t][labels[t]];
      ASSERT_EQ(sum, score) << states << " states";
      ASSERT_EQ(labels[length], 12345U);
      ASSERT_EQ(k_->max_plus_path(steps.data(), length, states, best.data(), value.data(), nullptr), score);
      for (std::size_t i = length * apart; i < best.size(); ++i) {
        ASSERT_EQ(best[i], guard);
        ASSERT_EQ(value[i], guard);
      }
    }
  }
}

// Scores of few values, so that many sums are equal; and a table with none but NaN, where no label is right
// and all of them stay in range.
TEST_P(KernelsOf, PathsTakeTheFirstOfEqualLabelsWithAndWithoutTransposes) {
  constexpr std::size_t length = 9;
  for (std::size_t states = 1; states <= 70; ++states) {
    const std::size_t row = padded(states);
    const std::size_t apart = whole_lines(states);
    std::vector<std::vector<double>> tables, transposed, nodes;
    for (std::size_t t = 0; t < length; ++t) {
      tables.emplace_back(states * row, 0.0);
      transposed.emplace_back(states * row, 0.0);
      for (std::size_t a = 0; a < states; ++a)
        for (std::size_t b = 0; b < states; ++b)
          tables[t][a * row + b] = transposed[t][b * row + a] = static_cast<double>(random_.below(3));
      nodes.emplace_back(row, -infinity);
      for (std::size_t a = 0; a < states; ++a) nodes[t][a] = static_cast<double>(random_.below(3));
    }
    std::vector<Kernels::PathStep> steps, with;
    for (std::size_t t = 0; t < length; ++t) {
      steps.push_back({nodes[t].data(), tables[t].data(), nullptr, nullptr});
      with.push_back({nodes[t].data(), tables[t].data(), transposed[t].data(), nullptr});
    }
    Buffer<double> best(length * apart, guard), value(length * apart, guard);
    std::vector<std::uint32_t> labels(length), same(length);
    k_->max_plus_path(steps.data(), length, states, best.data(), value.data(), labels.data());
    k_->max_plus_path(with.data(), length, states, best.data(), value.data(), same.data());
    EXPECT_EQ(labels, same) << states << " states";
    const auto value_at = [&](std::size_t t, std::size_t a) {
      return t == 0 ? nodes[0][a] : value[t * apart + a];
    };
    for (std::size_t t = length; t-- > 0;)
      for (std::size_t a = 0; a < labels[t]; ++a) {
        if (t + 1 == length) {
          ASSERT_LT(value_at(t, a), value_at(t, labels[t]));
        } else {
          const std::size_t b = labels[t + 1];
          ASSERT_LT(value_at(t, a) + tables[t][a * row + b],
                    value_at(t, labels[t]) + tables[t][labels[t] * row + b]);
        }
      }
    const double bad = std::numeric_limits<double>::quiet_NaN();
    std::fill(tables[3].begin(), tables[3].end(), bad);
    std::fill(transposed[3].begin(), transposed[3].end(), bad);
    for (const auto& path : {steps, with}) {
      k_->max_plus_path(path.data(), length, states, best.data(), value.data(), labels.data());
      for (const std::uint32_t label : labels) ASSERT_LT(label, states);
    }
  }
}

// The recursions as kernels.hpp has them, with plain sums. Forbidden states stay exactly 0.
TEST_P(KernelsOf, SumProductPathsEqualNaiveLoops) {
  for (std::size_t states = 1; states <= 70; ++states) {
    const std::size_t row = padded(states);
    const std::size_t apart = whole_lines(states);
    for (const std::size_t length : {1UL, 2UL, 3UL, 8UL}) {
      std::vector<std::vector<double>> nodes, tables, transposed, marginals;
      std::vector<Kernels::PathStep> steps;
      for (std::size_t t = 0; t < length; ++t) {
        nodes.push_back(numbers(states));
        if (states > 2) nodes[t][random_.below(states)] = -infinity;
        tables.emplace_back(states * row, 0.0);
        transposed.emplace_back(states * row, 0.0);
        for (std::size_t a = 0; a < states; ++a)
          for (std::size_t b = 0; b < states; ++b)
            tables[t][a * row + b] = transposed[t][b * row + a] =
                states > 2 && random_.below(9) == 0 ? 0.0 : random_.uniform();
        marginals.emplace_back(states + 8, guard);
      }
      for (std::size_t t = 0; t < length; ++t)
        steps.push_back({nodes[t].data(), tables[t].data(), transposed[t].data(), marginals[t].data()});
      Buffer<double> rows(4 * length * apart + 8, guard);
      std::vector<double> shift(length + 1, guard), sum(length + 1, guard);
      double* weight = rows.data();
      double* forward = weight + length * apart;
      double* backward = forward + length * apart;
      double* message = backward + length * apart;
      const auto least = k_->sum_product_path(
          {steps.data(), length, states, weight, forward, backward, message, shift.data(), sum.data()});

      std::vector<std::vector<double>> e, alpha, beta(length, std::vector<double>(states, 1.0)), r = beta;
      std::vector<double> totals;
      double score = infinity, cell = infinity, overlap = infinity;
      const auto times = [&](const std::vector<double>& from, const std::vector<double>& table) {
        std::vector<double> to(states, 0.0);
        for (std::size_t a = 0; a < states; ++a)
          for (std::size_t b = 0; b < states; ++b) to[b] += from[a] * table[a * row + b];
        return to;
      };
      const auto weighed = [&](std::vector<double> line, std::size_t t, double before) {
        for (std::size_t b = 0; b < states; ++b) {
          line[b] *= e[t][b] / before;
          if (line[b] > 0) cell = std::min(cell, line[b]);
        }
        return line;
      };
      const auto total = [](const std::vector<double>& line) {
        return std::accumulate(line.begin(), line.end(), 0.0);
      };
      for (std::size_t t = 0; t < length; ++t) {
        const double most = *std::max_element(nodes[t].begin(), nodes[t].end());
        ASSERT_EQ(shift[t], most);
        e.emplace_back();
        for (const double x : nodes[t]) {
          e[t].push_back(std::exp(x - most));
          if (x > -infinity) score = std::min(score, x - most);
        }
        alpha.push_back(
            weighed(t == 0 ? beta[0] : times(alpha[t - 1], tables[t - 1]), t, t == 0 ? 1.0 : totals.back()));
        totals.push_back(total(alpha[t]));
        ASSERT_NEAR(sum[t], totals[t], 1e-13 * totals[t]) << states << " states, position " << t;
      }
      for (std::size_t t = length; t-- > 0;) {
        if (t + 1 < length) beta[t] = times(r[t + 1], transposed[t]);
        r[t] = weighed(beta[t], t, t + 1 < length ? total(r[t + 1]) : 1.0);
      }
      for (std::size_t t = 0; t < length; ++t) {
        double product = 0;
        for (std::size_t b = 0; b < states; ++b) product += alpha[t][b] * beta[t][b];
        if (t + 1 < length) overlap = std::min(overlap, product);
        for (std::size_t b = 0; b < states; ++b) {
          const double wanted = alpha[t][b] * beta[t][b] / product;
          ASSERT_NEAR(marginals[t][b], wanted, 1e-13 * wanted) << states << " states, position " << t;
          ASSERT_NEAR(backward[t * apart + b], r[t][b], 1e-13 * r[t][b]);
          const double divided = t + 1 < length ? alpha[t][b] / product : alpha[t][b];
          ASSERT_NEAR(forward[t * apart + b], divided, 1e-13 * divided);
        }
        for (std::size_t b = states; b < marginals[t].size(); ++b) ASSERT_EQ(marginals[t][b], guard);
      }
      ASSERT_EQ(least.score, score);
      ASSERT_NEAR(least.cell, cell, 1e-13 * cell);
      if (length > 1) {
        ASSERT_NEAR(least.overlap, overlap, 1e-13 * overlap);
      } else {
        ASSERT_EQ(least.overlap, infinity);
      }
      for (std::size_t i = 4 * length * apart; i < 4 * length * apart + 8; ++i) ASSERT_EQ(rows[i], guard);
      ASSERT_EQ(shift[length], guard);
      ASSERT_EQ(sum[length], guard);
      std::fill(nodes[0].begin(), nodes[0].end(), -infinity);
      ASSERT_EQ(k_->sum_product_path({steps.data(), length, states, weight, forward, backward, message,
                                      shift.data(), sum.data()})
                    .score,
                -infinity);
    }
  }
}

TEST_P(KernelsOf, FirstMaximumIsTheFirstOfEqualOnes) {
  for (std::size_t n = 1; n <= 40; ++n) {
    std::vector<double> x = numbers(n);
    for (std::size_t first = 0; first < n; ++first) {
      std::vector<double> y = x;
      y[first] = 9.0;
      for (std::size_t i = first + 1; i < n; i += 3) y[i] = 9.0;
      const auto got = k_->first_maximum(y.data(), n);
      ASSERT_EQ(got.value, 9.0);
      ASSERT_EQ(got.place, first) << n;
    }
    std::vector<double> bad(n, std::numeric_limits<double>::quiet_NaN());
    ASSERT_EQ(k_->first_maximum(bad.data(), n).value, -infinity);
    ASSERT_EQ(k_->first_maximum(bad.data(), n).place, 0U);
    bad[n / 2] = -3.0;
    ASSERT_EQ(k_->first_maximum(bad.data(), n).value, -3.0);
    ASSERT_EQ(k_->first_maximum(bad.data(), n).place, n / 2);
    const std::vector<double> least(n, -infinity);
    ASSERT_EQ(k_->first_maximum(least.data(), n).place, 0U);
  }
}

TEST_P(KernelsOf, ProductKernelsEqualNaiveLoops) {
  for (const auto& [width, stride, rows] : sizes()) {
    const std::vector<double> table = numbers(rows * stride);
    const std::vector<double> left = numbers(rows);
    std::vector<double> right(padded(width), 0.0);
    for (std::size_t b = 0; b < width; ++b) right[b] = random_.normal();
    std::vector<double> down(width, 0.0);
    std::vector<double> across(rows, 0.0);
    std::vector<double> cells(rows * width);
    std::vector<double> sums(rows, 0.0);
    for (std::size_t a = 0; a < rows; ++a)
      for (std::size_t b = 0; b < width; ++b) {
        down[b] += left[a] * table[a * stride + b];
        across[a] += table[a * stride + b] * right[b];
        cells[a * width + b] = left[a] * table[a * stride + b] * right[b];
        sums[a] += cells[a * width + b];
      }
    std::vector<double> out(padded(width) + 8, guard);
    k_->sum_product(left.data(), rows, table.data(), stride, width, out.data());
    expect_row(out, down, stride);
    std::vector<double> long_out(rows + 8, guard);
    k_->sum_product_transposed(right.data(), rows, table.data(), stride, width, long_out.data());
    for (std::size_t a = 0; a < rows; ++a) ASSERT_NEAR(long_out[a], across[a], 1e-12);
    for (std::size_t a = rows; a < long_out.size(); ++a) ASSERT_EQ(long_out[a], guard);
    std::vector<double> cells_out(rows * width + 8, guard);
    k_->pair_product(left.data(), rows, table.data(), stride, width, right.data(), cells_out.data(),
                     long_out.data());
    for (std::size_t i = 0; i < rows * width; ++i)
      ASSERT_NEAR(cells_out[i], cells[i], 1e-14 * std::max(1.0, std::abs(cells[i])));
    for (std::size_t i = rows * width; i < cells_out.size(); ++i) ASSERT_EQ(cells_out[i], guard);
    for (std::size_t a = 0; a < rows; ++a) ASSERT_NEAR(long_out[a], sums[a], 1e-12);
    for (std::size_t a = rows; a < long_out.size(); ++a) ASSERT_EQ(long_out[a], guard);
    std::vector<double> without_sums(rows * width + 8, guard);
    k_->pair_product(left.data(), rows, table.data(), stride, width, right.data(), without_sums.data(),
                     nullptr);
    ASSERT_EQ(without_sums, cells_out);
  }
}

TEST_P(KernelsOf, ReductionsEqualNaiveLoops) {
  for (std::size_t n = 0; n <= 70; ++n) {
    const std::vector<float> x = floats(n);
    const std::vector<float> y = floats(n);
    const std::vector<double> w = numbers(n);
    double xw = 0;
    double xy = 0;
    for (std::size_t i = 0; i < n; ++i) {
      xw += static_cast<double>(x[i]) * w[i];
      xy += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    }
    EXPECT_NEAR(k_->dot(x.data(), w.data(), n), xw, 1e-12 * std::max(1.0, std::abs(xw)));
    EXPECT_NEAR(k_->dot_ff(x.data(), y.data(), n), xy, 1e-12 * std::max(1.0, std::abs(xy)));
    const std::vector<double> u = numbers(n);
    double wv = 0;
    for (std::size_t i = 0; i < n; ++i) wv += w[i] * u[i];
    EXPECT_NEAR(k_->dot_dd(w.data(), u.data(), n), wv, 1e-12 * std::max(1.0, std::abs(wv)));
    std::vector<double> added(n + 8, guard);
    std::copy(u.begin(), u.end(), added.begin());
    k_->add_scaled(w.data(), n, -0.75, added.data());
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(added[i], u[i] - 0.75 * w[i], 1e-14);
    for (std::size_t i = n; i < added.size(); ++i) EXPECT_EQ(added[i], guard);
    std::vector<double> positive(n);
    double sum = 0;
    double least = infinity;
    for (double& v : positive) {
      v = random_.below(3) == 0 ? 0.0 : random_.uniform();
      sum += v;
      if (v > 0) least = std::min(least, v);
    }
    const auto result = k_->sum_and_least(positive.data(), n);
    EXPECT_NEAR(result.sum, sum, 1e-12);
    EXPECT_EQ(result.least, least);
    if (n > 0) {
      EXPECT_EQ(k_->max_value(w.data(), n), *std::max_element(w.begin(), w.end()));
    }
    std::vector<double> forbidden = w;
    double least_allowed = infinity;
    for (double& v : forbidden) {
      if (random_.below(3) == 0) v = -infinity;
      if (v > -infinity) least_allowed = std::min(least_allowed, v);
    }
    EXPECT_EQ(k_->least_finite(forbidden.data(), n), least_allowed);
    std::vector<double> scaled = w;
    k_->scale(scaled.data(), n, 0.5);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(scaled[i], 0.5 * w[i]);
    k_->multiply_each(scaled.data(), w.data(), n, scaled.data());
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(scaled[i], 0.5 * w[i] * w[i]);
  }
}

TEST_P(KernelsOf, EntropyAlongALine) {
  for (std::size_t n = 0; n <= 40; ++n) {
    std::vector<double> mass(n), change(n);
    double value = 0, slope = 0;
    for (std::size_t i = 0; i < n; ++i) {
      mass[i] = random_.below(4) == 0 ? 0.0 : random_.uniform();
      const double target = random_.below(4) == 0 ? 0.0 : random_.uniform();
      change[i] = target - mass[i];
      const double at = mass[i] + 0.25 * change[i];
      if (at > 0) value -= at * std::log(at);
      slope -= change[i] * std::log(std::max(at, 1e-300));
    }
    const auto found = k_->entropy_along(mass.data(), change.data(), n, 0.25);
    EXPECT_NEAR(found.value, value, 1e-13 * static_cast<double>(n + 1));
    EXPECT_NEAR(found.slope, slope, 1e-12 * static_cast<double>(n + 1));
  }
}

TEST_P(KernelsOf, ExponentialIsAccurateAndExactlyZeroAtMinusInfinity) {
  for (std::size_t n = 1; n <= 40; ++n) {
    std::vector<double> x = numbers(n, 100);
    x[random_.below(n)] = -infinity;
    std::vector<double> out(n + 8, guard);
    k_->exp_shifted(x.data(), n, 3.5, out.data());
    for (std::size_t i = 0; i < n; ++i) {
      const double wanted = std::exp(x[i] - 3.5);
      EXPECT_NEAR(out[i], wanted, 2.3e-16 * wanted);
    }
    for (std::size_t i = n; i < out.size(); ++i) EXPECT_EQ(out[i], guard);
  }
  const double extreme[] = {-800, -745.2, -1e5, -1e300, 0, 709};
  double out[6];
  k_->exp_shifted(extreme, 6, 0, out);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[2], 0);
  EXPECT_EQ(out[3], 0);
  EXPECT_EQ(out[4], 1);
  EXPECT_NEAR(out[5] / std::exp(709.0), 1, 1e-15);
  const double rest[] = {-720, -740, 720, infinity, std::numeric_limits<double>::quiet_NaN(), -1e-300};
  k_->exp_shifted(rest, 6, 0, out);
  EXPECT_NEAR(out[0] / std::exp(-720.0), 1, 1e-7);  // gradual underflow
  EXPECT_NEAR(out[1], std::exp(-740.0), 5e-324);
  EXPECT_EQ(out[2], infinity);
  EXPECT_EQ(out[3], infinity);
  EXPECT_TRUE(std::isnan(out[4]));
  EXPECT_EQ(out[5], 1);
}

TEST_P(KernelsOf, NotANumberNeverWinsAMaximum) {
  for (std::size_t width = 1; width <= 12; ++width) {
    std::vector<double> table(3 * padded(width), 1.0);
    for (std::size_t b = 0; b < width; ++b)
      table[padded(width) + b] = std::numeric_limits<double>::quiet_NaN();
    const double value[] = {0, 5, 2};
    std::vector<double> out(padded(width));
    k_->max_plus(value, 3, table.data(), padded(width), width, out.data());
    for (std::size_t b = 0; b < width; ++b) EXPECT_EQ(out[b], 3.0);
    EXPECT_EQ(k_->find_sum(value, 3, table.data() + padded(width), 1, infinity), 0U);
  }
}

// Inputs as masks, at every length around words and vectors; nothing else is changed.
TEST_P(KernelsOf, MasksGiveWhatNaiveLoopsGive) {
  for (std::size_t n = 0; n <= 140; ++n) {
    std::vector<std::uint32_t> bits((n + 31) / 32, 0);
    const std::uint64_t rarity = 1 + n % 4;
    for (std::size_t i = 0; i < n; ++i)
      if (random_.below(rarity) == 0) bits[i / 32] |= 1U << i % 32;
    const std::vector<double> plus = numbers(n);
    const std::vector<double> minus = numbers(n);
    std::vector<double> alone = plus;
    std::vector<double> first = plus;
    std::vector<double> second = minus;
    for (std::vector<double>* row : {&alone, &first, &second}) row->push_back(guard);
    k_->add_masked(bits.data(), n, 0.75, alone.data());
    k_->add_masked_difference(bits.data(), n, 0.75, first.data(), second.data());
    double sum = 0;
    double difference = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool set = (bits[i / 32] >> i % 32 & 1U) != 0;
      sum += set ? plus[i] : 0;
      difference += set ? plus[i] - minus[i] : 0;
      EXPECT_EQ(alone[i], set ? plus[i] + 0.75 : plus[i]);
      EXPECT_EQ(first[i], alone[i]);
      EXPECT_EQ(second[i], set ? minus[i] - 0.75 : minus[i]);
    }
    EXPECT_NEAR(k_->masked_sum(plus.data(), bits.data(), n), sum, 1e-12);
    EXPECT_NEAR(k_->masked_difference(plus.data(), minus.data(), bits.data(), n), difference, 1e-12);
    EXPECT_EQ(alone[n], guard);
    EXPECT_EQ(first[n], guard);
    EXPECT_EQ(second[n], guard);
  }
}

TEST_P(KernelsOf, ExchangeAddsTheScaledChangeAndBringsTheSum) {
  for (std::size_t n = 0; n <= 20; ++n) {
    std::vector<double> own = numbers(n);
    std::vector<double> seen = numbers(n);
    std::vector<double> cells = numbers(n);
    std::vector<double> wanted;
    for (std::size_t i = 0; i < n; ++i) wanted.push_back(cells[i] + 0.5 * (own[i] - seen[i]));
    for (std::vector<double>* row : {&own, &seen, &cells}) row->push_back(guard);
    k_->exchange(own.data(), seen.data(), n, 0.5, cells.data());
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(cells[i], wanted[i], 1e-15 * (1 + std::abs(wanted[i])));
    EXPECT_EQ(cells[n], guard);
    EXPECT_EQ(own, cells);
    EXPECT_EQ(seen, cells);
  }
}

TEST_P(KernelsOf, ManyRowsGiveWhatEachGivesAloneAndNaiveLoopsGive) {
  for (const std::size_t n : {0U, 1U, 7U, 8U, 9U, 16U, 23U, 40U, 103U}) {
    for (std::size_t count = 0; count <= 9; ++count) {
      const std::size_t stride = n + 3;
      const std::vector<float> rows = floats(count * stride);
      const std::vector<double> x = numbers(n);
      const std::vector<float> y = floats(n);
      const std::vector<double> w = numbers(count * stride);
      const std::vector<double> factor = numbers(count);
      std::vector<std::uint32_t> index;
      std::vector<std::uint64_t> place;
      for (std::size_t k = 0; k < count; ++k) {
        index.push_back(static_cast<std::uint32_t>(count - 1 - k));
        place.push_back(index.back() * stride);
      }
      std::vector<double> of_rows(count + 4, guard);
      std::vector<double> of_places(count + 4, guard);
      std::vector<double> sums(n + 4, guard);
      k_->dot_rows(rows.data(), stride, count, x.data(), n, of_rows.data());
      k_->dot_places(y.data(), n, w.data(), place.data(), count, of_places.data());
      k_->sum_rows(rows.data(), stride, index.data(), factor.data(), count, n, sums.data());
      for (std::size_t k = 0; k < count; ++k) {
        double row_sum = 0;
        double place_sum = 0;
        for (std::size_t d = 0; d < n; ++d) {
          row_sum += static_cast<double>(rows[k * stride + d]) * x[d];
          place_sum += static_cast<double>(y[d]) * w[place[k] + d];
        }
        EXPECT_NEAR(of_rows[k], row_sum, 1e-12 * std::max(1.0, std::abs(row_sum)));
        EXPECT_NEAR(of_places[k], place_sum, 1e-12 * std::max(1.0, std::abs(place_sum)));
        double alone = 0;
        k_->dot_rows(rows.data() + k * stride, stride, 1, x.data(), n, &alone);
        EXPECT_EQ(of_rows[k], alone);
        k_->dot_places(y.data(), n, w.data(), &place[k], 1, &alone);
        EXPECT_EQ(of_places[k], alone);
      }
      std::vector<double> added = w;
      k_->add_to_places(y.data(), n, factor.data(), place.data(), count, added.data());
      for (std::size_t k = 0; k < count; ++k) {
        for (std::size_t d = 0; d < stride; ++d) {
          const std::size_t at = place[k] + d;
          const double change = d < n ? factor[k] * static_cast<double>(y[d]) : 0.0;
          EXPECT_NEAR(added[at], w[at] + change, 1e-14 * (1 + std::abs(change)) + 1e-14 * std::abs(w[at]));
          if (d >= n) {
            EXPECT_EQ(added[at], w[at]) << "behind the row";
          }
        }
        std::vector<double> alone = w;
        k_->add_to_places(y.data(), n, &factor[k], &place[k], 1, alone.data());
        for (std::size_t d = 0; d < n; ++d) EXPECT_EQ(added[place[k] + d], alone[place[k] + d]);
      }
      for (std::size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < count; ++k)
          sum += factor[k] * static_cast<double>(rows[index[k] * stride + i]);
        EXPECT_NEAR(sums[i], sum, 1e-13 * std::max(1.0, std::abs(sum)));
      }
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(of_rows[count + i], guard);
        EXPECT_EQ(of_places[count + i], guard);
        EXPECT_EQ(sums[n + i], guard);
      }
    }
  }
}

TEST_P(KernelsOf, ResultsDoNotDependOnAddresses) {
  const std::size_t width = 27;
  const std::size_t stride = 28;
  const std::size_t rows = 29;
  const std::vector<double> table = numbers(rows * stride);
  const std::vector<double> value = numbers(rows);
  const std::vector<float> x = floats(rows);
  std::vector<double> first;
  for (std::size_t offset = 0; offset < 8; ++offset) {
    Buffer<double> memory(rows * stride + 200, 0.0);
    double* t = memory.data() + offset;
    std::copy(table.begin(), table.end(), t);
    Buffer<double> result(400, 0.0);
    double* out = result.data() + 8 - offset;
    k_->sum_product(value.data(), rows, t, stride, width, out);
    k_->add_dense_rows(t, stride, width, x.data(), rows, out + 40);
    k_->log_sum_exp(value.data(), rows, t, stride, width, out + 80);
    out[120] = k_->dot(x.data(), t, rows) + k_->dot_dd(value.data(), t, rows);
    k_->exp_shifted(t, 29, 0.5, out + 121);
    const std::vector<double> all(out, out + 150);
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool padding = i < 120 && i % 40 >= width;
      ASSERT_TRUE(padding || std::memcmp(&all[i], &first[i], sizeof(double)) == 0) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, KernelsOf, ::testing::ValuesIn(runnable()),
                         [](const auto& isa) { return std::string(isa.param); });

TEST(Kernels, BaselineIsAlwaysThereAndUnknownNamesAreNot) {
  ASSERT_NE(kernels_for("baseline"), nullptr);
  EXPECT_EQ(kernels_for("baseline")->isa, "baseline");
  EXPECT_EQ(kernels_for("mmx"), nullptr);
  EXPECT_NE(kernels_for(kernels().isa), nullptr);
}

}  // namespace
}  // namespace margrave
