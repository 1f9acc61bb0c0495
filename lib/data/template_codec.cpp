#include "data/template_codec.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "data/readers.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

void put_text(ByteWriter& out, const std::string& text) {
  out.put_array(std::span<const char>(text.data(), text.size()));
}

std::string get_text(ByteReader& in) {
  const auto bytes = in.get_array<char>();
  return {bytes.begin(), bytes.end()};
}

void put_names(ByteWriter& out, const std::vector<std::string>& names) {
  out.put<std::uint64_t>(names.size());
  for (const std::string& name : names) put_text(out, name);
}

std::vector<std::string> get_names(ByteReader& in) {
  const auto count = in.get<std::uint64_t>();
  if (count > in.left() / sizeof(std::uint64_t)) in.fail("is truncated");
  std::vector<std::string> names;
  names.reserve(count);
  for (std::uint64_t n = 0; n < count; ++n) names.push_back(get_text(in));
  return names;
}

}  // namespace

void write_templates(ByteWriter& out, const TemplateSet& templates) {
  out.put<std::uint64_t>(templates.size());
  for (const Template& t : templates) {
    put_text(out, t.name);
    out.put_array(std::span<const std::uint32_t>(t.states));
    out.put(t.inputs);
    out.put(static_cast<std::uint32_t>(t.kind));
    // The other kinds follow from the states.
    out.put_array(std::span<const std::int32_t>(t.row_of.data(),
                                                t.kind == WeightRows::explicit_ ? t.row_of.size() : 0));
    put_names(out, t.state_names);
    put_names(out, t.input_names);
  }
}

TemplateSet read_templates(ByteReader in, const std::string& file) {
  const auto count = in.get<std::uint64_t>();
  if (count > in.left()) in.fail("is truncated");
  std::vector<Template> templates;
  std::uint64_t joint_states = 0;
  try {
    for (std::uint64_t n = 0; n < count; ++n) {
      std::string name = get_text(in);
      auto states = in.get_array<std::uint32_t>();
      const auto inputs = in.get<std::uint64_t>();
      const auto kind = in.get<std::uint32_t>();
      if (kind > static_cast<std::uint32_t>(WeightRows::explicit_))
        in.fail("has templates of an unknown kind");
      auto rows = in.get_array<std::int32_t>();
      Template t = make_template(std::move(name), std::move(states), inputs, static_cast<WeightRows>(kind),
                                 std::move(rows));
      joint_states += t.joint_states();
      if (joint_states > most_joint_states) in.fail("has templates with more than 2^26 joint states");
      t.state_names = get_names(in);
      t.input_names = get_names(in);
      if ((!t.state_names.empty() && (t.order() != 1 || t.state_names.size() != t.states[0])) ||
          (!t.input_names.empty() && t.input_names.size() != t.inputs))
        in.fail("has templates with too many or too few names");
      templates.push_back(std::move(t));
    }
    if (in.left() != 0) in.fail("has bytes after its templates");
    return TemplateSet(std::move(templates));
  } catch (const UsageError& error) {
    throw InputError({file, 0, 0}, error.what());
  }
}

}  // namespace margrave
