// Examples with sets of labels, and the dataset that is made of them: every label becomes a binary variable
// `label:NAME`, pairs of labels get factors `pair:NAME,NAME` (ReadOptions::graph), and all variables of an
// example share one input vector. Shared by the formats `multilabel` and `arff`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/readers.hpp"

namespace margrave {

inline constexpr std::uint64_t most_labels = std::uint64_t{1} << 16U;
inline constexpr std::uint64_t most_features = std::uint64_t{1} << 31U;

struct LabelSets {
  std::vector<std::vector<std::uint32_t>> labels;  // that are on in each example, sorted
  // Labels that are neither on nor off; one list per example, or none at all.
  std::vector<std::vector<std::uint32_t>> unknown;
  std::vector<std::uint64_t> begin{0};  // of each example's features
  std::vector<std::uint32_t> index;     // from 0, increasing
  std::vector<float> value;
  std::uint64_t label_count = 0, feature_count = 0;
  std::vector<std::uint64_t> line;  // of each example
  // Empty: numbers are the names, of features from ReadOptions::feature_base.
  std::vector<std::string> label_names, feature_names;
};

// With a model's templates its labels, pairs and inputs, features being matched by number.
ReadResult make_dataset(const LabelSets& sets, const ReadOptions& options, const TemplateSet* templates,
                        const std::string& path, Warnings& warnings);

// Names of the labels that the templates of such a dataset speak of, in their order.
std::vector<std::string> label_names(const TemplateSet& templates);
// Names of the features, without the bias that may follow them; empty where the templates have none.
std::vector<std::string> feature_names(const TemplateSet& templates, bool bias);
// The names of a block's inputs. Of very many labels only the first has them, and all have the same inputs.
const std::vector<std::string>& input_names_of(const TemplateSet& templates, const Template& block);

}  // namespace margrave
