#include "data/sequence_collector.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "margrave/error.hpp"

namespace margrave {
namespace {

constexpr std::string_view token_name = "token", transition_name = "transition";

}  // namespace

void SequenceCollector::Rows::add(std::uint32_t number, float x) {
  if (number == FeatureSpace::none) {
    ++unknown;
    return;
  }
  if (x != 1.0F && value.empty()) value.assign(index.size(), 1.0F);
  const bool valued = x != 1.0F || !value.empty();
  index.push_back(number);
  if (valued) value.push_back(x);
}

SequenceCollector::SequenceCollector(const ReadOptions& options, Bigrams bigrams, const TemplateSet* model,
                                     std::string path)
    : path_(std::move(path)), cutoff_(options.cutoff), bigrams_(bigrams), model_(model) {
  if (options.hash_bits > 0) unigram_space_ = FeatureSpace::hashed(options.hash_bits);
  if (options.hash_bits > 0 && bigrams == Bigrams::varying)
    bigram_space_ = FeatureSpace::hashed(options.hash_bits);
  if (model == nullptr) return;
  try {
    use_model(*model);
  } catch (const UsageError& error) {
    throw InputError({path_, 0, 0}, std::string("does not fit the model: ") + error.what());
  }
}

void SequenceCollector::use_model(const TemplateSet& model) {
  const std::size_t token = model.find(token_name);
  const std::size_t transition = model.find(transition_name);
  const bool tied = transition < model.size();
  if (token == model.size() || model.size() != (tied ? 2 : 1) || model[token].order() != 1 ||
      model[token].state_names.empty())
    throw UsageError("its templates are not those of labelled sequences (token and transition)");
  const std::uint32_t states = model[token].states[0];
  if (tied && model[transition].states != std::vector<std::uint32_t>{states, states})
    throw UsageError("its transitions are not between labels");
  const auto match = [](const Template& block, FeatureSpace& space) {
    // A space that grows is one of names here.
    if (space.inputs() > 0) {
      if (space.inputs() != block.inputs || !block.input_names.empty())
        throw UsageError("its features are not hashed to as many inputs");
    } else if (block.input_names.empty()) {
      throw UsageError("its features have no names");
    } else {
      space = FeatureSpace::of_model(block.input_names);
    }
  };
  match(model[token], unigram_space_);
  if (tied) match(model[transition], bigram_space_);
  if (!tied) bigrams_ = Bigrams::none;
  if (tied && model[transition].input_names.size() == 1) constant_bigram_ = model[transition].input_names[0];
  for (const std::string& label : model[token].state_names) labels_.add(label);
  if (labels_.size() != states) throw UsageError("two of its labels have the same name");
}

std::int32_t SequenceCollector::state_of(std::string_view label, const LineReader& reader, const char* at) {
  const std::uint32_t number = model_ == nullptr ? labels_.add(label) : labels_.find(label);
  if (number != StringTable::none) {
    ++known_labels_;
    return static_cast<std::int32_t>(number);
  }
  if (unknown_labels_++ == 0) {
    first_unknown_ = reader.place(at);
    first_unknown_label_ = label;
  }
  return unlabelled;
}

void SequenceCollector::add_unigram(std::uint32_t number, float value) { unigram_rows_.add(number, value); }

void SequenceCollector::add_bigram(std::uint32_t number) { bigram_rows_.add(number, 1.0F); }

void SequenceCollector::add_constant_bigram() {
  if (takes_bigrams()) add_bigram(bigram_space_.find(constant_bigram_));
}

void SequenceCollector::end_token(std::int32_t state) {
  unigram_rows_.end();
  bigram_rows_.end();
  state_.push_back(state);
}

void SequenceCollector::end_sequence() {
  if (state_.size() > sequence_begin_.back()) sequence_begin_.push_back(state_.size());
}

TemplateSet SequenceCollector::make_templates() {
  unigram_space_.cut(cutoff_, unigram_rows_.index);
  if (bigrams_ == Bigrams::varying) bigram_space_.cut(cutoff_, bigram_rows_.index);
  if (labels_.size() == 0) throw UsageError("no token has a label");
  if (unigram_space_.inputs() == 0) throw UsageError("no features: none occurs, or none often enough");
  const auto states = static_cast<std::uint32_t>(labels_.size());
  std::vector<Template> templates;
  templates.push_back(make_template(std::string(token_name), {states}, unigram_space_.inputs()));
  templates[0].input_names = unigram_space_.take_names();
  for (std::size_t n = 0; n < labels_.size(); ++n) templates[0].state_names.emplace_back(labels_[n]);
  if (bigram_space_.inputs() > 0 && bigrams_ != Bigrams::none) {
    templates.push_back(
        make_template(std::string(transition_name), {states, states}, bigram_space_.inputs()));
    templates[1].input_names = bigram_space_.take_names();
  }
  return TemplateSet(std::move(templates));
}

std::uint32_t SequenceCollector::add_input(DatasetBuilder& builder, const Rows& rows, std::size_t row,
                                           const FeatureSpace& space, std::uint64_t inputs) {
  index_.clear();
  if (rows.value.empty()) {  // as most are: numbers alone are sorted sooner
    for (std::uint64_t n = rows.begin[row]; n < rows.begin[row + 1]; ++n)
      if (const std::uint32_t number = space.kept(rows.index[n]); number != FeatureSpace::none)
        index_.push_back(number);
    std::sort(index_.begin(), index_.end());
    if (std::adjacent_find(index_.begin(), index_.end()) == index_.end()) {
      value_.assign(index_.size(), 1.0F);
      return builder.add_sparse(inputs, index_, value_);
    }
    index_.clear();
  }
  entries_.clear();
  for (std::uint64_t n = rows.begin[row]; n < rows.begin[row + 1]; ++n) {
    const std::uint32_t number = space.kept(rows.index[n]);
    if (number != FeatureSpace::none)
      entries_.emplace_back(number, rows.value.empty() ? 1.0F : rows.value[n]);
  }
  std::sort(entries_.begin(), entries_.end());
  value_.clear();
  for (const auto& [number, value] : entries_) {
    if (!index_.empty() && index_.back() == number) {
      value_.back() += value;
    } else {
      index_.push_back(number);
      value_.push_back(value);
    }
  }
  return builder.add_sparse(inputs, index_, value_);
}

void SequenceCollector::build(DatasetBuilder& builder) {
  const TemplateSet& templates = builder.templates();
  const std::size_t token = templates.find(token_name);
  const std::size_t transition = templates.find(transition_name);
  for (std::size_t s = 0; s + 1 < sequence_begin_.size(); ++s) {
    builder.begin_example();
    const std::uint64_t first = sequence_begin_[s];
    for (std::uint64_t t = first; t < sequence_begin_[s + 1]; ++t)
      builder.add_variable(
          token, add_input(builder, unigram_rows_, t, unigram_space_, templates[token].inputs), state_[t]);
    for (std::uint64_t t = first + 1; t < sequence_begin_[s + 1] && transition < templates.size(); ++t) {
      const auto second = static_cast<std::uint32_t>(t - first);
      const std::array<std::uint32_t, 2> pair{second - 1, second};
      builder.add_factor(
          transition, add_input(builder, bigram_rows_, t, bigram_space_, templates[transition].inputs), pair);
    }
    builder.end_example();
  }
}

void SequenceCollector::warn_of_unknown(Warnings& warnings) const {
  const std::uint64_t unknown = unigram_rows_.unknown + bigram_rows_.unknown;
  if (unknown > 0)
    warnings.add({path_, 0, 0},
                 "features that the model does not have are left out: " + std::to_string(unknown) + " of " +
                     std::to_string(unigram_rows_.index.size() + bigram_rows_.index.size() + unknown) +
                     " occurrences");
}

void SequenceCollector::warn_of_labels(Warnings& warnings) const {
  if (unknown_labels_ == 0) return;
  const std::string what = "label \"" + first_unknown_label_ + "\" is unknown to the model";
  warnings.add(first_unknown_,
               what + "; tokens with such labels count as unlabelled: " + std::to_string(unknown_labels_) +
                   " of " + std::to_string(known_labels_ + unknown_labels_));
}

Dataset SequenceCollector::finish(Warnings& warnings) {
  end_sequence();
  if (state_.empty()) throw InputError({path_, 0, 0}, "no examples");
  warn_of_labels(warnings);
  warn_of_unknown(warnings);
  try {
    DatasetBuilder builder(model_ == nullptr ? make_templates() : *model_);
    build(builder);
    return builder.finish();
  } catch (const UsageError& error) {
    throw InputError({path_, 0, 0}, error.what());
  }
}

}  // namespace margrave
