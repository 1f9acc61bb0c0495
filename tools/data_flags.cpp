#include "tools/data_flags.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "data/feature_template.hpp"
#include "data/line_reader.hpp"
#include "data/mulan_xml.hpp"
#include "margrave/error.hpp"
#include "report/option_fields.hpp"

namespace margrave::tools {
namespace {

std::string format_choices() { return fmt::format("auto|{}", fmt::join(formats(), "|")); }

// The format a path's ending promises, or empty.
std::string_view promised_format(std::string_view path) {
  if (path.ends_with(".mgd")) return "mgd";
  if (path.ends_with(".jsonl") || path.ends_with(".jsonl.gz")) return "jsonl";
  return {};
}

// The text of a template file, checked here, where its name is known.
std::string template_text(const std::string& path) {
  constexpr std::size_t longest = std::size_t{1} << 20U;
  ByteSource source(path);
  std::string text(longest, '\0');
  std::size_t size = 0;
  for (std::size_t got = 1; got > 0 && size < longest; size += got)
    got = source.read(text.data() + size, longest - size);
  if (size == longest) throw InputError({path, 0, 0}, "more than 2^20 bytes: is this a feature template?");
  text.resize(size);
  static_cast<void>(FeatureTemplate(text, path));
  return text;
}

}  // namespace

Loaded load_data(const Verb& verb, const std::string& path, const ReadOptions& options,
                 const TemplateSet* templates) {
  const auto start = std::chrono::steady_clock::now();
  Loaded loaded;
  try {
    loaded.file = read_data(path, options, templates);
  } catch (const InputError& error) {
    // Behind the first line the guess has proved right, and a template is not guessed.
    if (options.format != "auto" || error.where().line != 1 || error.where().file != path) throw;
    throw InputError(error.where(),
                     fmt::format("{}\n  the format was guessed from the content; --format names it: {}",
                                 error.reason(), fmt::join(formats(), ", ")));
  }
  loaded.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const std::string& warning : loaded.file.warnings) verb.note("margrave: warning: {}\n", warning);
  return loaded;
}

void DataFlags::set_up(Verb& verb, const std::string& folds, const std::string& folds_help) {
  CLI::App& app = verb.app();
  verb.choice("--format", format_, format_choices(), "how the file is written; auto looks at its content")
      ->group("Data");
  app.add_option(folds, folds_, folds_help)->type_name("LIST")->group("Data");
  app.add_option("--template", template_path_,
                 "conll: feature template in CRF++ syntax; without, columns at -2 to 2 and label pairs")
      ->type_name("FILE")
      ->check(file_name())
      ->group("Data");
  app.add_option("--cutoff", cutoff_, "conll, crfsuite: leave out features seen less than N times")
      ->type_name("N")
      ->default_str("1")
      ->check(between(1, std::numeric_limits<std::uint32_t>::max()))
      ->group("Data");
  app.add_option("--hash-bits", hash_bits_,
                 "conll, crfsuite: hash features to 2^B inputs; without, each has its own")
      ->type_name("B")
      ->check(between(0, 31))
      ->group("Data");
  verb.choice("--graph", graph_, std::string(graph_choices),
              "multilabel, arff: pairs of labels that get a factor")
      ->group("Data");
  verb.choice("--parameters", parameters_, std::string(parameters_choices),
              "minimal: state 0 is the reference (multilabel's default)")
      ->group("Data");
  bias_option_ =
      app.add_option("--bias", bias_,
                     "letter, multilabel, arff: constant input of every node; 1 if absent, 0: none")
          ->type_name("X")
          ->check(number())
          ->group("Data");
  app.add_option("--feature-base", feature_base_, "multilabel: number of the first feature")
      ->type_name("0|1")
      ->default_str("1")
      ->check(between(0, 1))
      ->group("Data");
  app.add_option("--top-labels", top_labels_, "multilabel, arff: keep the N most frequent labels")
      ->type_name("N")
      ->check(whole_number())
      ->group("Data");
  app.add_option("--labels", labels_path_,
                 "arff: Mulan's list of the labels; if absent a file .xml beside DATA, or MEKA's -C in it")
      ->type_name("FILE.xml")
      ->check(file_name())
      ->group("Data");
  app.add_flag("--drop-unlabelled", drop_unlabelled_,
               "leave out variables without a label, and their factors")
      ->group("Data");
}

ReadOptions DataFlags::options() const {
  ReadOptions options;
  options.format = format_;
  options.train_folds = folds_;
  if (!template_path_.empty()) options.feature_template = template_text(template_path_);
  options.cutoff = cutoff_;
  options.hash_bits = hash_bits_;
  if (bias_option_->count() > 0) options.bias = bias_;
  options.graph = parse_choice<Graph>("graph", graph_choices, graph_);
  options.parameters = parse_choice<Parameters>("parameters", parameters_choices, parameters_);
  options.feature_base = feature_base_;
  options.top_labels = top_labels_;
  options.drop_unlabelled = drop_unlabelled_;
  if (!labels_path_.empty()) options.labels = read_mulan_labels(labels_path_);
  return options;
}

Loaded DataFlags::load(const Verb& verb, const std::string& path) const {
  return load_data(verb, path, options(), nullptr);
}

void ModelDataFlags::set_up(Verb& verb, const std::string& folds_help) {
  verb.choice("--format", format_, format_choices(), "how DATA is written; auto: as the model's data")
      ->group("Data");
  verb.app().add_option("--folds", folds_, folds_help)->type_name("LIST")->group("Data");
}

ReadOptions read_like(const Model& model, const std::string& path, const std::string& format) {
  std::string wanted = format;
  if (wanted == "auto") wanted = promised_format(path);
  if (wanted.empty()) wanted = model.read.format == "mgd" ? "auto" : model.read.format;
  ReadOptions options;
  if (wanted == model.read.format) options = model.read;
  options.format = wanted;
  options.drop_unlabelled = false;  // new data may well have no labels
  options.train_folds.clear();
  return options;
}

Loaded ModelDataFlags::load(const Verb& verb, const Model& model, const std::string& path) const {
  ReadOptions options = read_like(model, path, format_);
  options.train_folds = folds_;
  Loaded loaded = load_data(verb, path, options, &model.templates);
  require_compatible(model, loaded.file.data.templates(), path);
  return loaded;
}

Loaded ModelDataFlags::load_training_data(const Verb& verb, const Model& model,
                                          const std::string& path) const {
  ReadOptions options = read_like(model, path, format_);
  if (options.format == model.read.format) {
    options.train_folds = model.read.train_folds;
    options.drop_unlabelled = model.read.drop_unlabelled;
  }
  if (!folds_.empty()) options.train_folds = folds_;
  Loaded loaded = load_data(verb, path, options, nullptr);
  require_compatible(model, loaded.file.data.templates(), path);
  return loaded;
}

void require_labels(const Dataset& data, const std::string& path) {
  if (!data.fully_labelled())
    throw InputError({path},
                     "some variables have no label, and training needs them all\n"
                     "  --drop-unlabelled leaves those variables out; `margrave check` names the examples");
}

// Before training, so that a wrong file is found at once.
std::optional<Dataset> load_held_out(const Verb& verb, const DataFile& file, const std::string& test_path) {
  if (test_path.empty()) return file.held_out;
  Model like;
  like.read = file.read;
  like.templates = file.data.templates();
  const Loaded test = load_data(verb, test_path, read_like(like, test_path, "auto"), &like.templates);
  require_compatible(like, test.file.data.templates(), test_path);
  const auto labels = test.file.data.columns().label;
  if (std::all_of(labels.begin(), labels.end(), [](std::int32_t label) { return label == unlabelled; }))
    throw InputError({test_path}, "no variable has a label, so there is nothing to score");
  return test.file.data;
}

}  // namespace margrave::tools
