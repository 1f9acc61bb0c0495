// MarginalStore and MessageStore: numbers per example, laid
// out by its cliques, one cache-line aligned run per example.
//
// An example's run is written by the one task that holds the example, so no two threads share a line and
// nothing is locked.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "margrave/dataset.hpp"
#include "state/clique_layout.hpp"

namespace margrave {

// Real is float or double.
template <class Real>
class CliqueStore {
 public:
  std::span<Real> operator[](std::size_t m) { return {cells_.data() + begin_[m], length_[m]}; }
  std::span<const Real> operator[](std::size_t m) const { return {cells_.data() + begin_[m], length_[m]}; }
  std::size_t size() const { return length_.size(); }
  std::uint64_t bytes() const {
    return cells_.bytes() + (begin_.size() + length_.size()) * sizeof(std::uint64_t);
  }

 protected:
  // length(graph) cells per example, all zero.
  template <class Length>
  CliqueStore(const Dataset& data, Length&& length) {
    constexpr std::uint64_t line = cache_line / sizeof(Real);
    std::uint64_t next = 0;
    for (std::size_t m = 0; m < data.size(); ++m) {
      length_.push_back(length(data[m]));
      begin_.push_back(next);
      next += (length_.back() + line - 1) / line * line;
    }
    cells_.reserve(next);
    std::fill_n(cells_.data(), next, Real{0});
  }

 private:
  std::vector<std::uint64_t> begin_, length_;
  Buffer<Real> cells_;
};

// μ: one number per clique and joint state, at Topology::clique_offset.
template <class Real = double>
class MarginalStore : public CliqueStore<Real> {
 public:
  explicit MarginalStore(const Dataset& data)
      : CliqueStore<Real>(data, [](const FactorGraph& g) { return g.topology().cells(); }) {}
  // The same at the cells of these layouts.
  MarginalStore(const Dataset& data, const CliqueLayouts& layouts)
      : CliqueStore<Real>(
            data, [&](const FactorGraph& g) { return layouts.of_topology(g.topology_index()).cells(); }) {}
  // Every clique's whole mass on the true labels: where 001 and BCFW start.
  void start_at_truth(const Dataset& data);
};

// δ or ξ: one number per factor, variable of its scope and state of that variable, at
// Topology::message_offset.
template <class Real = double>
class MessageStore : public CliqueStore<Real> {
 public:
  explicit MessageStore(const Dataset& data)
      : CliqueStore<Real>(data, [](const FactorGraph& g) { return g.topology().message_cells(); }) {}
};

extern template class MarginalStore<double>;
extern template class MarginalStore<float>;

}  // namespace margrave
