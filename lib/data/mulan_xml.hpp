// The list of labels that comes with Mulan's data sets:
//
//     <labels xmlns="http://mulan.sourceforge.net/labels"><label name="a"><label name="b"/></label></labels>
#pragma once

#include <string>
#include <vector>

namespace margrave {

// The names of all `label` elements, nested or not, in the order of the file. Throws IoError, or InputError
// with line and column.
std::vector<std::string> read_mulan_labels(const std::string& path);

}  // namespace margrave
