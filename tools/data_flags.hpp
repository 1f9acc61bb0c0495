// Flags that say how data is read, and the reading itself with its messages.
#pragma once

#include <optional>
#include <string>

#include "margrave/io.hpp"
#include "margrave/model.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {

struct Loaded {
  DataFile file;
  double seconds = 0;
};

/// --format, --template, --cutoff, --hash-bits, --graph, --parameters, --bias, --feature-base, --top-labels,
/// --labels, --drop-unlabelled, and the folds of the letter format.
class DataFlags {
 public:
  // `folds` is the name of the flag that chooses folds, with its help.
  void set_up(Verb& verb, const std::string& folds, const std::string& folds_help);
  ReadOptions options() const;
  // Reads with these flags; warnings become notes.
  Loaded load(const Verb& verb, const std::string& path) const;
  // Further files that are read.
  const std::string& template_path() const { return template_path_; }
  const std::string& labels_path() const { return labels_path_; }

 private:
  std::string format_ = "auto", folds_, template_path_, labels_path_, graph_ = "full", parameters_ = "auto";
  std::uint32_t cutoff_ = 1, hash_bits_ = 0;
  double bias_ = 0;
  std::uint32_t feature_base_ = 1;
  std::uint64_t top_labels_ = 0;
  bool drop_unlabelled_ = false;
  CLI::Option* bias_option_ = nullptr;
};

/// Throws InputError where a variable has no label.
void require_labels(const Dataset& data, const std::string& path);
/// The file at `test_path`, read like the training data; what the folds left out where there is none.
std::optional<Dataset> load_held_out(const Verb& verb, const DataFile& file, const std::string& test_path);

/// --format and --folds for verbs that have a model: everything else comes from the model.
class ModelDataFlags {
 public:
  void set_up(Verb& verb, const std::string& folds_help);
  // Data to be labelled or scored by the model. All folds, unless told otherwise.
  Loaded load(const Verb& verb, const Model& model, const std::string& path) const;
  // The data the model was trained on, read exactly as then.
  Loaded load_training_data(const Verb& verb, const Model& model, const std::string& path) const;
  bool chose_folds() const { return !folds_.empty(); }

 private:
  std::string format_ = "auto", folds_;
};

/// Options to read `path` as the model's data was read. A
/// file of another format is read by that format's defaults.
ReadOptions read_like(const Model& model, const std::string& path, const std::string& format);
/// read_data with a clock, notes and hints.
Loaded load_data(const Verb& verb, const std::string& path, const ReadOptions& options,
                 const TemplateSet* templates);

}  // namespace margrave::tools
