#include <zlib.h>

#include <array>
#include <new>
#include <string>
#include <string_view>

#include "base/atomic_file.hpp"
#include "data/json_cursor.hpp"
#include "data/number.hpp"
#include "data/readers.hpp"
#include "margrave/error.hpp"

namespace margrave {
namespace {

constexpr std::size_t block = std::size_t{1} << 18U;

// Text to a file, packed by gzip on request. The gzip header
// carries no time, so that equal data gives equal bytes.
class TextSink {
 public:
  TextSink(const std::string& path, bool compressed) : file_(path), compressed_(compressed) {
    if (compressed &&
        deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~TextSink() {
    if (compressed_) deflateEnd(&stream_);
  }
  TextSink(const TextSink&) = delete;
  TextSink& operator=(const TextSink&) = delete;

  std::string& text() { return text_; }
  void line() {
    text_ += '\n';
    if (text_.size() >= block) pass(Z_NO_FLUSH);
  }
  void commit() {
    pass(Z_FINISH);
    file_.commit();
  }

 private:
  void pass(int mode) {
    if (!compressed_) {
      file_.write(text_);
      text_.clear();
      return;
    }
    // A line may be longer than one call takes.
    std::size_t at = 0;
    do {
      const std::size_t part = std::min<std::size_t>(text_.size() - at, std::size_t{1} << 30U);
      stream_.next_in = reinterpret_cast<Bytef*>(text_.data() + at);
      stream_.avail_in = static_cast<uInt>(part);
      at += part;
      do {
        stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
        stream_.avail_out = static_cast<uInt>(packed_.size());
        deflate(&stream_, at == text_.size() ? mode : Z_NO_FLUSH);
        file_.write(std::string_view(packed_.data(), packed_.size() - stream_.avail_out));
      } while (stream_.avail_out == 0);
    } while (at < text_.size());
    text_.clear();
  }
  AtomicFile file_;
  bool compressed_;
  z_stream stream_{};
  std::string text_;
  std::array<char, 1U << 16U> packed_{};
};

template <class Items, class Append>
void append_list(std::string& out, const Items& items, Append append) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    append(item);
  }
  out += ']';
}

// JSON is text in UTF-8, and any replacement would make other names of these.
class NameCheck {
 public:
  explicit NameCheck(const std::string& path) : path_(path) {}
  void require_text(std::string_view name, const std::string& kind) const {
    const char* end = name.data() + name.size();
    for (const char* at = name.data(); at != end;) {
      const std::size_t length = static_cast<unsigned char>(*at) < 0x80 ? 1 : utf8_sequence_length(at, end);
      if (length == 0) refuse(name, kind);
      at += length;
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view name, const std::string& kind) const {
    std::string shown;
    append_json_string(shown, name);
    throw InputError({path_, 0, 0},
                     kind + " " + shown + " is not UTF-8, which jsonl must be; .mgd keeps any name");
  }
  const std::string& path_;
};

void require_text(const Dataset& data, const std::string& path) {
  const NameCheck check(path);
  for (const Template& t : data.templates()) {
    check.require_text(t.name, "the name of the template");
    for (const std::string& name : t.state_names) check.require_text(name, "the label");
    for (const std::string& name : t.input_names) check.require_text(name, "the name of the input");
  }
  for (std::size_t m = 0; m < data.size(); ++m) check.require_text(data.id(m), "the id of the example");
}

void append_template(std::string& out, const Template& t) {
  append_json_string(out, t.name);
  out += ":{\"states\":";
  append_list(out, t.states, [&](std::uint32_t k) { append_integer(out, k); });
  out += ",\"inputs\":";
  append_integer(out, t.inputs);
  out += ",\"weights\":";
  switch (t.kind) {
    case WeightRows::full:
      out += "\"full\"";
      break;
    case WeightRows::potts:
      out += "\"potts\"";
      break;
    case WeightRows::equal:
      out += "\"equal\"";
      break;
    case WeightRows::explicit_:
      out += "{\"rows\":";
      append_list(out, t.row_of, [&](std::int32_t row) { append_integer(out, row); });
      out += '}';
      break;
  }
  const auto name = [&](const std::string& text) { append_json_string(out, text); };
  if (!t.state_names.empty()) {
    out += ",\"state_names\":";
    append_list(out, t.state_names, name);
  }
  if (!t.input_names.empty()) {
    out += ",\"input_names\":";
    append_list(out, t.input_names, name);
  }
  out += '}';
}

void append_input(std::string& out, const Dataset& data, std::uint32_t number) {
  const InputView x = data.input(number);
  const std::span<const std::uint32_t> index(x.index, x.kind == InputKind::dense ? 0 : x.count);
  switch (x.kind) {
    case InputKind::dense:
      append_list(out, std::span(x.value, x.count), [&](float v) { append_float(out, v); });
      break;
    case InputKind::sparse:
    case InputKind::unit:
      out += "{\"index\":";
      append_list(out, index, [&](std::uint32_t i) { append_integer(out, i); });
      out += ",\"value\":";
      if (x.kind == InputKind::sparse) {
        append_list(out, std::span(x.value, x.count), [&](float v) { append_float(out, v); });
      } else {
        append_list(out, index, [&](std::uint32_t) { out += '1'; });
      }
      out += '}';
      break;
    case InputKind::per_state:
      out += "{\"per_state\":";
      append_list(out, index, [&](std::uint32_t part) { append_input(out, data, part); });
      out += '}';
      break;
  }
}

// Whether x is what an absent "x" means.
bool is_one(const Dataset& data, std::uint32_t number, const Template& t) {
  const InputView x = data.input(number);
  return t.inputs == 1 && x.kind == InputKind::unit && x.count == 1;
}

void append_example(std::string& out, const Dataset& data, std::size_t m) {
  const FactorGraph graph = data[m];
  const Topology& top = graph.topology();
  out += '{';
  if (!data.id(m).empty()) {
    out += "\"id\":";
    append_json_string(out, data.id(m));
    out += ',';
  }
  const auto clique = [&](std::size_t c) {
    const Template& t = data.templates()[top.template_of(c)];
    out += "{\"template\":";
    append_json_string(out, t.name);
    if (!is_one(data, graph.input_of(c), t)) {
      out += ",\"x\":";
      append_input(out, data, graph.input_of(c));
    }
  };
  out += "\"variables\":[";
  for (std::size_t i = 0; i < top.variables(); ++i) {
    if (i > 0) out += ',';
    clique(i);
    out += ",\"label\":";
    if (graph.label(i) == unlabelled) {
      out += "null";
    } else {
      append_integer(out, graph.label(i));
    }
    if (graph.loss(i) != 1.0F) {
      out += ",\"loss\":";
      append_float(out, graph.loss(i));
    }
    out += '}';
  }
  out += ']';
  if (top.factors() > 0) {
    out += ",\"factors\":[";
    for (std::size_t c = 0; c < top.factors(); ++c) {
      if (c > 0) out += ',';
      clique(top.variables() + c);
      out += ",\"variables\":";
      append_list(out, top.scope_of(c), [&](std::uint32_t v) { append_integer(out, v); });
      out += '}';
    }
    out += ']';
  }
  out += '}';
}

}  // namespace

void write_jsonl(const Dataset& data, const std::string& path, bool compressed) {
  require_text(data, path);
  TextSink sink(path, compressed);
  std::string& out = sink.text();
  out += R"({"format":"margrave-jsonl","version":1,"templates":{)";
  bool first = true;
  for (const Template& t : data.templates()) {
    if (!first) out += ',';
    first = false;
    append_template(out, t);
  }
  out += "}}";
  sink.line();
  for (std::size_t m = 0; m < data.size(); ++m) {
    append_example(out, data, m);
    sink.line();
  }
  sink.commit();
}

}  // namespace margrave
