#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "margrave/model.hpp"

namespace margrave {
namespace {

Model small_model() {
  Template node = make_template("node", {2}, 3);
  node.state_names = {"no", "yes"};
  node.input_names = {"x", "y", "tab\there"};
  Model model;
  model.templates = TemplateSet(
      {node, make_template("edge", {2, 2}, 1), make_template("cost", {2, 2}, 1, WeightRows::potts),
       make_template("triple", {2, 2, 2}, 1, WeightRows::explicit_, {0, 1, 1, 1, -1, 1, 1, 2})});
  model.weights.resize(model.templates.storage());
  double next = 0.1;
  for (const Template& t : model.templates)
    for (std::uint64_t d = 0; d < t.inputs; ++d)
      for (std::uint64_t r = 0; r < t.rows; ++r) {
        model.weights[t.offset + d * t.stride + r] = next;
        next = -next - 0.1;
      }
  return model;
}

std::string text_of(const Model& model, const DumpOptions& options = {}) {
  std::string text;
  dump_text(model, options, [&](std::string_view piece) { text += piece; });
  return text;
}

TEST(Dump, NamesEveryWeightOnALineOfItsOwn) {
  EXPECT_EQ(text_of(small_model()),
            "node\tno\tx\t0.10000000000000001\n"
            "node\tno\ty\t0.10000000000000001\n"
            "node\tno\ttab\\there\t0.10000000000000001\n"
            "node\tyes\tx\t-0.20000000000000001\n"
            "node\tyes\ty\t-0.20000000000000001\n"
            "node\tyes\ttab\\there\t-0.20000000000000001\n"
            "edge\tno,no\t0\t0.10000000000000001\n"
            "edge\tno,yes\t0\t-0.20000000000000001\n"
            "edge\tyes,no\t0\t0.10000000000000001\n"
            "edge\tyes,yes\t0\t-0.20000000000000001\n"
            "cost\tdifferent\t0\t0.10000000000000001\n"
            "triple\tno,no,no\t0\t-0.20000000000000001\n"
            "triple\tno,no,yes|no,yes,no|no,yes,yes|yes,no,yes|yes,yes,no\t0\t0.10000000000000001\n"
            "triple\tyes,yes,yes\t0\t-0.20000000000000001\n");
}

TEST(Dump, KeepsEveryBitOfAWeight) {
  Model model;
  model.templates = TemplateSet({make_template("node", {1}, 1)});
  model.weights.assign(model.templates.storage(), 0);
  model.weights[0] = std::nextafter(1.0 / 3.0, 1.0);
  const std::string text = text_of(model);
  EXPECT_EQ(std::stod(text.substr(text.rfind('\t'))), model.weights[0]);
}

TEST(Dump, TopListsTheLargestOfEachRowFirst) {
  Model model;
  model.templates = TemplateSet({make_template("node", {2}, 4)});
  model.weights.assign(model.templates.storage(), 0);
  const double rows[2][4] = {{0.5, -3, 2, 0}, {1, 1, -1, 0}};
  for (std::uint64_t r = 0; r < 2; ++r)
    for (std::uint64_t d = 0; d < 4; ++d) model.weights[d * model.templates[0].stride + r] = rows[r][d];
  EXPECT_EQ(text_of(model, {.top = 2}), "node\t0\t1\t-3\nnode\t0\t2\t2\nnode\t1\t0\t1\nnode\t1\t1\t1\n");
  EXPECT_EQ(text_of(model, {.top = 0, .nonzero = true}),
            "node\t0\t0\t0.5\nnode\t0\t1\t-3\nnode\t0\t2\t2\nnode\t1\t0\t1\nnode\t1\t1\t1\nnode\t1\t2\t-1\n");
}

TEST(Dump, TopListsTheStrongestTransitionsOfAll) {
  Template tag = make_template("tag", {3}, 1);
  tag.state_names = {"O", "B-X", "I-X"};
  Model model;
  model.templates = TemplateSet({tag, make_template("transition", {3, 3}, 2)});
  model.weights.assign(model.templates.storage(), 0);
  const auto set = [&](std::uint64_t row, std::uint64_t input, double w) {
    model.weights[model.templates[1].offset + input * model.templates[1].stride + row] = w;
  };
  set(5, 0, 4);   // B-X, I-X
  set(2, 1, -5);  // O, I-X
  set(8, 0, 3);   // I-X, I-X
  EXPECT_EQ(text_of(model, {.top = 2, .nonzero = true}),
            "transition\tO -> I-X\t1\t-5\ntransition\tB-X -> I-X\t0\t4\n");
  EXPECT_EQ(text_of(model, {.nonzero = true}),
            "transition\tO,I-X\t1\t-5\ntransition\tB-X,I-X\t0\t4\ntransition\tI-X,I-X\t0\t3\n");
}

TEST(Dump, JsonHoldsTheSameWeightsAndTheProvenance) {
  Model model = small_model();
  model.provenance = R"({"epochs":3})";
  std::string text;
  dump_json(model, {}, [&](std::string_view piece) { text += piece; });
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["provenance"]["epochs"], 3);
  ASSERT_EQ(json["weights"].size(), model.templates.dimension());
  EXPECT_EQ(json["weights"][0]["value"], 0.1);
  EXPECT_EQ(json["weights"][2]["input"], "tab\there");
  EXPECT_EQ(json["weights"][7]["states"], "no,yes");
}

}  // namespace
}  // namespace margrave
