#include "report/state_names.hpp"

#include <fmt/format.h>

namespace margrave {

std::string state_name(const Template& t, std::size_t state) {
  return state < t.state_names.size() ? t.state_names[state] : fmt::format("{}", state);
}

JointStateNames::JointStateNames(const TemplateSet& templates, const Template& t, std::string_view between)
    : states_(t.states), between_(between) {
  if (t.order() == 1) {
    names_ = {&t};
    return;
  }
  for (const std::uint32_t k : t.states) {
    const Template* agreed = nullptr;
    for (const Template& variable : templates) {
      if (variable.order() != 1 || variable.states.front() != k) continue;
      if (agreed == nullptr) agreed = &variable;
      if (agreed->state_names != variable.state_names) {
        agreed = nullptr;
        break;
      }
    }
    names_.push_back(agreed);
  }
}

std::string JointStateNames::operator()(std::size_t joint) const {
  std::vector<std::string> parts(states_.size());
  for (std::size_t i = states_.size(); i-- > 0; joint /= states_[i]) {
    const std::size_t state = joint % states_[i];
    parts[i] = names_[i] == nullptr ? fmt::format("{}", state) : state_name(*names_[i], state);
  }
  return fmt::format("{}", fmt::join(parts, between_));
}

}  // namespace margrave
