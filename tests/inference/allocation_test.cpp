// Counts every allocation of this executable.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "inference/oracle.hpp"
#include "inference/random_graphs.hpp"
#include "inference/relaxations.hpp"

namespace {
std::atomic<std::size_t> allocations{0};

void* counted(std::size_t size, std::size_t alignment) {
  ++allocations;
  void* p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
}  // namespace

void* operator new(std::size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
// The standard library's temporary buffers take this form.
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t /*size*/) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t /*alignment*/) noexcept { std::free(p); }
void operator delete(void* p, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept { std::free(p); }

namespace margrave::testing {
namespace {

TEST(Exact, AllocatesNothingAfterWarmUp) {
  for (const Shape shape : {Shape::independent, Shape::chain, Shape::forest, Shape::general}) {
    Random random(61, static_cast<std::uint64_t>(shape));
    const Problem problem = random_problem(random, {.shape = shape, .variables = 7, .examples = 20});
    const auto oracle = make_exact_oracle(problem.data);
    Potentials potentials;
    Scratch scratch;
    std::vector<std::uint32_t> labels(7);
    std::size_t cells = 0;
    for (std::size_t m = 0; m < problem.data.size(); ++m)
      cells = std::max<std::size_t>(cells, problem.data[m].topology().cells());
    std::vector<double> marginals(cells);
    const auto pass = [&](std::uint64_t version) {
      for (std::size_t m = 0; m < problem.data.size(); ++m) {
        const FactorGraph graph = problem.data[m];
        potentials.fill(problem.data, graph, problem.weights.data(), version);
        potentials.add_loss(graph, 0.1);
        oracle->argmax(graph, potentials, scratch, labels);
        oracle->marginals(graph, potentials, scratch, marginals);
        if (version == 3) potentials.scale(1000);  // the log domain as well
        oracle->marginals(graph, potentials, scratch, marginals);
      }
    };
    pass(3);
    pass(2);
    const std::size_t before = allocations;
    EXPECT_GT(before, 0U);
    pass(3);
    pass(2);
    EXPECT_EQ(allocations, before) << "shape " << static_cast<int>(shape);
  }
}

TEST(Msd, AllocatesNothingAfterWarmUp) {
  for (const std::uint32_t states : {0U, 2U}) {
    Random random(62, states);
    const Problem problem =
        random_problem(random, {.shape = Shape::general, .variables = 7, .states = states, .examples = 20});
    const auto oracle = make_msd_oracle(problem.data, {.inverse_temperature = 10});
    Potentials potentials;
    Scratch scratch;
    std::vector<std::uint32_t> labels(7);
    const auto pass = [&] {
      for (std::size_t m = 0; m < problem.data.size(); ++m) {
        potentials.fill(problem.data, problem.data[m], problem.weights.data(), 1);
        oracle->solve(problem.data[m], potentials, scratch, labels);
      }
    };
    pass();
    const std::size_t before = allocations;
    pass();
    EXPECT_EQ(allocations, before);
  }
}

TEST(RoofDual, AllocatesNothingAfterWarmUp) {
  for (const Couplings couplings : {Couplings::any, Couplings::submodular}) {
    Random random(63, static_cast<std::uint64_t>(couplings));
    Scored scored = random_binary(random, 20, couplings);
    const auto oracle = make_roof_dual_oracle(scored.data);
    std::vector<std::uint32_t> labels(scored.top().variables());
    std::vector<double> delta(scored.top().message_cells() + 1);
    std::vector<Mass> masses;
    const auto pass = [&] {
      oracle->solve(scored.graph(), scored.potentials, scored.scratch, labels);
      oracle->maximise(scored.graph(), scored.potentials, scored.scratch, masses);
      oracle->vertex(scored.graph(), scored.potentials, scored.scratch, labels, masses);
      oracle->messages(scored.graph(), scored.potentials, scored.scratch, delta.data());
      oracle->bound(scored.graph(), scored.potentials, scored.scratch);
    };
    pass();
    const std::size_t before = allocations;
    pass();
    EXPECT_EQ(allocations, before);
  }
}

}  // namespace
}  // namespace margrave::testing
