// Solver: one virtual that matters, `epoch`. The loop around it lives in run.hpp, once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/stream.hpp"
#include "inference/oracle.hpp"
#include "margrave/model.hpp"
#include "margrave/report.hpp"
#include "objective/gap_evaluator.hpp"
#include "objective/objective.hpp"
#include "parallel/arena.hpp"

namespace margrave {

// What every solver works on. All of it outlives the solver.
struct Problem {
  const Dataset& data;
  const Objective& objective;
  const Oracle* oracle;  // nullptr where no exact or bounding oracle fits: clique-wise solvers do without
  Arena& arena;
  Mode mode = Mode::deterministic;
  std::uint64_t seed = 1;
  std::uint32_t delay = 0;  // visits until a change of w is seen: staleness replayed (block_ascent.hpp)
};

// Asked between blocks: is the run to go on?
class EpochControl {
 public:
  EpochControl() = default;
  EpochControl(const EpochControl&) = delete;
  EpochControl& operator=(const EpochControl&) = delete;
  virtual ~EpochControl() = default;
  // `fraction` of the epoch is done. False: return from epoch() now.
  virtual bool proceed(double fraction) = 0;
  // Whether a relative gap of this size would end the run: where a solver foresees it, its epoch may end
  // early and have it certified.
  virtual bool enough(double /*relative_gap*/) const { return false; }
};

class Solver {
 public:
  Solver() = default;
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  virtual ~Solver() = default;

  virtual std::string_view name() const = 0;
  // Between epochs: the place for allocations and housekeeping, so that epoch() needs none.
  virtual void prepare() {}
  // Runs one epoch, or the rest of one that was stopped. False where control stopped it.
  virtual bool epoch(EpochControl& control) = 0;

  // The dual point, or nullptr for primal and clique-wise methods.
  virtual const DualPoint* dual_point() const = 0;
  // The point of a clique-wise method, or nullptr.
  virtual const LocalPoint* local_point() const { return nullptr; }
  // Messages that bound the primal (as multipliers of a point whose marginals agree), for primal methods that
  // have them; nullptr: the evaluator asks its oracle.
  virtual const LocalPoint* messages() const { return nullptr; }
  // Whether the gap of the soft problem ends a run (clique-wise methods only).
  virtual StopRule stop_rule() const { return StopRule::certified; }
  virtual bool has_multipliers() const { return false; }
  // λ of the problem with λ/2·|w|₁ whose solution is this one's, for methods that solve another form of it.
  virtual std::optional<double> matching_lambda() const { return std::nullopt; }
  // What a theorem says the gap is at most now.
  virtual std::optional<double> gap_bound() const { return std::nullopt; }
  // The running weights: never certified, rebuilt by the evaluator where there is a dual point.
  virtual std::span<const double> weights() const = 0;
  // Takes over the weights rebuilt from the dual point, so that rounding does not pile up. Never called under
  // a sparse penalty, where the weights are no function of the point.
  virtual void adopt(std::span<const double> weights) = 0;
  // The running weights themselves, where they may be rebuilt in place before adopt() is called with them:
  // large ones need no second copy then. Empty: adopt() copies.
  virtual std::span<double> weights_to_rebuild() { return {}; }
  // Weights that may be better than weights(): an average, or the best a cutting-plane method met.
  virtual std::optional<std::span<const double>> averaged() const { return std::nullopt; }
  // The dual point as a model keeps it: labellings, or marginals of cliques.
  virtual std::optional<Certificate> certificate() const { return std::nullopt; }

  // The labellings its point is made of, where it keeps some and the oracle is exact: a start for others.
  virtual std::optional<Labellings> labellings() const { return std::nullopt; }

  virtual std::uint64_t oracle_calls() const = 0;
  virtual std::uint64_t bytes() const = 0;
  // Where the time since the solver was made went.
  virtual std::optional<WorkSplit> work() const { return std::nullopt; }

  // Everything that the next bit depends on.
  virtual void save(ByteWriter& out) const = 0;
  virtual void restore(ByteReader& in) = 0;
  // Only the dual point, for a start at another λ. The caller rebuilds the weights and has them adopted.
  virtual void warm_start(ByteReader& in) = 0;
};

std::unique_ptr<Solver> make_bcfw(const Problem& problem, const BcfwOptions& options);
std::unique_ptr<Solver> make_n_slack(const Problem& problem, const NSlackOptions& options);
std::unique_ptr<Solver> make_soft_bcfw(const Problem& problem, const SoftBcfwOptions& options);
std::unique_ptr<Solver> make_soft_sdca(const Problem& problem, const SoftSdcaOptions& options);
std::unique_ptr<Solver> make_idal(const Problem& problem, const IdalOptions& options);
std::unique_ptr<Solver> make_gdmm(const Problem& problem, const GdmmOptions& options);
std::unique_ptr<Solver> make_pegasos(const Problem& problem, const PegasosOptions& options);
std::unique_ptr<Solver> make_subgradient(const Problem& problem, const SubgradientOptions& options);
std::unique_ptr<Solver> make_dlpw(const Problem& problem, const DlpwOptions& options);
std::unique_ptr<Solver> make_one_slack(const Problem& problem, const OneSlackOptions& options);
std::unique_ptr<Solver> make_egr(const Problem& problem, const EgrOptions& options);
// `space` is that of the kernel, which the evaluator shares (state/kernel_space.hpp).
std::unique_ptr<Solver> make_egr_kernel(const Problem& problem, const EgrKernelOptions& options,
                                        std::shared_ptr<WeightSpace> space);
std::unique_ptr<Solver> make_exponentiated_gradient(const Problem& problem,
                                                    const ExponentiatedGradientOptions& options);
std::unique_ptr<Solver> make_extragradient(const Problem& problem, const ExtragradientOptions& options);
std::unique_ptr<Solver> make_smo(const Problem& problem, const SmoOptions& options);
std::unique_ptr<Solver> make_sdca(const Problem& problem, const SdcaOptions& options);
std::unique_ptr<Solver> make_lbfgs(const Problem& problem, const LbfgsOptions& options);
std::unique_ptr<Solver> make_owl_qn(const Problem& problem, const OwlQnOptions& options);
std::unique_ptr<Solver> make_l1_cutting_plane(const Problem& problem, const L1CuttingPlaneOptions& options);
std::unique_ptr<Solver> make_l1_subgradient(const Problem& problem, const L1SubgradientOptions& options);
std::unique_ptr<Solver> make_l1_em(const Problem& problem, const L1EmOptions& options);
std::unique_ptr<Solver> make_laplace_m3n(const Problem& problem, const LaplaceM3nOptions& options);

}  // namespace margrave
