// Flows that are their own mirror images against the least cut, and against flows of the same network that
// are not.
#include "inference/mirror_flow.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"

namespace margrave::testing {
namespace {

struct SignedNetwork {
  std::vector<double> charge;
  std::vector<std::vector<double>> coupling;  // below 0: to the opposite node
  std::size_t size() const { return charge.size(); }
};

SignedNetwork draw_network(Random& random, std::size_t n, bool whole, bool frustrated) {
  const auto draw = [&] { return whole ? static_cast<double>(random.below(7)) - 3 : random.normal(); };
  SignedNetwork network{std::vector<double>(n), {n, std::vector<double>(n, 0.0)}};
  for (std::size_t i = 0; i < n; ++i) {
    network.charge[i] = 2 * draw();
    for (std::size_t j = 0; j < i; ++j) {
      const double w = random.below(4) == 0 ? 0 : draw();
      network.coupling[i][j] = network.coupling[j][i] = frustrated ? -std::abs(w) : w;
    }
  }
  return network;
}

MirrorFlow flow_of(const SignedNetwork& network, std::vector<double>& residual) {
  residual.resize(MirrorFlow::cells);
  MirrorFlow flow(residual.data());
  for (std::size_t i = 0; i < network.size(); ++i) {
    NodeSet next = 0;
    for (std::size_t j = 0; j < network.size(); ++j) {
      const double w = network.coupling[i][j];
      if (w != 0) next |= MirrorFlow::bit(w > 0 ? j : MirrorFlow::opposite(j));
    }
    flow.add(i, network.charge[i], network.coupling[i].data(), network.size(), next);
  }
  return flow;
}

// Of all sets of nodes, what would have to pass from the set to the others.
double least_cut(const SignedNetwork& network) {
  const std::size_t n = network.size();
  double least = INFINITY;
  for (std::size_t cut = 0; cut < std::size_t{1} << (2 * n); ++cut) {
    const auto inside = [&](std::size_t i, bool opposite) {
      return (cut >> (opposite ? n + i : i) & 1U) != 0;
    };
    double value = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (const bool side : {false, true}) {
        const double sends = side ? -network.charge[i] : network.charge[i];
        value += inside(i, side) ? std::max(0.0, -sends) : std::max(0.0, sends);
        for (std::size_t j = 0; j < n; ++j)
          if (inside(i, side) && !inside(j, side != (network.coupling[i][j] < 0)))
            value += std::abs(network.coupling[i][j]);
      }
    }
    least = std::min(least, value);
  }
  return least;
}

TEST(MirrorFlow, EqualsTheLeastCutAndKeepsWithinCapacities) {
  for (std::uint64_t repeat = 0; repeat < 400; ++repeat) {
    Random random(341, repeat);
    const SignedNetwork network = draw_network(random, 1 + random.below(5), repeat % 2 == 0, repeat % 3 == 0);
    std::vector<double> residual;
    MirrorFlow flow = flow_of(network, residual);
    flow.run(1e-15);
    double sent = 0;
    for (std::size_t i = 0; i < network.size(); ++i) {
      double out = 0;
      for (std::size_t j = 0; j < network.size(); ++j) {
        const double w = network.coupling[i][j];
        if (w == 0) continue;
        const double f = flow.carried(i, j);
        ASSERT_LE(std::abs(f), std::abs(w) + 1e-15) << repeat;
        ASSERT_EQ(flow.carried(j, i), w > 0 ? -f : f) << repeat;
        out += f;
      }
      const double left = std::copysign(flow.left(i), network.charge[i]);
      ASSERT_GE(flow.left(i), 0);
      ASSERT_NEAR(network.charge[i] - out, left, 1e-13) << repeat;
      sent += std::abs(network.charge[i]) - flow.left(i);
    }
    ASSERT_NEAR(sent, least_cut(network), 1e-12) << repeat;
  }
}

// As many variables as there can be: no way is left from what sends to what takes.
TEST(MirrorFlow, LeavesNoWayInLargeNetworks) {
  for (std::uint64_t repeat = 0; repeat < 60; ++repeat) {
    Random random(342, repeat);
    const SignedNetwork network =
        draw_network(random, 32 - random.below(3), repeat % 2 == 0, repeat % 3 == 0);
    std::vector<double> residual;
    MirrorFlow flow = flow_of(network, residual);
    flow.run(1e-14);
    const NodeSet sources = flow.sources(1e-14);
    const NodeSet reached = flow.reach(sources, ~NodeSet{0}, 1e-14);
    ASSERT_EQ(reached & MirrorFlow::mirror(reached), 0U) << repeat;
    for (std::size_t i = 0; i < network.size(); ++i) {
      double left = network.charge[i];
      for (std::size_t j = 0; j < network.size(); ++j)
        if (network.coupling[i][j] != 0) left -= flow.carried(i, j);
      ASSERT_NEAR(std::abs(left), flow.left(i), 1e-11) << repeat;
    }
  }
}

}  // namespace
}  // namespace margrave::testing
