// Table 1 and Figure 2 of paper 003 as text, JSON and a plot, beside what the paper says.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/l1_table.hpp"
#include "report/line_plot.hpp"

namespace margrave {

namespace {

using Json = nlohmann::ordered_json;

const ErrorCurve* find(const L1Table& table, std::string_view model) {
  const auto found = std::find_if(table.errors.begin(), table.errors.end(),
                                  [&](const ErrorCurve& curve) { return curve.model == model; });
  return found == table.errors.end() ? nullptr : &*found;
}

struct Claim {
  std::string text;
  bool holds;
};

// At how many training sizes the first model errs less than the second.
std::string wins(const ErrorCurve& a, const ErrorCurve& b, bool& always) {
  std::size_t won = 0;
  for (std::size_t k = 0; k < a.points.size(); ++k) won += a.points[k].mean < b.points[k].mean ? 1U : 0U;
  always = won == a.points.size();
  return fmt::format("{} below {} at {} of {} training sizes", a.model, b.model, won, a.points.size());
}

// Whether at some point of the grid most irrelevant weights are gone and a good part of the relevant ones are
// not.
Claim recovers(const SparsityRow& row, bool expected) {
  std::uint64_t least = ~std::uint64_t{0};
  double error = 1;
  for (std::size_t p = 0; p < row.total.size(); ++p)
    if (row.total[p] > row.irrelevant[p] && row.irrelevant[p] < least) {
      least = row.irrelevant[p];
      error = row.error[p];
    }
  const bool gone = least <= 14;  // a tenth of them
  return {fmt::format(
              "{} ({}) {} the pattern: {} irrelevant weights left at its sparsest, test error {:.3f} there",
              row.solver, row.note, expected ? "recovers" : "does not recover", least, error),
          gone == expected};
}

std::vector<Claim> claims(const L1Table& table) {
  std::vector<Claim> all;
  if (const auto* m3n = find(table, "M3N"), *l1 = find(table, "l1-M3N"), *l1_crf = find(table, "l1-CRF"),
      *crf = find(table, "CRF"), *laplace = find(table, "LapM3N");
      m3n && l1 && l1_crf && crf && laplace) {
    bool always = false;
    for (const auto& [a, b] : {std::pair{l1, m3n}, std::pair{l1_crf, m3n}, std::pair{laplace, m3n},
                               std::pair{l1, crf}, std::pair{m3n, crf}}) {
      const std::string text = wins(*a, *b, always);
      all.push_back({text, always});
    }
  }
  for (const SparsityRow& row : table.sparsity) all.push_back(recovers(row, row.solver != "l1-subgradient"));
  return all;
}

template <class T>
std::string numbers(const std::vector<T>& values, const char* format) {
  std::string line;
  for (const T& value : values) line += fmt::format(fmt::runtime(format), value);
  return line;
}

}  // namespace

std::string l1_table_text(const L1Table& table) {
  std::string text =
      "Table 1: non-zero average weights on the first set, 10 folds (200 state features, 140 of them on "
      "irrelevant inputs)\n";
  for (const SparsityRow& row : table.sparsity) {
    text += fmt::format("  {:<17} {:<12} {}   {}\n", row.solver, row.parameter, numbers(row.grid, "{:>7.3g}"),
                        row.note);
    text += fmt::format("  {:<17} {:<12} {}\n", "", "irrelevant", numbers(row.irrelevant, "{:>7}"));
    text += fmt::format("  {:<17} {:<12} {}\n", "", "(paper)", numbers(row.paper_irrelevant, "{:>7}"));
    text += fmt::format("  {:<17} {:<12} {}\n", "", "total", numbers(row.total, "{:>7}"));
    text += fmt::format("  {:<17} {:<12} {}\n", "", "(paper)", numbers(row.paper_total, "{:>7}"));
    text += fmt::format("  {:<17} {:<12} {}\n", "", "test error", numbers(row.error, "{:>7.3f}"));
  }
  text += fmt::format(
      "Figure 2: test error, mean (standard deviation) over {} sets; constants chosen on the first set, "
      "which "
      "is left out\n",
      table.sets);
  if (!table.errors.empty()) {
    text += fmt::format("  {:<8}", "samples");
    for (const ErrorPoint& point : table.errors.front().points) text += fmt::format("{:>17}", point.samples);
    text += '\n';
  }
  for (const ErrorCurve& curve : table.errors) {
    text += fmt::format("  {:<8}", curve.model);
    for (const ErrorPoint& point : curve.points)
      text += fmt::format("{:>17}", fmt::format("{:.4f} ({:.4f})", point.mean, point.deviation));
    text += fmt::format("   {} =", curve.parameter);
    for (const ErrorPoint& point : curve.points) text += fmt::format(" {:.3g}", point.constant);
    text += '\n';
  }
  text += "The paper's claims, and what was found here\n";
  for (const Claim& claim : claims(table))
    text += fmt::format("  {:<4} {}\n", claim.holds ? "yes" : "no", claim.text);
  if (!table.complete) text += "stopped: what is above is a part\n";
  return text;
}

std::string l1_table_json(const L1Table& table) {
  Json json;
  json["name"] = "l1-table";
  json["complete"] = table.complete;
  json["sets"] = table.sets;
  json["sparsity"] = Json::array();
  for (const SparsityRow& row : table.sparsity)
    json["sparsity"].push_back({{"solver", row.solver},
                                {"parameter", row.parameter},
                                {"note", row.note},
                                {"grid", row.grid},
                                {"constant", row.constant},
                                {"irrelevant", row.irrelevant},
                                {"total", row.total},
                                {"test_error", row.error},
                                {"paper_irrelevant", row.paper_irrelevant},
                                {"paper_total", row.paper_total}});
  json["errors"] = Json::array();
  for (const ErrorCurve& curve : table.errors) {
    Json points = Json::array();
    for (const ErrorPoint& point : curve.points)
      points.push_back({{"folds", point.folds},
                        {"samples", point.samples},
                        {curve.parameter, point.constant},
                        {"mean", point.mean},
                        {"deviation", point.deviation}});
    json["errors"].push_back({{"model", curve.model}, {"points", std::move(points)}});
  }
  json["claims"] = Json::array();
  for (const Claim& claim : claims(table))
    json["claims"].push_back({{"text", claim.text}, {"holds", claim.holds}});
  return json.dump();
}

std::string l1_table_svg(const L1Table& table) {
  std::vector<LinePlot> panels;
  LinePlot errors{.title = "Error rates of different models (003, Figure 2)",
                  .x_label = "training sequences",
                  .y_label = "test error"};
  for (const ErrorCurve& curve : table.errors) {
    PlotSeries series{.name = curve.model};
    for (const ErrorPoint& point : curve.points) {
      series.x.push_back(static_cast<double>(point.samples));
      series.y.push_back(point.mean);
      series.error.push_back(point.deviation);
    }
    errors.series.push_back(std::move(series));
  }
  if (!errors.series.empty()) panels.push_back(std::move(errors));
  for (const SparsityRow& row : table.sparsity) {
    LinePlot plot{.title = row.solver + ": average weights that are not zero (003, Table 1); " + row.note,
                  .x_label = row.parameter,
                  .y_label = "weights"};
    const auto add = [&](const char* name, const std::vector<std::uint64_t>& counts) {
      plot.series.push_back({name, row.grid, {counts.begin(), counts.end()}, {}});
    };
    add("irrelevant", row.irrelevant);
    add("total", row.total);
    add("irrelevant, paper", row.paper_irrelevant);
    add("total, paper", row.paper_total);
    panels.push_back(std::move(plot));
  }
  return to_svg(panels);
}

}  // namespace margrave
