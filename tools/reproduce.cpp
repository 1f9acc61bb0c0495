// margrave reproduce NAME
#include <memory>

#include "margrave/error.hpp"
#include "report/l1_table.hpp"
#include "tools/signals.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

constexpr std::string_view experiments = "l1-table";

class Reproduce {
 public:
  explicit Reproduce(Verb& verb) : verb_(verb) {
    verb.positional("NAME", name_, "l1-table: Table 1 and Figure 2 of paper 003, sparse max-margin networks",
                    experiments);
    verb.app()
        .add_option("--sets", options_.sets,
                    "data sets; the first chooses constants, the others are averaged")
        ->type_name("N")
        ->check(whole_number())
        ->default_str("10");
    verb.app()
        .add_option("--examples", options_.examples, "sequences per data set")
        ->type_name("N")
        ->check(whole_number())
        ->default_str("1000");
    verb.app()
        .add_option("--folds", options_.most_folds,
                    "most folds of a data set that train; the paper trains with all of them, 20 at most")
        ->type_name("N")
        ->check(whole_number())
        ->default_str("20");
    verb.app()
        .add_option("--seed", options_.seed, "of the data")
        ->type_name("S")
        ->check(whole_number())
        ->default_str("1");
    verb.app().add_option("--svg", svg_path_, "the plot")->type_name("FILE")->check(file_name());
    verb.quiet_and_json();
    verb.threads_flag();
    verb.app().footer(
        "The whole experiment takes ten minutes of CPU time; --sets 3 --folds 2 shows its shape\n"
        "in a minute or two. Data: `margrave generate sequence` with model seeds 1, 2, …");
  }

  int run() {
    catch_signals();
    require_writable(svg_path_);
    ignore_broken_pipes();
    L1TableOptions options = options_;
    options.threads = verb_.threads;
    options.stop = &stop_requested();
    std::string stage;
    int tenths = -1;
    options.on_progress = [&](std::string_view now, double fraction) {
      const int done = static_cast<int>(10 * fraction);
      if (now == stage && done == tenths) return;
      stage = now;
      tenths = done;
      verb_.note("{} {} %\n", now, 10 * done);
    };
    stop_on_signals();
    const L1Table table = l1_table(options);
    if (!svg_path_.empty() && !table.sparsity.empty()) {
      Output svg(svg_path_);
      svg.write(l1_table_svg(table));
      svg.finish();
    }
    if (verb_.json) fmt::print("{}\n", l1_table_json(table));
    verb_.say("{}", l1_table_text(table));
    return stop_requested() ? interrupted : success;
  }

 private:
  Verb& verb_;
  std::string name_, svg_path_;
  L1TableOptions options_;
};

}  // namespace

void set_up_reproduce(Verb& verb) {
  const auto reproduce = std::make_shared<Reproduce>(verb);
  verb.run = [reproduce] { return reproduce->run(); };
}

}  // namespace margrave::tools
