// From files to datasets and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "margrave/dataset.hpp"

namespace margrave {

enum class Graph : std::uint8_t { full, none, tree };
enum class Parameters : std::uint8_t { by_format, minimal, overcomplete };

/// How the bytes of a data file become a dataset. A model keeps these, so that new data is read the same way.
struct ReadOptions {
  std::string format = "auto";  ///< auto or one of formats()
  std::string train_folds;      ///< letter: folds that train ("0", "1-9", "1,2,5"); empty: all
  std::optional<double> bias;   ///< letter, multilabel: constant input appended to every node; 1 where absent
  Graph graph = Graph::full;    ///< multilabel
  Parameters parameters = Parameters::by_format;  ///< multilabel: minimal; elsewhere overcomplete
  std::uint32_t feature_base = 1;                 ///< multilabel: number of the first feature
  std::uint64_t top_labels = 0;  ///< multilabel: keep the N most frequent labels; 0 keeps all
  std::string feature_template;  ///< conll: the text of a CRF++ template file; empty: a default set
  std::uint32_t columns = 0;  ///< conll: of the training file, its label among them; 0: as many as there are
  std::uint32_t cutoff = 1;   ///< conll, crfsuite: features seen less often in training are left out
  std::uint32_t hash_bits =
      0;  ///< conll, crfsuite: 2^bits features by hashing instead of a dictionary; 0: none
  std::vector<std::string> labels;  ///< arff: the attributes that are labels
  bool drop_unlabelled = false;     ///< leave out variables without a label, and factors over them

  bool operator==(const ReadOptions&) const = default;
};

struct DataFile {
  Dataset data;
  std::optional<Dataset> held_out;  ///< letter: the folds that do not train
  std::string format;               ///< what `auto` became
  /// The options to read more data of the same kind with: `format` resolved, and for a binary cache those of
  /// the file it was made from. This is what a model keeps.
  ReadOptions read;
  std::vector<std::string> warnings;  ///< each with its place; at most a few dozen, then a count
};

/// Reads a data file, plain or gzip. With `templates` (a model's), the data must
/// fit them: inputs that the model has no name for are dropped with a warning, and unknown templates are
/// errors; so are unknown labels, but in text they count as unlabelled. Throws InputError with file, line and
/// column, or IoError; UsageError for options that do not belong to the format.
DataFile read_data(const std::string& path, const ReadOptions& options,
                   const TemplateSet* templates = nullptr);

/// Writes `jsonl` or `mgd` (or `jsonl.gz`), by the ending of the path or by `format`. Atomic. `read` is what
/// DataFile::read was where the data came from a file: a binary cache keeps it.
void write_data(const Dataset& data, const std::string& path, std::string_view format = "auto",
                const ReadOptions* read = nullptr);

/// Names of the formats that read_data knows, for help texts.
std::vector<std::string_view> formats();

}  // namespace margrave
