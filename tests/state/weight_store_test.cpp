#include "state/weight_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "state/weight_accumulator.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"
#include "support/sanitizers.hpp"

namespace margrave::test {
namespace {

// Wide enough for many shards: templates of different strides, dense, sparse and unit inputs.
Dataset wide_problem() {
  DatasetBuilder b{
      TemplateSet({make_template("wide", {7}, 900), make_template("one-row", {2, 2}, 3000, WeightRows::potts),
                   make_template("narrow", {2}, 2)})};
  Random random(31);
  for (int m = 0; m < 6; ++m) {
    b.begin_example();
    for (int i = 0; i < 2; ++i) {
      std::vector<float> x(900);
      for (float& v : x) v = i == 0 || random.below(9) == 0 ? static_cast<float>(random.normal()) : 0.0F;
      b.add_variable(0, b.add_dense(x), static_cast<std::int32_t>(random.below(7)));
    }
    for (int i = 0; i < 2; ++i)
      b.add_variable(2, b.add_dense(std::vector<float>{1, static_cast<float>(m)}), i);
    std::vector<std::uint32_t> index;
    for (std::uint32_t d = 0; d < 3000; ++d)
      if (random.below(10) == 0) index.push_back(d);
    b.add_factor(1, b.add_sparse(3000, index, std::vector<float>(index.size(), 1.0F)),
                 std::vector<std::uint32_t>{2, 3});
    b.end_example();
  }
  return b.finish();
}

std::vector<CliqueChange> random_changes(Random& random, const Dataset& data, std::size_t n) {
  std::vector<CliqueChange> changes;
  while (changes.size() < n) {
    const FactorGraph g = data[random.below(data.size())];
    const std::size_t a = random.below(g.cliques());
    const std::uint32_t t = g.topology().template_of(a);
    changes.push_back({t, g.input_of(a),
                       static_cast<std::uint32_t>(random.below(data.templates()[t].joint_states())),
                       random.normal()});
  }
  return changes;
}

// w += scale·coefficient·φ from the definition.
void add_by_definition(const Dataset& data, const CliqueChange& c, double scale,
                       std::vector<long double>& w) {
  const Template& t = data.templates()[c.template_index];
  const std::int32_t row = t.row_of[c.joint];
  if (row < 0) return;
  InputView x = data.input(c.input);
  if (x.kind == InputKind::per_state) x = data.input(x.index[c.joint]);
  for (std::uint32_t n = 0; n < x.count; ++n) {
    const std::uint64_t d = x.kind == InputKind::dense ? n : x.index[n];
    const long double value = x.kind == InputKind::unit ? 1.0L : static_cast<long double>(x.value[n]);
    w[t.offset + d * t.stride + static_cast<std::uint64_t>(row)] += scale * c.coefficient * value;
  }
}

bool same_bits(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(Shards, CoverTheStorageInRunsThatStartOnCacheLines) {
  for (const std::uint64_t storage : {0U, 8U, 1024U, 2048U, 5000U * 8, 1U << 20U}) {
    const Shards shards(storage);
    EXPECT_GE(shards.size(), 1U);
    EXPECT_LE(shards.size(), 64U);
    EXPECT_EQ(shards.begin(0), 0U);
    EXPECT_EQ(shards.end(shards.size() - 1), storage);
    for (std::size_t s = 0; s < shards.size(); ++s) {
      EXPECT_EQ(shards.begin(s) % 8, 0U);
      if (s > 0) {
        EXPECT_EQ(shards.begin(s), shards.end(s - 1));
        EXPECT_LT(shards.begin(s), shards.end(s));
      }
    }
  }
}

TEST(WeightStore, CommitIsTheDefinition) {
  const auto check = [](const Dataset& data, std::uint64_t seed) {
    Random random(seed, 2);
    const auto changes = random_changes(random, data, 60);
    WeightStore store(data.templates());
    store.commit(data, changes, 0.7);
    std::vector<long double> wanted(store.size(), 0.0L);
    for (const auto& c : changes) add_by_definition(data, c, 0.7, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(store.span()[i], static_cast<double>(wanted[i]), 1e-12);
    const auto more = random_changes(random, data, 5);
    std::vector<long double> direction(store.size(), 0.0L);
    for (const auto& c : more) add_by_definition(data, c, 1, direction);
    long double product = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) product += wanted[i] * direction[i];
    EXPECT_NEAR(store.product(data, more), static_cast<double>(product), 1e-9);
  };
  for (std::uint64_t seed = 0; seed < 30; ++seed) check(random_problem(seed), seed);
  check(wide_problem(), 1);
}

TEST(WeightStore, ParallelCommitHasTheBitsOfTheSerialOne) {
  const Dataset data = wide_problem();
  Random random(33);
  const auto first = random_changes(random, data, 300);
  const auto second = random_changes(random, data, 300);
  WeightStore serial(data.templates());
  serial.commit(data, first, 0.3);
  serial.commit(data, second, -1.7);
  for (const int threads : arena_threads()) {
    Arena arena(threads);
    for (int repeat = 0; repeat < 3; ++repeat) {
      WeightStore store(data.templates());
      store.commit(arena, data, first, 0.3);
      store.commit(arena, data, second, -1.7);
      EXPECT_TRUE(same_bits(store.span(), serial.span())) << threads << " threads";
    }
  }
}

TEST(WeightStore, EveryDeterministicWriteChangesTheVersion) {
  const Dataset data = tiny_problem("chain_shared");
  Random random(34);
  Arena arena(1);
  WeightStore store(data.templates());
  const auto changes = random_changes(random, data, 3);
  std::vector<std::uint64_t> versions{store.version()};
  store.commit(data, changes, 1);
  versions.push_back(store.version());
  store.commit(arena, data, changes, 1);
  versions.push_back(store.version());
  store.assign(std::vector<double>(store.size(), 0.0));
  versions.push_back(store.version());
  for (std::size_t i = 0; i < versions.size(); ++i) {
    EXPECT_NE(versions[i], 0U);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(versions[i], versions[j]);
  }
}

TEST(WeightAccumulator, KeepsWhatPlainSumsLose) {
  const Dataset data = wide_problem();
  Random random(35);
  auto changes = random_changes(random, data, 400);
  for (auto& c : changes) c.coefficient = std::ldexp(c.coefficient, static_cast<int>(random.below(40)));
  // What was added is taken away again but for a rest: the sums are ill-conditioned.
  const std::size_t n = changes.size();
  for (std::size_t i = 0; i < n; ++i) {
    CliqueChange back = changes[i];
    back.coefficient = -back.coefficient;
    changes.push_back(back);
  }
  const auto rest = random_changes(random, data, 20);
  changes.insert(changes.end(), rest.begin(), rest.end());
  std::vector<long double> wanted(data.templates().storage(), 0.0L);
  for (const auto& c : rest) add_by_definition(data, c, 0.5, wanted);
  std::vector<double> first;
  for (const int threads : arena_threads()) {
    Arena arena(threads);
    for (const std::uint64_t range : {std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{1} << 40U}) {
      WeightAccumulator sums(data, range);
      std::vector<double> w(data.templates().storage(), 1.0);
      sums.start(w);
      sums.commit(arena, rest);  // forgotten by start()
      sums.start(w);
      sums.commit(arena, std::span(changes).first(n));
      sums.commit(arena, std::span(changes).subspan(n));
      sums.finish(arena, 0.5);
      for (std::size_t i = 0; i < w.size(); ++i)
        ASSERT_NEAR(w[i], static_cast<double>(wanted[i]),
                    1e-12 * (1 + std::abs(static_cast<double>(wanted[i]))));
      if (first.empty()) first = w;
      EXPECT_TRUE(same_bits(w, first)) << threads << " threads, ranges of " << range;
      std::fill(w.begin(), w.end(), 1.0);
      sums.start(w);  // nothing is left of what was finished
      sums.finish(arena, 0.5);
      EXPECT_TRUE(std::all_of(w.begin(), w.end(), [](double x) { return x == 0; }));
    }
  }
}

// Changes beyond what is kept are added to all cells at once: on every kind of input, in ranges of any size,
// that must not change a bit.
TEST(WeightAccumulator, KeptChangesHaveTheBitsOfThoseThatAreAddedAtOnce) {
  std::vector<std::pair<std::string, Dataset>> problems;
  problems.emplace_back("wide", wide_problem());
  for (const TinyProblem& tiny : tiny_problems()) problems.emplace_back(tiny.name, tiny.make());
  Random random(36);
  for (const auto& [name, data] : problems) {
    const std::uint64_t cells = data.templates().storage();
    const auto changes = random_changes(random, data, std::max<std::uint64_t>(1, cells / 4));
    auto nothing = random_changes(random, data, cells);  // too many to be kept
    for (CliqueChange& change : nothing) change.coefficient = 0;
    for (const int threads : arena_threads()) {
      Arena arena(threads);
      WeightAccumulator all_at_once(data);
      std::vector<double> expected(cells, 1.0);
      for (int repeat = 0; repeat < 2; ++repeat) {  // the second time over what the first one left
        all_at_once.start(expected);
        all_at_once.commit(arena, std::span(changes).first(changes.size() / 2));
        all_at_once.commit(arena, nothing);
        all_at_once.commit(arena, std::span(changes).subspan(changes.size() / 2));
        all_at_once.finish(arena, 0.3);
      }
      for (const std::uint64_t range : {std::uint64_t{1}, std::uint64_t{8}, std::uint64_t{1000}}) {
        WeightAccumulator in_ranges(data, range);
        std::vector<double> w(cells, 1.0);
        in_ranges.start(w);
        in_ranges.commit(arena, changes);
        in_ranges.finish(arena, 0.3);
        EXPECT_TRUE(same_bits(w, expected)) << name << ", " << threads << " threads, ranges of " << range;
        EXPECT_LT(in_ranges.bytes(), all_at_once.bytes() + 1);
      }
    }
  }
}

// What was added is taken away again, in another part, but for a rest.
TEST(WeightAccumulator, PartsKeepWhatPlainSumsLoseToTheSameBits) {
  EXPECT_EQ(WeightAccumulator(wide_problem()).parts(), 0U);
  const Dataset data = random_chains(37, {.examples = 400, .states = 3, .inputs = 5});
  Random random(38);
  auto changes = random_changes(random, data, 400);
  for (auto& c : changes) c.coefficient = std::ldexp(c.coefficient, static_cast<int>(random.below(40)));
  const auto rest = random_changes(random, data, 40);
  std::vector<long double> wanted(data.templates().storage(), 0.0L);
  for (const auto& c : rest) add_by_definition(data, c, 0.5, wanted);
  std::vector<double> first;
  for (const int threads : arena_threads()) {
    Arena arena(threads);
    WeightAccumulator sums(data);
    const std::size_t parts = sums.parts();
    ASSERT_GE(parts, 2U);
    std::vector<double> w(data.templates().storage(), 1.0);
    for (int repeat = 0; repeat < 2; ++repeat) {  // nothing is left of what was finished
      sums.start_parts();
      arena.for_each_block(parts, 1, [&](std::size_t part, std::size_t, int) {
        sums.start_part(part);
        for (std::size_t i = part; i < changes.size(); i += parts) sums.add(part, {&changes[i], 1});
        for (std::size_t i = (part + 1) % parts; i < changes.size(); i += parts) {
          CliqueChange back = changes[i];
          back.coefficient = -back.coefficient;
          sums.add(part, {&back, 1});
        }
        for (std::size_t i = part; i < rest.size(); i += parts) sums.add(part, {&rest[i], 1});
      });
      sums.finish_parts(arena, 0.5, w);
    }
    for (std::size_t i = 0; i < w.size(); ++i)
      ASSERT_NEAR(w[i], static_cast<double>(wanted[i]),
                  1e-12 * (1 + std::abs(static_cast<double>(wanted[i]))));
    if (first.empty()) first = w;
    EXPECT_TRUE(same_bits(w, first)) << threads << " threads";
  }
}

// The asynchronous paths, on plain threads: clean under ThreadSanitizer, and no update is lost.
TEST(WeightStoreAsync, NoUpdateIsLost) {
  const Dataset data = tiny_problem("chain_shared");
  WeightStore store(data.templates());
  constexpr int threads = 4;
  constexpr int rounds = 20'000;
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t) {
    team.emplace_back([&store, t] {
      for (int i = 0; i < rounds; ++i) store.add(static_cast<std::uint64_t>(i % 4), t + 1);
    });
  }
  for (auto& thread : team) thread.join();
  for (std::uint64_t cell = 0; cell < 4; ++cell)
    EXPECT_EQ(store.load(cell), rounds / 4 * (1 + 2 + 3 + 4));  // integers: exact in any order
}

// `given` are the changes in any form that commit() takes: the definition, and the same bits at any number of
// threads.
template <class Given>
void expect_committed(const Dataset& data, std::span<const CliqueChange> changes, const Given& given) {
  std::vector<long double> wanted(data.templates().storage(), 0.0L);
  for (const auto& c : changes) add_by_definition(data, c, 0.5, wanted);
  std::vector<double> first;
  for (const int threads : arena_threads()) {
    Arena arena(threads);
    WeightStore store(data.templates());
    store.commit(arena, data, given, 0.5);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(store.span()[i], static_cast<double>(wanted[i]), 1e-10);
    if (threads == 1) first.assign(store.span().begin(), store.span().end());
    EXPECT_TRUE(same_bits(store.span(), first));
  }
}

// A large batch of a small model is summed in parts: the definition, and the same bits at any number of
// threads.
TEST(WeightStore, LargeBatchesAreSummedInParts) {
  const Dataset data = random_problem(7);
  Random random(5);
  const auto changes = random_changes(random, data, 3000);
  expect_committed(data, changes, changes);
}

// Lists of changes are what they are one after the other, empty ones and one that is longer than a part too.
TEST(WeightStore, ListsOfChangesAreCommittedInOrder) {
  Random random(6);
  const auto cut = [&](std::span<const CliqueChange> changes) {
    std::vector<std::vector<CliqueChange>> lists(2);
    for (std::size_t at = 0; at < changes.size();) {
      const std::size_t length =
          std::min<std::size_t>(changes.size() - at, at == 0 ? changes.size() / 3 : random.below(5));
      const auto list = changes.subspan(at, length);
      lists.emplace_back(list.begin(), list.end());
      at += length;
    }
    lists.emplace_back();
    return lists;
  };
  const auto check = [&](const Dataset& data, std::size_t count) {
    const auto changes = random_changes(random, data, count);
    const auto lists = cut(changes);
    expect_committed(data, changes, lists);
  };
  for (const std::size_t count : {200U, 3000U}) {  // by shard, and in parts
    check(random_problem(7), count);
    check(wide_problem(), count);
  }
}

// Workers exchange what they made of their copies, shard by shard.
TEST(WeightStoreAsync, ExchangedChangesAreNotLost) {
  DatasetBuilder b{TemplateSet({make_template("node", {2}, 8), make_template("edge", {2, 2}, 1)})};
  b.begin_example();
  for (int i = 0; i < 2; ++i) b.add_variable(0, b.add_dense(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}), i);
  b.add_factor(1, b.one(), std::vector<std::uint32_t>{0, 1});
  b.end_example();
  const Dataset data = b.finish();
  const FactorGraph g = data[0];
  const std::vector<CliqueChange> changes{
      {0, g.input_of(0), 0, 1.0}, {0, g.input_of(1), 1, -1.0}, {1, g.input_of(2), 3, 2.0}};
  WeightStore store(data.templates());
  std::atomic<bool> sound = true;
  constexpr int rounds = 5000;
  std::vector<std::thread> workers;
  for (std::size_t t = 0; t < 3; ++t)
    workers.emplace_back([&, t] {
      std::vector<double> own(store.size()), seen(store.size());
      store.exchange(own.data(), seen.data(), t);
      for (int i = 0; i < rounds; ++i) {
        add_changes(data, changes, 1, own.data());
        store.exchange(own.data(), seen.data(), t + static_cast<std::size_t>(i));
        if (own != seen) sound = false;
        for (const double x : own)
          if (x != std::trunc(x)) sound = false;
      }
    });
  for (auto& worker : workers) worker.join();
  EXPECT_TRUE(sound);
  std::vector<long double> wanted(store.size(), 0.0L);
  for (const auto& c : changes) add_by_definition(data, c, 3.0 * rounds, wanted);
  for (std::uint64_t i = 0; i < store.size(); ++i) EXPECT_EQ(store.load(i), static_cast<double>(wanted[i]));
  // Alone, nothing is in the way.
  std::vector<double> own(store.size(), 0.0);
  std::vector<double> seen = own;
  const AtomicAdds alone = store.exchange(own.data(), seen.data(), 5);
  EXPECT_EQ(alone.retries, 0U);
  EXPECT_GE(alone.adds, 1U);
  EXPECT_TRUE(same_bits(own, store.span()));
}

}  // namespace
}  // namespace margrave::test
