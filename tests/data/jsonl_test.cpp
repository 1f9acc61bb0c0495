#include <gtest/gtest.h>

#include "tests/data/expect_input_error.hpp"

namespace margrave::test {
namespace {

const std::string header =
    R"({"format":"margrave-jsonl","version":1,"templates":{"node":{"states":[3],"inputs":4,"weights":"full"},)"
    R"("edge":{"states":[3,3],"inputs":1,"weights":"potts"},"triple":{"states":[3,3,3],"weights":"equal"},)"
    R"("some":{"states":[2],"weights":{"rows":[-1,0]}},"wide":{"states":[3,2],"inputs":2}}})"
    "\n";

DataFile read_text(const std::string& text, const ReadOptions& options = {},
                   const TemplateSet* templates = nullptr) {
  const ScratchFolder folder;
  return read_data(folder.write("a", text), options, templates);
}

std::vector<float> dense(const Dataset& data, std::uint32_t number, std::size_t length) {
  std::vector<float> out(length, 0.0F);
  const InputView x = data.input(number);
  for (std::uint32_t n = 0; n < x.count; ++n)
    out[x.kind == InputKind::dense ? n : x.index[n]] = x.kind == InputKind::unit ? 1.0F : x.value[n];
  return out;
}

TEST(Jsonl, ReadsEverythingTheFormatCanSay) {
  const DataFile file = read_text(
      header +
      R"( { "factors" : [{"variables":[0,1],"template":"edge"},{"template":"triple","variables":[2,0,1],"x":[2]},)"
      R"({"template":"wide","variables":[1,3],"x":{"per_state":[[1,2],[3,4],{"index":[1],"value":[5]},[0,0],[1,1],[9,9]]}}],)"
      R"("id":"a\u00fc\ud83d\ude00\n","variables":[{"x":[1,-2.5e0,0,1e-3],"label":2,"template":"node"},)"
      R"({"template":"node","label":null,"x":{"index":[0,3],"value":[0.5,7]}},{"template":"node","label":0,"loss":0.5,"x":[0,0,0,0]},)"
      R"({"template":"some","label":1}]})"
      "\n");
  EXPECT_EQ(file.format, "jsonl");
  EXPECT_TRUE(file.warnings.empty());
  const Dataset& data = file.data;
  ASSERT_EQ(data.size(), 1U);
  EXPECT_EQ(data.id(0), "a\u00fc\U0001F600\n");
  const FactorGraph graph = data[0];
  ASSERT_EQ(graph.variables(), 4U);
  ASSERT_EQ(graph.factors(), 3U);
  EXPECT_EQ(graph.label(0), 2);
  EXPECT_EQ(graph.label(1), unlabelled);
  EXPECT_FALSE(data.fully_labelled());
  EXPECT_EQ(graph.loss(2), 0.5F);
  EXPECT_EQ(dense(data, graph.input_of(0), 4), (std::vector<float>{1, -2.5F, 0, 1e-3F}));
  EXPECT_EQ(dense(data, graph.input_of(1), 4), (std::vector<float>{0.5F, 0, 0, 7}));
  EXPECT_EQ(dense(data, graph.input_of(3), 1), (std::vector<float>{1}));
  EXPECT_EQ(dense(data, graph.input_of(5), 1), (std::vector<float>{2}));
  EXPECT_EQ(graph.topology().scope_of(1)[0], 2U);
  const InputView per_state = data.input(graph.input_of(6));
  ASSERT_EQ(per_state.kind, InputKind::per_state);
  EXPECT_EQ(dense(data, per_state.index[2], 2), (std::vector<float>{0, 5}));
  EXPECT_EQ(data.templates()[3].row_of, (std::vector<std::int32_t>{-1, 0}));
}

TEST(Jsonl, DropsUnlabelledVariablesAndTheirFactorsOnRequest) {
  const std::string text =
      header +
      R"({"variables":[{"template":"some","label":1},{"template":"node","label":null,"x":[1,2,3,4]},)"
      R"({"template":"node","label":2,"x":[1,2,3,4]},{"template":"node","label":1,"x":[0,2,3,4]}],)"
      R"("factors":[{"template":"edge","variables":[1,2]},{"template":"edge","variables":[3,2]}]})"
      "\n"
      R"({"variables":[{"template":"some","label":null}]})";
  ReadOptions options;
  options.drop_unlabelled = true;
  const DataFile file = read_text(text, options);
  ASSERT_EQ(file.data.size(), 1U);
  EXPECT_TRUE(file.data.fully_labelled());
  ASSERT_EQ(file.data[0].variables(), 3U);
  ASSERT_EQ(file.data[0].factors(), 1U);
  EXPECT_EQ(file.data[0].topology().scope_of(0)[0], 2U);
  EXPECT_EQ(file.data[0].topology().scope_of(0)[1], 1U);
  EXPECT_EQ(file.warnings.size(), 1U);
  expect_input_error(header + R"({"variables":[{"template":"some","label":null}]})", options, 0, 0,
                     "no examples");
}

TEST(Jsonl, WarnsOfUnknownKeysAndSkipsThem) {
  const DataFile file = read_text(
      header +
      R"({"meta":{"a":[1,{"b":null}],"c":"}"},"variables":[{"template":"some","label":1,"lable":[]}]})");
  ASSERT_EQ(file.warnings.size(), 2U);
  EXPECT_NE(file.warnings[0].find(":2:9: unknown key \"meta\""), std::string::npos) << file.warnings[0];
  std::string many = header;
  for (int m = 0; m < 100; ++m) many += "{\"k\":0,\"variables\":[{\"template\":\"some\",\"label\":1}]}\n";
  EXPECT_EQ(read_text(many).warnings.size(), 25U);
  EXPECT_NE(read_text(many).warnings.back().find("76 more"), std::string::npos);
}

TEST(Jsonl, NamesThePlaceOfWhatIsWrong) {
  const ReadOptions options;
  const auto example = [](const std::string& text) { return header + text; };
  const auto variable = [](const std::string& text) { return header + R"({"variables":[)" + text + "]}"; };
  expect_input_error(header, options, 0, 0, "no examples");
  expect_input_error(R"({"templates":{}})", options, 1, 1, "header");
  expect_input_error(R"({"format":"other"})", options, 1, 11, "margrave-jsonl");
  expect_input_error(R"({"format":"margrave-jsonl","version":2})", options, 1, 38, "version 2");
  expect_input_error(R"({"format":"margrave-jsonl","version":1,"templates":{"a":{"states":[]}}})", options, 1,
                     57, "states");
  expect_input_error(
      R"({"format":"margrave-jsonl","version":1,"templates":{"a":{"states":[2],"weights":"x"}}})", options, 1,
      81, "potts");
  expect_input_error(
      R"({"format":"margrave-jsonl","version":1,"templates":{"a":{"states":[2]},"a":{"states":[2]}}})",
      options, 1, 76, "twice");
  expect_input_error(
      R"({"format":"margrave-jsonl","version":1,"templates":{"a":{"states":[2],"weights":{"rows":[0]}}}})",
      options, 1, 57, "row");
  expect_input_error(R"({"format":"margrave-jsonl","version":1,"templates":{"a":{"states":[9999,9999]}}})",
                     options, 1, 57, "joint states");
  expect_input_error(example("{\"variables\":[]}"), options, 2, 1, "at least one variable");
  expect_input_error(example("{}"), options, 2, 1, "at least one variable");
  expect_input_error(variable(R"({"template":"nod"})"), options, 2, 27, "no template \"nod\"");
  expect_input_error(variable(R"({"label":1})"), options, 2, 15, "\"template\"");
  expect_input_error(variable(R"({"template":"edge"})"), options, 2, 15, "single variable");
  expect_input_error(variable(R"({"template":"some","label":2})"), options, 2, 42, "out of range");
  expect_input_error(variable(R"({"template":"some","label":-1})"), options, 2, 42,
                     "null where it is unknown");
  expect_input_error(variable(R"({"template":"some","label":1.5})"), options, 2, 42, "whole number");
  expect_input_error(variable(R"({"template":"some","label":1e12})"), options, 2, 42, "out of range");
  expect_input_error(variable(R"({"template":"some","label":1e300})"), options, 2, 42, "whole number");
  expect_input_error(variable(R"({"template":"some","label":99999999999999999999})"), options, 2, 42,
                     "too large");
  expect_input_error(variable(R"({"template":"node","label":1})"), options, 2, 15, "\"x\" is missing");
  expect_input_error(variable(R"({"template":"node","x":[1,2,3]})"), options, 2, 38, "3 inputs");
  expect_input_error(variable(R"({"template":"node","x":[1,NaN,3,4]})"), options, 2, 41, "finite");
  expect_input_error(variable(R"({"template":"node","x":[1,1e99,3,4]})"), options, 2, 41, "too large");
  expect_input_error(variable(R"({"template":"node","x":[01,2,3,4]})"), options, 2, 40, "comma");
  expect_input_error(variable(R"({"template":"node","x":[1.,2,3,4]})"), options, 2, 39, "number");
  expect_input_error(variable(R"({"template":"node","x":{"index":[1,1],"value":[1,1]}})"), options, 2, 50,
                     "twice");
  expect_input_error(variable(R"({"template":"node","x":{"index":[2,1],"value":[1,1]}})"), options, 2, 50,
                     "increase");
  expect_input_error(variable(R"({"template":"node","x":{"index":[4],"value":[1]}})"), options, 2, 38,
                     "not below 4");
  expect_input_error(variable(R"({"template":"node","x":{"index":[1000000000000],"value":[1]}})"), options, 2,
                     48, "out of range");
  expect_input_error(variable(R"({"template":"node","x":{"index":[1],"value":[1,2]}})"), options, 2, 38,
                     "as many");
  expect_input_error(variable(R"({"template":"node","x":{"per_state":[[1,2,3,4]]}})"), options, 2, 38,
                     "joint states");
  expect_input_error(variable(R"({"template":"node","x":{"per_state":[{"per_state":[]}]}})"), options, 2, 65,
                     "per_state");
  expect_input_error(variable(R"({"template":"some","loss":-1})"), options, 2, 41, "at least 0");
  const std::string two =
      R"({"variables":[{"template":"node","x":[1,2,3,4]},{"template":"node","x":[1,2,3,4]}],"factors":[)";
  expect_input_error(example(two + R"({"template":"edge","variables":[0,0]}]})"), options, 2, 126, "twice");
  expect_input_error(example(two + R"({"template":"edge","variables":[0,2]}]})"), options, 2, 126,
                     "does not exist");
  expect_input_error(example(two + R"({"template":"edge","variables":[0]}]})"), options, 2, 126,
                     "two or more");
  expect_input_error(example(two + R"({"template":"triple","variables":[0,1]}]})"), options, 2, 128,
                     "3 variables");
  expect_input_error(example(two + R"({"template":"wide","variables":[0,1],"x":[1,2]}]})"), options, 2, 126,
                     "states");
  expect_input_error(example(two + R"({"variables":[0,1]}]})"), options, 2, 95, "\"template\"");
  expect_input_error(example(two + R"({"template":"edge"}]})"), options, 2, 95, "\"variables\"");
  expect_input_error(example("[1]"), options, 2, 1, "object");
  expect_input_error(example("{\"variables\":[{\"template\":\"some\"}]"), options, 2, 35, "ends");
  expect_input_error(example("{\"variables\":[{\"template\":\"some\"}]} x"), options, 2, 37, "goes on");
  expect_input_error(example("{\"id\":\"\xff\"}"), options, 2, 8, "UTF-8");
  expect_input_error(example("{\"id\":\"\\ud800\"}"), options, 2, 8, "surrogate");
  expect_input_error(example("{\"a\":" + std::string(100000, '[')), options, 2, 70, "deeper");
}

TEST(Jsonl, TakesAWholeNumberHoweverItIsWritten) {
  for (const char* label : {"2", "2.0", "2e0", "0.2E1", "20e-1"}) {
    const DataFile file =
        read_text(header + R"({"variables":[{"template":"node","x":[0,0,0,0],"label":)" + label + "}]}");
    EXPECT_EQ(file.data[0].label(0), 2) << label;
  }
}

TEST(Jsonl, RefusesAKeyThatIsGivenTwice) {
  const std::string start = R"({"format":"margrave-jsonl","version":1,"templates":{"a":{"states":[2])";
  expect_input_error(start + R"(,"states":[3]}}})", {}, 1, 80, "\"states\" is given twice");
  expect_input_error(start + R"(}},"version":1})", {}, 1, 83, "\"version\" is given twice");
  const std::string some = R"({"template":"some","label":0)";
  expect_input_error(header + R"({"variables":[)" + some + R"(,"label":1}]})", {}, 2, 52,
                     "\"label\" is given twice");
  expect_input_error(header + R"({"variables":[)" + some + R"(}],"variables":[]})", {}, 2, 58,
                     "\"variables\" is given twice");
  expect_input_error(header + R"({"variables":[)" + some + "}," + some +
                         R"(}],"factors":[{"template":"edge","template":"edge"}]})",
                     {}, 2, 117, "\"template\" is given twice");
}

TEST(Jsonl, FitsDataToAModelByName) {
  const std::string one = R"({"variables":[{"template":"b","label":0,"x":[5,6,7]}]})";
  const auto text = [&](const std::string& names) {
    return R"({"format":"margrave-jsonl","version":1,"templates":{"a":{"states":[2]},"b":{"states":[2],"inputs":3)" +
           names + "}}}\n" + one;
  };
  Template block = make_template("b", {2}, 2);
  block.input_names = {"z", "x"};
  const TemplateSet model({block});
  const DataFile file = read_text(text(R"(,"input_names":["x","y","z"])"), {}, &model);
  EXPECT_EQ(file.data.templates(), model);
  EXPECT_EQ(dense(file.data, file.data[0].input_of(0), 2), (std::vector<float>{7, 5}));
  ASSERT_EQ(file.warnings.size(), 1U);
  EXPECT_THROW(read_text(text(""), {}, &model), InputError) << "without names the inputs must be as many";
  const TemplateSet same({make_template("b", {2}, 3)});
  EXPECT_EQ(read_text(text(""), {}, &same).data.templates(), same);
  const TemplateSet other({make_template("c", {2}, 3)});
  EXPECT_THROW(read_text(text(""), {}, &other), InputError);
  const TemplateSet states({make_template("b", {3}, 3)});
  EXPECT_THROW(read_text(text(""), {}, &states), InputError);
}

}  // namespace
}  // namespace margrave::test
