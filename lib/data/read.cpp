// read_data and write_data: which reader, and what is done to its result.
#include <algorithm>
#include <string>
#include <utility>

#include "base/container.hpp"
#include "data/arff_header.hpp"
#include "data/readers.hpp"
#include "margrave/error.hpp"
#include "margrave/io.hpp"

namespace margrave {
namespace {

constexpr std::size_t letter_columns = 134;

std::string format_list() {
  std::string text = "auto";
  for (const std::string_view format : formats()) text += ", " + std::string(format);
  return text;
}

// What the first bytes say.
std::string detect(LineReader& reader) {
  constexpr std::size_t looked_at = std::size_t{1} << 14U;
  std::string_view start = reader.peek(looked_at);
  const bool whole = start.size() < looked_at;
  if (start.starts_with("\xef\xbb\xbf")) start.remove_prefix(3);
  if (start.empty()) throw InputError({reader.path(), 0, 0}, "no examples: the file is empty");
  if (start.starts_with("\x89MGV"))
    throw InputError({reader.path(), 0, 0},
                     "a binary cache has to be mapped: unpack it, or convert it to jsonl.gz");
  if (looks_like_arff(start)) return "arff";
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && start[first] == '{') return "jsonl";
  const std::string_view line = start.substr(0, start.find('\n'));
  const auto tabs = static_cast<std::size_t>(std::count(line.begin(), line.end(), '\t'));
  if (tabs + 1 >= letter_columns) return "letter";
  const std::string_view sequences = detect_sequences(start, whole);
  return std::string(sequences.empty() ? "multilabel" : sequences);
}

void fit(DataFile& file, const ReadOptions& options, const TemplateSet* templates, const std::string& path,
         Warnings& warnings) {
  const auto each = [&](Dataset& data) {
    if (options.drop_unlabelled) data = drop_unlabelled(data, path, warnings);
    if (templates != nullptr && !(data.templates() == *templates))
      data = fit_templates(data, *templates, path, warnings);
  };
  each(file.data);
  if (file.held_out) each(*file.held_out);
}

}  // namespace

std::vector<std::string_view> formats() {
  return {"letter", "conll", "crfsuite", "multilabel", "arff", "jsonl", "mgd"};
}

DataFile read_data(const std::string& path, const ReadOptions& options, const TemplateSet* templates) {
  const auto known = formats();
  if (options.format != "auto" && std::find(known.begin(), known.end(), options.format) == known.end())
    throw UsageError("unknown format \"" + options.format + "\"; known are " + format_list());
  DataFile file;
  Warnings warnings;
  std::optional<ReadOptions> made_by;
  ReadResult result;
  if (options.format == "mgd" || (options.format == "auto" && is_container(path))) {
    file.format = "mgd";
    check_read_options(options, file.format);
    result = read_mgd(path, made_by);
  } else {
    if (is_container(path))
      throw InputError({path, 0, 0}, "is a binary file of margrave, not " + options.format + " data");
    LineReader reader(path);
    file.format = options.format;
    if (file.format == "auto") file.format = options.feature_template.empty() ? detect(reader) : "conll";
    check_read_options(options, file.format);
    if (file.format == "letter") {
      result = read_letter(reader, options);
    } else if (file.format == "conll") {
      result = read_conll(reader, options, templates, warnings, made_by);
    } else if (file.format == "crfsuite") {
      result = read_crfsuite(reader, options, templates, warnings);
    } else if (file.format == "jsonl") {
      result = read_jsonl(reader, warnings);
    } else if (file.format == "arff") {
      result = read_arff(reader, options, templates, warnings, made_by);
    } else {
      result = read_multilabel(reader, options, templates, warnings);
    }
  }
  file.data = std::move(result.data);
  file.held_out = std::move(result.held_out);
  file.read = made_by.value_or(options);
  if (!made_by) file.read.format = file.format;
  file.read.drop_unlabelled = options.drop_unlabelled;
  fit(file, options, templates, path, warnings);
  file.warnings = warnings.take();
  return file;
}

void write_data(const Dataset& data, const std::string& path, std::string_view format,
                const ReadOptions* read) {
  const std::string_view name = path;
  bool compressed = name.ends_with(".gz");
  if (format == "auto") {
    const std::string_view stem = compressed ? name.substr(0, name.size() - 3) : name;
    if (stem.ends_with(".jsonl")) {
      format = "jsonl";
    } else if (name.ends_with(".mgd")) {
      format = "mgd";
    } else {
      throw UsageError(path +
                       ": the ending says no format that can be written; use .jsonl, .jsonl.gz or .mgd, or "
                       "name the format");
    }
  }
  if (format == "jsonl.gz") compressed = true;
  if (format == "jsonl" || format == "jsonl.gz") {
    write_jsonl(data, path, compressed);
  } else if (format == "mgd") {
    write_mgd(data, path, read);
  } else {
    throw UsageError("the format \"" + std::string(format) +
                     "\" cannot be written; use jsonl, jsonl.gz or mgd");
  }
}

}  // namespace margrave
