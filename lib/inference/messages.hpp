// Max-sum diffusion: the dual of the LP relaxation of one example, lowered block by block (002 §3.3, eq. 11;
// for factors of any order Globerson and Jaakkola 2008).
//
// The messages δ_ci(y_i) of an example are one array laid out by Topology::message_offset. They move score
// between a factor and its variables and never change the score of a labelling:
//
//     θ̂_i(y_i) = θ_i(y_i) + Σ_{c∋i} δ_ci(y_i)        θ̂_c(y_c) = θ_c(y_c) − Σ_{i∈c} δ_ci(y_i)
//
// so that Σ_i max θ̂_i + Σ_c max θ̂_c bounds the best score from above for any finite δ. With the soft-max
// (1/K) log Σ exp(K·) in place of max (002 eq. 13) the bound is larger, by at most log(states)/K a clique,
// and smooth: diffusion cannot stall then. K = ∞ is the max. Adding a constant to a message changes nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "inference/oracle.hpp"
#include "inference/potentials.hpp"
#include "parallel/arena.hpp"

namespace margrave {

inline constexpr double hard_maximum = std::numeric_limits<double>::infinity();

// What diffusion needs to know of a shape, planned once per topology.
struct MessagePlan {
  // Variables by colour; no factor holds two of one colour. Greedy, in the order of their numbers.
  std::vector<std::uint32_t> by_colour;
  std::vector<std::uint32_t> colour_begin;  // colours + 1
  // Breadth first from the lowest variable of each component: what decode() fixes next has fixed neighbours.
  std::vector<std::uint32_t> breadth_first;
  // Every factor has two variables and every variable two states.
  bool binary_pairwise = false;
  // Binary and pairwise: where `incident` names the factor's other variable, for each entry of `incident`;
  // and, for each factor, the entry of its first variable.
  std::vector<std::uint32_t> mate, first_entry;

  std::size_t colours() const { return colour_begin.size() - 1; }
};
MessagePlan plan_messages(const Topology& top);

enum class SweepOrder : std::uint8_t { variables, colours };

struct DiffusionOptions {
  std::uint32_t sweeps = 20;
  double tolerance = 0;                       // stops after a sweep that lowers the bound by less; 0: never
  double inverse_temperature = hard_maximum;  // K of the soft-max
  SweepOrder order = SweepOrder::variables;
};

// The functions below use the slots 0 to 6 of `reals` and 0 to 1 of `integers`.

// Σ_i smax θ̂_i + Σ_c smax θ̂_c, sums compensated.
double message_bound(const Topology& top, const Potentials& potentials, const double* delta, Scratch& scratch,
                     double inverse_temperature = hard_maximum);

// The same at K = ∞ for binary pairwise graphs, without scratch and without the calls a clique that the
// general form takes.
double message_bound_binary(const Topology& top, const Potentials& potentials, const double* delta);

// All messages into one variable at once (002 eq. 11):
//
//     γ_c(y_i) = max_{y_c \ y_i} [ θ_c − Σ_{j∈c, j≠i} δ_cj ]
//     δ_ci(y_i) = γ_c(y_i) − ( θ_i(y_i) + Σ_c γ_c(y_i) ) / (1 + d_i)
//
// Afterwards the max-marginals of the variable in itself and in its d_i factors are equal; the bound (at
// this K) never rises.
void star_update(const Topology& top, const Potentials& potentials, std::size_t variable, double* delta,
                 Scratch& scratch, double inverse_temperature = hard_maximum);

// Sweeps over all variables, forwards and backwards in turn; returns the bound (at the given K) of the
// messages left in `delta`. Binary pairwise graphs take a shorter way at K = ∞ that keeps one number per
// message, its difference between the states; they leave centred messages, δ(1) = −δ(0).
double diffuse(const Topology& top, const MessagePlan& plan, const Potentials& potentials, double* delta,
               const DiffusionOptions& options, Scratch& scratch);
// The same for one large graph on all threads, in the order of colours: the same bits as the serial form in
// that order, at any number of threads. Not to be called from within another of the arena's blocks. One
// scratch per thread.
double diffuse(const Topology& top, const MessagePlan& plan, const Potentials& potentials, double* delta,
               const DiffusionOptions& options, Arena& arena, std::span<Scratch> workers);

// A good labelling read from the messages; returns its score. Two candidates, each improved by iterated
// conditional modes, the better one kept: the best state of every θ̂_i with ties resolved by conditioning on
// what is already fixed, and conditioning throughout. Exact on forests once the messages have converged.
double decode(const Topology& top, const MessagePlan& plan, const Potentials& potentials, const double* delta,
              Scratch& scratch, std::span<std::uint32_t> labels);

}  // namespace margrave
