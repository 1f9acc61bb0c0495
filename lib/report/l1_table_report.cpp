// Table 1 and Figure 2 of paper 003 as text, JSON and a plot, beside what the paper says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

// What the paper says, what was found, and whether these agree.
struct Claim {
  std::string paper, found;
  bool agrees;
};

// Whether one model errs less than another at all training sizes, in the mean over the sets. Sets differ more
// than models do, so differences are taken set by set.
Claim errs_less(const ErrorCurve& a, const ErrorCurve& b) {
  std::size_t won = 0;
  std::string differences;
  for (std::size_t k = 0; k < a.points.size(); ++k) {
    const auto &own = a.points[k].errors, &other = b.points[k].errors;
    double mean = 0, squares = 0;
    const auto sets = static_cast<double>(own.size());
    for (std::size_t s = 0; s < own.size(); ++s) mean += (own[s] - other[s]) / sets;
    for (std::size_t s = 0; s < own.size(); ++s) squares += std::pow(own[s] - other[s] - mean, 2);
    won += mean < 0 ? 1U : 0U;
    differences += fmt::format("{}{:+.4f}", k == 0 ? "" : ", ", mean);
    if (own.size() > 1) differences += fmt::format("±{:.4f}", std::sqrt(squares / (sets - 1) / sets));
  }
  return {fmt::format("{} errs less than {}", a.model, b.model),
          fmt::format("at {} of {} training sizes; difference ± standard error: {}", won, a.points.size(),
                      differences),
          won == a.points.size()};
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
  const std::size_t best =
      static_cast<std::size_t>(std::min_element(row.error.begin(), row.error.end()) - row.error.begin());
  const bool gone = least <= 14;  // a tenth of them
  return {fmt::format("{} {} the pattern", row.solver, expected ? "recovers" : "does not recover"),
          fmt::format("{}; {}: {} of 140 irrelevant weights left at its sparsest (test error {:.3f}), {} at "
                      "its best error ({:.3f})",
                      gone ? "it does" : "it does not", row.note, least, error, row.irrelevant[best],
                      row.error[best]),
          gone == expected};
}

// The paper's own doubt: "Perhaps tuning the learning rate could make this tail of very small features
// disappear" (003, §5.3.1). It gives neither that rate nor the number of steps.
constexpr const char* about_steps =
    "Projection onto the ball sets weights to zero exactly; what steps leave elsewhere are small weights "
    "that\n"
    "the next projections have not reached. Steps over all sequences settle, so theirs go; steps over one\n"
    "sequence at a time keep making new ones. The paper names both and says neither which it took nor how "
    "long.\n";

std::vector<Claim> claims(const L1Table& table) {
  std::vector<Claim> all;
  if (const auto* m3n = find(table, "M3N"), *l1 = find(table, "l1-M3N"), *l1_crf = find(table, "l1-CRF"),
      *crf = find(table, "CRF"), *l2_crf = find(table, "l2-CRF"), *laplace = find(table, "LapM3N");
      m3n && l1 && l1_crf && crf && l2_crf && laplace)
    for (const auto& [a, b] :
         {std::pair{l1, m3n}, std::pair{l1_crf, m3n}, std::pair{laplace, m3n}, std::pair{l1, crf},
          std::pair{l1_crf, crf}, std::pair{laplace, crf}, std::pair{m3n, crf}, std::pair{l2_crf, crf}})
      all.push_back(errs_less(*a, *b));
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
    for (const ErrorPoint& point : curve.points) {
      text += fmt::format(" {:.3g}", point.constant);
      if (point.sharpness > 0) text += fmt::format(" (κ {:.3g})", point.sharpness);
    }
    text += '\n';
  }
  text += "The paper's claims, and what was found here\n";
  for (const Claim& claim : claims(table))
    text += fmt::format("  {:<8} paper: {}\n           here: {}\n", claim.agrees ? "agrees" : "differs",
                        claim.paper, claim.found);
  text += about_steps;
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
    for (const ErrorPoint& point : curve.points) {
      points.push_back({{"folds", point.folds},
                        {"samples", point.samples},
                        {curve.parameter, point.constant},
                        {"mean", point.mean},
                        {"deviation", point.deviation},
                        {"errors", point.errors}});
      if (point.sharpness > 0) points.back()["sharpness"] = point.sharpness;
    }
    json["errors"].push_back({{"model", curve.model}, {"points", std::move(points)}});
  }
  json["claims"] = Json::array();
  for (const Claim& claim : claims(table))
    json["claims"].push_back({{"paper", claim.paper}, {"found", claim.found}, {"agrees", claim.agrees}});
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
