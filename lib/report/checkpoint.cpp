#include "report/checkpoint.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/container.hpp"
#include "margrave/error.hpp"
#include "model/stored_weights.hpp"
#include "report/option_fields.hpp"
#include "report/shallow_json.hpp"

namespace margrave {

namespace {

constexpr std::uint32_t checkpoint_version = 10;

// The options that decide the bits of a run: all but its limits and files.
std::string options_key(TrainOptions options) {
  const TrainOptions defaults;
  options.gap = defaults.gap;
  options.max_epochs = defaults.max_epochs;
  options.max_seconds = defaults.max_seconds;
  options.certificate = defaults.certificate;
  return to_json(options);
}

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "lambda 0.1 then, 0.2 now; seed …": what differs between two sets of options.
std::string differences(std::string_view then, std::string_view now) {
  const auto before = parse_shallow(then), after = nlohmann::json::parse(now);
  if (!before.is_object()) return "they cannot be read";
  const nlohmann::json old_fields = before.flatten(), new_fields = after.flatten();
  nlohmann::json all = old_fields;
  all.update(new_fields);
  std::string text;
  const auto shown = [](const nlohmann::json& fields, const std::string& key) {
    return fields.contains(key) ? fields[key].dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)
                                : std::string("absent");
  };
  for (const auto& field : all.items()) {
    const std::string &key = field.key(), old_value = shown(old_fields, key),
                      new_value = shown(new_fields, key);
    if (old_value == new_value) continue;
    if (!text.empty()) text += "; ";
    text += key.substr(key.rfind('/') + 1);
    text += " " + old_value;
    text += " then, " + new_value;
    text += " now";
  }
  return text.empty() ? "they are written in another way" : text;
}

std::shared_ptr<const SectionFile> open_for(const std::string& path, const Dataset& data) {
  auto file = SectionFile::open(path, FileKind::checkpoint, checkpoint_version);
  ByteReader in(file->section("data"), path);
  if (in.get<std::uint64_t>() != data.fingerprint())
    throw InputError({path}, "this checkpoint was made on other data: its fingerprint differs");
  return file;
}

// A dual bound is no larger than any primal one, but for rounding.
constexpr double rounding_gap = 1e-9;

RunProgress::Best read_best(const SectionFile& file, const std::string& path, const Dataset& data,
                            const Solver& solver) {
  ByteReader in(file.section("best"), path);
  if (solver.dual_point() != nullptr || solver.local_point() != nullptr)
    in.fail("holds best weights beside those of a dual point");
  RunProgress::Best best;
  Evaluation& e = best.evaluation;
  e.epoch = in.get<std::uint64_t>();
  e.train_seconds = in.get<double>();
  e.wall_seconds = in.get<double>();
  e.oracle_calls = in.get<std::uint64_t>();
  e.primal = in.get<double>();
  if (in.get<bool>()) e.dual = in.get<double>();
  e.certified = in.get<bool>();
  best.weights = take_weights(in, data.templates(), solver.weights().size());
  bool good = in.left() == 0;
  if (e.dual)
    good = good && std::isfinite(*e.dual) &&
           *e.dual - e.primal <= rounding_gap * std::max(1.0, std::abs(e.primal));
  good = good && (e.dual || !e.certified);
  for (const double number : {e.train_seconds, e.wall_seconds, e.primal})
    good = good && std::isfinite(number);
  if (!good) in.fail("holds bounds of its best weights that cannot be");
  return best;
}

}  // namespace

void save_checkpoint(const std::string& path, const Dataset& data, const TrainOptions& options,
                     const Solver& solver, const RunProgress& progress) {
  ByteWriter fingerprint;
  ByteWriter run;
  ByteWriter state;
  fingerprint.put(data.fingerprint());
  run.put(progress.epoch);
  run.put(progress.train_seconds);
  run.put(progress.evaluate_seconds);
  run.put(progress.wall_seconds);
  solver.save(state);
  const std::string key = options_key(options);
  const std::string solver_name(solver.name());
  SectionWriter writer(FileKind::checkpoint, checkpoint_version);
  writer.add("data", fingerprint.bytes());
  writer.add_array("options", key.data(), key.size());
  writer.add_array("solver", solver_name.data(), solver_name.size());
  writer.add("run", run.bytes());
  writer.add("state", state.bytes());
  ByteWriter best;
  if (progress.best) {
    const Evaluation& e = progress.best->evaluation;
    best.put(e.epoch);
    best.put(e.train_seconds);
    best.put(e.wall_seconds);
    best.put(e.oracle_calls);
    best.put(e.primal);
    best.put(e.dual.has_value());
    if (e.dual) best.put(*e.dual);
    best.put(e.certified);
    best.put_array(std::span<const double>(progress.best->weights));
    writer.add("best", best.bytes());
  }
  writer.write(path);
}

RunProgress resume_checkpoint(const std::string& path, const Dataset& data, const TrainOptions& options,
                              Solver& solver) {
  const auto file = open_for(path, data);
  const std::string key = options_key(options);
  if (text(file->section("options")) != key) {
    throw InputError({path}, "this checkpoint was made with other options: " +
                                 differences(text(file->section("options")), key) +
                                 "\n  --warm-start takes the dual point alone");
  }
  ByteReader state(file->section("state"), path);
  solver.restore(state);
  if (state.left() != 0) state.fail("is longer than it should be");
  ByteReader run(file->section("run"), path);
  RunProgress progress;
  progress.epoch = run.get<std::uint64_t>();
  progress.train_seconds = run.get<double>();
  progress.evaluate_seconds = run.get<double>();
  progress.wall_seconds = run.get<double>();
  for (const double seconds : {progress.train_seconds, progress.evaluate_seconds, progress.wall_seconds})
    if (!std::isfinite(seconds) || seconds < 0) run.fail("has a time that is no time");
  if (run.left() != 0) run.fail("is longer than it should be");
  if (file->find("best")) progress.best = read_best(*file, path, data, solver);
  return progress;
}

void warm_start_from(const std::string& path, const Dataset& data, const TrainOptions& options,
                     Solver& solver) {
  const auto file = open_for(path, data);
  if (text(file->section("solver")) != solver.name()) {
    throw InputError({path}, "this checkpoint is one of solver '" +
                                 std::string(text(file->section("solver"))) + "', not '" +
                                 std::string(solver_name(options.solver)) + "'");
  }
  ByteReader state(file->section("state"), path);
  solver.warm_start(state);
}

}  // namespace margrave
