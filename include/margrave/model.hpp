// A trained model: templates, weights, how its data was read, and where it came from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "margrave/dataset.hpp"
#include "margrave/io.hpp"
#include "margrave/options.hpp"

namespace margrave {

/// A dual point as weighted labellings per example: enough
/// to recompute w and the dual bound without any solver.
struct Certificate {
  std::uint64_t fingerprint = 0;           ///< of the training data
  std::vector<std::uint64_t> atom_begin;   ///< examples + 1
  std::vector<double> weight;              ///< of each labelling; ≥ 0, summing to 1 per example
  std::vector<std::uint64_t> label_begin;  ///< labellings + 1
  std::vector<std::uint32_t> label;        ///< states of all variables, labelling by labelling
};

struct Model {
  TemplateSet templates;
  std::vector<double> weights;  ///< templates.storage() long, padding zero
  ReadOptions read;             ///< format resolved, never "auto"
  double lambda = 0;
  Loss loss = Loss::hinge;
  double gamma = 0;
  Hamming hamming = Hamming::normalized;
  std::string provenance;  ///< JSON: version, options, data fingerprint, final bounds
  std::optional<Certificate> certificate;

  double weight(std::size_t template_index, std::uint32_t row, std::uint64_t input) const {
    const Template& t = templates[template_index];
    return weights[t.offset + input * t.stride + row];
  }
};

/// One versioned, checksummed file. Atomic. Throws IoError.
void save_model(const Model& model, const std::string& path);
/// Throws InputError for foreign, truncated or corrupt files, saying which; IoError where it cannot be read.
Model load_model(const std::string& path);

/// Whether data with these templates can be scored by the model: same templates
/// in the same order, with the same states, inputs and weight rows. Throws
/// InputError saying what differs; `file` (the data's) goes into the message.
void require_compatible(const Model& model, const TemplateSet& templates, const std::string& file = {});

struct DumpOptions {
  std::uint64_t top = 0;  ///< only the K largest |w| of each weight row, largest first; 0: all, in order
  bool nonzero = false;   ///< leave zeros out
};
/// One weight a line: template, states, input, value with 17 significant digits, separated by tabs. Pieces go
/// to `sink` in order.
void dump_text(const Model& model, const DumpOptions& options,
               const std::function<void(std::string_view)>& sink);
/// The same as one JSON object, with the settings and the provenance of the model.
void dump_json(const Model& model, const DumpOptions& options,
               const std::function<void(std::string_view)>& sink);

}  // namespace margrave
