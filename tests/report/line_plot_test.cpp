#include "report/line_plot.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "margrave/error.hpp"
#include "report/plot_axis.hpp"

namespace margrave {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::vector<std::string> labels(const PlotAxis& axis) {
  std::vector<std::string> names;
  for (const PlotAxis::Tick& tick : axis.ticks()) names.push_back(tick.label);
  return names;
}

PlotAxis axis_of(bool logarithmic, std::initializer_list<double> values) {
  PlotAxis axis(logarithmic);
  for (const double value : values) axis.include(value);
  axis.settle();
  return axis;
}

// Every tag that is opened is closed, in order.
void expect_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z]+)[^<>]*?(/?)>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), tag), end; at != end; ++at) {
    const std::smatch& match = *at;
    if (match[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), match[2].str());
      open.pop_back();
    } else if (match[3].length() == 0) {
      open.push_back(match[2].str());
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(PlotAxis, TicksOfLinearAxesAreRoundNumbers) {
  EXPECT_EQ(labels(axis_of(false, {0, 1})), (std::vector<std::string>{"0", "0.2", "0.4", "0.6", "0.8", "1"}));
  EXPECT_EQ(labels(axis_of(false, {1, 8})), (std::vector<std::string>{"0", "2", "4", "6", "8"}));
  EXPECT_EQ(labels(axis_of(false, {-0.03, 0.07})),
            (std::vector<std::string>{"-0.04", "-0.02", "0", "0.02", "0.04", "0.06", "0.08"}));
  EXPECT_EQ(labels(axis_of(false, {0, 4e7})), (std::vector<std::string>{"0", "1e7", "2e7", "3e7", "4e7"}));
}

TEST(PlotAxis, TicksOfLogarithmicAxes) {
  EXPECT_EQ(labels(axis_of(true, {1, 8})), (std::vector<std::string>{"1", "2", "5", "10"}));
  EXPECT_EQ(labels(axis_of(true, {0.57, 2})), (std::vector<std::string>{"0.5", "1", "2"}));
  EXPECT_EQ(labels(axis_of(true, {3, 4})), (std::vector<std::string>{"2", "5"}));
  EXPECT_EQ(labels(axis_of(true, {2e-7, 1})),
            (std::vector<std::string>{"1e-7", "1e-6", "0.00001", "0.0001", "0.001", "0.01", "0.1", "1"}));
  const auto many = labels(axis_of(true, {1e-30, 1e30}));
  EXPECT_LE(many.size(), 9U);
  EXPECT_EQ(many.front(), "1e-30");
}

TEST(PlotAxis, OneValueOrNoneStillMakesAnAxis) {
  for (const bool logarithmic : {false, true}) {
    for (const double value : {3.0, 1.0, 1e-12, 1e15, 200.0}) {
      const PlotAxis axis = axis_of(logarithmic, {value});
      EXPECT_GE(axis.ticks().size(), 2U);
      EXPECT_GT(axis.place(value), 0) << value;
      EXPECT_LT(axis.place(value), 1) << value;
    }
    EXPECT_GE(axis_of(logarithmic, {}).ticks().size(), 2U);
  }
  EXPECT_GE(axis_of(false, {0}).ticks().size(), 2U);
  const PlotAxis close = axis_of(false, {1e15, 1e15 + 1});  // closer than doubles can tell ticks apart
  EXPECT_LT(close.ticks().size(), 20U);
}

TEST(PlotAxis, ValuesLieBetweenTheEndsInOrder) {
  const PlotAxis axis = axis_of(true, {0.3, 40});
  EXPECT_LT(axis.place(0.3), axis.place(4));
  EXPECT_LT(axis.place(4), axis.place(40));
  EXPECT_FALSE(axis.shows(0));
  EXPECT_FALSE(axis.shows(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(axis.place(-1), 0);
}

TEST(LinePlot, DrawsLinesMarkersBarsAndLegend) {
  LinePlot plot;
  plot.title = "speed-up";
  plot.series = {{"one", {1, 2, 4}, {1, 1.9, 3.5}, {0.1, 0.2, 0.3}}, {"two", {1, 2, 4}, {1, 1.5, 2}, {}}};
  const std::string svg = to_svg(plot);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<polyline"), 2U);
  EXPECT_EQ(count(svg, "<circle"), 4U);   // three points and the legend
  EXPECT_EQ(count(svg, "<polygon"), 4U);  // squares
  EXPECT_NE(svg.find(">one<"), std::string::npos);
  EXPECT_NE(svg.find(">two<"), std::string::npos);
  EXPECT_EQ(count(svg, "#0072b2"), count(svg, "<circle") + 1 + 1 + 3 * 3);  // line, legend line, bars
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg, to_svg(plot));
}

TEST(LinePlot, PointsWithoutAPlaceAreLeftOutAndBreakTheLine) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  LinePlot plot;
  plot.log_y = true;
  plot.series = {{"", {1, 2, 3, 4, 5}, {1, 2, nan, 3, 4}, {0.1, 5, 0, nan, 0}}};
  const std::string svg = to_svg(plot);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<polyline"), 2U);
  EXPECT_EQ(count(svg, "<circle"), 4U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  plot.series = {{"none", {1, 2}, {-1, 0}, {}}};
  EXPECT_NE(to_svg(plot).find("no data"), std::string::npos);
  EXPECT_NE(to_svg(LinePlot{}).find("no data"), std::string::npos);
}

TEST(LinePlot, TextIsEscaped) {
  LinePlot plot;
  plot.title = "a < b & \"c\"";
  plot.x_label = "</svg><script>";
  plot.series = {{"it's\n1", {1}, {1}, {}}};
  const std::string svg = to_svg(plot);
  expect_well_formed(svg);
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_NE(svg.find("it&#39;s 1"), std::string::npos);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
}

TEST(LinePlot, PanelsLieBelowEachOther) {
  std::vector<LinePlot> panels(2);
  panels[0].title = "first";
  panels[1].title = "second";
  const std::string svg = to_svg(panels);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<g "), 2U);
  EXPECT_NE(svg.find("translate(0 420.00)"), std::string::npos);
}

TEST(LinePlot, LengthsThatDifferAreRefused) {
  LinePlot plot;
  plot.series = {{"s", {1, 2}, {1}, {}}};
  EXPECT_THROW(to_svg(plot), UsageError);
  plot.series = {{"s", {1, 2}, {1, 2}, {1}}};
  EXPECT_THROW(to_svg(plot), UsageError);
}

}  // namespace
}  // namespace margrave
