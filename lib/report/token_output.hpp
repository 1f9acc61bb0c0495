// Predictions for text, one token a line.
//
//   columns (conll)     the line of the data file, then the label
//   labels (crfsuite)   the label alone
//   marginals           further columns: label and probability of the predicted label, then of every label,
//                       as `crf_test -v2` has them (B-NP/0.98) or, for labels alone, `crfsuite tag -l`
//                       (B-NP:0.98)
//   nbest               of every sequence as many blocks as there are labellings, each behind a line
//                       `# rank score`, ranks from 0, and each followed by a blank line
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "margrave/predict.hpp"

namespace margrave {

enum class TokenStyle : std::uint8_t { columns, labels };

struct TokenOutput {
  TokenStyle style = TokenStyle::columns;
  bool nbest = false;
};

// `path` is the file that `data` was read from, sequence by sequence. Marginals are written where predictions
// have them. Throws InputError where the file does not have the sequences and tokens of the data.
void write_tokens(const Dataset& data, const std::vector<Prediction>& predictions, const std::string& path,
                  const TokenOutput& output, const std::function<void(std::string_view)>& sink);

}  // namespace margrave
