#include "tools/verb.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/atomic_file.hpp"
#include "margrave/error.hpp"
#include "report/option_fields.hpp"

namespace margrave::tools {
namespace {

constexpr std::size_t help_column = 34;

// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    if (is_positional || option->get_fnames().empty())
      return CLI::Formatter::make_option_name(option, is_positional);
    return "--[no-]" + option->get_lnames().front();
  }
};

}  // namespace

void to_stderr(std::string_view text) { static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr)); }

Verb::Verb(std::string name, const std::string& description)
    : app_(description, "margrave " + std::move(name)) {
  app_.formatter(std::make_shared<HelpFormatter>());
  app_.get_formatter()->column_width(help_column);
  app_.footer(std::string(objective_help));
}

void Verb::positional(const std::string& name, std::string& target, const std::string& help,
                      std::string_view choices) {
  CLI::Option* option = app_.add_option(name, target, help)->type_name("");
  if (choices.empty()) option->check(file_name());
  required_.push_back(option);
  if (!choices.empty()) choices_.push_back({name, std::string(choices), &target, option});
}

CLI::Option* Verb::choice(const std::string& flags, std::string& target, std::string choices,
                          const std::string& help) {
  CLI::Option* option = app_.add_option(flags, target, help)->type_name(choices);
  if (!target.empty()) option->default_str(target);
  choices_.push_back({option->get_lnames().front(), std::move(choices), &target, option});
  return option;
}

void Verb::quiet_and_json() {
  app_.add_flag("-q,--quiet", quiet, "say nothing but errors");
  app_.add_flag("--json", json, "print one JSON object to stdout at the end");
}

void Verb::threads_flag() {
  app_.add_option("--threads", threads, "threads; 0: all usable cores")
      ->type_name("N")
      ->default_str("0")
      ->check(between(0, 4096));
}

std::string Verb::help() const {
  std::string text = app_.help();
  for (const CLI::Option* option : required_) {
    const std::string bracketed = "[" + option->get_name() + "]";
    if (const std::size_t at = text.find(bracketed); at != std::string::npos)
      text.replace(at, bracketed.size(), option->get_name());
  }
  return text;
}

bool Verb::printed_lists() const {
  bool any = false;
  for (const Choice& choice : choices_) {
    if (choice.option->count() == 0 || *choice.target != "list") continue;
    for (const std::string_view name : split_choices(choice.choices)) fmt::print("{}\n", name);
    any = true;
  }
  return any;
}

void Verb::check() const {
  std::string usage = app_.get_name();
  for (const CLI::Option* option : required_) usage += " " + option->get_name();
  for (const CLI::Option* option : required_)
    if (option->count() == 0)
      throw UsageError(
          fmt::format("{} is missing\n  usage: {} [options]; --help lists them", option->get_name(), usage));
  for (const Choice& choice : choices_) {
    if (choice.option->count() == 0) continue;
    const auto names = split_choices(choice.choices);
    if (std::find(names.begin(), names.end(), *choice.target) != names.end()) continue;
    const std::string near = nearest(*choice.target, {names.begin(), names.end()});
    throw UsageError(fmt::format("{}{}: '{}' is not one of {}{}", choice.option->get_positional() ? "" : "--",
                                 choice.name, *choice.target, fmt::join(names, ", "),
                                 near.empty() ? "" : fmt::format("\n  did you mean '{}'?", near)));
  }
}

Output::Output(const std::string& path) {
  if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
}
Output::~Output() = default;

void Output::write(std::string_view text) {
  if (file_)
    file_->write(text);
  else if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    throw IoError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

void Output::finish() {
  if (file_) file_->commit();
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::size_t distance = edits(word, candidate);
    // The beginning of a word counts as a near miss.
    if (word.size() >= 2 && candidate.starts_with(word)) distance = std::min<std::size_t>(distance, 1);
    if (distance >= fewest) continue;
    fewest = distance;
    best = candidate;
  }
  return best;
}

CLI::Validator between(std::int64_t low, std::int64_t high) {
  return {[low, high](const std::string& text) {
            std::int64_t value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high)
              return std::string();
            if (high == std::numeric_limits<std::int64_t>::max())
              return fmt::format("'{}' is not a whole number of at least {}", text, low);
            return fmt::format("'{}' is not a whole number between {} and {}", text, low, high);
          },
          ""};
}

CLI::Validator at_least_one() { return between(1, std::numeric_limits<std::int64_t>::max()); }

CLI::Validator whole_number() {
  return {[](const std::string& text) {
            std::uint64_t value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error == std::errc{} && end == text.data() + text.size()) return std::string();
            return fmt::format("'{}' is not a whole number{}", text,
                               error == std::errc::result_out_of_range ? " of at most 64 bits" : "");
          },
          ""};
}

CLI::Validator number() {
  return {[](const std::string& text) {
            double value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error == std::errc::result_out_of_range)
              return fmt::format("'{}' is beyond what a double can hold", text);
            if (error == std::errc{} && end == text.data() + text.size()) return std::string();
            return fmt::format("'{}' is not a number", text);
          },
          ""};
}

CLI::Validator file_name() {
  return {[](const std::string& text) {
            if (text.empty()) return std::string("the name of a file is empty");
            if (text == "-") return std::string("'-' is no file; /dev/stdin and /dev/stdout are");
            return std::string();
          },
          ""};
}

void require_writable(const std::string& path) {
  if (path.empty()) return;
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) throw IoError(path + ": is a directory, not a place for a file");
    if (!S_ISREG(status.st_mode)) return;  // a device or a pipe: opening it will tell
  }
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (stat(directory.c_str(), &status) != 0)
    throw IoError(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  if (!S_ISDIR(status.st_mode))
    throw IoError(fmt::format("{}: cannot be written: {} is no directory", path, directory));
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    throw IoError(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
}

bool same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  struct stat first {
  }, second{};
  const bool exists = stat(a.c_str(), &first) == 0;
  if (exists && !S_ISREG(first.st_mode)) return false;
  if (exists && stat(b.c_str(), &second) == 0)
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  return std::filesystem::path(a).lexically_normal() == std::filesystem::path(b).lexically_normal();
}

std::string bytes_text(double bytes) {
  constexpr double thousand = 1000;
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB", "PB"}) {
    if (bytes < thousand) break;
    bytes /= thousand;
    unit = next;
  }
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 && unit[0] != 'B' ? 1 : 0, unit);
}

std::string duration_text(double seconds) {
  constexpr double minute = 60, hour = 3600, day = 86400;
  if (!std::isfinite(seconds)) return "?";
  if (seconds < minute) return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : 1);
  if (seconds < hour)
    return fmt::format("{:.0f} min {:.0f} s", std::floor(seconds / minute), std::fmod(seconds, minute));
  if (seconds < day)
    return fmt::format("{:.0f} h {:.0f} min", std::floor(seconds / hour), std::fmod(seconds, hour) / minute);
  return fmt::format("{:.1f} days", seconds / day);
}

}  // namespace margrave::tools
