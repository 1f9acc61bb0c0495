// A scaling study as text, CSV, JSON, plots and one HTML page.
#pragma once

#include <string>
#include <vector>

#include "margrave/scale.hpp"
#include "report/line_plot.hpp"
#include "report/text_table.hpp"

namespace margrave {

// What was studied, in one line.
std::string scale_heading(const ScaleResult& result);
// Strong and weak scaling, where the time went, simulations: those that there are.
std::vector<TextTable> scale_tables(const ScaleResult& result);
// A line per kind, number of threads (or simulated workers) and gap. What is absent is empty.
std::string scale_csv(const ScaleResult& result);
// One object, with every single run. What is absent is null.
std::string scale_json(const ScaleResult& result);
std::vector<LinePlot> scale_plots(const ScaleResult& result);
// Tables and plots on a page that needs no other file and no script.
std::string scale_html(const ScaleResult& result);

}  // namespace margrave
