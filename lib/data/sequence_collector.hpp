// Sequences of tokens with named features: what the text formats share. Every token becomes a variable of the
// template `token`, neighbours are tied by factors of the template `transition`. States are the labels, and
// inputs the features, both in order of first appearance.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/feature_space.hpp"
#include "data/line_reader.hpp"
#include "margrave/dataset.hpp"
#include "margrave/error.hpp"
#include "margrave/io.hpp"

namespace margrave {

// What ties neighbours: nothing, features that are always the same, or features of the data. Only the last
// are hashed, or left out for being rare.
enum class Bigrams : std::uint8_t { none, constant, varying };

class SequenceCollector {
 public:
  // With a model's templates, their labels and features are the only ones. Throws InputError where the model
  // is not one of sequences.
  SequenceCollector(const ReadOptions& options, Bigrams bigrams, const TemplateSet* model, std::string path);

  // The state of a label, which stands at `at` in the reader's line. Published test sets have labels that
  // their training sets lack: those count as unlabelled, with one warning.
  std::int32_t state_of(std::string_view label, const LineReader& reader, const char* at);

  // Where the features of tokens, and of tokens with the one before, have their numbers.
  FeatureSpace& unigram_space() { return unigram_space_; }
  FeatureSpace& bigram_space() { return bigram_space_; }
  // Whether the next token has one before it, and pairs have features.
  bool takes_bigrams() const { return bigrams_ != Bigrams::none && state_.size() > sequence_begin_.back(); }
  // The features of the next token, and of it with the token before, in any order; equal ones add up.
  void add_unigram(std::uint32_t number, float value = 1.0F);
  void add_bigram(std::uint32_t number);
  // The one feature of all pairs: `transition`, or the model's where it has a single one by another name.
  void add_constant_bigram();
  void end_token(std::int32_t state);
  // Does nothing where the sequence has no tokens.
  void end_sequence();

  Dataset finish(Warnings& warnings);

 private:
  // Sparse vectors one after the other.
  struct Rows {
    std::vector<std::uint64_t> begin{0};
    std::vector<std::uint32_t> index;
    std::vector<float> value;   // empty while all are 1
    std::uint64_t unknown = 0;  // occurrences of features that the model does not have
    void add(std::uint32_t number, float x);
    void end() { begin.push_back(index.size()); }
  };
  void use_model(const TemplateSet& model);
  TemplateSet make_templates();
  void build(DatasetBuilder& builder);
  std::uint32_t add_input(DatasetBuilder& builder, const Rows& rows, std::size_t row,
                          const FeatureSpace& space, std::uint64_t inputs);
  void warn_of_unknown(Warnings& warnings) const;
  void warn_of_labels(Warnings& warnings) const;

  std::string path_;
  std::uint32_t cutoff_;
  Bigrams bigrams_;
  const TemplateSet* model_;
  StringTable labels_;
  std::uint64_t known_labels_ = 0, unknown_labels_ = 0;
  Location first_unknown_;
  std::string first_unknown_label_;
  std::string constant_bigram_ = "transition";
  FeatureSpace unigram_space_, bigram_space_;
  Rows unigram_rows_, bigram_rows_;  // one per token; at the first of a sequence there is no bigram
  std::vector<std::int32_t> state_;
  std::vector<std::uint64_t> sequence_begin_{0};
  std::vector<std::pair<std::uint32_t, float>> entries_;  // add_input's
  std::vector<std::uint32_t> index_;
  std::vector<float> value_;
};

}  // namespace margrave
