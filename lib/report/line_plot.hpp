// Line plots as self-contained SVG: no scripts, no fonts of their own, the same bytes for the same numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace margrave {

struct PlotSeries {
  std::string name;
  std::vector<double> x, y;   // of one length
  std::vector<double> error;  // empty, or half the length of each point's vertical bar
};

struct LinePlot {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<PlotSeries> series;
};

// Points that are not finite, or that a logarithmic axis has no place for, are left out, and their line is
// broken there. Throws UsageError where the lengths of a series differ.
std::string to_svg(const LinePlot& plot);
// Panels, one below the other.
std::string to_svg(std::span<const LinePlot> panels);

// Text for XML and HTML, between tags or in quotes.
std::string escape_xml(std::string_view text);

}  // namespace margrave
