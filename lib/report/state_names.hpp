// Names of states, where templates have them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "margrave/template.hpp"

namespace margrave {

// Name of one state of an order-1 template: its own, or its number.
std::string state_name(const Template& t, std::size_t state);

// Names of the joint states of a template, "a,b" or with something else between them. A factor's template
// does not say which variable templates it joins: its states are called by name where all variable templates
// with that many states agree on the names, and by number elsewhere.
class JointStateNames {
 public:
  JointStateNames(const TemplateSet& templates, const Template& t, std::string_view between = ",");
  std::string operator()(std::size_t joint) const;

 private:
  std::vector<const Template*> names_;  // per variable of the scope; null: by number
  std::vector<std::uint32_t> states_;
  std::string_view between_;
};

}  // namespace margrave
