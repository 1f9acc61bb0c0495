// The bounds of a model with kernels, from kernel values pair by pair. Plain code on purpose: it shares with
// the solver the data structures, the kernel's formula and the exact oracle, and nothing else.
//
//   w_t(row) = Σ_p b_p(t, row) φ(x_p),  |w|² = |explicit|² + Σ_pq <b_p, b_q> k(x_p, x_q)
// The model's b are those of its support; the certificate's, from its marginals μ̄ rounded into the local
// polytope, are (1/(λM)) Σ [1(y = y*) − μ̄_i(y)] over the variables i with input x_p.
#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "base/compensated.hpp"
#include "inference/oracle.hpp"
#include "inference/potentials.hpp"
#include "margrave/error.hpp"
#include "model/clique_scores.hpp"
#include "model/topology.hpp"
#include "parallel/arena.hpp"
#include "report/certify_parts.hpp"

namespace margrave {
namespace {

constexpr std::size_t rows_per_block = 8, examples_per_block = 16;
constexpr std::uint32_t none = ~std::uint32_t{0};

// Inputs with coefficients: of a model, or of a certificate.
struct Expansion {
  std::vector<InputView> input;
  std::vector<double> length;       // squared
  std::vector<double> coefficient;  // columns of each input
};

// One group of the model's expansion, and the data's variables that it scores.
struct Part {
  KernelFunction function;
  std::size_t columns = 0;
  Expansion support, point;          // point: the distinct inputs of the data
  std::vector<std::uint32_t> place;  // of the data's inputs in `point`
  std::vector<double> score;         // the model's, of the data's inputs
};

class Certifier {
 public:
  Certifier(const Model& model, const Dataset& data, int threads)
      : model_(model),
        data_(data),
        arena_(threads),
        part_of_(data.templates().size(), none),
        column_of_(data.templates().size(), 0) {
    for (const KernelExpansion::Group& group : model.kernel->groups) add_part(group);
    for (Part& part : parts_) part.score = scores(part.function, part.point, part.support, part.columns);
  }

  double model_norm() {
    CompensatedSum sum;
    sum.add(squared_norm(model_.weights));
    for (const Part& part : parts_)
      sum.add(
          product(part.support.coefficient, scores(part.function, part.support, part.support, part.columns)));
    return sum.value();
  }

  // D(μ̄), and how far the model's weights and scores are from those of μ̄.
  void add_dual(const CliqueMarginals& marginals, CertifiedBounds& bounds) {
    const auto examples = static_cast<double>(data_.size());
    const double scale = 1 / (model_.lambda * examples);
    std::vector<CompensatedSum> w(model_.weights.size());
    CompensatedSum loss;
    bounds.infeasibility = for_each_rounded(
        marginals, data_, [&](std::size_t m, std::span<const double>, std::span<const double> mu) {
          add_example(data_[m], mu, scale, w, loss);
        });
    CompensatedSum norm;
    double distance = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      norm.add(w[i].value() * w[i].value());
      distance = std::max(distance, std::abs(w[i].value() - model_.weights[i]));
    }
    for (const Part& part : parts_) {
      const std::vector<double> score = scores(part.function, part.point, part.point, part.columns);
      norm.add(product(part.point.coefficient, score));
      for (std::size_t i = 0; i < score.size(); ++i)
        distance = std::max(distance, std::abs(score[i] - part.score[i]));
    }
    bounds.weight_distance = distance;
    bounds.dual = loss.value() / examples - model_.lambda / 2 * norm.value();
  }

  // As hinge_sum() of certify.cpp, the scores of variables from kernels.
  HingeSum hinge_sum(const Oracle& oracle) {
    struct Worker {
      Potentials potentials;
      Scratch scratch;
      std::vector<std::uint32_t> labels;
    };
    std::vector<Worker> workers(static_cast<std::size_t>(arena_.threads()));
    return ordered_reduce<HingeSum>(
        arena_, data_.size(), examples_per_block, [&](std::size_t begin, std::size_t end, int number) {
          Worker& worker = workers[static_cast<std::size_t>(number)];
          HingeSum sum;
          for (std::size_t m = begin; m < end; ++m) {
            const FactorGraph graph = data_[m];
            worker.potentials.fill(data_, graph, model_.weights.data(), 1);
            for (std::size_t i = 0; i < graph.variables(); ++i)
              for (std::size_t y = 0; y < graph.topology().states[i]; ++y)
                worker.potentials.node(i)[y] = clique_score(graph, i, y);
            worker.potentials.add_loss(graph, loss_scale(model_, graph));
            worker.labels.resize(graph.variables());
            oracle.argmax(graph, worker.potentials, worker.scratch, worker.labels);
            add_hinge(graph, worker.labels, sum);
          }
          return sum;
        });
  }

 private:
  void add_part(const KernelExpansion::Group& group) {
    const auto number = static_cast<std::uint32_t>(parts_.size());
    Part& part = parts_.emplace_back();
    part.function = group.function;
    for (const std::uint32_t t : group.templates) {
      part_of_[t] = number;
      column_of_[t] = part.columns;
      part.columns += model_.templates[t].rows;
    }
    for (std::size_t s = 0; s < group.support(); ++s) add_input(group.input(s), part.support);
    part.support.coefficient = group.coefficient;
    part.place.assign(data_.inputs(), none);
    for (std::size_t m = 0; m < data_.size(); ++m) {
      const FactorGraph graph = data_[m];
      for (std::size_t i = 0; i < graph.variables(); ++i) {
        const std::uint32_t input = graph.input_of(i);
        if (part_of_[graph.topology().variable_template[i]] != number || part.place[input] != none) continue;
        if (data_.input(input).kind == InputKind::per_state)
          throw InputError({}, "this data has inputs per state, which the model's kernels cannot score");
        part.place[input] = static_cast<std::uint32_t>(part.point.input.size());
        add_input(data_.input(input), part.point);
      }
    }
    part.point.coefficient.assign(part.point.input.size() * part.columns, 0.0);
  }
  static void add_input(const InputView& x, Expansion& expansion) {
    expansion.input.push_back(x);
    expansion.length.push_back(input_product(x, x));
  }

  // Σ_q k(at_p, from_q) coefficient_q for all p.
  std::vector<double> scores(const KernelFunction& function, const Expansion& at, const Expansion& from,
                             std::size_t columns) {
    std::vector<double> out(at.input.size() * columns, 0.0);
    arena_.for_each_block(at.input.size(), rows_per_block, [&](std::size_t begin, std::size_t end, int) {
      for (std::size_t p = begin; p < end; ++p)
        for (std::size_t q = 0; q < from.input.size(); ++q) {
          const double value =
              function(input_product(at.input[p], from.input[q]), at.length[p], from.length[q]);
          for (std::size_t c = 0; c < columns; ++c)
            out[p * columns + c] += value * from.coefficient[q * columns + c];
        }
    });
    return out;
  }
  static double product(const std::vector<double>& a, const std::vector<double>& b) {
    CompensatedSum sum;
    for (std::size_t i = 0; i < a.size(); ++i) sum.add(a[i] * b[i]);
    return sum.value();
  }

  // Where the coefficients or scores of a variable's rows begin.
  template <class Values>
  auto* rows_of(const FactorGraph& graph, std::size_t clique, Part& part, Values& values) const {
    return values.data() + part.place[graph.input_of(clique)] * part.columns +
           column_of_[graph.topology().template_of(clique)];
  }
  // nullptr for cliques with explicit weights.
  Part* part_of(const FactorGraph& graph, std::size_t clique) {
    const std::uint32_t part = part_of_[graph.topology().template_of(clique)];
    return part == none ? nullptr : &parts_[part];
  }

  double clique_score(const FactorGraph& graph, std::size_t clique, std::size_t joint) {
    const Template& t = data_.templates()[graph.topology().template_of(clique)];
    Part* part = part_of(graph, clique);
    if (part == nullptr) return state_score(data_, t, graph.input_of(clique), joint, model_.weights.data());
    return t.row_of[joint] < 0 ? 0.0 : rows_of(graph, clique, *part, part->score)[t.row_of[joint]];
  }

  void add_example(const FactorGraph& graph, std::span<const double> mu, double scale,
                   std::vector<CompensatedSum>& w, CompensatedSum& loss) {
    const Topology& top = graph.topology();
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      const Template& t = data_.templates()[top.template_of(a)];
      const std::size_t truth = joint_state(top, a, graph.labels());
      Part* part = part_of(graph, a);
      for (std::uint64_t y = 0; y < top.clique_offset[a + 1] - top.clique_offset[a]; ++y) {
        const double coefficient = scale * ((y == truth ? 1.0 : 0.0) - mu[top.clique_offset[a] + y]);
        if (part == nullptr) {
          for_each_weight(data_, t, graph.input_of(a), y, coefficient,
                          [&](std::uint64_t at, double x) { w[at].add(x); });
        } else if (t.row_of[y] >= 0) {
          rows_of(graph, a, *part, part->point.coefficient)[t.row_of[y]] += coefficient;
        }
      }
      if (a < top.variables())
        loss.add(loss_scale(model_, graph) * static_cast<double>(graph.loss(a)) *
                 (1 - mu[top.clique_offset[a] + truth]));
    }
  }

  void add_hinge(const FactorGraph& graph, const std::vector<std::uint32_t>& labels, HingeSum& sum) {
    const Topology& top = graph.topology();
    sum.value.add(hamming(model_, graph, labels));
    for (std::size_t a = 0; a < top.cliques(); ++a) {
      const std::size_t truth = joint_state(top, a, graph.labels()), state = joint_state(top, a, labels);
      const double right = clique_score(graph, a, truth), found = clique_score(graph, a, state);
      sum.magnitude.add(std::abs(right));
      if (state == truth) continue;
      sum.magnitude.add(std::abs(found));
      sum.value.add(found);
      sum.value.add(-right);
    }
  }

  const Model& model_;
  const Dataset& data_;
  Arena arena_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> part_of_;
  std::vector<std::size_t> column_of_;
};

}  // namespace

CertifiedBounds certify_kernel(const Model& model, const Dataset& data, int threads) {
  if (model.loss != Loss::hinge || model.gamma != 0)
    throw InputError(
        {}, "the model has kernels and a smooth loss, and only the plain hinge is trained with them");
  const auto oracle = make_exact_oracle(data);
  Certifier certifier(model, data, threads);
  CertifiedBounds bounds;
  if (model.certificate) {
    if (model.certificate->fingerprint != data.fingerprint())
      throw InputError({}, "this is not the data the model was trained on (its fingerprint differs)");
    const auto* marginals = std::get_if<CliqueMarginals>(&model.certificate->point);
    if (marginals == nullptr || !all_forests(data))
      throw InputError({}, "a model with kernels is certified by marginals on graphs without cycles");
    certifier.add_dual(*marginals, bounds);
  }
  const HingeSum hinge = certifier.hinge_sum(*oracle);
  const auto examples = static_cast<double>(data.size());
  const double regularizer = model.lambda / 2 * certifier.model_norm();
  bounds.primal = regularizer + hinge.value.value() / examples;
  bounds.rounding = rounding_of_result * std::max({1.0, std::abs(bounds.primal), std::abs(regularizer)}) +
                    rounding_of_scores * hinge.magnitude.value() / examples;
  if (!std::isfinite(bounds.primal) || !std::isfinite(bounds.dual.value_or(0)) ||
      !std::isfinite(bounds.weight_distance.value_or(0)))
    throw InputError({}, "the model's numbers are so large that its objective is not finite");
  return bounds;
}

}  // namespace margrave
