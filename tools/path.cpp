// margrave path DATA
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "margrave/error.hpp"
#include "margrave/path.hpp"
#include "report/path_report.hpp"
#include "tools/apart.hpp"
#include "tools/data_flags.hpp"
#include "tools/progress.hpp"
#include "tools/signals.hpp"
#include "tools/train_flags.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

double grid_number(std::string_view flag, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value > 0) || !std::isfinite(value))
    throw UsageError(
        fmt::format("{}: '{}' is not a positive number\n  give numbers (1,0.1,0.01) or a range in "
                    "equal ratios (1:0.001:10, first, last and how many)",
                    flag, text));
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<double> parse_grid(std::string_view flag, std::string_view text) {
  if (const auto range = split(text, ':'); range.size() == 3) {
    const double count = grid_number(flag, range[2]);
    if (count > 1e6 || count != std::floor(count))
      throw UsageError(fmt::format("{}: '{}' is no number of points", flag, range[2]));
    return geometric_grid(grid_number(flag, range[0]), grid_number(flag, range[1]),
                          static_cast<std::size_t>(count));
  }
  std::vector<double> grid;
  for (const std::string_view part : split(text, ',')) grid.push_back(grid_number(flag, part));
  return grid;
}

class Path {
 public:
  explicit Path(Verb& verb) : verb_(verb) {
    verb.positional("DATA", data_path_, "file to learn from");
    data_.set_up(verb, "--train-folds", "letter: folds that train (0, 1-9, 1,2,5); the rest is held out");
    const auto file = [&](const char* name, std::string& target, const char* help, const char* group) {
      verb.app().add_option(name, target, help)->type_name("FILE")->check(file_name())->group(group);
    };
    file("--test", test_path_, "held-out data, scored at every point", "Data");
    verb.app()
        .add_option("--lambdas", lambdas_,
                    "the path: numbers (1,0.1,0.01), or first:last:count in equal ratios")
        ->type_name("GRID")
        ->default_str("1:0.001:10")
        ->group("Problem");
    verb.app()
        .add_option("--Cs", cs_, "the same as values of C, λ = 1/(C·M)")
        ->type_name("GRID")
        ->group("Problem");
    flags_.set_up(verb);
    file("-o,--model", model_path_, "the model with the smallest held-out error", "Files");
    file("--svg", svg_path_, "errors, non-zeros and gaps over λ", "Files");
    verb.quiet_and_json();
    verb.threads_flag();
    verb.app().footer(
        "Every point starts from the one before where the solver can, so strong regularisation (large λ, "
        "small "
        "C) comes\n"
        "first. Example: margrave path train.jsonl --test test.jsonl --regularizer l1 --Cs 0.01:10:8 --svg "
        "path.svg");
  }

  int run() {
    catch_signals();
    const TrainOptions options = flags_.options(verb_);
    if (options.lambda || options.C)
      throw UsageError("a path goes over many: give --lambdas or --Cs instead of --lambda or --C");
    if (!options.checkpoint.empty() || !options.resume.empty() || !options.warm_start.empty())
      throw UsageError(
          "a path starts each run itself: --checkpoint, --resume and --warm-start are for `train`");
    if (lambdas_ && cs_) throw UsageError("give --lambdas or --Cs, not both");
    const NamedFile outputs[] = {{"--model", model_path_}, {"--svg", svg_path_}};
    const NamedFile inputs[] = {{"DATA", data_path_},
                                {"--test", test_path_},
                                {"--template", data_.template_path()},
                                {"--labels", data_.labels_path()}};
    require_apart(outputs, inputs);
    ignore_broken_pipes();
    for (const std::string& path : {model_path_, svg_path_}) require_writable(path);
    std::vector<double> grid =
        cs_ ? parse_grid("--Cs", *cs_) : parse_grid("--lambdas", lambdas_.value_or("1:0.001:10"));
    const Loaded loaded = data_.load(verb_, data_path_);
    require_labels(loaded.file.data, data_path_);
    if (cs_)
      for (double& number : grid) number = 1 / (number * static_cast<double>(loaded.file.data.size()));
    const std::optional<Dataset> held_out = load_held_out(verb_, loaded.file, test_path_);

    Hooks hooks;
    hooks.stop = &stop_requested();
    stop_on_signals();
    bool first = true;
    PathResult result = path(loaded.file.data, held_out ? &*held_out : nullptr, options, grid, hooks,
                             [&](const PathPoint& point) {
                               if (std::exchange(first, false)) verb_.say("{}", path_table_head());
                               verb_.say("{}", path_table_line(point));
                             });
    result.best.read = loaded.file.read;
    if (!model_path_.empty()) save_model(result.best, model_path_);
    if (!svg_path_.empty()) {
      Output svg(svg_path_);
      svg.write(path_svg(result));
      svg.finish();
    }
    if (verb_.json) fmt::print("{}\n", path_json(result));
    const PathPoint& best = result.points[result.best_point];
    verb_.say("best {} error {:.4g} at λ = {:.4g} (C = {:.4g}), {} of {} weights{}\n",
              best.held_out ? "held-out" : "training",
              best.held_out ? best.held_out->hamming : best.train.hamming, best.lambda, best.C,
              best.report.nonzero_weights, best.report.dimension,
              model_path_.empty() ? "; --model FILE keeps that model" : ": " + model_path_);
    const Status last = result.points.back().report.status;
    if (last == Status::interrupted || stop_requested()) return interrupted;
    return last == Status::numerical_failure ? numerical_failure : success;
  }

 private:
  Verb& verb_;
  DataFlags data_;
  TrainFlags flags_;
  std::string data_path_, test_path_, model_path_, svg_path_;
  std::optional<std::string> lambdas_, cs_;
};

}  // namespace

void set_up_path(Verb& verb) {
  const auto path = std::make_shared<Path>(verb);
  verb.run = [path] { return path->run(); };
}

}  // namespace margrave::tools
