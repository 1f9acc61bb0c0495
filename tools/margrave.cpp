// margrave VERB [options]: finds the verb, parses its flags, runs it, and turns every failure into one
// message and an exit code.
#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <system_error>

#include "base/kernels.hpp"
#include "margrave/error.hpp"
#include "margrave/version.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

struct Entry {
  std::string_view name, arguments, help;
  void (*set_up)(Verb&);
};

constexpr Entry verbs[] = {
    {"train", "DATA", "fits a model, with a duality-gap certificate", set_up_train},
    {"predict", "MODEL DATA", "labels; --marginals, --nbest K", set_up_predict},
    {"eval", "MODEL DATA", "losses, accuracy, F1", set_up_eval},
    {"certify", "MODEL DATA", "recomputes primal, dual bound and gap with code apart from the solvers",
     set_up_certify},
    {"dump", "MODEL", "weights as text or JSON", set_up_dump},
    {"check", "DATA", "counts, sizes, suspicious rows, memory forecast; writes nothing", set_up_check},
    {"convert", "IN OUT", "between formats, and to the mapped binary cache .mgd", set_up_convert},
    {"scale", "DATA", "a scaling study over threads, and simulated workers", set_up_scale},
    {"generate", "KIND -o FILE", "synthetic problems: potts, sequence, multilabel", set_up_generate},
    {"path", "DATA", "a warm-started sequence of λ: held-out error, gap and non-zeros of each", set_up_path},
    {"reproduce", "NAME", "one of the papers' experiments, as a table and a plot", set_up_reproduce},
};

void print_help() {
  fmt::print("margrave {}: trains structured predictors in parallel, with a duality-gap certificate\n\n",
             version());
  fmt::print("usage: margrave VERB [options]\n\n");
  for (const Entry& entry : verbs) fmt::print("  {:<9} {:<13} {}\n", entry.name, entry.arguments, entry.help);
  fmt::print(
      "\n{}\n\n"
      "margrave VERB --help lists a verb's options; an option value `list` prints its choices; --version.\n"
      "Exit codes: 0 success, 2 usage, 3 bad data or model file, 4 input/output, 5 numerical failure, 130 "
      "interrupted.\n"
      "First steps: margrave generate sequence -o train.jsonl && margrave train train.jsonl --model "
      "first.model\n",
      objective_help);
}

std::string suggestion(const std::string& near) {
  return near.empty() ? std::string() : fmt::format("\n  did you mean '{}'?", near);
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

[[noreturn]] void refuse_extras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  const auto flag = std::find_if(extras.begin(), extras.end(),
                                 [](const std::string& e) { return e.size() > 1 && e[0] == '-'; });
  if (flag == extras.end())
    throw UsageError(fmt::format("unexpected argument '{}'\n  {} --help shows what is expected",
                                 extras.empty() ? "" : extras.front(), app.get_name()));
  const std::string name = flag->substr(0, flag->find('='));
  const std::string near = nearest(name, flag_names(app));
  throw UsageError(fmt::format(
      "unknown option {}{}", name,
      near.empty() ? fmt::format("\n  {} --help lists the options", app.get_name()) : suggestion(near)));
}

// Throws UsageError; returns false where the work is done already (help).
bool parse(Verb& verb, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
  try {
    verb.app().parse(arguments);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", verb.help());
    return false;
  } catch (const CLI::ExtrasError&) {
    refuse_extras(verb.app());
  } catch (const CLI::ConversionError& error) {
    const std::string_view what = error.what();
    constexpr std::string_view prefix = "Could not convert: ";
    throw UsageError(
        fmt::format("cannot make sense of {}", what.starts_with(prefix) ? what.substr(prefix.size()) : what));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what();
    throw UsageError(what.substr(0, what.find(':')) +
                     (what.find("At Most 1") == std::string::npos ? " needs a value" : " is given twice"));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  return true;
}

// A set that is misspelt, or that this machine does not run, would go unnoticed: another one takes its place.
void check_environment() {
  const char* isa = std::getenv("MARGRAVE_ISA");  // NOLINT(concurrency-mt-unsafe): no thread has started
  if (isa == nullptr || *isa == '\0' || kernels_for(isa) != nullptr) return;
  std::vector<std::string_view> known;
  for (const std::string_view name : {"baseline", "avx2", "avx512"})
    if (kernels_for(name) != nullptr) known.push_back(name);
  throw UsageError(fmt::format("MARGRAVE_ISA={}: this machine runs {}", isa, fmt::join(known, ", ")));
}

int run(std::vector<std::string> arguments) {
  bool quiet = false;
  while (!arguments.empty() && (arguments.front() == "-q" || arguments.front() == "--quiet")) {
    quiet = true;
    arguments.erase(arguments.begin());
  }
  // `help VERB` is `VERB --help`.
  if (arguments.size() == 2 && arguments.front() == "help") arguments = {arguments.back(), "--help"};
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h" ||
      arguments.front() == "help") {
    print_help();
    return success;
  }
  if (arguments.front() == "--version" || arguments.front() == "-V") {
    fmt::print("margrave {}\n", version());
    return success;
  }
  const std::string name = arguments.front();
  arguments.erase(arguments.begin());
  const auto* const entry =
      std::find_if(std::begin(verbs), std::end(verbs), [&](const Entry& e) { return e.name == name; });
  if (entry == std::end(verbs)) {
    std::vector<std::string> names;
    for (const Entry& e : verbs) names.emplace_back(e.name);
    const std::string near = nearest(name, names);
    throw UsageError(
        fmt::format("there is no verb '{}'{}", name,
                    near.empty() ? fmt::format("\n  verbs: {}", fmt::join(names, ", ")) : suggestion(near)));
  }
  Verb verb(name, std::string(entry->help));
  entry->set_up(verb);
  if (!parse(verb, std::move(arguments))) return success;
  if (verb.printed_lists()) return success;
  verb.check();
  check_environment();
  verb.quiet = verb.quiet || quiet;
  return verb.run();
}

// Where a standard descriptor is closed, the next file opened would take its number, and the model would fill
// with messages. A stdout that can only be read makes writing fail, as it should.
void keep_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    if (fcntl(descriptor, F_GETFD) == -1)
      static_cast<void>(open("/dev/null", descriptor == 2 ? O_WRONLY : O_RDONLY));
}

int report(int code, std::string_view what) {
  to_stderr(fmt::format("margrave: {}\n", what));
  return code;
}

}  // namespace
}  // namespace margrave::tools

int main(int count, char** arguments) {
  using namespace margrave;
  using namespace margrave::tools;
  keep_standard_descriptors();
  try {
    int code = run({arguments + std::min(count, 1), arguments + count});
    // A full disk behind stdout shows itself only now.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      const int failed = report(io_failure, "cannot write to standard output");
      if (code == success) code = failed;
    }
    return code;
  } catch (const UsageError& error) {
    return report(usage_failure, error.what());
  } catch (const InputError& error) {
    return report(input_failure, error.what());
  } catch (const IoError& error) {
    return report(io_failure, error.what());
  } catch (const std::system_error& error) {
    return report(io_failure, error.what());
  } catch (const std::bad_alloc&) {
    return report(io_failure, "out of memory\n  `margrave check DATA` forecasts what a run on DATA needs");
  } catch (const std::exception& error) {
    return report(numerical_failure, std::string("internal error: ") + error.what());
  } catch (...) {
    return report(numerical_failure, "internal error of unknown kind");
  }
}
