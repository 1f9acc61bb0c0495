// The `arff` format (Weka, as Mulan and MEKA use it): dense rows or sparse ones `{i v, …}`, labels anywhere
// among the attributes. Which attributes are labels is said by ReadOptions::labels; else by Mulan's list in a
// file of the same name that ends in .xml (x.xml for x-train.arff and x-test.arff as well); else by MEKA's
// `-C n` in @relation, which are the first n attributes, or the last ones where n is negative.
//
// A label's two values are 0 and 1 in either order, or other usual spellings of no and yes.
// A nominal attribute {0,1} is one input, any other is one input `name=value` per value. What a sparse row
// leaves out is 0, or the first value of a nominal attribute. A missing value `?` is an unknown label; an
// input must be there.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "data/arff_header.hpp"
#include "data/label_sets.hpp"
#include "data/mulan_xml.hpp"
#include "data/number.hpp"
#include "data/readers.hpp"

namespace margrave {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};

// What an attribute stands for.
struct Use {
  std::uint32_t label = none;    // its number, or
  std::uint32_t feature = none;  // its first input
  bool one_hot = false;
  std::size_t on = 1;  // which of two values is 1
};

bool is_binary(const ArffAttribute& attribute) {
  const auto& values = attribute.values;
  return values.size() == 2 &&
         ((values[0] == "0" && values[1] == "1") || (values[0] == "1" && values[1] == "0"));
}

bool same_spelling(std::string_view text, std::string_view small) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(text.begin(), text.end(), small.begin(), small.end(),
                    [&](char a, char b) { return lower(a) == b; });
}

// Which of a label's two values says that it is there; nothing where they do not tell.
std::optional<std::size_t> value_that_is_on(const std::vector<std::string>& values) {
  constexpr std::pair<std::string_view, std::string_view> spellings[] = {
      {"0", "1"}, {"false", "true"}, {"no", "yes"}, {"-1", "+1"}, {"-1", "1"}, {"0.0", "1.0"}};
  for (const auto& [off, on] : spellings)
    for (const std::size_t first : {0U, 1U})
      if (same_spelling(values[first], off) && same_spelling(values[1 - first], on)) return 1 - first;
  return std::nullopt;
}

std::optional<std::vector<std::string>> labels_beside(std::string path) {
  const auto cut = [&path](std::string_view ending) {
    if (!path.ends_with(ending)) return false;
    path.resize(path.size() - ending.size());
    return true;
  };
  cut(".gz");
  if (!cut(".arff") && !cut(".ARFF")) return std::nullopt;
  std::vector<std::string> stems{path};
  for (const char* part : {"-train", "-test", "_train", "_test"})
    if (cut(part)) stems.push_back(path);
  for (const std::string& stem : stems)
    if (std::filesystem::is_regular_file(stem + ".xml")) return read_mulan_labels(stem + ".xml");
  return std::nullopt;
}

// The attributes that `-C n` speaks of.
std::optional<std::vector<std::string>> labels_of_meka(const ArffHeader& header) {
  const std::string& text = header.relation;
  for (std::size_t at = text.find("-C "); at != std::string::npos; at = text.find("-C ", at + 1)) {
    if (at > 0 && text[at - 1] != ' ' && text[at - 1] != ':' && text[at - 1] != '\'') continue;
    const std::size_t begin = text.find_first_not_of(' ', at + 3);
    if (begin == std::string::npos) return std::nullopt;
    const bool from_end = text[begin] == '-';
    const char* digits = text.data() + begin + (from_end ? 1 : 0);
    std::uint64_t count = 0;
    const std::uint64_t all = header.attributes.size();
    if (!parse_unsigned(digits, text.data() + text.size(), count) || count == 0 || count > all)
      return std::nullopt;
    std::vector<std::string> names;
    for (std::uint64_t j = 0; j < count; ++j)
      names.push_back(header.attributes[from_end ? all - count + j : j].name);
    return names;
  }
  return std::nullopt;
}

class ArffReader {
 public:
  ArffReader(LineReader& reader, const ReadOptions& options, const TemplateSet* templates)
      : reader_(reader), header_(read_arff_header(reader)), uses_(header_.attributes.size()) {
    find_labels(options, templates);
    place_features();
    if (templates != nullptr) match_features(options, *templates);
    for (std::uint32_t j = 0; j < uses_.size(); ++j)
      if (omitted_counts(j)) counting_.push_back(j);
  }

  LabelSets read(Warnings& warnings) {
    std::string_view line;
    while (reader_.next(line)) {
      ArffCursor cursor(reader_, line);
      if (cursor.done()) continue;
      row_.clear();
      on_.clear();
      unknown_ = missing_labels_;
      if (cursor.take('{'))
        sparse_row(cursor);
      else
        dense_row(cursor);
      finish_row();
    }
    if (sets_.labels.empty()) throw InputError({reader_.path(), 0, 0}, "no examples");
    if (std::all_of(sets_.unknown.begin(), sets_.unknown.end(), [](const auto& set) { return set.empty(); }))
      sets_.unknown.clear();
    if (!missing_labels_.empty())
      warnings.add({reader_.path(), 0, 0},
                   std::to_string(missing_labels_.size()) + " labels of the model are no attributes here");
    if (dropped_ > 0)
      warnings.add(
          {reader_.path(), 0, 0},
          std::to_string(dropped_) + " values of attributes that the model does not have are left out");
    return std::move(sets_);
  }

  const std::vector<std::string>& labels() const { return sets_.label_names; }

 private:
  void find_labels(const ReadOptions& options, const TemplateSet* templates) {
    auto& names = sets_.label_names;
    if (templates != nullptr) names = label_names(*templates);
    const std::size_t of_model = names.size();
    if (!options.labels.empty()) {
      const std::unordered_set<std::string> known(names.begin(), names.end());
      for (const std::string& name : options.labels)
        if (!known.contains(name)) names.push_back(name);
    } else if (templates == nullptr) {
      auto found = labels_beside(reader_.path());
      if (!found) found = labels_of_meka(header_);
      if (!found)
        throw InputError(
            {reader_.path(), 0, 0},
            "nothing says which attributes are labels: give Mulan's list (--labels FILE.xml), put "
            "it beside the data with the same name and the ending .xml, or have MEKA's -C n in "
            "@relation");
      names = *std::move(found);
    }
    if (names.size() > most_labels) throw InputError({reader_.path(), 0, 0}, "too many labels");
    std::unordered_map<std::string_view, std::uint32_t> attribute;
    for (std::uint32_t j = 0; j < header_.attributes.size(); ++j)
      attribute.emplace(header_.attributes[j].name, j);
    for (std::uint32_t label = 0; label < names.size(); ++label) {
      const auto found = attribute.find(names[label]);
      if (found != attribute.end()) {
        use_as_label(found->second, label);
      } else if (label < of_model) {
        missing_labels_.push_back(label);
      } else if (templates == nullptr) {
        throw InputError({reader_.path(), 0, 0},
                         "label \"" + names[label] + "\" is no attribute of the file");
      }
    }
    sets_.label_count = names.size();
  }

  void use_as_label(std::uint32_t attribute, std::uint32_t label) {
    const ArffAttribute& a = header_.attributes[attribute];
    if (!a.numeric && a.values.size() != 2)
      throw InputError(a.where, "label \"" + a.name + "\" does not have two values");
    if (uses_[attribute].label != none)
      throw InputError({reader_.path(), 0, 0}, "label \"" + a.name + "\" is named twice");
    uses_[attribute].label = label;
    if (a.numeric) return;
    const auto on = value_that_is_on(a.values);
    if (!on)
      throw InputError(a.where, "label \"" + a.name + "\" has the values " + a.values[0] + " and " +
                                    a.values[1] +
                                    ", and which is 1? It must have 0 and 1, false and true, no and yes, -1 "
                                    "and 1 or 0.0 and 1.0");
    uses_[attribute].on = *on;
  }

  void place_features() {
    std::unordered_set<std::string> names;
    const auto place = [&](const ArffAttribute& a, const std::string& name) {
      if (!names.insert(name).second)
        throw InputError(a.where, "two inputs are called \"" + name +
                                      "\": this attribute and the value of a " + "nominal one");
      sets_.feature_names.push_back(name);
    };
    for (std::size_t j = 0; j < uses_.size(); ++j) {
      Use& use = uses_[j];
      if (use.label != none) continue;
      const ArffAttribute& a = header_.attributes[j];
      use.feature = static_cast<std::uint32_t>(sets_.feature_names.size());
      if (a.numeric || is_binary(a)) {
        use.on = !a.numeric && a.values[0] == "1" ? 0 : 1;
        place(a, a.name);
      } else {
        use.one_hot = true;
        for (const std::string& value : a.values) place(a, a.name + "=" + value);
      }
    }
    sets_.feature_count = sets_.feature_names.size();
    if (sets_.feature_count > most_features) throw InputError({reader_.path(), 0, 0}, "too many attributes");
  }

  // A model's inputs have the numbers of its own training data.
  void match_features(const ReadOptions& options, const TemplateSet& templates) {
    const bool bias = options.bias.value_or(1.0) != 0;
    const auto names = feature_names(templates, bias);
    if (names.empty()) {
      const std::uint64_t inputs = templates.size() == 0 ? 0 : templates[0].inputs - (bias ? 1 : 0);
      if (inputs != sets_.feature_count)
        throw InputError({reader_.path(), 0, 0}, std::to_string(sets_.feature_count) +
                                                     " inputs where the model has " + std::to_string(inputs) +
                                                     ", and no names to match them by");
      return;
    }
    std::unordered_map<std::string_view, std::uint32_t> number;
    for (std::uint32_t d = 0; d < names.size(); ++d) number.emplace(names[d], d);
    for (const std::string& name : sets_.feature_names) {
      const auto found = number.find(name);
      moved_.push_back(found == number.end() ? none : found->second);
    }
  }

  // Whether leaving the attribute out of a sparse row means more than 0.
  bool omitted_counts(std::uint32_t j) const {
    const Use& use = uses_[j];
    return !header_.attributes[j].numeric && (use.one_hot || use.on == 0);
  }

  void dense_row(ArffCursor& cursor) {
    for (std::uint32_t j = 0; j < uses_.size(); ++j) {
      if (j > 0 && !cursor.take(','))
        cursor.fail_here(cursor.done() ? "the row has " + std::to_string(j) + " values, but there are " +
                                             std::to_string(uses_.size()) + " attributes"
                                       : "a comma is expected after a value");
      set(cursor, j);
    }
    if (!cursor.done())
      cursor.fail_here("more values than the " + std::to_string(uses_.size()) + " attributes");
  }

  void sparse_row(ArffCursor& cursor) {
    auto counting = counting_.begin();
    const auto omit_up_to = [&](std::uint64_t end) {
      for (; counting != counting_.end() && *counting < end; ++counting) set_value(*counting, 0);
    };
    std::uint64_t next = 0;  // the least index that may follow
    if (!cursor.take('}')) {
      do {
        const std::string_view text = cursor.piece("the number of an attribute");
        const char* at = text.data();
        std::uint64_t index = 0;
        if (!parse_unsigned(at, text.data() + text.size(), index) || at != text.data() + text.size())
          cursor.fail("the number of an attribute is expected, counted from 0");
        if (index >= uses_.size())
          cursor.fail("there are " + std::to_string(uses_.size()) + " attributes, counted from 0");
        if (index < next) cursor.fail("the numbers of attributes must increase within a row");
        omit_up_to(index);
        if (counting != counting_.end() && *counting == index) ++counting;
        set(cursor, static_cast<std::uint32_t>(index));
        next = index + 1;
      } while (cursor.take(','));
      cursor.expect('}', "at the end of a sparse row");
    }
    omit_up_to(uses_.size());
    if (!cursor.done()) cursor.fail_here("nothing may follow a sparse row");
  }

  // Takes the value of attribute j.
  void set(ArffCursor& cursor, std::uint32_t j) {
    const std::string_view text = cursor.piece("a value");
    const ArffAttribute& a = header_.attributes[j];
    const Use& use = uses_[j];
    if (text == "?" && !cursor.quoted()) {
      if (use.label == none) cursor.fail("input \"" + a.name + "\" is missing");
      unknown_.push_back(use.label);
      return;
    }
    if (!a.numeric) {
      const auto found = std::find(a.values.begin(), a.values.end(), text);
      if (found == a.values.end()) cursor.fail("not a value of attribute \"" + a.name + "\"");
      set_value(j, static_cast<std::size_t>(found - a.values.begin()));
      return;
    }
    float value = 0;
    const char* at = text.data();
    const NumberFault fault = parse_float(at, text.data() + text.size(), value);
    if (fault != NumberFault::none) cursor.fail(std::string(describe(fault)));
    if (at != text.data() + text.size()) cursor.fail("a number is expected");
    if (use.label == none) {
      add(use.feature, value);
    } else if (value == 1) {
      on_.push_back(use.label);
    } else if (value != 0) {
      cursor.fail("label \"" + a.name + "\" must be 0 or 1");
    }
  }

  // One of the values of a nominal attribute.
  void set_value(std::uint32_t j, std::size_t value) {
    const Use& use = uses_[j];
    if (use.one_hot) {
      add(use.feature + static_cast<std::uint32_t>(value), 1);
    } else if (value == use.on && use.label != none) {
      on_.push_back(use.label);
    } else if (value == use.on) {
      add(use.feature, 1);
    }
  }

  void add(std::uint32_t feature, float value) {
    if (value == 0) return;
    if (!moved_.empty()) feature = moved_[feature];
    if (feature == none)
      ++dropped_;
    else
      row_.emplace_back(feature, value);
  }

  void finish_row() {
    const auto by_feature = [](const auto& a, const auto& b) { return a.first < b.first; };
    if (!std::is_sorted(row_.begin(), row_.end(), by_feature))
      std::sort(row_.begin(), row_.end(), by_feature);
    for (const auto& [feature, value] : row_) {
      sets_.index.push_back(feature);
      sets_.value.push_back(value);
    }
    sets_.begin.push_back(sets_.index.size());
    std::sort(on_.begin(), on_.end());
    sets_.labels.push_back(on_);
    sets_.unknown.push_back(unknown_);
    sets_.line.push_back(reader_.line_number());
  }

  LineReader& reader_;
  ArffHeader header_;
  std::vector<Use> uses_;                // of each attribute
  std::vector<std::uint32_t> counting_;  // attributes that count where a sparse row leaves them out
  std::vector<std::uint32_t> moved_;     // the model's number of each feature, or none; empty: its own
  std::vector<std::uint32_t> missing_labels_;
  std::uint64_t dropped_ = 0;
  LabelSets sets_;
  // Of the row at hand.
  std::vector<std::pair<std::uint32_t, float>> row_;
  std::vector<std::uint32_t> on_, unknown_;
};

}  // namespace

ReadResult read_arff(LineReader& reader, const ReadOptions& options, const TemplateSet* templates,
                     Warnings& warnings, std::optional<ReadOptions>& resolved) {
  ArffReader arff(reader, options, templates);
  resolved = options;
  resolved->format = "arff";
  resolved->labels = arff.labels();
  const LabelSets sets = arff.read(warnings);
  return make_dataset(sets, options, templates, reader.path(), warnings);
}

}  // namespace margrave
