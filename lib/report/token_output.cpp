#include "report/token_output.hpp"

#include <fmt/format.h>

#include "data/token_lines.hpp"
#include "margrave/error.hpp"
#include "report/predicted_labels.hpp"
#include "report/state_names.hpp"

namespace margrave {
namespace {

class TokenWriter {
 public:
  TokenWriter(const Dataset& data, const TokenOutput& output) : data_(data), output_(output) {}

  // The tokens of example m with one of its labellings.
  std::string block(std::size_t m, const TokenLines::Sequence& sequence, const Prediction& prediction,
                    const std::vector<std::uint32_t>& labels) const {
    std::string text;
    const Topology& top = data_[m].topology();
    const bool columns = output_.style == TokenStyle::columns;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const Template& t = data_.templates()[top.variable_template[i]];
      const char gap = columns && sequence.tokens[i].find('\t') == std::string::npos ? ' ' : '\t';
      if (columns) text += sequence.tokens[i] + gap;
      text += state_name(t, labels[i]);
      if (!prediction.node_marginals.empty()) {
        const double* p = prediction.node_marginals.data() + top.clique_offset[i];
        add_probability(text, gap, t, labels[i], p);
        for (std::size_t y = 0; y < top.states[i]; ++y) add_probability(text, gap, t, y, p);
      }
      text += '\n';
    }
    return text;
  }

 private:
  void add_probability(std::string& text, char gap, const Template& t, std::size_t state,
                       const double* p) const {
    text += fmt::format("{}{}{}{:.6g}", gap, state_name(t, state),
                        output_.style == TokenStyle::columns ? '/' : ':', p[state]);
  }

  const Dataset& data_;
  const TokenOutput& output_;
};

[[noreturn]] void refuse(const TokenLines& lines, const TokenLines::Sequence& sequence,
                         const std::string& why) {
  throw InputError({lines.path(), sequence.line, 0}, why + ": the file is not the one that was read");
}

}  // namespace

void write_tokens(const Dataset& data, const std::vector<Prediction>& predictions, const std::string& path,
                  const TokenOutput& output, const std::function<void(std::string_view)>& sink) {
  TokenLines lines(path);
  TokenLines::Sequence sequence;
  const TokenWriter writer(data, output);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const auto& best = predicted_labels(data, predictions, m);
    const Prediction& prediction = predictions[m];
    if (!lines.next(sequence))
      refuse(lines, sequence, fmt::format("{} sequences where {} were read", m, data.size()));
    if (sequence.tokens.size() != best.size())
      refuse(lines, sequence,
             fmt::format("sequence {} has {} tokens where {} were read", m, sequence.tokens.size(),
                         best.size()));
    if (!output.nbest) {
      sink(std::string(sequence.blank_before, '\n') + writer.block(m, sequence, prediction, best));
      continue;
    }
    for (std::size_t rank = 0; rank < prediction.best.size(); ++rank)
      sink(fmt::format("# {} {:.10g}\n", rank, prediction.best[rank].score) +
           writer.block(m, sequence, prediction, prediction.best[rank].labels) + "\n");
  }
  if (lines.next(sequence))
    refuse(lines, sequence, fmt::format("more than the {} sequences that were read", data.size()));
  if (!output.nbest) sink(std::string(sequence.blank_before, '\n'));
}

}  // namespace margrave
