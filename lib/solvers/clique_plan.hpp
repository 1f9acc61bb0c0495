// How the cliques of an example are handed out: parts, each the work of one task.
//
// A small example is one part. A large one is cut into parts of neighbouring variables, each with the factors
// whose first variable it holds. A part's task changes the marginals of its own cliques and reads the
// messages between them and their neighbours; parts that share a message have different colours and never run
// at once.
#pragma once

#include <cstdint>
#include <vector>

#include "margrave/dataset.hpp"
#include "state/clique_layout.hpp"

namespace margrave {

// Cliques, cells and messages are numbered anew within a part, so that a worker's memory is as large as a
// part.
struct CliquePart {
  std::vector<std::uint32_t> cliques;        // numbers in the example; variables first
  std::size_t variables = 0;                 // how many of them are variables
  std::vector<std::uint64_t> cell_begin;     // cliques + 1
  std::vector<std::uint32_t> entries;        // scope entries whose messages the part sees, increasing
  std::vector<std::uint64_t> entry_begin;    // entries + 1: first cell of each message
  std::vector<std::uint32_t> message_begin;  // cliques + 1, into `message`
  std::vector<std::uint32_t> message;        // places in `entries` of each clique's messages, in scope order
  std::vector<std::uint32_t> outside;        // factors of other parts that messages come from, increasing
  std::vector<std::uint32_t> outside_entries;  // places in `entries` whose variables belong to other parts
  std::uint32_t colour = 0;

  std::uint64_t cells() const { return cell_begin.back(); }
  std::uint64_t message_cells() const { return entry_begin.back(); }
};

struct CliquePlan {
  std::vector<CliquePart> parts;
  std::uint32_t colours = 1;
};

// Cuts shapes with more than `most_cells` cells into parts of about `part_cells`.
CliquePlan plan_cliques(const Topology& top, const CliqueLayout& layout,
                        std::uint64_t most_cells = std::uint64_t{1} << 16U,
                        std::uint64_t part_cells = std::uint64_t{1} << 12U);

}  // namespace margrave
