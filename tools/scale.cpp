// margrave scale DATA
#include "margrave/scale.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "margrave/error.hpp"
#include "report/scale_report.hpp"
#include "tools/apart.hpp"
#include "tools/data_flags.hpp"
#include "tools/signals.hpp"
#include "tools/train_flags.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

constexpr std::string_view study_help =
    "Study:      t(T) = seconds of training, without evaluation, on T threads until (P − D)/max(1e-12, |P|) "
    "is "
    "certified\n"
    "            to be at most a gap; T₁ is the fewest threads of the study.\n"
    "            speed-up S = t(T₁)/t(T), efficiency S·T₁/T; weak scaling, with T/T_max of the examples: "
    "t(T₁)/t(T).\n"
    "            S = hardware (the speed-up of a pass) · algorithmic (passes(T₁)/passes(T): what batches or "
    "staleness cost);\n"
    "            a pass is as many oracle calls as there are examples.\n"
    "            Means of the repeats with 95 % intervals by Student's t, of ratios by their logarithms.\n"
    "Simulation: W workers need the passes of batches of W × --visits-per-worker visits (the very steps that "
    "W "
    "threads make),\n"
    "            or, asynchronously, of visits that do not see what the W − 1 others did since their last\n"
    "            exchange of weights (--delay D: the last D visits), replayed.";

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    items.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return items;
}

// Every item of a list between commas.
CLI::Validator list_of(const CLI::Validator& item) {
  return {[item](const std::string& text) {
            for (const std::string& part : split_list(text))
              if (std::string wrong = item(part); !wrong.empty()) return wrong;
            return std::string();
          },
          ""};
}

// Checked before.
template <class T>
std::vector<T> numbers_of(const std::string& text) {
  std::vector<T> numbers;
  if (text.empty()) return numbers;
  for (const std::string& part : split_list(text)) {
    T number{};
    std::from_chars(part.data(), part.data() + part.size(), number);
    numbers.push_back(number);
  }
  return numbers;
}

class Scale {
 public:
  explicit Scale(Verb& verb) : verb_(verb) {
    verb.positional("DATA", data_path_, "file to learn from");
    data_.set_up(verb, "--train-folds", "letter: folds that train (0, 1-9, 1,2,5)");
    set_up_study();
    flags_.set_up(verb, false);
    const char* const files = "Files";
    verb.app()
        .add_option("--csv", csv_path_, "the tables")
        ->type_name("FILE")
        ->check(file_name())
        ->group(files);
    verb.app()
        .add_option("--svg", svg_path_, "the plots")
        ->type_name("FILE")
        ->check(file_name())
        ->group(files);
    verb.app()
        .add_option("--html", html_path_, "tables and plots on one page that needs no other file")
        ->type_name("FILE")
        ->check(file_name())
        ->group(files);
    verb.quiet_and_json();
    verb.app().footer(fmt::format("{}\n{}", objective_help, study_help));
  }

  int run() {
    catch_signals();
    const TrainOptions train = flags_.options(verb_);
    const ScaleOptions options = study_options();
    const NamedFile outputs[] = {{"--csv", csv_path_}, {"--svg", svg_path_}, {"--html", html_path_}};
    const NamedFile inputs[] = {
        {"DATA", data_path_}, {"--template", data_.template_path()}, {"--labels", data_.labels_path()}};
    require_apart(outputs, inputs);
    ignore_broken_pipes();
    for (const NamedFile& output : outputs) require_writable(output.path);
    const Loaded loaded = data_.load(verb_, data_path_);
    const Dataset& data = loaded.file.data;
    if (!data.fully_labelled())
      throw InputError({data_path_},
                       "some variables have no label, and training needs them all\n"
                       "  --drop-unlabelled leaves those variables out; `margrave check` names the examples");
    verb_.note("{}: {} examples, {} variables, {} weights, read in {}\n", data_path_, data.size(),
               data.variables(), data.templates().dimension(), duration_text(loaded.seconds));
    const ScaleResult result = study(data, train, options);
    print(result);
    write(csv_path_, [&] { return scale_csv(result); });
    write(svg_path_, [&] { return to_svg(scale_plots(result)); });
    write(html_path_, [&] { return scale_html(result); });
    if (result.interrupted || stop_requested()) return interrupted;
    const bool failed = std::any_of(result.runs.begin(), result.runs.end(), [](const ScaleRun& one) {
      return one.status == Status::numerical_failure;
    });
    return failed ? numerical_failure : success;
  }

 private:
  void set_up_study() {
    CLI::App& app = verb_.app();
    const char* const group = "Study";
    app.add_option("--threads", threads_, "numbers of threads; without: 1, 2, 4, … and all usable cores")
        ->type_name("LIST")
        ->check(list_of(between(1, 4096)))
        ->group(group);
    gaps_option_ =
        app.add_option("--gaps", gaps_, "relative gaps to reach; without: 0.1, 0.01, … down to --gap")
            ->type_name("LIST")
            ->check(list_of(number()))
            ->group(group);
    app.add_option("--repeats", repeats_, "runs per number of threads; 0: simulate only")
        ->type_name("N")
        ->check(between(0, 10000))
        ->default_str("5")
        ->group(group);
    app.add_flag("--no-warm-up", no_warm_up_, "count the first round of runs too")->group(group);
    verb_
        .choice("--scaling", scaling_, "strong|weak|both",
                "all examples, or examples in proportion to the threads")
        ->group(group);
    app.add_option("--simulate-workers", workers_, "numbers of workers whose passes are found by simulation")
        ->type_name("LIST")
        ->check(list_of(between(1, 1000000)))
        ->group(group);
    app.add_option("--visits-per-worker", visits_per_worker_, "of a simulated batch, in deterministic mode")
        ->type_name("N")
        ->check(between(1, 1000000))
        ->default_str("4")
        ->group(group);
    delay_option_ =
        app.add_option("--delay", delay_, "replay that a change of the weights is seen D visits later")
            ->type_name("D")
            ->check(between(1, 1000000))
            ->group(group);
  }

  ScaleOptions study_options() const {
    if (gaps_option_->count() > 0 && verb_.app().get_option("--gap")->count() > 0)
      throw UsageError("give --gap or --gaps, not both: runs end at the smallest of the gaps");
    ScaleOptions options;
    options.threads = numbers_of<int>(threads_);
    options.gaps = numbers_of<double>(gaps_);
    options.repeats = repeats_;
    options.warm_up = !no_warm_up_;
    options.strong = scaling_ != "weak";
    options.weak = scaling_ != "strong";
    options.simulate_workers = numbers_of<std::uint32_t>(workers_);
    options.visits_per_worker = visits_per_worker_;
    if (delay_option_->count() > 0) options.delay = delay_;
    return options;
  }

  ScaleResult study(const Dataset& data, const TrainOptions& train, const ScaleOptions& options) const {
    ScaleHooks hooks;
    hooks.stop = &stop_requested();
    hooks.on_run = [&](const ScaleRun* run, std::size_t number, std::size_t runs) {
      if (run == nullptr) {
        verb_.note("run {} of {}: simulation\n", number, runs);
        return;
      }
      verb_.note("run {} of {}: {}, {} thread{}, {}: {} after {}\n", number, runs, name(run->scaling),
                 run->threads, run->threads == 1 ? "" : "s",
                 run->repeat == 0 ? std::string("warm-up") : fmt::format("repeat {}", run->repeat),
                 name(run->status), duration_text(run->train_seconds));
    };
    hooks.on_warning = [&](const std::string& warning) { verb_.note("margrave: warning: {}\n", warning); };
    stop_on_signals();
    ScaleResult result = scale(data, train, options, hooks);
    if (!result.reason.empty()) verb_.note("{}: {}\n", result.solver, result.reason);
    return result;
  }

  void print(const ScaleResult& result) const {
    if (verb_.json) fmt::print("{}\n", scale_json(result));
    verb_.say("{}\n", scale_heading(result));
    for (const TextTable& table : scale_tables(result)) verb_.say("\n{}", to_text(table));
  }

  template <class Text>
  static void write(const std::string& path, Text&& text) {
    if (path.empty()) return;
    Output output(path);
    output.write(text());
    output.finish();
  }

  Verb& verb_;
  DataFlags data_;
  TrainFlags flags_;
  std::string data_path_, csv_path_, svg_path_, html_path_, threads_, gaps_, workers_, scaling_ = "strong";
  std::uint32_t repeats_ = 5, visits_per_worker_ = 4, delay_ = 0;
  bool no_warm_up_ = false;
  CLI::Option *gaps_option_ = nullptr, *delay_option_ = nullptr;
};

}  // namespace

void set_up_scale(Verb& verb) {
  const auto scale = std::make_shared<Scale>(verb);
  verb.run = [scale] { return scale->run(); };
}

}  // namespace margrave::tools
