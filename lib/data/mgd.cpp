// The binary cache `mgd`: the columns of a dataset as sections of a mapped file, used where they lie.
#include <string>
#include <utility>

#include "base/container.hpp"
#include "data/readers.hpp"
#include "data/template_codec.hpp"

namespace margrave {
namespace {

constexpr std::uint32_t version = 1;

// Every column with its name in the file: one list for reading and for writing.
template <class Columns, class Visit>
void for_each_column(Columns& c, Visit visit) {
  visit("inputs", c.inputs);
  visit("index", c.index);
  visit("value", c.value);
  visit("examples", c.examples);
  visit("label", c.label);
  visit("variable_input", c.variable_input);
  visit("factor_input", c.factor_input);
  visit("loss", c.loss);
  visit("topology_variable_begin", c.topology_variable_begin);
  visit("topology_factor_begin", c.topology_factor_begin);
  visit("topology_variable_template", c.topology_variable_template);
  visit("topology_factor_template", c.topology_factor_template);
  visit("topology_scope_begin", c.topology_scope_begin);
  visit("topology_scope", c.topology_scope);
  visit("id_begin", c.id_begin);
  visit("id_text", c.id_text);
}

}  // namespace

void write_mgd(const Dataset& data, const std::string& path, const ReadOptions* read) {
  SectionWriter writer(FileKind::dataset, version);
  ByteWriter templates;
  write_templates(templates, data.templates());
  writer.add("templates", templates.bytes());
  const std::string options = read == nullptr ? std::string() : to_json(*read);
  if (read != nullptr) writer.add_array("read_options", options.data(), options.size());
  for_each_column(data.columns(), [&](const char* name, const auto& column) {
    writer.add_array(name, column.data(), column.size());
  });
  writer.write(path);
}

ReadResult read_mgd(const std::string& path, std::optional<ReadOptions>& made_by) {
  const auto file = SectionFile::open(path, FileKind::dataset, version);
  TemplateSet templates = read_templates(ByteReader(file->section("templates"), path), path);
  DatasetColumns columns;
  for_each_column(columns, [&]<class T>(const char* name, Column<T>& column) {
    const auto values = file->array<T>(name);
    column = Column<T>(file, values.data(), values.size());
  });
  try {
    if (const auto options = file->find("read_options"))
      made_by = read_options_from_json({reinterpret_cast<const char*>(options->data()), options->size()});
    ReadResult result{Dataset(std::move(templates), std::move(columns)), std::nullopt};
    if (result.data.size() == 0) throw InputError({path, 0, 0}, "no examples");
    return result;
  } catch (const UsageError& error) {
    throw InputError({path, 0, 0}, error.what());
  }
}

}  // namespace margrave
