// An epoch visits every part of every example once, in random order (parts of one colour together), then
// updates the multipliers where the recipe has any and lets ρ fall where it is annealed.
//
// Deterministic mode: the visits of a batch run in parallel against frozen w; their line searches and changes
// of w follow in batch order, each against the w that the ones before left, and those of μ in parallel again,
// behind the visits of the next batch: there they fill the time until the last of these is done. Visits of a
// colour share no message, so nothing but w goes stale. Asynchronous mode: tasks read private
// copies of w and add to w atomically.
#include "solvers/clique_engine.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "margrave/error.hpp"
#include "model/clique_scores.hpp"
#include "model/stored_weights.hpp"
#include "solvers/clique_state.hpp"
#include "solvers/clique_visit.hpp"
#include "solvers/visit_order.hpp"
#include "solvers/weight_average.hpp"
#include "state/clique_layout.hpp"
#include "state/weight_store.hpp"

namespace margrave {

namespace {

constexpr double least_rho = 1e-4;          // part of the first ρ that annealing leaves at least
constexpr double most_company = 1e6;        // the largest batch
constexpr std::size_t async_visits = 1024;  // between two looks at the stop flag
constexpr std::uint64_t most_waits = 100;   // rounding leaves gains where there is nothing to gain
constexpr std::size_t least_batches = 4;    // of an epoch
constexpr std::size_t async_block = 4;      // visits per refresh of a worker's copy of w

constexpr double soft_unit = 0.1;        // without multipliers agreement needs a strong coupling
constexpr double multiplier_unit = 2.0;  // with them a weak one converges faster
constexpr double weight_unit = 8.0;

// |x|², the mean over the inputs; those made of others per state are left out.
double mean_squared_norm(const Dataset& data) {
  double sum = 0;
  std::uint32_t counted = 0;
  for (std::uint32_t i = 0; i < data.inputs(); ++i) {
    const InputView x = data.input(i);
    if (x.kind == InputKind::per_state) continue;
    sum += input_product(x, x);
    ++counted;
  }
  return counted == 0 || sum == 0 ? 1.0 : sum / counted;
}

// ρ where none is given. Under the normalised Hamming loss scores are of the size of 1/variables, so that the
// same coupling needs a ρ that grows with them; `unit` is what suits a loss of one per variable.
double loss_rho(const Problem& problem, double unit) {
  if (problem.objective.hamming == Hamming::sum) return unit;
  const double variables =
      static_cast<double>(problem.data.variables()) / static_cast<double>(problem.data.size());
  return unit * std::max(1.0, variables);
}
// Cliques hang together through w as well, with curvature |x|²/(λM) where the messages have |A|²/ρ. A ρ that
// is large beside λM/|x|² leaves agreement to multipliers that only move while the weights stand still.
double default_rho(const Problem& problem, const CliqueOptions& options) {
  if (options.rho > 0) return options.rho;
  if (options.multiplier_every == 0) return loss_rho(problem, soft_unit);
  return std::min(loss_rho(problem, multiplier_unit),
                  weight_unit / (problem.objective.weight_scale() * mean_squared_norm(problem.data)));
}

class CliqueEngine final : public Solver {
 public:
  CliqueEngine(const Problem& problem, const CliqueOptions& options, const CliqueRecipe& recipe)
      : problem_(problem),
        options_(options),
        recipe_(recipe),
        rho_(default_rho(problem, options)),
        first_rho_(rho_),
        state_(make_clique_state(problem.data, options, rho_)),
        visitor_(problem, options, recipe.rule, *state_),
        weights_(problem.data.templates()),
        visits_(1),
        average_(options.averaging, weights_.size()) {
    for (int t = 0; t < problem.arena.threads(); ++t) workers_.emplace_back(problem.data.templates());
    for (std::uint32_t m = 0; m < problem.data.size(); ++m) {
      const CliquePlan& plan = visitor_.plan(m);
      colours_.resize(std::max<std::size_t>(colours_.size(), plan.colours));
      for (std::uint32_t p = 0; p < plan.parts.size(); ++p) colours_[plan.parts[p].colour].push_back({m, p});
    }
    std::size_t places = 0;
    for (const auto& of_colour : colours_) places += of_colour.size();
    order_.reserve(places);
    // Visits that see nothing of each other are to be few beside those that do.
    visits_ = std::vector<CliqueVisit>(
        std::min<std::size_t>(options.batch, std::max<std::size_t>(1, places / least_batches)));
    moving_ = std::vector<CliqueVisit>(visits_.size());
  }

  std::string_view name() const override { return recipe_.name; }

  bool epoch(EpochControl& control) override {
    if (!in_epoch_) {
      in_epoch_ = true;
      cursor_ = 0;
      gained_ = 0;
    }
    arrange();
    const bool finished = problem_.mode == Mode::async ? run_async(control) : run(control);
    if (!finished) return false;
    in_epoch_ = false;
    ++epochs_;
    if (options_.multiplier_every > 0) update_multipliers();
    if (options_.rho_decay < 1) {
      rho_ = std::min(rho_, std::max(rho_floor(), rho_ * options_.rho_decay));
      state_->set_rho(rho_);
    }
    average_.add(weights_.span(), epochs_);
    return true;
  }

  const DualPoint* dual_point() const override { return nullptr; }
  const LocalPoint* local_point() const override { return state_.get(); }
  StopRule stop_rule() const override { return options_.stop; }
  bool has_multipliers() const override { return options_.multiplier_every > 0; }
  std::span<const double> weights() const override { return weights_.span(); }
  void adopt(std::span<const double> weights) override { weights_.assign(weights); }
  std::optional<std::span<const double>> averaged() const override { return average_.value(); }
  // Messages bound the primal wherever no exact oracle does.
  std::optional<Certificate> certificate() const override {
    if (state_->layouts().any_compact()) return std::nullopt;  // a model keeps tables
    const bool messages =
        problem_.oracle == nullptr || !problem_.oracle->exact() || problem_.objective.gamma > 0;
    return Certificate{problem_.data.fingerprint(), stored_point(problem_.data, *state_, messages)};
  }
  std::uint64_t oracle_calls() const override {
    std::uint64_t steps = earlier_steps_;
    for (const CliqueVisit& visit : visits_) steps += visit.steps;
    for (const CliqueVisit& visit : moving_) steps += visit.steps;
    for (const CliqueWorker& worker : workers_) steps += worker.visit.steps;
    return steps;
  }
  std::uint64_t bytes() const override { return state_->bytes() + visitor_.bytes() + weights_.bytes(); }

  void save(ByteWriter& out) const override {
    state_->save(out);
    out.put_array(weights_.span());
    average_.save(out);
    out.put(epochs_);
    out.put(oracle_calls());
    out.put(in_epoch_);
    out.put(cursor_);
    out.put(rho_);
    out.put(company_);
    out.put(gained_);
    out.put(waited_);
  }
  void restore(ByteReader& in) override {
    state_->restore(in);
    weights_.assign(take_weights(in, problem_.data.templates()));
    average_.restore(in, problem_.data.templates());
    epochs_ = in.get<std::uint64_t>();
    earlier_steps_ = in.get<std::uint64_t>();
    in_epoch_ = in.get<bool>();
    cursor_ = in.get<std::uint64_t>();
    rho_ = in.get<double>();
    const bool decays = options_.rho_decay < 1;
    if (decays ? !(rho_ <= first_rho_ && rho_ >= std::min(first_rho_, rho_floor())) : rho_ != first_rho_)
      in.fail("has a rho that these options do not lead to");
    state_->set_rho(rho_);
    company_ = in.get<double>();
    if (!(company_ >= 1 && company_ <= most_company)) in.fail("has a batch that is no company");
    gained_ = in.get<double>();
    if (!std::isfinite(gained_)) in.fail("has a gain that is not a finite number");
    waited_ = in.get<std::uint64_t>();
    std::size_t visits = 0;
    for (const auto& places : colours_) visits += places.size();
    if (cursor_ > visits) in.fail("points behind the end of an epoch");
  }
  void warm_start(ByteReader& in) override { state_->restore(in); }

 private:
  // Below a small part of where it began, disagreement drowns in the rounding of marginals.
  double rho_floor() const { return std::max(options_.rho_floor, least_rho * first_rho_); }

  struct Place {
    std::uint32_t example, part;
  };

  // The order of the epoch under way, from its number alone: a resumed run finds it again.
  void arrange() {
    Random random(problem_.seed, epochs_, 0);
    order_.clear();
    class_end_.clear();
    std::vector<std::size_t> classes(colours_.size());
    std::iota(classes.begin(), classes.end(), std::size_t{0});
    random.shuffle(std::span<std::size_t>(classes));
    for (const std::size_t colour : classes) {
      const std::size_t first = order_.size();
      order_.insert(order_.end(), colours_[colour].begin(), colours_[colour].end());
      random.shuffle(std::span<Place>(order_).subspan(first));
      class_end_.push_back(order_.size());
    }
  }
  const CliquePart& part(const Place& place) const { return visitor_.plan(place.example).parts[place.part]; }
  // Visits that may run together, at most `most`.
  std::span<const Place> next(std::size_t most) const {
    const auto end = *std::upper_bound(class_end_.begin(), class_end_.end(), cursor_);
    return std::span<const Place>(order_).subspan(cursor_, std::min<std::size_t>(most, end - cursor_));
  }
  // Block visits have their own random stream, named by epoch and place.
  Random stream(const Place& place) const {
    return Random(problem_.seed, epochs_ + 1, (std::uint64_t{place.example} << 24U) + place.part + 1);
  }
  // 004 Lemma 1 wants the inner problem solved to a share of what the last update of ξ left to gain. An
  // epoch's gain of M·D_ρ stands for what is left, |Aμ|²/ρ for what the update itself moves.
  void update_multipliers() {
    ++waited_;
    if (waited_ < options_.multiplier_every) return;
    const bool may_wait = options_.multiplier_wait > 0 && waited_ < most_waits * options_.multiplier_every;
    if (may_wait && gained_ * rho_ > options_.multiplier_wait * state_->violation(problem_.arena)) return;
    state_->update_multipliers(problem_.arena);
    waited_ = 0;
  }

  bool proceed(EpochControl& control, std::size_t done) {
    cursor_ += done;
    return control.proceed(static_cast<double>(cursor_) / static_cast<double>(order_.size()));
  }

  bool run(EpochControl& control) {
    while (cursor_ < order_.size()) {
      const auto batch = next(visits_.size());
      moving_.swap(visits_);
      turns_.run(
          problem_.arena, batch.size(), [&](std::size_t k) { return part(batch[k]).cells(); },
          [&](std::size_t k, int worker) {
            visits_[k].example = batch[k].example;
            visits_[k].part = batch[k].part;
            visitor_.propose(weights_.data(), company_, stream(batch[k]),
                             workers_[static_cast<std::size_t>(worker)], visits_[k]);
          },
          unmoved_, [&](std::size_t k) { move(moving_[k]); });
      double total = 0;
      for (std::size_t k = 0; k < batch.size(); ++k) {
        CliqueVisit& visit = visits_[k];
        search(visit, weights_.product(visit.change));
        if (visit.length > 0) weights_.commit(visit.change, visit.length / visit.company);
        total += visit.curvature > 0 || visit.length > 0 ? visit.length : 1.0;
        gained_ += visit.gain;
      }
      unmoved_ = batch.size();
      adapt(total / static_cast<double>(batch.size()));
      const bool goes_on = proceed(control, batch.size());
      const bool same_colour = std::find(class_end_.begin(), class_end_.end(), cursor_) == class_end_.end();
      if (!goes_on || !same_colour) move_all();
      if (!goes_on) return false;
    }
    return true;
  }
  // What the last batch's visits found.
  void move_all() {
    problem_.arena.for_each_in_turn(std::exchange(unmoved_, 0),
                                    [&](std::size_t k, std::size_t, int) { move(visits_[k]); });
  }

  bool run_async(EpochControl& control) {
    while (cursor_ < order_.size()) {
      for (CliqueWorker& worker : workers_) worker.gain = 0;
      const auto places = next(async_visits);
      // Visits at the same time do not see each other: where they would be most of an epoch, there is one at
      // a time.
      const bool few = order_.size() < least_batches * async_block * workers_.size();
      const double company = few ? 1.0 : static_cast<double>(workers_.size());
      problem_.arena.for_each_block(places.size(), few ? places.size() : async_block,
                                    [&](std::size_t begin, std::size_t end, int index) {
                                      CliqueWorker& worker = workers_[static_cast<std::size_t>(index)];
                                      weights_.refresh(worker.replica.reserve(weights_.size()));
                                      for (std::size_t k = begin; k < end; ++k) {
                                        CliqueVisit& visit = worker.visit;
                                        visit.example = places[k].example;
                                        visit.part = places[k].part;
                                        visitor_.propose(worker.replica.data(), company, stream(places[k]),
                                                         worker, visit);
                                        search(visit, weights_.product_async(visit.change));
                                        if (visit.length > 0)
                                          weights_.commit_async(visit.change, visit.length / visit.company);
                                        move(visit);
                                        worker.gain += visit.gain;
                                      }
                                    });
      for (const CliqueWorker& worker : workers_) gained_ += worker.gain;
      if (!proceed(control, places.size())) return false;
    }
    return true;
  }

  // The more of a batch's steps were cut short, the more company its visits had.
  void adapt(double mean_length) {
    company_ *= mean_length < 0.9 ? 1.05 : 0.98;
    company_ = std::clamp(company_, 1.0, static_cast<double>(visits_.size()));
  }

  // M·D_ρ along the direction is slope·t − curvature/2·t², its slope at the current w.
  void search(CliqueVisit& visit, double product) const {
    visit.length = visit.gain = 0;
    const double slope = visit.slope - product / (visit.company * problem_.objective.weight_scale());
    if (!(slope > 0)) return;
    visit.length = visit.curvature <= slope ? 1.0 : slope / visit.curvature;
    visit.gain = visit.length * (slope - visit.length / 2 * visit.curvature);
  }
  void move(const CliqueVisit& visit) {
    if (visit.length > 0)
      state_->move(visit.example, part({visit.example, visit.part}), visit.start.data(), visit.target.data(),
                   visit.length);
  }

  Problem problem_;
  CliqueOptions options_;
  CliqueRecipe recipe_;
  double rho_, first_rho_;
  std::unique_ptr<CliqueState> state_;
  CliqueVisitor visitor_;
  WeightStore weights_;
  std::vector<CliqueVisit> visits_;
  std::vector<CliqueVisit> moving_;  // of the batch before, the first `unmoved_` still to change μ
  std::size_t unmoved_ = 0;
  LongestFirst turns_;
  std::vector<CliqueWorker> workers_;
  std::vector<std::vector<Place>> colours_;
  std::vector<Place> order_;
  std::vector<std::size_t> class_end_;
  WeightAverage average_;

  std::uint64_t epochs_ = 0;
  std::uint64_t earlier_steps_ = 0;  // before a resumed run started
  bool in_epoch_ = false;
  std::uint64_t cursor_ = 0;
  double company_ = 1;
  double gained_ = 0;         // M·D_ρ over the epoch under way
  std::uint64_t waited_ = 0;  // epochs since the multipliers' last update
};

// What a compact factor cannot do: entropies are of tables, and masses per weight row do not tell inputs that
// depend on the state apart.
void require_compactable(const Problem& problem, std::uint64_t compact_above) {
  if (compact_above == 0) return;
  if (problem.objective.gamma > 0)
    throw UsageError("--compact-above wants the plain hinge: leave --gamma and --loss log out");
  const Dataset& data = problem.data;
  const CliqueLayouts layouts(data, compact_above);
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    for (std::size_t a = graph.variables(); a < graph.cliques(); ++a)
      if (layouts.of(m).compact[a] != 0 && data.input(graph.input_of(a)).kind == InputKind::per_state)
        throw UsageError("--compact-above: example " + std::to_string(m) + " has a factor with " +
                         std::to_string(data.templates()[graph.topology().template_of(a)].joint_states()) +
                         " joint states whose inputs depend on the state, which no compact factor can have");
  }
}

}  // namespace

std::unique_ptr<Solver> make_clique_engine(const Problem& problem, const CliqueOptions& options,
                                           const CliqueRecipe& recipe) {
  require_compactable(problem, options.compact_above);
  return std::make_unique<CliqueEngine>(problem, options, recipe);
}

}  // namespace margrave
