// What every verb shares: flags, choices with `list`, positionals, and where text goes.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace margrave {
class AtomicFile;
}

namespace margrave::tools {

enum ExitCode : int {
  success = 0,
  usage_failure = 2,
  input_failure = 3,
  io_failure = 4,
  numerical_failure = 5,
  interrupted = 130
};

inline constexpr std::string_view objective_help =
    "Objective:  P(w) = λ/2·|w|² + (1/M)·Σ H_m(w),   λ = 1/(C·M)\n"
    "            H_m(w) = max_y [ Δ(y) − <w, φ(y*) − φ(y)> ], the structured hinge over M examples;\n"
    "            Δ is the Hamming loss, divided by the number of variables unless --hamming sum.\n"
    "            --loss log: log Σ_y exp(−<w, φ(y*) − φ(y)>), a CRF; --gamma γ: γ log Σ_y exp([ … ]/γ) of "
    "either.\n"
    "            --regularizer l1: λ/2·|w|₁ instead, a sparse model (hinge: solvers l1-…; smooth losses: "
    "l1-crf).\n"
    "            Clique-wise solvers (soft-bcfw, soft-sdca, idal, gdmm) and dlpw maximise over the local "
    "polytope,\n"
    "            the LP relaxation of max_y, and smooth it clique by clique.\n"
    "Certificate: dual bound D ≤ min P, reported gap P − D.";

// Progress and messages: lost where nobody takes them, and no reason to end a run.
void to_stderr(std::string_view text);

/// One verb's command line: a CLI11 application, and what is checked after CLI11 is done.
class Verb {
 public:
  Verb(std::string name, const std::string& description);

  CLI::App& app() { return app_; }
  const CLI::App& app() const { return app_; }

  // An argument that must be given. Checked after `list`,
  // so that `margrave train --solver list` needs no data.
  void positional(const std::string& name, std::string& target, const std::string& help,
                  std::string_view choices = {});
  // An option with a fixed set of values "a|b|c"; the value `list` prints them.
  CLI::Option* choice(const std::string& flags, std::string& target, std::string choices,
                      const std::string& help);
  void quiet_and_json();
  void threads_flag();

  // The help text, with the arguments that must be given unbracketed.
  std::string help() const;
  // Whether a value `list` was given; the choices have been printed then.
  bool printed_lists() const;
  // Throws UsageError for a missing positional or a value outside its choices.
  void check() const;

  // To stderr, unless quiet.
  template <class... Arguments>
  void note(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    if (!quiet) to_stderr(fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  // To stdout, unless quiet or JSON is asked for.
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    if (!quiet && !json) fmt::print(stdout, format, std::forward<Arguments>(arguments)...);
  }

  bool quiet = false, json = false;
  int threads = 0;
  std::function<int()> run;

 private:
  struct Choice {
    std::string name, choices;
    const std::string* target;
    CLI::Option* option;
  };
  CLI::App app_;
  std::list<Choice> choices_;
  std::vector<CLI::Option*> required_;
};

/// Text for stdout, or for a file that appears whole or not at all.
class Output {
 public:
  explicit Output(const std::string& path);  // empty: stdout
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  void write(std::string_view text);
  void finish();

 private:
  std::unique_ptr<AtomicFile> file_;
};

// The candidate nearest to `word` by edits, or empty where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// A check for CLI11 that adds nothing to the help text.
CLI::Validator between(std::int64_t low, std::int64_t high);
CLI::Validator at_least_one();
CLI::Validator whole_number();  // that 64 bits can hold
CLI::Validator number();        // in decimal; its range is checked elsewhere
CLI::Validator file_name();     // not empty, and not the `-` of other programs

// Throws IoError where `path` cannot become a file: no such directory, not writable, or a directory itself.
// Empty paths pass.
void require_writable(const std::string& path);

// Whether both name one file, by whatever path. Devices may be named twice; empty paths name nothing.
bool same_file(const std::string& a, const std::string& b);

// "512 kB", "1.4 GB".
std::string bytes_text(double bytes);
// "0.31 s", "4 min 10 s".
std::string duration_text(double seconds);

// One function per verb, each in its own file.
void set_up_train(Verb& verb);
void set_up_predict(Verb& verb);
void set_up_eval(Verb& verb);
void set_up_certify(Verb& verb);
void set_up_dump(Verb& verb);
void set_up_check(Verb& verb);
void set_up_scale(Verb& verb);
void set_up_convert(Verb& verb);
void set_up_generate(Verb& verb);
void set_up_path(Verb& verb);
void set_up_reproduce(Verb& verb);

}  // namespace margrave::tools
