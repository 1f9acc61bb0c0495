// The model file: sections of lib/base/container.hpp.
//
//   settings      λ, loss, γ, Hamming, how the data was read, entropy, regularizer, sharpness
//   templates     names, states, inputs, weight rows
//   weights       all stored weights; or, where at most a quarter is not zero,
//   weights.set   one bit per stored weight, and weights.value those whose bit is set
//   kernel        kernel expansions of variables' weights, where there are any (kernel_codec.hpp)
//   provenance    JSON text
//   certificate, certificate.weight   the dual point, where it is one of labellings,
//   certificate.marginals             or of marginals (see certificate_codec.hpp)
//
// Version 1 knew neither marginals nor entropies, 2 no regularizer, 3 no sharpness; they are still read.
//
// A container's checksum only tells accidents; every length and number is checked again here, so that no file
// can make us read or allocate much more than its own size.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <variant>

#include "base/container.hpp"
#include "base/stream.hpp"
#include "data/readers.hpp"
#include "data/template_codec.hpp"
#include "margrave/error.hpp"
#include "margrave/model.hpp"
#include "model/stored_weights.hpp"
#include "report/certificate_codec.hpp"
#include "report/kernel_codec.hpp"
#include "report/shallow_json.hpp"

namespace margrave {
namespace {

constexpr std::uint32_t model_version = 4, oldest_version = 1;

template <class Enum>
Enum get_enum(ByteReader& in, Enum last, std::string_view what) {
  const auto value = in.get<std::uint8_t>();
  if (value > static_cast<std::uint8_t>(last)) in.fail(fmt::format("has an unknown {} ({})", what, value));
  return static_cast<Enum>(value);
}

double get_number(ByteReader& in, std::string_view what) {
  const auto value = in.get<double>();
  if (!std::isfinite(value) || value < 0) in.fail(fmt::format("has {} = {}", what, value));
  return value;
}

void put_settings(ByteWriter& out, const Model& model) {
  out.put(model.lambda);
  out.put(model.loss);
  out.put(model.gamma);
  out.put(model.hamming);
  const std::string read = to_json(model.read);
  out.put_array(std::span<const char>(read.data(), read.size()));
  out.put(model.entropy);
  out.put(model.regularizer);
  out.put(model.sharpness);
}

void get_settings(ByteReader& in, std::uint32_t version, Model& model) {
  model.lambda = get_number(in, "lambda");
  model.loss = get_enum(in, Loss::log, "loss");
  model.gamma = get_number(in, "gamma");
  model.hamming = get_enum(in, Hamming::sum, "Hamming loss");
  const auto read = in.get_array<char>();
  if (version > 1) model.entropy = get_enum(in, Entropy::shannon, "entropy");
  if (version > 2) model.regularizer = get_enum(in, Regularizer::l1, "regularizer");
  if (version > 3) model.sharpness = get_number(in, "sharpness");
  if (in.left() != 0) in.fail("has settings of unknown length");
  model.read = read_options_from_json({read.data(), read.size()});
}

void check_weights(const Model& model, const std::string& path) {
  for (const double w : model.weights)
    if (!std::isfinite(w)) throw InputError({path}, "model holds a weight that is not a finite number");
  if (!padding_is_zero(model.templates, model.weights))
    throw InputError({path}, "model holds weights in places that belong to no template");
}

std::vector<double> get_weights(const SectionFile& file, std::uint64_t storage) {
  const auto wrong = [&] {
    throw InputError({file.path()},
                     fmt::format("model's weights do not match its templates, which ask for {}", storage));
  };
  if (file.find("weights")) {
    const auto stored = file.array<double>("weights");
    if (stored.size() != storage) wrong();
    return {stored.begin(), stored.end()};
  }
  const auto set = file.array<std::uint64_t>("weights.set");
  const auto value = file.array<double>("weights.value");
  if (storage / 64 + (storage % 64 != 0 ? 1 : 0) != set.size()) wrong();
  std::vector<double> weights(storage);
  std::size_t next = 0;
  for (std::size_t word = 0; word < set.size(); ++word)
    for (std::uint64_t bits = set[word]; bits != 0; bits &= bits - 1) {
      const std::uint64_t at = word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
      if (at >= storage || next >= value.size()) wrong();
      weights[at] = value[next++];
    }
  if (next != value.size()) wrong();
  return weights;
}

}  // namespace

void save_model(const Model& model, const std::string& path) {
  if (model.weights.size() != model.templates.storage())
    throw UsageError("a model's weights must match its templates");
  for (const double w : model.weights)
    if (!std::isfinite(w)) throw UsageError("a model's weights must be finite numbers");
  ByteWriter settings, templates;
  put_settings(settings, model);
  write_templates(templates, model.templates);
  SectionWriter file(FileKind::model, model_version);
  file.add("settings", settings.bytes());
  file.add("templates", templates.bytes());

  std::vector<std::uint64_t> set;
  std::vector<double> value;
  for (const double w : model.weights)
    if (w != 0) value.push_back(w);
  if (value.size() * 4 <= model.weights.size()) {
    set.resize((model.weights.size() + 63) / 64);
    for (std::size_t i = 0; i < model.weights.size(); ++i)
      if (model.weights[i] != 0) set[i / 64] |= std::uint64_t{1} << (i % 64);
    file.add_array("weights.set", set.data(), set.size());
    file.add_array("weights.value", value.data(), value.size());
  } else {
    file.add_array("weights", model.weights.data(), model.weights.size());
  }
  ByteWriter kernel;
  if (model.kernel) {
    put_kernel(kernel, *model.kernel, model.templates, model.weights);
    file.add("kernel", kernel.bytes());
  }
  file.add_array("provenance", model.provenance.data(), model.provenance.size());

  std::vector<std::byte> packed;
  if (model.certificate) {
    const Certificate& certificate = *model.certificate;
    packed = std::visit([&](const auto& point) { return pack(certificate.fingerprint, point); },
                        certificate.point);
    if (const auto* labellings = std::get_if<Labellings>(&certificate.point)) {
      file.add("certificate", packed);
      file.add_array("certificate.weight", labellings->weight.data(), labellings->weight.size());
    } else {
      file.add("certificate.marginals", packed);
    }
  }
  file.write(path);
}

Model load_model(const std::string& path) {
  const auto file = SectionFile::open(path, FileKind::model, model_version, oldest_version);
  try {
    Model model;
    ByteReader settings(file->section("settings"), path);
    get_settings(settings, file->version(), model);
    model.templates = read_templates(ByteReader(file->section("templates"), path), path);
    model.weights = get_weights(*file, model.templates.storage());
    check_weights(model, path);
    if (const auto kernel = file->find("kernel")) {
      ByteReader bytes(*kernel, path);
      model.kernel = get_kernel(bytes, model.templates, model.weights);
    }
    const auto text = file->array<char>("provenance");
    model.provenance.assign(text.begin(), text.end());
    if (!model.provenance.empty() && parse_shallow(model.provenance).is_discarded())
      throw InputError({path}, "model's provenance is not JSON");
    if (file->find("certificate"))
      model.certificate =
          unpack_labellings(file->section("certificate"), file->array<double>("certificate.weight"), path);
    else if (const auto marginals = file->find("certificate.marginals"))
      model.certificate = unpack_marginals(*marginals, path);
    return model;
  } catch (const UsageError& error) {  // the file is at fault, not the caller
    throw InputError({path}, fmt::format("model's settings are wrong: {}", error.what()));
  } catch (const std::length_error&) {
    throw InputError({path}, "model asks for more memory than there can be");
  }
}

void require_compatible(const Model& model, const TemplateSet& templates, const std::string& file) {
  const TemplateSet& own = model.templates;
  const auto fail = [&](const std::string& why) {
    throw InputError({file}, "this data does not fit the model: " + why);
  };
  for (std::size_t t = 0; t < std::min(own.size(), templates.size()); ++t) {
    const Template &a = own[t], &b = templates[t];
    if (a.name != b.name)
      fail(fmt::format("template {} is '{}' in the model and '{}' in the data", t, a.name, b.name));
    if (a.states != b.states)
      fail(fmt::format("template '{}' has states [{}] in the model and [{}] in the data", a.name,
                       fmt::join(a.states, ","), fmt::join(b.states, ",")));
    if (a.inputs != b.inputs)
      fail(fmt::format("template '{}' has {} inputs in the model and {} in the data", a.name, a.inputs,
                       b.inputs));
    if (a.row_of != b.row_of)
      fail(fmt::format("template '{}' shares its weights among states in another way", a.name));
  }
  if (own.size() != templates.size())
    fail(fmt::format("the model has {} templates, the data {}", own.size(), templates.size()));
}

}  // namespace margrave
