// What all formats share: packing, detection, round trips, damage.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>

#include "base/container.hpp"
#include "data/line_reader.hpp"
#include "data/readers.hpp"
#include "margrave/generate.hpp"
#include "tests/data/expect_input_error.hpp"

namespace margrave::test {
namespace {

const std::string small_jsonl =
    R"({"format":"margrave-jsonl","version":1,"templates":{"n":{"states":[3],"inputs":2,"state_names":["a","b","c"]},"e":{"states":[3,3],"weights":"potts"}}})"
    "\n"
    R"({"id":"q","variables":[{"template":"n","label":2,"x":[1,0.5]},{"template":"n","label":null,"loss":2,"x":{"index":[1],"value":[-1e-3]}}],"factors":[{"template":"e","variables":[0,1]}]})"
    "\n";
const std::string small_multilabel = "0,2 1:0.5 3:-2\n1 2:1e-3\n 1:1\n0 3:4.25\n";
std::string small_letter() {
  return letter_line(1, 'a', 2, 10, 1, 0, 3) + letter_line(2, 'b', -1, 10, 2, 0) +
         letter_line(3, 'z', -1, 11, 1, 4, 7);
}

TEST(LineReader, GivesTheSameLinesPackedOrNot) {
  const ScratchFolder folder;
  Random random(11);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::string> lines(random.below(40));
    std::string text;
    for (auto& line : lines) {
      line.assign(random.below(round % 3 == 0 ? 200000 : 50), static_cast<char>('a' + random.below(26)));
      text += line + (random.below(2) == 0 ? "\r\n" : "\n");
    }
    const std::size_t half = text.size() / 2;
    const std::string members =
        gzipped(text.substr(0, half)) + gzipped(text.substr(half)) + std::string(5, '\0');
    for (const std::string& content : {text, gzipped(text), members}) {
      LineReader reader(folder.write("a", content));
      std::string_view line;
      for (const auto& expected : lines) {
        ASSERT_TRUE(reader.next(line));
        ASSERT_EQ(line, expected);
      }
      EXPECT_FALSE(reader.next(line));
      EXPECT_EQ(reader.line_number(), lines.size());
    }
  }
}

TEST(LineReader, RefusesBrokenGzip) {
  const std::string packed = gzipped(small_multilabel);
  for (std::size_t size = 2; size < packed.size(); ++size)
    expect_input_error(packed.substr(0, size), {}, 0, 0, "truncated");
  expect_input_error(packed + "garbage", {}, 0, 0, "corrupt");
  std::string flipped = packed;
  flipped[flipped.size() - 6] = static_cast<char>(flipped[flipped.size() - 6] ^ 1);  // the stored checksum
  expect_input_error(flipped, {}, 0, 0, "corrupt");
}

TEST(LineReader, ReadsALineOfAHundredMegabytesInBoundedTime) {
  const ScratchFolder folder(true);
  std::string text = "0";
  text.reserve(101U << 20U);
  for (std::uint32_t i = 1; text.size() < (100U << 20U); ++i) text += " " + std::to_string(i) + ":1";
  const auto start = std::chrono::steady_clock::now();
  const Dataset data = read_data(folder.write("a", text), {}).data;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(data.size(), 1U);
  EXPECT_GT(data.templates()[0].inputs, 8000000U);
  EXPECT_LT(seconds.count(), 30.0);
}

TEST(ReadData, RecognisesFormatsByContent) {
  const ScratchFolder folder;
  EXPECT_EQ(read_data(folder.write("a", small_jsonl), {}).format, "jsonl");
  EXPECT_EQ(read_data(folder.write("a", "\xef\xbb\xbf" + small_jsonl), {}).format, "jsonl");
  EXPECT_EQ(read_data(folder.write("a", small_letter()), {}).format, "letter");
  EXPECT_EQ(read_data(folder.write("a", gzipped(small_letter())), {}).format, "letter");
  EXPECT_EQ(read_data(folder.write("a", small_multilabel), {}).format, "multilabel");
  const DataFile file = read_data(folder.file("a"), {});
  write_data(file.data, folder.file("b"), "mgd", &file.read);
  const DataFile cached = read_data(folder.file("b"), {});
  EXPECT_EQ(cached.format, "mgd");
  EXPECT_EQ(cached.read.format, "multilabel") << "a model must know how new data is read";
  expect_input_error(gzipped(read_file(folder.file("b"))), {}, 0, 0, "mapped");
  ReadOptions text;
  text.format = "jsonl";
  expect_input_error(read_file(folder.file("b")), text, 0, 0, "binary file of margrave");
}

TEST(ReadData, TellsMissingFilesFoldersAndWrongOptionsApart) {
  const ScratchFolder folder;
  EXPECT_THROW(read_data(folder.file("absent"), {}), IoError);
  EXPECT_THROW(read_data(folder.path(), {}), IoError);
  ReadOptions options;
  options.format = "mgd";
  EXPECT_THROW(read_data(folder.file("absent"), options), IoError);
  EXPECT_THROW(read_data(folder.path(), options), IoError);
  options.format = "lettre";
  try {
    read_data(folder.file("absent"), options);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("letter, conll, crfsuite, multilabel, arff, jsonl, mgd"),
              std::string::npos);
  }
  const std::string path = folder.write("a", small_multilabel);
  options = {};
  options.train_folds = "1";
  EXPECT_THROW(read_data(path, options), UsageError);
  options = {};
  options.feature_base = 2;
  EXPECT_THROW(read_data(path, options), UsageError);
  for (const char* format : {"auto", "letter", "multilabel", "jsonl"}) {
    options = {};
    options.format = format;
    expect_input_error("", options, 0, 0, "no examples");
  }
  options.format = "mgd";
  expect_input_error("", options, 0, 0, "empty");
}

// Silence would let the caller believe that an option has worked.
TEST(ReadData, RefusesOptionsOfOtherFormats) {
  const ScratchFolder folder;
  const Dataset data = random_dataset(5);
  write_data(data, folder.file("a.jsonl"));
  write_data(data, folder.file("a.mgd"));
  const std::vector<void (*)(ReadOptions&)> settings = {
      [](ReadOptions& o) { o.train_folds = "1"; },
      [](ReadOptions& o) { o.bias = 1; },
      [](ReadOptions& o) { o.graph = Graph::tree; },
      [](ReadOptions& o) { o.feature_base = 0; },
      [](ReadOptions& o) { o.top_labels = 3; },
      [](ReadOptions& o) { o.parameters = Parameters::minimal; },
  };
  for (const char* name : {"a.jsonl", "a.mgd"})
    for (const auto& set : settings) {
      ReadOptions options;
      set(options);
      EXPECT_THROW(read_data(folder.file(name), options), UsageError);
    }
}

TEST(WriteData, ChoosesTheFormatByTheEnding) {
  const ScratchFolder folder;
  const Dataset data = random_dataset(1);
  write_data(data, folder.file("a.jsonl"));
  write_data(data, folder.file("a.jsonl.gz"));
  write_data(data, folder.file("a.mgd"));
  EXPECT_EQ(read_file(folder.file("a.jsonl"))[0], '{');
  EXPECT_EQ(read_file(folder.file("a.jsonl.gz")).substr(0, 2), "\x1f\x8b");
  EXPECT_TRUE(is_container(folder.file("a.mgd")));
  EXPECT_THROW(write_data(data, folder.file("a.txt")), UsageError);
  EXPECT_THROW(write_data(data, folder.file("a.jsonl"), "letter"), UsageError);
  EXPECT_THROW(write_data(data, folder.file("no/such/a.mgd")), IoError);
  EXPECT_THROW(write_data(data, "/dev/full", "jsonl"), IoError);
  EXPECT_THROW(write_data(data, "/dev/full", "jsonl.gz"), IoError);
  EXPECT_THROW(write_data(data, "/dev/full", "mgd"), IoError);
}

void expect_equal(const Dataset& a, const Dataset& b) {
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(a.templates(), b.templates());
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t m = 0; m < a.size(); ++m) EXPECT_EQ(a.id(m), b.id(m));
}

TEST(WriteData, RoundTripsGiveEqualData) {
  const ScratchFolder folder;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Dataset data = random_dataset(seed);
    write_data(data, folder.file("a.jsonl"));
    const Dataset text = read_data(folder.file("a.jsonl"), {}).data;
    expect_equal(data, text);
    write_data(text, folder.file("a.mgd"));
    const Dataset binary = read_data(folder.file("a.mgd"), {}).data;
    expect_equal(data, binary);
    write_data(binary, folder.file("b.jsonl.gz"));
    expect_equal(data, read_data(folder.file("b.jsonl.gz"), {}).data);
    write_data(binary, folder.file("b.jsonl"));
    EXPECT_EQ(read_file(folder.file("a.jsonl")), read_file(folder.file("b.jsonl")));
  }
}

TEST(WriteData, CachesOfTextFormatsKeepNamesAndOptions) {
  const ScratchFolder folder;
  for (const std::string& text : {small_letter(), small_multilabel}) {
    ReadOptions options;
    options.bias = 0.25;
    const DataFile file = read_data(folder.write("a", text), options);
    write_data(file.data, folder.file("a.mgd"), "auto", &file.read);
    const DataFile cached = read_data(folder.file("a.mgd"), {});
    expect_equal(file.data, cached.data);
    EXPECT_EQ(cached.read, file.read);
    write_data(file.data, folder.file("a.jsonl"));
    expect_equal(file.data, read_data(folder.file("a.jsonl"), {}).data);
  }
}

TEST(WriteData, AMappedDatasetOutlivesItsFile) {
  const ScratchFolder folder;
  const Dataset data = random_dataset(5);
  write_data(data, folder.file("a.mgd"));
  const Dataset mapped = read_data(folder.file("a.mgd"), {}).data;
  std::filesystem::remove(folder.file("a.mgd"));
  write_data(mapped, folder.file("b.jsonl"));
  expect_equal(data, read_data(folder.file("b.jsonl"), {}).data);
}

// Damaged files: the reader must answer with data that holds together or with InputError.
void survive(const std::string& path, const ReadOptions& options) {
  try {
    const DataFile file = read_data(path, options);
    ASSERT_GT(file.data.size(), 0U);
    for (std::size_t m = 0; m < file.data.size(); ++m) {
      const FactorGraph graph = file.data[m];
      for (std::size_t i = 0; i < graph.variables(); ++i) {
        ASSERT_LT(graph.label(i), static_cast<std::int32_t>(graph.topology().states[i]));
        ASSERT_LT(graph.input_of(i), file.data.inputs());
      }
    }
  } catch (const InputError& error) {
    ASSERT_FALSE(error.reason().empty());
  }
}

std::string damaged(Random& random, std::string text) {
  const std::uint64_t changes = 1 + random.below(4);
  constexpr std::string_view spice = "0123456789.,:-+eE{}[]\"\\ \t\n\r";
  for (std::uint64_t c = 0; c < changes && !text.empty(); ++c) {
    const std::size_t at = random.below(text.size());
    const char byte =
        random.below(2) == 0 ? spice[random.below(spice.size())] : static_cast<char>(random.below(256));
    switch (random.below(5)) {
      case 0:
        text.erase(at, 1 + random.below(8));
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      case 2:
        text.insert(at, text.substr(random.below(text.size()), random.below(30)));
        break;
      case 3:
        text.resize(at);
        break;
      default:
        text[at] = byte;
    }
  }
  return text;
}

TEST(Damage, NeverLeadsToAnythingButDataOrInputError) {
  const ScratchFolder folder;
  write_data(random_dataset(3), folder.file("good.mgd"));
  write_data(random_dataset(4), folder.file("good.jsonl"));
  const std::vector<std::pair<std::string, std::string>> good = {
      {"letter", small_letter()},
      {"multilabel", small_multilabel},
      {"multilabel", gzipped(small_multilabel)},
      {"jsonl", small_jsonl},
      {"jsonl", read_file(folder.file("good.jsonl"))},
      {"mgd", read_file(folder.file("good.mgd"))}};
  Random random(2024);
  for (const auto& [format, content] : good) {
    for (int round = 0; round < 800; ++round) {
      ReadOptions options;
      options.format = format;
      options.drop_unlabelled = round % 2 == 1;
      survive(folder.write("bad", damaged(random, content)), options);
      if (HasFatalFailure()) return;
    }
  }
}

// Damage beneath valid checksums: the columns of a cache say anything.
TEST(Damage, OfColumnsWithValidChecksumsIsNoticed) {
  const ScratchFolder folder;
  Random random(99);
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    const Dataset data = random_dataset(random.below(40));
    write_data(data, folder.file("good.mgd"));
    const auto file = SectionFile::open(folder.file("good.mgd"), FileKind::dataset, 1);
    const std::vector<std::string> names = {"templates",
                                            "inputs",
                                            "index",
                                            "value",
                                            "examples",
                                            "label",
                                            "variable_input",
                                            "factor_input",
                                            "loss",
                                            "topology_variable_begin",
                                            "topology_factor_begin",
                                            "topology_variable_template",
                                            "topology_factor_template",
                                            "topology_scope_begin",
                                            "topology_scope",
                                            "id_begin",
                                            "id_text"};
    const std::string& target = names[random.below(names.size())];
    std::vector<std::string> contents;
    SectionWriter writer(FileKind::dataset, 1);
    contents.reserve(names.size());
    for (const auto& name : names) {
      const auto bytes = file->section(name);
      contents.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      std::string& content = contents.back();
      if (name == target && !content.empty()) {
        const std::size_t at = random.below(content.size());
        if (random.below(4) == 0) {
          content.resize(at);
        } else {
          content[at] = static_cast<char>(random.below(3) == 0 ? 0xff : random.below(256));
        }
      }
      writer.add_array(name, content.data(), content.size());
    }
    writer.write(folder.file("bad.mgd"));
    ReadOptions options;
    options.format = "mgd";
    try {
      const Dataset bad = read_data(folder.file("bad.mgd"), options).data;
      write_data(bad, "/dev/null", "jsonl");  // touches everything
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace margrave::test
