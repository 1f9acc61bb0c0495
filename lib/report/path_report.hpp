// A path as a table, as JSON and as a plot.
#pragma once

#include <string>

#include "margrave/path.hpp"

namespace margrave {

// One line per point.
std::string path_table_head();
std::string path_table_line(const PathPoint& point);
std::string path_json(const PathResult& path);
// Errors, weights that are not zero, and gaps over λ.
std::string path_svg(const PathResult& path);

}  // namespace margrave
