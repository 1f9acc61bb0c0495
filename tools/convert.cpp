// margrave convert IN OUT
#include <memory>

#include "tools/apart.hpp"
#include "tools/data_flags.hpp"
#include "tools/verb.hpp"

namespace margrave::tools {
namespace {

struct Settings {
  DataFlags flags;
  std::string in, out, to = "auto";
};

int run(const Verb& verb, const Settings& settings) {
  const NamedFile outputs[] = {{"OUT", settings.out}};
  const NamedFile inputs[] = {{"IN", settings.in},
                              {"--template", settings.flags.template_path()},
                              {"--labels", settings.flags.labels_path()}};
  require_apart(outputs, inputs);
  require_writable(settings.out);
  const Loaded loaded = settings.flags.load(verb, settings.in);
  write_data(loaded.file.data, settings.out, settings.to, &loaded.file.read);
  if (verb.json)
    fmt::print("{{\"examples\":{},\"bytes\":{}}}\n", loaded.file.data.size(),
               loaded.file.data.memory_bytes());
  verb.note("{}: {} examples, {} in memory\n", settings.out, loaded.file.data.size(),
            bytes_text(static_cast<double>(loaded.file.data.memory_bytes())));
  return success;
}

}  // namespace

void set_up_convert(Verb& verb) {
  const auto settings = std::make_shared<Settings>();
  verb.positional("IN", settings->in, "file in any format margrave reads");
  verb.positional("OUT", settings->out, "file to write; its ending tells the format");
  verb.choice("--to", settings->to, "auto|jsonl|jsonl.gz|mgd",
              "format of OUT where its ending does not tell");
  settings->flags.set_up(verb, "--folds", "letter: only these folds (0, 1-9, 1,2,5)");
  verb.quiet_and_json();
  verb.run = [&verb, settings] { return run(verb, *settings); };
}

}  // namespace margrave::tools
