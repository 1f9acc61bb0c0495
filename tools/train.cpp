// margrave train DATA
#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <span>

#include "margrave/error.hpp"
#include "margrave/inspect.hpp"
#include "margrave/predict.hpp"
#include "margrave/train.hpp"
#include "report/summary.hpp"
#include "tools/apart.hpp"
#include "tools/data_flags.hpp"
#include "tools/progress.hpp"
#include "tools/signals.hpp"
#include "tools/train_flags.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

class Train {
 public:
  explicit Train(Verb& verb) : verb_(verb) {
    verb.positional("DATA", data_path_, "file to learn from");
    data_.set_up(verb, "--train-folds", "letter: folds that train (0, 1-9, 1,2,5); the rest is the test set");
    verb.app()
        .add_option("--test", test_path_, "evaluated at the end")
        ->type_name("FILE")
        ->check(file_name())
        ->group("Data");
    flags_.set_up(verb);
    verb.app()
        .add_option("-o,--model", model_path_, "the trained model")
        ->type_name("FILE")
        ->check(file_name())
        ->group("Files");
    verb.app()
        .add_option("--trace", trace_path_, "JSON lines, one per evaluation")
        ->type_name("FILE")
        ->check(file_name())
        ->group("Files");
    verb.quiet_and_json();
    verb.threads_flag();
  }

  int run() {
    catch_signals();
    const TrainOptions options = flags_.options(verb_);
    require_files_apart(options);
    ignore_broken_pipes();
    for (const std::string& path : {model_path_, trace_path_, options.checkpoint}) require_writable(path);
    const Loaded loaded = data_.load(verb_, data_path_);
    const Dataset& data = loaded.file.data;
    require_labels(data, data_path_);
    verb_.note("{}: {} examples, {} variables, {} weights, read in {}\n", data_path_, data.size(),
               data.variables(), data.templates().dimension(), duration_text(loaded.seconds));
    const std::optional<Dataset> test = load_held_out(verb_, loaded.file, test_path_);

    TrainResult result = solve(data, options);
    Report& report = result.report;
    result.model.read = loaded.file.read;
    if (!model_path_.empty()) save_model(result.model, model_path_);
    verb_.note("{}{}{}\n", report.solver, report.oracle.empty() ? "" : " with oracle " + report.oracle,
               report.reason.empty() ? "" : ": " + report.reason);

    PredictOptions predicting;
    predicting.threads = options.threads;
    predicting.inference = report.inference;
    if (verb_.json || !verb_.quiet) {  // else nobody sees the losses, which take an oracle call per example
      const Losses train_losses = evaluate(result.model, data, predicting);
      std::optional<Losses> test_losses;
      if (test) test_losses = evaluate(result.model, *test, predicting);
      if (verb_.json) fmt::print("{}\n", summary_json(report, loaded.seconds, train_losses, test_losses));
      print(report, options, loaded.seconds, train_losses, test_losses);
    }
    // Also where the signal came too late to stop the training.
    if (report.status == Status::interrupted || stop_requested()) return interrupted;
    return report.status == Status::numerical_failure ? numerical_failure : success;
  }

 private:
  // A checkpoint may follow the one that is resumed.
  void require_files_apart(const TrainOptions& options) const {
    const NamedFile outputs[] = {
        {"--model", model_path_}, {"--trace", trace_path_}, {"--checkpoint", options.checkpoint}};
    const NamedFile inputs[] = {{"DATA", data_path_},
                                {"--test", test_path_},
                                {"--template", data_.template_path()},
                                {"--labels", data_.labels_path()}};
    require_apart(outputs, inputs);
    const NamedFile resumed[] = {{"--resume", options.resume}};
    require_apart(std::span(outputs).first(2), resumed);
  }

  TrainResult solve(const Dataset& data, const TrainOptions& options) const {
    Progress progress(Progress::choose_style(verb_.quiet), options);
    std::unique_ptr<Output> trace;
    if (!trace_path_.empty()) trace = std::make_unique<Output>(trace_path_);
    Hooks hooks;
    hooks.on_evaluation = [&](const Evaluation& evaluation) {
      progress.evaluated(evaluation);
      if (trace) trace->write(trace_line(evaluation));
    };
    hooks.on_progress = [&](std::uint64_t epoch, double fraction) { progress.moved(epoch, fraction); };
    hooks.stop = &stop_requested();
    stop_on_signals();
    try {
      TrainResult result = train(data, options, hooks);
      progress.finish();
      if (trace) trace->finish();
      return result;
    } catch (const std::bad_alloc&) {
      progress.finish();
      const Inspection sizes = inspect(data);
      throw IoError(
          fmt::format("out of memory: data {}, one weight vector {}, marginals {}, messages {} are forecast",
                      bytes_text(static_cast<double>(sizes.data_bytes)),
                      bytes_text(static_cast<double>(sizes.weight_bytes)),
                      bytes_text(static_cast<double>(sizes.marginal_bytes)),
                      bytes_text(static_cast<double>(sizes.message_bytes))));
    } catch (...) {
      progress.finish();
      throw;
    }
  }

  void print_losses(std::string_view name, const Losses& losses) const {
    verb_.say("  {:<15} hamming {:.6g}   zero-one {:.6g}   F1 {:.6g}   ({} examples{})\n", name,
              losses.hamming, losses.zero_one, losses.f1, losses.examples,
              losses.solved_exactly < 1
                  ? fmt::format(", {:.4g} % solved exactly", 100 * losses.solved_exactly)
                  : "");
    if (losses.chunk_f1) verb_.say("  {:<15} {:.4g} (chunks)\n", "", *losses.chunk_f1);
  }

  void print(const Report& report, const TrainOptions& options, double load_seconds,
             const Losses& train_losses, const std::optional<Losses>& test_losses) const {
    const Evaluation& last = report.last;
    // Clique-wise solvers call no oracle: what they count are block steps.
    verb_.say("{} after {} epochs, {} {}\n", name(report.status), report.epochs, last.oracle_calls,
              last.soft_dual ? "block steps" : "oracle calls");
    verb_.say("  {:<15} {:.10g}\n", "primal", last.primal);
    if (last.dual) {
      verb_.say("  {:<15} {:.10g}\n", "dual", *last.dual);
      verb_.say("  {:<15} {:.4g}   relative {:.4g}{}\n", last.certified ? "certified gap" : "gap (not cert.)",
                *last.gap(), *last.relative_gap(),
                options.gap > 0 ? fmt::format("   asked for {:.4g}", options.gap) : "");
    }
    if (last.soft_primal)
      verb_.say("  {:<15} {:.4g}   of {:.10g}; marginals disagree by {:.2g} (|Aμ|²/M)\n", "soft gap",
                *last.soft_primal - *last.soft_dual, *last.soft_primal, *last.violation);
    if (report.matching_lambda)
      verb_.say("  {:<15} the solution is that of λ/2·|w|₁ with --lambda {:.6g}, that is --C {:.6g}\n",
                "matches", *report.matching_lambda,
                1 / (*report.matching_lambda * static_cast<double>(train_losses.examples)));
    print_losses("training error", train_losses);
    if (test_losses) print_losses("held-out error", *test_losses);
    verb_.say("  {:<15} {} load, {} train, {} evaluate, on {} thread{}\n", "time",
              duration_text(load_seconds), duration_text(report.train_seconds),
              duration_text(report.evaluate_seconds), report.threads, report.threads == 1 ? "" : "s");
    verb_.say("  {:<15} {} peak, of which {} solver state\n", "memory",
              bytes_text(static_cast<double>(report.memory_bytes)),
              bytes_text(static_cast<double>(report.state_bytes)));
    verb_.say("  {:<15} {} of {} are not zero\n", "weights", report.nonzero_weights, report.dimension);
    print_next(report, options);
  }

  void print_next(const Report& report, const TrainOptions& options) const {
    if (model_path_.empty()) {
      verb_.say("  {:<15} not saved; --model FILE keeps it\n", "model");
    } else {
      verb_.say("  {:<15} {}\n", "model", model_path_);
      verb_.say(
          "next: margrave certify {0} {1}    margrave predict {0} NEW_DATA    margrave dump {0} --top 5\n",
          model_path_, data_path_);
    }
    if (report.status == Status::interrupted && !options.checkpoint.empty())
      verb_.say("      the same command with --resume {} goes on\n", options.checkpoint);
    else if (report.status == Status::epoch_limit)
      verb_.say("      a larger --max-epochs brings a smaller {}\n", report.last.dual ? "gap" : "primal");
  }

  Verb& verb_;
  DataFlags data_;
  TrainFlags flags_;
  std::string data_path_, test_path_, model_path_, trace_path_;
};

}  // namespace

void set_up_train(Verb& verb) {
  const auto train = std::make_shared<Train>(verb);
  verb.run = [train] { return train->run(); };
}

}  // namespace margrave::tools
