// Templates: the weight blocks that cliques share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace margrave {

/// How the joint states of a clique map to weight rows.
enum class WeightRows : std::uint8_t {
  full,      ///< one row per joint state
  potts,     ///< one row, used where the states are not all equal
  equal,     ///< one row, used where all states agree
  explicit_  ///< an explicit table: joint state → row, −1 for none
};

/// One weight block: rows × inputs. A clique's score at joint state y is <w[row(y)], x>, and 0 where row(y) =
/// −1. Joint states are numbered with the last variable of the scope fastest.
struct Template {
  std::string name;
  std::vector<std::uint32_t> states;  ///< states of each variable of the scope; its size is the order
  std::uint64_t inputs = 1;           ///< length of the input vector x
  WeightRows kind = WeightRows::full;
  std::vector<std::int32_t> row_of;  ///< joint state → row or −1; always filled
  std::uint32_t rows = 0;
  std::vector<std::string> state_names;  ///< order 1 only; empty, or one name per state
  std::vector<std::string> input_names;  ///< empty, or one name per input

  // Place in the weight vector, set by TemplateSet. Weights are feature-major: weight (row r, input d) is
  // stored at offset + d·stride + r, so that one input adds one contiguous run of rows.
  std::uint64_t offset = 0;
  std::uint64_t stride = 0;

  std::size_t order() const { return states.size(); }
  std::size_t joint_states() const { return row_of.size(); }
  bool operator==(const Template&) const = default;
};

/// Makes a template, filling row_of and rows. Throws UsageError for no variables, a variable without states,
/// no inputs, more than 2^24 joint states, or a `rows` table of the wrong length or with gaps.
Template make_template(std::string name, std::vector<std::uint32_t> states, std::uint64_t inputs,
                       WeightRows kind = WeightRows::full, std::vector<std::int32_t> rows = {});

/// All templates of a problem and the layout of its weight vector.
class TemplateSet {
 public:
  TemplateSet() = default;
  explicit TemplateSet(std::vector<Template> templates);

  std::size_t size() const { return templates_.size(); }
  const Template& operator[](std::size_t t) const { return templates_[t]; }
  auto begin() const { return templates_.begin(); }
  auto end() const { return templates_.end(); }
  /// Index of the template with this name, or size() where there is none.
  std::size_t find(std::string_view name) const;

  /// Number of weights, padding not counted.
  std::uint64_t dimension() const { return dimension_; }
  /// Length of the stored weight vector, padding included; a multiple of 8.
  std::uint64_t storage() const { return storage_; }
  bool operator==(const TemplateSet&) const = default;

 private:
  std::vector<Template> templates_;
  std::uint64_t dimension_ = 0;
  std::uint64_t storage_ = 0;
};

}  // namespace margrave
