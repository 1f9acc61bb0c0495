#include "tools/train_flags.hpp"

#include "margrave/error.hpp"

namespace margrave::tools {

void TrainFlags::set_up(Verb& verb, bool files) {
  CLI::App& app = verb.app();
  const char* const problem = "Objective";
  lambda_option_ =
      app.add_option("--lambda", lambda_, "weight of the regulariser; 0.01 where neither is given")
          ->type_name("X")
          ->check(number())
          ->group(problem);
  c_option_ =
      app.add_option("--C", c_, "the same as λ = 1/(C·M)")->type_name("X")->check(number())->group(problem);
  verb.choice("--loss", loss_, std::string(loss_choices), "H_m")->group(problem);
  app.add_option(
         "--gamma", numbers_.gamma,
         "smoothing of the hinge, temperature of the log loss: γ log Σ exp(·/γ), or a quadratic entropy in "
         "clique-wise solvers")
      ->type_name("G")
      ->check(number())
      ->default_str("0")
      ->group(problem);
  verb.choice("--hamming", hamming_, std::string(hamming_choices),
              "Δ divided by the number of variables, or their sum")
      ->group(problem);
  verb.choice("--rescaling", rescaling_, std::string(rescaling_choices),
              "Δ − <w, ψ>; or Δ·(1 − <w, ψ>), which this version refuses: no oracle here maximises a product")
      ->group(problem);
  verb.choice("--regularizer", regularizer_, std::string(regularizer_choices), "λ/2·|w|² or λ/2·|w|₁")
      ->group(problem);

  const char* const solving = "Solving";
  verb.choice("--solver", solver_, solver_choices(), "auto picks by structure, and says why")->group(solving);
  verb.choice("--inference", inference_, std::string(inference_choices),
              "oracle: exact, or of the LP-relaxed hinge (lp, msd, roof-dual for pairs of binary variables); "
              "auto picks by structure; errors at the end are of the labels that it finds")
      ->group(solving);
  app.add_option("--gap", numbers_.gap, "stop when (P − D)/max(1e-12, |P|) ≤ R; 0 never stops")
      ->type_name("R")
      ->check(number())
      ->default_str("1e-3")
      ->group(solving);
  app.add_option("--max-epochs", numbers_.max_epochs, "stop after N epochs")
      ->type_name("N")
      ->check(whole_number())
      ->default_str("1000")
      ->group(solving);
  app.add_option("--max-seconds", numbers_.max_seconds, "stop after S seconds")
      ->type_name("S")
      ->check(number())
      ->group(solving);
  app.add_option("--evaluate-every", numbers_.evaluate_every, "epochs between evaluations")
      ->type_name("N")
      ->check(whole_number())
      ->default_str("1")
      ->group(solving);
  verb.choice("--mode", mode_, std::string(mode_choices),
              "deterministic: the same bits at any number of threads")
      ->group(solving);
  app.add_option("--seed", numbers_.seed, "of the random streams")
      ->type_name("S")
      ->check(whole_number())
      ->default_str("1")
      ->group(solving);
  if (files) set_up_files(verb);
  set_up_solver_fields(verb);
}

void TrainFlags::set_up_files(Verb& verb) {
  CLI::App& app = verb.app();
  const char* const files = "Files";
  app.add_option("--checkpoint", numbers_.checkpoint, "written every few seconds, and at the end")
      ->type_name("FILE")
      ->check(file_name())
      ->group(files);
  app.add_option("--resume", numbers_.resume, "checkpoint to continue, bit for bit")
      ->type_name("FILE")
      ->check(file_name())
      ->group(files);
  app.add_option("--warm-start", numbers_.warm_start, "checkpoint whose dual point starts this run, at any λ")
      ->type_name("FILE")
      ->check(file_name())
      ->group(files);
  app.add_flag("--no-certificate", no_certificate_,
               "leave the dual point out of the model (smaller; cannot be certified)")
      ->group(files);
}

void TrainFlags::set_up_solver_fields(Verb& verb) {
  for (FieldInfo& info : solver_fields()) {
    SolverFlag& flag = solver_flags_.emplace_back();
    flag.info = std::move(info);
    const std::string name = "--" + flag.info.name;
    const std::string group = fmt::format("{} options", fmt::join(flag.info.solvers, ", "));
    const std::string help = flag.info.help;
    if (flag.info.flag) {
      flag.option = verb.app().add_flag(fmt::format("{},!--no-{}", name, flag.info.name), flag.text,
                                        fmt::format("{} [{}]", help, flag.info.default_value));
    } else if (!flag.info.choices.empty()) {
      flag.option = verb.choice(name, flag.text, std::string(flag.info.choices), help);
      flag.option->default_str(flag.info.default_value);
    } else {
      flag.option =
          verb.app().add_option(name, flag.text, help)->type_name("N")->default_str(flag.info.default_value);
    }
    flag.option->group(group);
  }
}

TrainOptions TrainFlags::options(const Verb& verb) const {
  TrainOptions options = numbers_;
  if (lambda_option_->count() > 0) options.lambda = lambda_;
  if (c_option_->count() > 0) options.C = c_;
  options.loss = parse_choice<Loss>("loss", loss_choices, loss_);
  options.hamming = parse_choice<Hamming>("hamming", hamming_choices, hamming_);
  options.rescaling = parse_choice<Rescaling>("rescaling", rescaling_choices, rescaling_);
  options.regularizer = parse_choice<Regularizer>("regularizer", regularizer_choices, regularizer_);
  options.inference = parse_choice<Inference>("inference", inference_choices, inference_);
  options.mode = parse_choice<Mode>("mode", mode_choices, mode_);
  options.threads = verb.threads;
  options.certificate = !no_certificate_;
  std::vector<std::pair<std::string, std::string>> settings;
  for (const SolverFlag& flag : solver_flags_)
    if (flag.option->count() > 0) settings.emplace_back(flag.info.name, flag.text);
  // A flag that only one solver has names that solver.
  std::string solver = solver_;
  if (solver == "auto" && !settings.empty()) {
    for (const SolverFlag& flag : solver_flags_)
      if (flag.option->count() > 0 && flag.info.solvers.size() == 1) solver = flag.info.solvers.front();
  }
  options.solver = make_solver(solver, settings);
  validate(options);
  return options;
}

}  // namespace margrave::tools
