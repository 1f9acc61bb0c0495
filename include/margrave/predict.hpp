// Using a model: labels, marginals, k best, losses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "margrave/dataset.hpp"
#include "margrave/model.hpp"
#include "margrave/report.hpp"

namespace margrave {

/// Transitions between chunk tags that prediction rules out. iob2: I-X follows B-X or I-X only. iobes: B-X
/// and I-X are followed by I-X or E-X, nothing else is, and no text ends in them; S-X is a chunk of one
/// token.
enum class Scheme : std::uint8_t { none, iob2, iobes };

/// How predict() works.
struct PredictOptions {
  /// automatic: exact where the graphs allow it, else msd (max-sum diffusion), which labels any graph and
  /// proves most labellings of easy ones optimal, or roof_dual on small graphs it fits. roof_dual solves the
  /// LP relaxation of graphs with two states and pairs only by one maximum flow, lp that of any graph by the
  /// simplex method.
  Inference inference = Inference::automatic;
  bool marginals = false;     ///< exact inference only
  std::uint32_t nbest = 1;    ///< > 1 needs chains and exact inference
  std::uint32_t tighten = 0;  ///< msd: rounds of triplet clusters where a labelling is not proven
  int threads = 0;
  /// Exact inference only. Pairs of variables whose states have such names keep to the scheme; the variable
  /// with the lower number comes first. Names that are no tags are outside of all chunks.
  Scheme scheme = Scheme::none;
  bool keep_labels = false;  ///< variables that have a label keep it; the others are predicted given those
};

struct Prediction {
  struct Scored {
    double score = 0;
    std::vector<std::uint32_t> labels;
  };
  std::vector<Scored> best;            ///< best first
  double bound = 0;                    ///< no labelling scores more, up to rounding
  bool proven = false;                 ///< the first labelling reaches the bound: it is a best one
  std::uint32_t persistent = 0;        ///< variables known to have the label of a best labelling
  std::vector<double> node_marginals;  ///< states of variable 0, then 1, …; empty unless asked for
};

/// Scores, marginals and bounds are those of the labellings that `scheme` and `keep_labels` leave; InputError
/// where they leave none, with the first such example.
std::vector<Prediction> predict(const Model& model, const Dataset& data, const PredictOptions& options = {});

/// Losses over the labelled variables of a dataset.
struct Losses {
  double hamming = 0;         ///< wrong variables / labelled variables, over all examples together
  double zero_one = 0;        ///< fraction of examples with any wrong variable
  double f1 = 0;              ///< see evaluate()
  double solved_exactly = 0;  ///< fraction of examples whose labelling is provably a best one
  std::uint64_t examples = 0, variables = 0;
  std::optional<double> chunk_f1;  ///< where labels are chunk tags: see chunk_scores()
};

/// Hamming and zero-one loss, and F1: micro-averaged over state 1 where every variable is binary, else
/// macro-averaged over the states (of each variable template) that occur in truth or prediction. F1 is 1
/// where there is nothing to find and nothing was found.
Losses evaluate(const Model& model, const Dataset& data, const PredictOptions& options = {});
Losses losses(const Dataset& data, const std::vector<Prediction>& predictions);

/// How well one label is found: a state of a variable
/// template, or state 1 alone where every variable is binary.
struct LabelScore {
  std::string label;
  std::uint64_t true_positive = 0, false_positive = 0, false_negative = 0;
  double f1() const {
    const std::uint64_t all = 2 * true_positive + false_positive + false_negative;
    return all == 0 ? 1.0 : 2.0 * static_cast<double>(true_positive) / static_cast<double>(all);
  }
};
std::vector<LabelScore> label_scores(const Dataset& data, const std::vector<Prediction>& predictions);

/// Chunks of one type, or of all: how many there are, how many were predicted, how many of those are right.
struct ChunkScore {
  std::string type;
  std::uint64_t given = 0, predicted = 0, correct = 0;
  double precision() const { return predicted == 0 ? 0 : ratio(correct, predicted); }
  double recall() const { return given == 0 ? 0 : ratio(correct, given); }
  double f1() const { return given + predicted == 0 ? 0 : ratio(2 * correct, given + predicted); }

 private:
  static double ratio(std::uint64_t part, std::uint64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }
};
struct ChunkScores {
  ChunkScore all;                 ///< its type is empty
  std::vector<ChunkScore> types;  ///< that occur in truth or prediction, sorted by name
  std::uint64_t tokens = 0, correct_tokens = 0;
  double accuracy() const {
    return tokens == 0 ? 0 : static_cast<double>(correct_tokens) / static_cast<double>(tokens);
  }
};
/// The counts of conlleval (Tjong Kim Sang and Buchholz 2000), over the variables of each example in their
/// order: a chunk is right where its first token, its last token and its type are. Nothing where the names of
/// states are not all chunk tags: O, or B, I, E, S with a type (B-NP) or alone. Variables without a label are
/// left out, and no chunk reaches across them.
std::optional<ChunkScores> chunk_scores(const Dataset& data, const std::vector<Prediction>& predictions);

/// Recomputes primal, dual bound and gap of a model on its training data from its certificate, with code
/// apart from the solvers.
struct CertifiedBounds {
  double primal =
      0;  ///< the regularizer + (1/M) Σ H_m(w), or an upper bound of it where the hinge is relaxed
  std::optional<double> dual;
  /// What both bounds speak of: the hinge itself, or its relaxation over the local polytope.
  Relaxation relaxation = Relaxation::exact;
  /// Largest |w − w(certificate)|; absent where the weights are no function of the dual point (l1).
  std::optional<double> weight_distance;
  /// How far the certificate was from a dual feasible point before it was made one: the largest distance of
  /// an example's weights, or a clique's marginals, from the simplex; the largest disagreement of neighbours.
  double infeasibility = 0;
  double rounding = 0;  ///< a gap below minus this cannot come from rounding: something is broken

  std::optional<double> gap() const {
    if (!dual) return std::nullopt;
    return primal - *dual;
  }
};
/// Throws InputError where the data is not what the model was trained on, UsageError where its loss cannot be
/// certified: those smoothed clique by clique need marginals in the certificate. Smooth losses over exact
/// oracles need none: there the weights alone give a bound. Elsewhere the dual is absent without a
/// certificate.
CertifiedBounds certify(const Model& model, const Dataset& data, int threads = 0);

}  // namespace margrave
