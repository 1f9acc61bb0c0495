// Flags of `train` that become TrainOptions.
#pragma once

#include <list>
#include <string>

#include "margrave/options.hpp"
#include "report/option_fields.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {

class TrainFlags {
 public:
  // Without `files`: no checkpoints, no warm start.
  void set_up(Verb& verb, bool files = true);
  // Validated. Throws UsageError.
  TrainOptions options(const Verb& verb) const;

 private:
  // A field of some solver, as text until the solver is known.
  struct SolverFlag {
    FieldInfo info;
    std::string text;
    CLI::Option* option = nullptr;
  };
  void set_up_files(Verb& verb);
  void set_up_solver_fields(Verb& verb);

  TrainOptions numbers_;  // what CLI11 writes into directly
  double lambda_ = 0, c_ = 0;
  CLI::Option *lambda_option_ = nullptr, *c_option_ = nullptr;
  std::string loss_ = "hinge", hamming_ = "normalized", rescaling_ = "margin", regularizer_ = "l2",
              inference_ = "auto", solver_ = "auto", mode_ = "deterministic";
  bool no_certificate_ = false;
  std::list<SolverFlag> solver_flags_;
};

}  // namespace margrave::tools
