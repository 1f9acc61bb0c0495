// DualPoint: the dual state of an example-wise solver as the evaluator sees it.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "margrave/model.hpp"
#include "model/mass.hpp"

namespace margrave {

// A point of the dual, example by example; what a dual solver shows the evaluator.
class DualPoint {
 public:
  DualPoint() = default;
  DualPoint(const DualPoint&) = delete;
  DualPoint& operator=(const DualPoint&) = delete;
  virtual ~DualPoint() = default;
  // The masses of all cliques of example m, grouped by clique in increasing order; zeros may be among them or
  // left out. Called from many threads.
  virtual void masses(std::size_t m, std::vector<Mass>& out) const = 0;
  // Whether most masses are not zero: w is then summed input by input rather than mass by mass.
  virtual bool dense() const { return false; }
  // Whether this is known to be the truth of every example, where w is 0, without looking at all masses.
  virtual bool at_truth() const { return false; }
};

// Collects weighted labellings for a model's certificate, example by example.
class LabellingCollector {
 public:
  LabellingCollector();
  // Labellings without weight are left out, equal ones put together.
  void add(std::span<const CachedLabel> labels, double weight);
  void end_example() { point_.atom_begin.push_back(point_.weight.size()); }
  Labellings take() { return std::move(point_); }

 private:
  Labellings point_;
};

// The point as marginals for a model's certificate, with room for messages where they are asked for.
CliqueMarginals stored_point(const Dataset& data, const DualPoint& point, bool messages);

}  // namespace margrave
