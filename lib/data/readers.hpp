// The readers, one per format, and what they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/line_reader.hpp"
#include "margrave/io.hpp"

namespace margrave {

// Joint states of all templates of one file together. Their rows take four bytes each, which a few dozen
// bytes of a hostile file could ask for 2^24 times per template.
inline constexpr std::uint64_t most_joint_states = std::uint64_t{1} << 26U;

// Which folds train: "0", "1-9", "1,2,5". Empty text means all.
class FoldList {
 public:
  // Throws UsageError.
  explicit FoldList(std::string_view text);
  bool all() const { return ranges_.empty(); }
  bool contains(std::uint64_t fold) const;

 private:
  struct Range {
    std::uint64_t first, last;
  };
  std::vector<Range> ranges_;
};

// What a reader makes of a file. Some readers have to know a model's templates before they read; what the
// others return is fitted to them afterwards.
struct ReadResult {
  Dataset data;
  std::optional<Dataset> held_out;
};
ReadResult read_letter(LineReader& reader, const ReadOptions& options);
ReadResult read_multilabel(LineReader& reader, const ReadOptions& options, const TemplateSet* templates,
                           Warnings& warnings);
// `resolved` becomes the options with the names of the labels.
ReadResult read_arff(LineReader& reader, const ReadOptions& options, const TemplateSet* templates,
                     Warnings& warnings, std::optional<ReadOptions>& resolved);
// `resolved` becomes the options with the template that was used and the number of columns.
ReadResult read_conll(LineReader& reader, const ReadOptions& options, const TemplateSet* templates,
                      Warnings& warnings, std::optional<ReadOptions>& resolved);
ReadResult read_crfsuite(LineReader& reader, const ReadOptions& options, const TemplateSet* templates,
                         Warnings& warnings);
ReadResult read_jsonl(LineReader& reader, Warnings& warnings);
// `made_by` becomes the options of the file that the cache was made from, where it knows them.
ReadResult read_mgd(const std::string& path, std::optional<ReadOptions>& made_by);

void write_jsonl(const Dataset& data, const std::string& path, bool compressed);
void write_mgd(const Dataset& data, const std::string& path, const ReadOptions* read);

// The same examples over a model's templates, matched by name, and (on request) without unlabelled variables.
// Throws InputError where the data does not fit.
Dataset fit_templates(const Dataset& data, const TemplateSet& templates, const std::string& path,
                      Warnings& warnings);
Dataset drop_unlabelled(const Dataset& data, const std::string& path, Warnings& warnings);

// The edges (i < j, sorted) of a spanning tree of largest mutual information (Chow and Liu 1968) between
// binary labels; `sets` holds the labels that are on in each example.
struct LabelPair {
  std::uint32_t first, second;
  bool operator==(const LabelPair&) const = default;
  bool operator<(const LabelPair& other) const {
    return first != other.first ? first < other.first : second < other.second;
  }
};
std::vector<LabelPair> chow_liu_tree(std::size_t labels, const std::vector<std::vector<std::uint32_t>>& sets);

// Whether the first bytes of a file look like `conll` or `crfsuite` data, and which; empty where they do not.
// Multilabel data never does. `whole`: there are no more bytes.
std::string_view detect_sequences(std::string_view start, bool whole);

// Throws UsageError for an option that `format` does not know: silence would let the caller believe it
// worked. With "auto" only what is wrong for every format is refused.
void check_read_options(const ReadOptions& options, std::string_view format);

// ReadOptions as one JSON object, for binary files. Parsing throws UsageError.
std::string to_json(const ReadOptions& options);
ReadOptions read_options_from_json(std::string_view text);

}  // namespace margrave
