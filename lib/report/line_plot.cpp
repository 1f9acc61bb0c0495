#include "report/line_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "margrave/error.hpp"
#include "report/plot_axis.hpp"
#include "report/text_table.hpp"

namespace margrave {

namespace {

constexpr double plot_width = 480, plot_height = 320;
constexpr double left_margin = 84, top_margin = 40, bottom_margin = 60, legend_gap = 16;
constexpr double panel_height = top_margin + plot_height + bottom_margin;
constexpr double letter_width = 7, legend_line = 20, legend_sample = 30;
constexpr double marker_size = 4;

// Okabe and Ito's colours, told apart by the colour-blind and in grey, without the yellow that white paper
// swallows. Six markers: coprime enough with seven colours that 42 series differ.
constexpr std::array<std::string_view, 7> colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                     "#000000", "#e69f00", "#56b4e9"};
constexpr std::size_t markers = 6;

std::string_view colour_of(std::size_t series) { return colours[series % colours.size()]; }

double legend_width(const LinePlot& plot) {
  std::size_t longest = 0;
  for (const PlotSeries& series : plot.series) longest = std::max(longest, letters(series.name));
  return legend_sample + 8 + letter_width * static_cast<double>(longest);
}

class Panel {
 public:
  Panel(const LinePlot& plot, std::string& out) : plot_(plot), out_(out), x_(plot.log_x), y_(plot.log_y) {
    for (const PlotSeries& series : plot.series) include(series);
    x_.settle();
    y_.settle();
  }

  void draw() {
    text(left_margin + plot_width / 2, 24, plot_.title, R"(text-anchor="middle" font-size="15")");
    draw_axes();
    bool any = false;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) any = draw_series(i) || any;
    if (!any)
      text(left_margin + plot_width / 2, top_margin + plot_height / 2, "no data",
           R"(text-anchor="middle" fill="#555555")");
    draw_legend();
  }

 private:
  bool shown(const PlotSeries& series, std::size_t i) const {
    return x_.shows(series.x[i]) && y_.shows(series.y[i]);
  }
  static bool has_bar(const PlotSeries& series, std::size_t i) {
    return !series.error.empty() && std::isfinite(series.error[i]) && series.error[i] > 0;
  }

  void include(const PlotSeries& series) {
    if (series.x.size() != series.y.size() ||
        (!series.error.empty() && series.error.size() != series.x.size()))
      throw UsageError(fmt::format("plot '{}': series '{}' has {} x, {} y and {} error bars", plot_.title,
                                   series.name, series.x.size(), series.y.size(), series.error.size()));
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!shown(series, i)) continue;
      x_.include(series.x[i]);
      y_.include(series.y[i]);
      if (!has_bar(series, i)) continue;
      y_.include(series.y[i] - series.error[i]);
      y_.include(series.y[i] + series.error[i]);
    }
  }

  double across(double x) const { return left_margin + plot_width * x_.place(x); }
  double down(double y) const { return top_margin + plot_height * (1 - y_.place(y)); }

  template <class... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  void text(double x, double y, std::string_view words, std::string_view attributes) {
    put("<text x=\"{:.2f}\" y=\"{:.2f}\" {}>{}</text>\n", x, y, attributes, escape_xml(words));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width) {
    put("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"{}\" "
        "stroke-width=\"{:.2f}\"/>\n",
        x1, y1, x2, y2, stroke, width);
  }

  void draw_axes() {
    const double right = left_margin + plot_width, bottom = top_margin + plot_height;
    for (const PlotAxis::Tick& tick : x_.ticks()) {
      const double x = left_margin + plot_width * tick.place;
      line(x, top_margin, x, bottom, "#dddddd", 1);
      text(x, bottom + 18, tick.label, R"(text-anchor="middle")");
    }
    for (const PlotAxis::Tick& tick : y_.ticks()) {
      const double y = top_margin + plot_height * (1 - tick.place);
      line(left_margin, y, right, y, "#dddddd", 1);
      text(left_margin - 8, y + 4, tick.label, R"(text-anchor="end")");
    }
    put("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"none\" "
        "stroke=\"#333333\"/>\n",
        left_margin, top_margin, plot_width, plot_height);
    text(left_margin + plot_width / 2, bottom + 42, plot_.x_label, R"(text-anchor="middle")");
    const double middle = top_margin + plot_height / 2;
    text(18, middle, plot_.y_label,
         fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 18.00 {:.2f})\"", middle));
  }

  // Whether there was a point to draw.
  bool draw_series(std::size_t index) {
    const PlotSeries& series = plot_.series[index];
    std::string points;
    std::size_t in_line = 0;
    bool any = false;
    const auto end_line = [&] {
      if (in_line > 1)
        put("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.80\"/>\n", points,
            colour_of(index));
      points.clear();
      in_line = 0;
    };
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!shown(series, i)) {
        end_line();
        continue;
      }
      fmt::format_to(std::back_inserter(points), "{}{:.2f},{:.2f}", in_line > 0 ? " " : "",
                     across(series.x[i]), down(series.y[i]));
      ++in_line;
    }
    end_line();
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!shown(series, i)) continue;
      any = true;
      const double x = across(series.x[i]);
      if (has_bar(series, i)) draw_bar(x, series.y[i], series.error[i], colour_of(index));
      draw_marker(x, down(series.y[i]), index);
    }
    return any;
  }

  void draw_bar(double x, double y, double half, std::string_view colour) {
    const double high = down(y + half);
    const double low = down(y - half);  // at the low end, where a logarithmic axis has no place for it
    line(x, high, x, low, colour, 1.2);
    line(x - marker_size, high, x + marker_size, high, colour, 1.2);
    line(x - marker_size, low, x + marker_size, low, colour, 1.2);
  }

  void draw_marker(double x, double y, std::size_t index) {
    const double r = marker_size;
    const std::string_view colour = colour_of(index);
    const auto shape = [&](std::initializer_list<std::array<double, 2>> corners) {
      std::string points;
      for (const auto& corner : corners)
        fmt::format_to(std::back_inserter(points), "{}{:.2f},{:.2f}", points.empty() ? "" : " ",
                       x + r * corner[0], y + r * corner[1]);
      put("<polygon points=\"{}\" fill=\"{}\"/>\n", points, colour);
    };
    switch (index % markers) {
      case 0:
        put("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\" fill=\"{}\"/>\n", x, y, r, colour);
        break;
      case 1:
        shape({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}});
        break;
      case 2:
        shape({{0, -1.2}, {1.1, 0.8}, {-1.1, 0.8}});
        break;
      case 3:
        shape({{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}});
        break;
      case 4:
        shape({{0, 1.2}, {1.1, -0.8}, {-1.1, -0.8}});
        break;
      default:
        line(x - r, y - r, x + r, y + r, colour, 1.8);
        line(x - r, y + r, x + r, y - r, colour, 1.8);
    }
  }

  void draw_legend() {
    const double x = left_margin + plot_width + legend_gap;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      if (plot_.series[i].name.empty()) continue;
      const double y = top_margin + 10 + legend_line * static_cast<double>(i);
      line(x, y, x + legend_sample, y, colour_of(i), 1.8);
      draw_marker(x + legend_sample / 2, y, i);
      text(x + legend_sample + 8, y + 4, plot_.series[i].name, R"(text-anchor="start")");
    }
  }

  const LinePlot& plot_;
  std::string& out_;
  PlotAxis x_, y_;
};

// Tall enough for its legend.
double height_of(const LinePlot& plot) {
  return std::max(panel_height, top_margin + 20 + legend_line * static_cast<double>(plot.series.size()));
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 0x20U ? ' ' : c;  // XML has no place for control characters
    }
  }
  return safe;
}

std::string to_svg(std::span<const LinePlot> panels) {
  double width = left_margin + plot_width + legend_gap, height = 0;
  for (const LinePlot& plot : panels) {
    width = std::max(width, left_margin + plot_width + legend_gap + legend_width(plot));
    height += height_of(plot);
  }
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#111111\">\n"
      "<title>{2}</title>\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n",
      width, height, panels.empty() ? std::string() : escape_xml(panels.front().title));
  double top = 0;
  for (const LinePlot& plot : panels) {
    fmt::format_to(std::back_inserter(out), "<g transform=\"translate(0 {:.2f})\">\n", top);
    Panel(plot, out).draw();
    out += "</g>\n";
    top += height_of(plot);
  }
  out += "</svg>\n";
  return out;
}

std::string to_svg(const LinePlot& plot) { return to_svg(std::span(&plot, 1)); }

}  // namespace margrave
