// The experiments of paper 003 §5.1 and §5.3.1 on its synthetic sequences: Table 1 and Figure 2.
//
// Data: `sets` CRFs with 8 binary labels, 30 relevant inputs of 100 in correlated groups of three, 1,000
// sequences each (generate.hpp, SequenceOptions). Folds: one part of K trains, the other K − 1 test.
//
// Table 1: weights that are not zero in the average over 10 folds of the first set, of all 200 state features
// and of the 140 on irrelevant inputs, for each solver of the l1-M3N over its grid.
// Figure 2: test error of six models with 1000/K training sequences. The constant of each model and K is the
// one with the smallest test error on the first set, which is then left out of the averages.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace margrave {

struct L1TableOptions {
  std::uint64_t sets = 10;
  std::uint64_t examples = 1000;  // per set
  std::uint64_t most_folds = 20;  // of a set that train; fewer is quicker
  int threads = 0;
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::string_view stage, double fraction)> on_progress;
};

// One row pair of Table 1.
struct SparsityRow {
  std::string solver, parameter;  // what the grid's numbers are
  std::string note;               // how it differs from the paper's
  std::vector<double> grid;
  std::vector<double> constant;  // the option's value at each
  std::vector<std::uint64_t> irrelevant, total;
  std::vector<double> error;  // mean test error
  std::vector<std::uint64_t> paper_irrelevant, paper_total;
};

struct ErrorPoint {
  std::uint64_t folds = 0;         // K
  std::uint64_t samples = 0;       // that train
  double constant = 0;             // that was chosen on the first set
  double sharpness = 0;            // likewise, of LapM3N
  std::vector<double> errors;      // mean test error of each other set
  double mean = 0, deviation = 0;  // of these
};
struct ErrorCurve {
  std::string model, parameter;
  std::vector<ErrorPoint> points;
};

struct L1Table {
  std::vector<SparsityRow> sparsity;
  std::vector<ErrorCurve> errors;
  std::uint64_t sets = 0;  // behind the averages
  bool complete = false;   // not stopped
};

L1Table l1_table(const L1TableOptions& options);

std::string l1_table_text(const L1Table& table);
std::string l1_table_json(const L1Table& table);
std::string l1_table_svg(const L1Table& table);

}  // namespace margrave
