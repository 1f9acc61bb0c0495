// Dataset from columns: what a mapped file may hold, and the fingerprint.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "margrave/dataset.hpp"
#include "margrave/error.hpp"
#include "parallel/arena.hpp"
#include "support/problems.hpp"

namespace margrave::test {
namespace {

template <class T>
std::vector<T> copy_of(const Column<T>& column) {
  return {column.begin(), column.end()};
}
// The column with one element changed.
template <class T>
Column<T> with(const Column<T>& column, std::size_t at, T value) {
  auto values = copy_of(column);
  values.at(at) = value;
  return Column<T>(std::move(values));
}

Dataset base_data() {
  DatasetBuilder b{TemplateSet({make_template("node", {3}, 4), make_template("edge", {3, 3}, 2)})};
  const std::vector<float> sparse{0, 2.5F, 0, 0};
  const std::vector<float> dense{1, 2, 3, 4};
  const std::vector<float> pair{0.5F, 1.5F};
  for (int m = 0; m < 2; ++m) {
    b.begin_example("x" + std::to_string(m));
    for (int i = 0; i < 3; ++i)
      b.add_variable(0, b.add_dense(i == 1 ? sparse : dense), i, m == 0 ? 1.0F : 0.5F);
    b.add_factor(1, b.add_dense(pair), std::vector<std::uint32_t>{0, 1});
    b.add_factor(1, b.add_dense(pair), std::vector<std::uint32_t>{2, 1});
    b.end_example();
  }
  return b.finish();
}

TEST(Dataset, TakesItsOwnColumnsBack) {
  const Dataset data = base_data();
  const Dataset again(data.templates(), data.columns());
  EXPECT_EQ(again.fingerprint(), data.fingerprint());
  EXPECT_EQ(again.size(), data.size());
  EXPECT_EQ(again.id(1), "x1");
}

TEST(Dataset, RefusesColumnsThatDoNotFitTogether) {
  const Dataset data = base_data();
  const auto refused = [&](const char* what, const std::function<void(DatasetColumns&)>& spoil) {
    DatasetColumns c = data.columns();
    spoil(c);
    EXPECT_THROW(Dataset(data.templates(), c), UsageError) << what;
    Arena arena(3);
    EXPECT_THROW(Dataset(data.templates(), c, 17, arena), UsageError) << what;
  };
  using Input = DatasetColumns::Input;
  using Example = DatasetColumns::Example;
  const auto spoil_input = [](const std::function<void(Input&)>& f) {
    return [f](DatasetColumns& c) {
      for (std::size_t i = 0; i < c.inputs.size(); ++i) {
        Input in = c.inputs[i];
        f(in);
        c.inputs = with(c.inputs, i, in);
      }
    };
  };
  const auto spoil_example = [](const std::function<void(Example&)>& f) {
    return [f](DatasetColumns& c) {
      Example e = c.examples[1];
      f(e);
      c.examples = with(c.examples, 1, e);
    };
  };
  refused("label too large", [](auto& c) { c.label = with(c.label, 2, std::int32_t{3}); });
  refused("label too small", [](auto& c) { c.label = with(c.label, 2, std::int32_t{-2}); });
  refused("missing label", [](auto& c) { c.label = Column<std::int32_t>(std::vector<std::int32_t>{0}); });
  refused("input number", [](auto& c) { c.variable_input = with(c.variable_input, 0, 99U); });
  refused("factor input", [](auto& c) { c.factor_input = with(c.factor_input, 0, 99U); });
  refused("scope", [](auto& c) { c.topology_scope = with(c.topology_scope, 0, 3U); });
  refused("self-loop", [](auto& c) { c.topology_scope = with(c.topology_scope, 0, 1U); });
  refused("template", [](auto& c) { c.topology_factor_template = with(c.topology_factor_template, 0, 2U); });
  refused("variable template",
          [](auto& c) { c.topology_variable_template = with(c.topology_variable_template, 0, 1U); });
  refused("scope runs",
          [](auto& c) { c.topology_scope_begin = with(c.topology_scope_begin, 1, std::uint64_t{9}); });
  refused("nan", [](auto& c) { c.value = with(c.value, 0, std::numeric_limits<float>::quiet_NaN()); });
  refused("loss", [](auto& c) { c.loss = with(c.loss, 0, -1.0F); });
  refused("index", [](auto& c) { c.index = with(c.index, 0, 4U); });
  refused("names", [](auto& c) { c.id_begin = with(c.id_begin, 2, std::uint64_t{3}); });
  refused("kind", spoil_input([](Input& in) { in.kind = static_cast<InputKind>(7); }));
  refused("count", spoil_input([](Input& in) { in.count += 1; }));
  refused("value run", spoil_input([](Input& in) { in.value_begin = ~0ULL; }));
  refused("index run", spoil_input([](Input& in) { in.index_begin = ~0ULL - 1; }));
  refused("shape", spoil_example([](Example& e) { e.topology = 1; }));
  refused("variables", spoil_example([](Example& e) { e.variable_begin = 4; }));
  refused("factors", spoil_example([](Example& e) { e.factor_begin = 1; }));
  refused("losses", spoil_example([](Example& e) { e.loss_begin = 1; }));
}

TEST(Dataset, FingerprintDependsOnEveryColumnAndTemplate) {
  const Dataset data = base_data();
  std::set<std::uint64_t> seen{data.fingerprint()};
  const auto changed = [&](const char* what, const std::function<void(DatasetColumns&)>& change) {
    DatasetColumns c = data.columns();
    change(c);
    EXPECT_TRUE(seen.insert(Dataset(data.templates(), c).fingerprint()).second) << what;
  };
  changed("label", [](auto& c) { c.label = with(c.label, 1, std::int32_t{0}); });
  changed("unlabelled", [](auto& c) { c.label = with(c.label, 1, unlabelled); });
  changed("value", [](auto& c) { c.value = with(c.value, 2, 1.25F); });
  changed("loss", [](auto& c) { c.loss = with(c.loss, 1, 0.25F); });
  changed("index", [](auto& c) { c.index = with(c.index, 0, 2U); });
  changed("input of a variable",
          [](auto& c) { c.variable_input = with(c.variable_input, 0, c.variable_input[1]); });
  changed("scope", [](auto& c) {
    c.topology_scope = with(c.topology_scope, 0, 2U);
    c.topology_scope = with(c.topology_scope, 1, 0U);
  });
  for (const auto& templates :
       {TemplateSet({make_template("nod", {3}, 4), make_template("edge", {3, 3}, 2)}),
        TemplateSet({make_template("node", {3}, 4), make_template("edge", {3, 3}, 2, WeightRows::potts)}),
        TemplateSet({make_template("node", {3}, 4, WeightRows::explicit_, {0, 1, 1}),
                     make_template("edge", {3, 3}, 2)})})
    EXPECT_TRUE(seen.insert(Dataset(templates, data.columns()).fingerprint()).second);
  EXPECT_EQ(base_data().fingerprint(), data.fingerprint());
}

TEST(Dataset, AGivenFingerprintIsKeptAndTheColumnsAreCheckedAllTheSame) {
  const Dataset data = base_data();
  Arena arena(3);
  EXPECT_EQ(Dataset(data.templates(), data.columns(), 17, arena).fingerprint(), 17U);
  DatasetColumns c = data.columns();
  c.value = with(c.value, 2, std::numeric_limits<float>::infinity());
  EXPECT_THROW(Dataset(data.templates(), c, 17, arena), UsageError);
}

TEST(Dataset, OfNothingIsEmpty) {
  const Dataset data;
  EXPECT_EQ(data.size(), 0U);
  DatasetBuilder b{TemplateSet({make_template("node", {3}, 4)})};
  EXPECT_EQ(b.finish().size(), 0U);
}

TEST(Topology, MessagesOfAVariableNameItsScopeEntries) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Dataset data = random_problem(seed);
    for (std::size_t t = 0; t < data.topologies(); ++t) {
      const Topology& top = data.topology(t);
      std::size_t named = 0;
      for (std::size_t v = 0; v < top.variables(); ++v) {
        const auto factors = top.factors_of(v);
        const auto entries = top.messages_of(v);
        ASSERT_EQ(entries.size(), factors.size());
        for (std::size_t n = 0; n < entries.size(); ++n) {
          EXPECT_EQ(top.scope[entries[n]], v);
          EXPECT_GE(entries[n], top.scope_begin[factors[n]]);
          EXPECT_LT(entries[n], top.scope_begin[factors[n] + 1]);
          EXPECT_EQ(top.message_offset[entries[n] + 1] - top.message_offset[entries[n]], top.states[v]);
        }
        named += entries.size();
      }
      EXPECT_EQ(named, top.scope.size());
    }
  }
}

}  // namespace
}  // namespace margrave::test
