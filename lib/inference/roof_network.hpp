// The flow network of roof duality (roof_dual.cpp): built from scores, filled, and read. For graphs of any
// size; roof_matrix.hpp is for small ones.
#pragma once

#include <cstdint>
#include <vector>

#include "inference/messages.hpp"
#include "inference/oracle.hpp"
#include "inference/potentials.hpp"

namespace margrave {

// The shape of the flow network.
struct RoofPlan {
  MessagePlan messages;
  bool small = false;                // a RoofMatrix will do
  std::vector<std::uint32_t> first;  // 2n + 1: arcs of each node, as many as the variable has factors
  // By entry of `incident`: the arc of node 2i (that of 2i + 1 is `degree` further on), and the other
  // variable.
  std::vector<std::uint32_t> arc, degree, other;
};
RoofPlan plan_roof(const Topology& top);

class RoofNetwork {
 public:
  static constexpr std::uint32_t half = 2;  // beside the labels 0 and 1

  // All memory is the scratch's, from slots below 5.
  RoofNetwork(const Topology& top, const RoofPlan& plan, const Potentials& potentials, Scratch& scratch);

  // A maximum flow; false where a score is not finite.
  bool solve();
  // After solve(): the bound of the relaxation; 0, 1 or `half` for every variable, and how many have labels;
  // optimal messages.
  double bound() const;
  std::size_t label(std::uint32_t* states);
  void write_messages(double* delta) const;

 private:
  static constexpr std::uint32_t tied = 3;  // `half` for good

  bool repulsive(std::size_t c) const { return coupling_[c] < 0; }
  bool gather();
  // Takes out variables whose h outweighs all their pairs: their arcs are full in a maximum flow, and what
  // they send on may decide the next.
  void fill_dominated();
  bool is_fixed(std::size_t c) const {
    return slack_[top_.scope[2 * c]] < 0 || slack_[top_.scope[2 * c + 1]] < 0;
  }
  void push();
  // f of factor c, from what is left of the two arcs that leave its first variable, and what that leaves of
  // h.
  void keep_mean(std::size_t c, double left_of_first, double left_of_mirror);
  // visit(node) for the nodes that arcs lead to which the mean flow does not fill.
  template <class Visit>
  void for_each_next(std::uint32_t node, Visit&& visit) const;
  std::size_t follow(std::uint32_t* states);
  std::size_t split(std::uint32_t* states);
  bool close(std::uint32_t node, const std::uint32_t* states, std::size_t& size);

  const Topology& top_;
  const RoofPlan& plan_;
  const Potentials& potentials_;
  Scratch& scratch_;
  std::size_t n_;
  double *coupling_, *carried_;  // w and f of each factor; f from its first variable
  double* left_;                 // h, then what is left of it
  double* slack_;                // capacities of a variable's arcs; below 0 where it is taken out
  std::uint32_t* work_;
  double scale_ = 0;     // largest capacity
  double constant_ = 0;  // the score of all zeros
};

}  // namespace margrave
