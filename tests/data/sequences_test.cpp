// What the text formats share: detection, options, caches, damage.
#include <gtest/gtest.h>

#include <filesystem>

#include "data/feature_space.hpp"
#include "data/readers.hpp"
#include "tests/data/expect_input_error.hpp"

namespace margrave::test {
namespace {

const std::string small_conll = "He PRP B-NP\nreckons VBZ B-VP\n\nthe DT B-NP\ncurrent JJ I-NP\n\n";
const std::string small_crfsuite = "B-NP\tw=He\tp=PRP:0.5\nB-VP\tw=reckons\t__EOS__\n\nB-NP\tw=it\n\n";

TEST(StringTable, KeepsDifferentStringsApart) {
  StringTable table;
  std::vector<std::string> strings{"", "a", std::string("a\0", 2), std::string("a\0b", 3)};
  for (int n = 0; n < 20000; ++n) strings.push_back("U" + std::to_string(n % 20) + ":" + std::to_string(n));
  for (std::uint32_t n = 0; n < strings.size(); ++n) {
    EXPECT_EQ(table.find(strings[n]), StringTable::none);
    ASSERT_EQ(table.add(strings[n]), n);
  }
  for (std::uint32_t n = 0; n < strings.size(); ++n) {
    ASSERT_EQ(table.add(strings[n]), n);
    ASSERT_EQ(table.find(strings[n]), n);
    ASSERT_EQ(table[n], strings[n]);
  }
  EXPECT_EQ(table.size(), strings.size());
}

TEST(Sequences, AreRecognisedByTheirLines) {
  const auto detected = [](const std::string& text) { return detect_sequences(text, true); };
  EXPECT_EQ(detected(small_conll), "conll");
  EXPECT_EQ(detected("-DOCSTART- -X- O\r\n\r\nEU NNP O\r\n"), "conll");
  EXPECT_EQ(detected("a\tb\tO\n\nc\td\tO\n\n"), "conll");
  EXPECT_EQ(detected("10:30 CD O\n\n"), "conll") << "a colon after digits in the first column";
  EXPECT_EQ(detected(small_crfsuite), "crfsuite");
  EXPECT_EQ(detected("A\tx=1\n\n"), "crfsuite");
  EXPECT_EQ(detected("A\tx:0.5\ty:1\nB\tz\n\n"), "crfsuite");
  for (const char* text :
       {"", "\n\n", "0,2 1:0.5 3:-2\n\n1 2:1\n", " 1:1\n\n0 1:2\n", "0\t1:1\n\n", "word\n\nword\n",
        "a b\nc d\n", "# sent_id = 1\n1\tThe\tDET\n2\tdog\tNOUN\n\n", "a b c\nd e\n\n"})
    EXPECT_EQ(detected(text), "") << text;
  EXPECT_EQ(detect_sequences("a b X\n\nc d Y\ne f", false), "conll") << "the last line may be cut";
  EXPECT_EQ(detect_sequences("a b X\n\nc d Y\ne f", true), "");

  const ScratchFolder folder;
  EXPECT_EQ(read_data(folder.write("a", small_conll), {}).format, "conll");
  EXPECT_EQ(read_data(folder.write("a", gzipped(small_crfsuite)), {}).format, "crfsuite");
  ReadOptions options;
  options.feature_template = "U:%x[0,0]\n";
  EXPECT_EQ(read_data(folder.write("a", "a X\nb Y\n"), options).format, "conll") << "no empty line needed";
}

TEST(Sequences, OptionsBelongToTheirFormats) {
  const auto refused = [](const char* format, void (*set)(ReadOptions&)) {
    ReadOptions options;
    set(options);
    EXPECT_THROW(check_read_options(options, format), UsageError) << format;
  };
  for (const char* format : {"letter", "multilabel", "jsonl", "mgd"}) {
    refused(format, [](ReadOptions& o) { o.feature_template = "U\n"; });
    refused(format, [](ReadOptions& o) { o.cutoff = 2; });
    refused(format, [](ReadOptions& o) { o.hash_bits = 10; });
  }
  refused("crfsuite", [](ReadOptions& o) { o.feature_template = "U\n"; });
  for (const char* format : {"conll", "crfsuite"}) {
    refused(format, [](ReadOptions& o) { o.bias = 1; });
    refused(format, [](ReadOptions& o) { o.graph = Graph::tree; });
    refused(format, [](ReadOptions& o) { o.cutoff = 0; });
    refused(format, [](ReadOptions& o) { o.hash_bits = 32; });
    refused(format, [](ReadOptions& o) {
      o.hash_bits = 8;
      o.cutoff = 2;
    });
    ReadOptions options;
    options.cutoff = 5;
    check_read_options(options, format);
  }
}

TEST(Sequences, OptionsOfOlderFilesAreRead) {
  ReadOptions options;
  options.format = "conll";
  options.feature_template = "U0:%x[0,0]/\xc3\xa9\"\n";
  options.columns = 3;
  options.cutoff = 4;
  EXPECT_EQ(read_options_from_json(to_json(options)), options);
  const ReadOptions old = read_options_from_json(
      R"({"format":"letter","train_folds":"1","bias":null,"graph":0,"parameters":0,"feature_base":1,"top_labels":0,"drop_unlabelled":false})");
  EXPECT_EQ(old.cutoff, 1U);
  EXPECT_EQ(old.columns, 0U);
}

TEST(Sequences, CachesAndJsonlHoldTheSameData) {
  const ScratchFolder folder;
  for (const std::string& text : {small_conll, small_crfsuite}) {
    const DataFile file = read_data(folder.write("a", text), {});
    write_data(file.data, folder.file("a.mgd"), "auto", &file.read);
    const DataFile cached = read_data(folder.file("a.mgd"), {});
    EXPECT_EQ(cached.data.fingerprint(), file.data.fingerprint());
    EXPECT_EQ(cached.data.templates(), file.data.templates());
    EXPECT_EQ(cached.read, file.read);
    write_data(file.data, folder.file("a.jsonl"));
    const DataFile general = read_data(folder.file("a.jsonl"), {});
    EXPECT_EQ(general.data.fingerprint(), file.data.fingerprint());
    EXPECT_EQ(general.data.templates(), file.data.templates());
    // A model trained on the cache reads text.
    EXPECT_EQ(read_data(folder.write("a", text), cached.read, &cached.data.templates()).data.fingerprint(),
              file.data.fingerprint());
  }
}

TEST(Sequences, NamesThatAreNotUtf8AreNotWrittenAsJsonl) {
  const ScratchFolder folder;
  for (const auto& [text, kind] : std::vector<std::pair<std::string, std::string>>{
           {"A\tw=gr\xfcn\nB\tx\n\n", "the name of the input \"w=gr"},
           {"gr\xfcn\tx\nB\ty\n\n", "the label \"gr"}}) {
    ReadOptions options;
    options.format = "crfsuite";
    const DataFile file = read_data(folder.write("a", text), options);
    try {
      write_data(file.data, folder.file("a.jsonl"));
      ADD_FAILURE() << kind;
    } catch (const InputError& error) {
      EXPECT_NE(error.reason().find(kind), std::string::npos) << error.what();
      EXPECT_NE(error.reason().find(".mgd"), std::string::npos) << error.what();
    }
    EXPECT_FALSE(std::filesystem::exists(folder.file("a.jsonl")));
    write_data(file.data, folder.file("a.mgd"), "auto", &file.read);
    EXPECT_EQ(read_data(folder.file("a.mgd"), {}).data.templates(), file.data.templates());
  }
}

TEST(Sequences, DamageLeadsToDataOrInputError) {
  const ScratchFolder folder;
  Random random(77);
  constexpr std::string_view spice = ":\\@% \t\n\r[],-+*UB0e.=#";
  const std::string template_text = "U0:%x[-1,0]\n*1:%x[0,1]/%x[2,0]\nB\n";
  int good = 0;
  for (int round = 0; round < 4000; ++round) {
    ReadOptions options;
    options.format = round % 2 == 0 ? "conll" : "crfsuite";
    if (round % 2 == 0) options.feature_template = template_text;
    if (round % 3 == 0) options.hash_bits = 3;
    if (round % 5 == 0 && options.hash_bits == 0) options.cutoff = 2;
    const auto damage = [&](std::string text) {
      for (std::uint64_t n = random.below(4); n > 0 && !text.empty(); --n) {
        const std::size_t at = random.below(text.size());
        const char byte =
            random.below(2) == 0 ? spice[random.below(spice.size())] : static_cast<char>(random.below(256));
        if (random.below(3) == 0) text.erase(at, 1 + random.below(5));
        text.insert(std::min(at, text.size()), 1, byte);
      }
      return text;
    };
    if (round % 4 == 0) options.feature_template = damage(options.feature_template);
    const std::string& text = round % 2 == 0 ? small_conll : small_crfsuite;
    if (options.feature_template.empty() && round % 2 == 0) continue;
    try {
      const DataFile trained = read_data(folder.write("a", text), options);
      const DataFile file = read_data(folder.write("a", damage(text)), trained.read,
                                      random.below(2) == 0 ? &trained.data.templates() : nullptr);
      ASSERT_GT(file.data.size(), 0U);
      ++good;
    } catch (const InputError& error) {
      ASSERT_FALSE(error.reason().empty());
    }
  }
  EXPECT_GT(good, 500);
}

}  // namespace
}  // namespace margrave::test
