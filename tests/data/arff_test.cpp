#include <gtest/gtest.h>

#include "data/arff_header.hpp"
#include "data/mulan_xml.hpp"
#include "data/readers.hpp"
#include "tests/data/expect_input_error.hpp"

namespace margrave::test {
namespace {

ReadOptions arff(std::vector<std::string> labels = {"a", "b"}) {
  ReadOptions options;
  options.format = "arff";
  options.labels = std::move(labels);
  return options;
}

DataFile read_text(const std::string& text, const ReadOptions& options = arff(),
                   const TemplateSet* templates = nullptr) {
  const ScratchFolder folder;
  return read_data(folder.write("data", text), options, templates);
}

std::vector<std::int32_t> labels_of(const Dataset& data, std::size_t m) {
  return {data[m].labels().begin(), data[m].labels().end()};
}

std::vector<float> inputs_of(const Dataset& data, std::size_t m) {
  const InputView x = data.input(data[m].input_of(0));
  std::vector<float> values(data.templates()[0].inputs);
  for (std::uint32_t n = 0; n < x.count; ++n)
    values[x.kind == InputKind::dense ? n : x.index[n]] = x.kind == InputKind::unit ? 1 : x.value[n];
  return values;
}

const std::string header =
    "% a comment\n@RELATION 'some name'\n\n@attribute x numeric\n@ATTRIBUTE a {0,1}\n"
    "@attribute 'y z' REAL % behind\n@attribute\tb { 0, 1 }\n@Data\n";

TEST(Arff, ReadsDenseAndSparseRowsWithLabelsAnywhere) {
  const DataFile file =
      read_text(header + "0.5,1,-2, 0\n% between\n{0 0.5, 1 1,2 -2}\n\n{}\n 1e3 , '0' ,0,\"1\" \n");
  const Dataset& data = file.data;
  EXPECT_TRUE(file.warnings.empty());
  EXPECT_EQ(file.read.labels, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(data.size(), 4U);
  EXPECT_EQ(data.templates()[0].name, "label:a");
  EXPECT_EQ(data.templates()[2].name, "pair:a,b");
  EXPECT_EQ(data.templates()[0].input_names, (std::vector<std::string>{"x", "y z", "bias"}));
  EXPECT_EQ(labels_of(data, 0), (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(labels_of(data, 1), labels_of(data, 0));
  EXPECT_EQ(labels_of(data, 2), (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(labels_of(data, 3), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(inputs_of(data, 0), (std::vector<float>{0.5F, -2, 1}));
  EXPECT_EQ(data[0].input_of(0), data[1].input_of(0));
  EXPECT_EQ(inputs_of(data, 2), (std::vector<float>{0, 0, 1}));
  EXPECT_EQ(inputs_of(data, 3), (std::vector<float>{1000, 0, 1}));
}

// The same examples in both formats; labels are called by their numbers.
TEST(Arff, IsReadIntoTheSameDatasetAsMultilabel) {
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    const std::size_t features = 1 + random.below(5), labels = 1 + random.below(4);
    // Labels stand in the middle, behind the first feature.
    std::string text = "@relation r\n@attribute f1 numeric\n", lines;
    std::vector<std::string> names;
    for (std::size_t l = 0; l < labels; ++l) {
      names.push_back(std::to_string(l));
      text += "@attribute " + names.back() + "{0,1}\n";
    }
    for (std::size_t d = 2; d <= features; ++d) text += "@attribute f" + std::to_string(d) + " numeric\n";
    text += "@data\n";
    for (int m = 0; m < 6; ++m) {
      std::string set, dense, sparse = "{", line;
      std::vector<std::string> values;
      for (std::size_t d = 0; d < features; ++d)
        values.push_back(std::to_string(m == 0 ? 7 : random.below(3)));
      std::vector<bool> on(labels);
      for (std::size_t l = 0; l < labels; ++l) on[l] = m == 0 || random.below(2) == 0;
      std::vector<std::string> cells{values[0]};
      for (std::size_t l = 0; l < labels; ++l) cells.emplace_back(on[l] ? "1" : "0");
      cells.insert(cells.end(), values.begin() + 1, values.end());
      for (std::size_t j = 0; j < cells.size(); ++j) {
        dense += (j == 0 ? "" : ",") + cells[j];
        if (cells[j] != "0") sparse += (sparse.size() == 1 ? "" : ",") + std::to_string(j) + " " + cells[j];
      }
      text += (random.below(2) == 0 ? dense : sparse + "}") + "\n";
      for (std::size_t l = 0; l < labels; ++l)
        if (on[l]) set += (set.empty() ? "" : ",") + std::to_string(l);
      line = set;
      for (std::size_t d = 0; d < features; ++d) line += " " + std::to_string(d + 1) + ":" + values[d];
      lines += line + "\n";
    }
    for (const Graph graph : {Graph::full, Graph::tree, Graph::none})
      for (const std::uint64_t top : {0U, 2U}) {
        ReadOptions one = arff(names), other;
        other.format = "multilabel";
        for (ReadOptions* options : {&one, &other}) {
          options->graph = graph;
          options->top_labels = top;
          options->parameters = round % 2 == 0 ? Parameters::overcomplete : Parameters::by_format;
        }
        const Dataset a = read_text(text, one).data, b = read_text(lines, other).data;
        ASSERT_EQ(a.templates().size(), b.templates().size());
        for (std::size_t t = 0; t < a.templates().size(); ++t) {
          EXPECT_EQ(a.templates()[t].name, b.templates()[t].name);
          EXPECT_EQ(a.templates()[t].row_of, b.templates()[t].row_of);
        }
        EXPECT_EQ(a.fingerprint(), b.fingerprint());
      }
  }
}

TEST(Arff, NominalInputsAreOneHot) {
  const std::string text =
      "@relation r\n@attribute colour {red, 'dark green', \"it's\"}\n@attribute bit {1,0}\n"
      "@attribute a {0,1}\n@data\n'dark green',1,1\n{2 1}\n{0 \"it's\", 1 0}\n";
  const Dataset data = read_text(text, arff({"a"})).data;
  EXPECT_EQ(data.templates()[0].input_names,
            (std::vector<std::string>{"colour=red", "colour=dark green", "colour=it's", "bit", "bias"}));
  EXPECT_EQ(inputs_of(data, 0), (std::vector<float>{0, 1, 0, 1, 1}));
  EXPECT_EQ(inputs_of(data, 1), (std::vector<float>{1, 0, 0, 1, 1})) << "what is left out is the first value";
  EXPECT_EQ(inputs_of(data, 2), (std::vector<float>{0, 0, 1, 0, 1}));
  EXPECT_EQ(labels_of(data, 2), (std::vector<std::int32_t>{0}));
}

TEST(Arff, LabelsMayBeNumericOrHaveOtherValues) {
  const std::string text =
      "@relation r\n@attribute a {no,yes}\n@attribute b integer\n@attribute c {1,0}\n@attribute x real\n"
      "@data\nyes,0,1,1\nno,1,0,1\n{3 1}\n";
  const Dataset data = read_text(text, arff({"c", "a", "b"})).data;
  EXPECT_EQ(labels_of(data, 0), (std::vector<std::int32_t>{1, 1, 0}));
  EXPECT_EQ(labels_of(data, 1), (std::vector<std::int32_t>{0, 0, 1}));
  EXPECT_EQ(labels_of(data, 2), (std::vector<std::int32_t>{1, 0, 0}));
}

TEST(Arff, LabelsMaySayYesInManyWaysAndInAnyOrder) {
  for (const auto& [off, on] : std::vector<std::pair<std::string, std::string>>{
           {"0", "1"}, {"no", "YES"}, {"FALSE", "TRUE"}, {"-1", "+1"}, {"-1", "1"}, {"0.0", "1.0"}})
    for (const bool turned : {false, true}) {
      const std::string values = turned ? on + "," + off : off + "," + on;
      const Dataset data = read_text("@relation r\n@attribute a {" + values +
                                         "}\n@attribute x real\n@data\n" + on + ",1\n" + off + ",1\n{1 1}\n",
                                     arff({"a"}))
                               .data;
      EXPECT_EQ(labels_of(data, 0), (std::vector<std::int32_t>{1})) << values;
      EXPECT_EQ(labels_of(data, 1), (std::vector<std::int32_t>{0})) << values;
      EXPECT_EQ(labels_of(data, 2), (std::vector<std::int32_t>{turned ? 1 : 0})) << "the first value";
    }
  for (const char* values : {"red,green", "0,true", "1,2", "yes,yes "})
    EXPECT_THROW(
        read_text("@relation r\n@attribute a {" + std::string(values) + "}\n@data\n1\n", arff({"a"})),
        InputError);
  expect_input_error("@relation r\n@attribute x real\n@attribute a {b,c}\n@data\n1,b\n", arff({"a"}), 3, 12,
                     "which is 1?");
}

TEST(Arff, TwoInputsOfOneNameAreRefused) {
  for (const char* attributes : {"a {b,c}\n@attribute 'a=b' real", "'a=b' real\n@attribute a {b,c}"})
    expect_input_error(
        "@relation r\n@attribute " + std::string(attributes) + "\n@attribute l {0,1}\n@data\n{0 1}\n",
        arff({"l"}), 3, 12, "two inputs are called \"a=b\"");
}

// So many that not every label keeps the names of its inputs.
TEST(Arff, ManyInputsAreMatchedByNameToo) {
  constexpr std::size_t labels = 1100, features = 1000;
  std::string first = "@relation r\n", second = first, label_lines;
  std::vector<std::string> names;
  for (std::size_t l = 0; l < labels; ++l) {
    names.push_back("l" + std::to_string(l));
    label_lines += "@attribute " + names.back() + " {0,1}\n";
  }
  for (std::size_t d = 0; d < features; ++d) {
    first += "@attribute f" + std::to_string(d) + " numeric\n";
    second += "@attribute f" + std::to_string(features - 1 - d) + " numeric\n";
  }
  ReadOptions options = arff(names);
  options.graph = Graph::none;
  const DataFile trained = read_text(first + label_lines + "@data\n{3 7, 1000 1}\n", options);
  const TemplateSet& model = trained.data.templates();
  EXPECT_EQ(model[0].input_names.size(), features + 1);
  EXPECT_TRUE(model[1].input_names.empty());
  const DataFile turned = read_text(second + label_lines + "@data\n{996 7, 1000 1}\n", options, &model);
  EXPECT_EQ(turned.data.fingerprint(), trained.data.fingerprint());
  // And through a cache that was made without the model.
  const ScratchFolder folder;
  const std::string cache = folder.file("a.mgd");
  write_data(read_text(second + label_lines + "@data\n{996 7, 1000 1}\n", options).data, cache);
  const Dataset cached = read_data(cache, {}, &model).data;
  for (const std::size_t label : {0U, 1U, 1099U}) {
    const InputView x = cached.input(cached[0].input_of(label));
    ASSERT_EQ(x.count, 2U);
    EXPECT_EQ(x.index[0], 3U) << label;
    EXPECT_EQ(x.index[1], features) << label;
  }
}

TEST(Arff, AMissingLabelIsUnlabelled) {
  const Dataset data = read_text(header + "1,?,1,1\n{3 ?}\n1,0,0,0\n").data;
  EXPECT_EQ(labels_of(data, 0), (std::vector<std::int32_t>{unlabelled, 1}));
  EXPECT_EQ(labels_of(data, 1), (std::vector<std::int32_t>{0, unlabelled}));
  EXPECT_FALSE(data.fully_labelled());
}

TEST(Arff, FindsItsLabelsBesideItOrInTheRelation) {
  const ScratchFolder folder;
  const std::string rows = header + "1,1,1,1\n";
  folder.write("x.xml", "<labels><label name='b'/><label name='a'/></labels>");
  for (const char* name : {"x.arff", "x-train.arff", "x-test.arff.gz"}) {
    const std::string path = folder.write(name, std::string(name).ends_with("gz") ? gzipped(rows) : rows);
    const DataFile file = read_data(path, {});
    EXPECT_EQ(file.format, "arff");
    EXPECT_EQ(file.read.labels, (std::vector<std::string>{"b", "a"}));
    EXPECT_EQ(file.data.templates()[0].name, "label:b");
  }
  const auto meka = [&](const std::string& count) {
    return read_data(folder.write("m.arff", "@relation 'Some: -V -C " + count + " -split 3'\n" +
                                                "@attribute a {0,1}\n@attribute b {0,1}\n@attribute c {0,1}\n"
                                                "@data\n1,0,1\n"),
                     {})
        .read.labels;
  };
  EXPECT_EQ(meka("2"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(meka("-2"), (std::vector<std::string>{"b", "c"}));
  EXPECT_THROW(meka("4"), InputError);
  EXPECT_THROW(read_data(folder.write("y.arff", rows), {}), InputError);
}

TEST(Arff, FitsNewDataToAModelByName) {
  const Dataset trained = read_text(header + "1,1,2,0\n3,0,4,1\n").data;
  const TemplateSet& model = trained.templates();
  // Inputs in another order, one more, and a label that is not there.
  const DataFile file = read_text(
      "@relation r\n@attribute 'y z' numeric\n@attribute new numeric\n@attribute b {0,1}\n"
      "@attribute x numeric\n@data\n2,9,1,1\n",
      arff(), &model);
  EXPECT_EQ(file.data.templates(), model);
  EXPECT_EQ(inputs_of(file.data, 0), (std::vector<float>{1, 2, 1}));
  EXPECT_EQ(labels_of(file.data, 0), (std::vector<std::int32_t>{unlabelled, 1}));
  EXPECT_EQ(file.warnings.size(), 2U);
  // The labels of the model are labels without being listed; others may only be left out with --top-labels.
  EXPECT_EQ(labels_of(read_text(header + "1,1,2,0\n", arff({}), &model).data, 0),
            (std::vector<std::int32_t>{1, 0}));
  ReadOptions top = arff({"x", "a", "b"});
  EXPECT_THROW(read_text(header + "1,1,2,0\n", top, &model), InputError);
  top.top_labels = 2;
  EXPECT_EQ(labels_of(read_text(header + "1,1,2,0\n", top, &model).data, 0),
            (std::vector<std::int32_t>{1, 0}));
}

TEST(Arff, NamesOfLabelsMayHoldCommas) {
  const std::string text =
      "@relation r\n@attribute 'a,b' {0,1}\n@attribute 'b\\\\' {0,1}\n@attribute x "
      "numeric\n@data\n1,0,1\n0,1,1\n";
  const Dataset data = read_text(text, arff({"a,b", "b\\"})).data;
  EXPECT_EQ(data.templates()[2].name, "pair:a\\,b,b\\\\");
  EXPECT_EQ(read_text(text, arff({}), &data.templates()).data.fingerprint(), data.fingerprint());
}

TEST(Arff, NamesThePlaceOfWhatIsWrong) {
  const ReadOptions options = arff();
  expect_input_error("", options, 0, 0, "no @data");
  expect_input_error("@relation r\n", options, 0, 0, "no @data");
  expect_input_error(header, options, 0, 0, "no examples");
  expect_input_error("@relation r\n@data\n", options, 2, 1, "before any");
  expect_input_error("@relation r\nx\n", options, 2, 1, "expected");
  expect_input_error("@relation r\n@attribute\n", options, 2, 11, "expected");
  expect_input_error("@relation r\n@attribute x\n", options, 2, 13, "type");
  expect_input_error("@relation r\n@attribute x string\n", options, 2, 14, "numeric");
  expect_input_error("@relation r\n@attribute 'x\n", options, 2, 12, "never closed");
  expect_input_error("@relation r\n@attribute x {a,a}\n", options, 2, 17, "twice");
  expect_input_error("@relation r\n@attribute x {a\n", options, 2, 16, "'}'");
  expect_input_error("@relation r\n@attribute x {}\n", options, 2, 15, "expected");
  expect_input_error("@relation r\n@attribute x real 1\n", options, 2, 19, "nothing");
  expect_input_error("@relation r\n@attribute x real\n@attribute x real\n", options, 3, 14, "two attributes");
  expect_input_error(header + "1,1,1\n", options, 9, 6, "3 values");
  expect_input_error(header + "1,1,1,1,1\n", options, 9, 8, "more values");
  expect_input_error(header + "1,1 1,1\n", options, 9, 5, "comma");
  expect_input_error(header + "1,,1,1\n", options, 9, 3, "expected");
  expect_input_error(header + "1,2,1,1\n", options, 9, 3, "not a value");
  expect_input_error(header + "?,1,1,1\n", options, 9, 1, "missing");
  expect_input_error(header + "1x,1,1,1\n", options, 9, 1, "number");
  expect_input_error(header + "nan,1,1,1\n", options, 9, 1, "finite");
  expect_input_error(header + "1,1,1e99,1\n", options, 9, 5, "too large");
  expect_input_error(header + "{0 1, 0 1}\n", options, 9, 7, "increase");
  expect_input_error(header + "{2 1, 1 1}\n", options, 9, 7, "increase");
  expect_input_error(header + "{4 1}\n", options, 9, 2, "4 attributes");
  expect_input_error(header + "{-1 1}\n", options, 9, 2, "counted from 0");
  expect_input_error(header + "{99999999999999999999999 1}\n", options, 9, 2, "4 attributes");
  expect_input_error(header + "{0 1\n", options, 9, 5, "'}'");
  expect_input_error(header + "{0}\n", options, 9, 3, "expected");
  expect_input_error(header + "{0 1}, {2}\n", options, 9, 6, "nothing");
  expect_input_error(header + "1,1,1,1\n", arff({"a", "q"}), 0, 0, "no attribute");
  expect_input_error(header + "1,1,1,1\n", arff({"a", "a"}), 0, 0, "twice");
  expect_input_error(header + "2,1,1,1\n", arff({"x"}), 9, 1, "0 or 1");
  expect_input_error(header + "1,1,1,1\n", arff({}), 0, 0, "--labels");
  expect_input_error("@relation r\n@attribute a {0,1,2}\n@data\n1\n", arff({"a"}), 2, 12, "two values");
}

TEST(Arff, SurvivesAnyBytes) {
  const std::string good = header + "0.5,1,-2,0\n{0 0.5, 1 1,2 -2}\n'1',?,0,1\n";
  Random random(9);
  for (int round = 0; round < 2000; ++round) {
    std::string bad = good;
    for (std::uint64_t n = 1 + random.below(4); n > 0; --n) {
      const std::size_t at = random.below(bad.size());
      if (random.below(3) == 0)
        bad.erase(at, 1 + random.below(5));
      else
        bad[at] =
            random.below(2) == 0 ? "{}',?%@\\\"\n 0"[random.below(12)] : static_cast<char>(random.below(256));
      if (bad.empty()) bad = "@";
    }
    try {
      read_text(bad);
    } catch (const InputError&) {  // the only way to fail
    }
  }
}

TEST(Arff, IsRecognisedByItsFirstLine) {
  EXPECT_TRUE(looks_like_arff("@relation x"));
  EXPECT_TRUE(looks_like_arff(" \n% a\r\n%b\n\n@RELATION\tx"));
  EXPECT_FALSE(looks_like_arff("% a"));
  EXPECT_FALSE(looks_like_arff(""));
  EXPECT_FALSE(looks_like_arff("% a\n1 1:2"));
  EXPECT_FALSE(looks_like_arff("@rel"));
}

TEST(Arff, OptionsKeepTheNamesOfLabels) {
  const ReadOptions options = arff({"plain", "gr\xfcn", "a,\"b"});
  EXPECT_EQ(read_options_from_json(to_json(options)).labels, options.labels);
  std::string old = to_json(arff({}));
  const std::string part = "\"labels\":[],";
  ASSERT_NE(old.find(part), std::string::npos);
  old.erase(old.find(part), part.size());
  EXPECT_TRUE(read_options_from_json(old).labels.empty());
  ReadOptions other = options;
  other.format = "multilabel";
  EXPECT_THROW(check_read_options(other, "multilabel"), UsageError);
  other = arff();
  other.feature_base = 0;
  EXPECT_THROW(check_read_options(other, "arff"), UsageError);
}

std::vector<std::string> mulan(const std::string& text) {
  const ScratchFolder folder;
  return read_mulan_labels(folder.write("labels.xml", text));
}

TEST(MulanXml, ListsLabelsNestedOrNot) {
  EXPECT_EQ(
      mulan("<?xml version=\"1.0\"?>\n<!-- <label name='no'/> -->\n<!DOCTYPE labels>\n"
            "<labels xmlns=\"http://mulan.sourceforge.net/labels\">\n"
            "<label name=\"a &amp; b\"><label\n  id='1' name = 'c' /></label>\n"
            "<m:label name='&lt;&#65;&#x20AC;&quot;&apos;&gt;'></m:label><labelled name='x'/></labels>"),
      (std::vector<std::string>{"a & b", "c", "<A\u20ac\"'>"}));
}

TEST(MulanXml, NamesThePlaceOfWhatIsWrong) {
  for (const auto& [text, line, column, reason] :
       std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t, std::string>>{
           {"", 0, 0, "no <label"},
           {"<labels/>", 0, 0, "no <label"},
           {"<labels>\n <label/>", 2, 2, "without a name"},
           {"<label name='a'/>\n<label name='a'/>", 2, 1, "twice"},
           {"<label name='a", 1, 13, "never closed"},
           {"<label name=a/>", 1, 13, "quoted"},
           {"<label name/>", 1, 12, "= is expected"},
           {"<label name='&x;'/>", 1, 14, "entity"},
           {"<label name='&#xD800;'/>", 1, 14, "entity"},
           {"<label name='&amp'/>", 1, 14, "without ;"},
           {"<label name='a'", 1, 16, "ends within"},
           {"<label ='a'>", 1, 8, "a name"},
           {"<!-- <label name='a'/>", 1, 1, "-->"},
           {"<label / name='a'>", 1, 9, "> is expected"}}) {
    try {
      mulan(text);
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.where().line, line) << text;
      EXPECT_EQ(error.where().column, column) << text;
      EXPECT_NE(error.reason().find(reason), std::string::npos) << error.what();
    }
  }
}

TEST(MulanXml, SurvivesAnyBytes) {
  const std::string good =
      "<labels a='b'><!-- c --><label name=\"x&amp;\"><label name='y'/></label></labels>";
  Random random(4);
  for (int round = 0; round < 1000; ++round) {
    std::string bad = good.substr(0, 1 + random.below(good.size()));
    for (std::uint64_t n = random.below(4); n > 0; --n)
      bad[random.below(bad.size())] =
          random.below(2) == 0 ? "<>/'\"&;=!-"[random.below(10)] : static_cast<char>(random.below(256));
    try {
      EXPECT_FALSE(mulan(bad).empty());
    } catch (const InputError&) {  // the only way to fail
    }
  }
}

}  // namespace
}  // namespace margrave::test
