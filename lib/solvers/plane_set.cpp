#include "solvers/plane_set.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/compensated.hpp"
#include "base/kernels.hpp"
#include "model/stored_weights.hpp"

namespace margrave {

namespace {

constexpr double same_difference = 1e-9;  // two sums of one difference of features differ by less
constexpr std::size_t cells_per_block = 1U << 13U;
constexpr std::size_t examples_per_block = 128;

// A plane that is not that of its points would cut off what is no worse.
void require_difference(const ByteReader& in, const std::vector<double>& difference,
                        const std::vector<double>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!(std::abs(difference[i] - expected[i]) <= same_difference * (1 + std::abs(expected[i]))))
      in.fail("holds a plane that is not that of its points");
}

}  // namespace

PlaneSet::PlaneSet(const Problem& problem) : problem_(problem), new_fractions_(problem.data.size()) {
  require_cached_labels(problem.data.templates());
  label_begin_.push_back(0);
  Plane truth;
  for (std::size_t m = 0; m < problem.data.size(); ++m) {
    const FactorGraph graph = problem.data[m];
    label_begin_.push_back(label_begin_.back() + graph.variables());
    for (std::size_t i = 0; i < graph.variables(); ++i)
      truth.labels.push_back(static_cast<CachedLabel>(graph.label(i)));
  }
  truth.difference.assign(problem_.data.templates().storage(), 0.0);
  add(std::move(truth), 1.0);
}

VertexView PlaneSet::vertex(const Plane& plane, std::size_t m) const {
  VertexView vertex{plane.labels.data() + label_begin_[m], {}};
  if (!plane.begin.empty())
    vertex.fractional =
        std::span(plane.fractions).subspan(plane.begin[m], plane.begin[m + 1] - plane.begin[m]);
  return vertex;
}

std::vector<double> PlaneSet::difference_of(const Plane& plane) const {
  const Dataset& data = problem_.data;
  std::vector<double> sum(data.templates().storage(), 0.0);
  const auto add = [&](std::uint64_t at, double x) { sum[at] += x; };
  for (std::size_t m = 0; m < data.size(); ++m) {
    const FactorGraph graph = data[m];
    const Topology& top = graph.topology();
    const double part = problem_.objective.mean(1.0);
    for_each_mass(top, vertex(plane, m), [&](std::uint32_t a, std::uint32_t joint, double mass) {
      const std::size_t truth = joint_state(top, a, graph.labels());
      if (joint == truth) return;
      const Template& t = data.templates()[top.template_of(a)];
      for_each_weight(data, t, graph.input_of(a), truth, part * mass, add);
      for_each_weight(data, t, graph.input_of(a), joint, -part * mass, add);
    });
  }
  return sum;
}

double PlaneSet::loss_of(const Plane& plane) const {
  const auto sum = ordered_reduce<CompensatedSum>(
      problem_.arena, problem_.data.size(), examples_per_block, [&](std::size_t begin, std::size_t end, int) {
        CompensatedSum part;
        for (std::size_t m = begin; m < end; ++m)
          part.add(problem_.objective.loss(problem_.data[m], vertex(plane, m)));
        return part;
      });
  return problem_.objective.mean(sum.value());
}

void PlaneSet::start_plane() {
  new_labels_.assign(label_begin_.back(), 0);
  for (auto& masses : new_fractions_) masses.clear();
}

void PlaneSet::put(std::size_t m, std::span<const Mass> masses) {
  split_masses(problem_.data[m].topology(), masses,
               std::span(new_labels_).subspan(label_begin_[m], label_begin_[m + 1] - label_begin_[m]),
               new_fractions_[m]);
}

void PlaneSet::finish_plane(std::span<const double> difference) {
  Plane plane;
  plane.difference.assign(difference.begin(), difference.end());
  plane.labels = new_labels_;
  if (std::any_of(new_fractions_.begin(), new_fractions_.end(), [](const auto& x) { return !x.empty(); })) {
    plane.begin.push_back(0);
    for (const auto& masses : new_fractions_) {
      plane.fractions.insert(plane.fractions.end(), masses.begin(), masses.end());
      plane.begin.push_back(plane.fractions.size());
    }
  }
  add(std::move(plane), 0.0);
}

void PlaneSet::add(Plane plane, double weight) {
  const std::size_t n = planes_.size();
  loss_.push_back(loss_of(plane));
  weight_.push_back(weight);
  planes_.push_back(std::move(plane));
  if (n + 1 > stride_) {
    const std::size_t wider = std::max<std::size_t>(32, 2 * stride_);
    std::vector<double> gram(wider * wider, 0.0);
    for (std::size_t p = 0; p < n; ++p) std::copy_n(gram_.data() + p * stride_, n, gram.data() + p * wider);
    gram_ = std::move(gram);
    stride_ = wider;
  }
  problem_.arena.for_each_block(n + 1, 4, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t p = begin; p < end; ++p) {
      const auto& other = planes_[p].difference;
      gram_[n * stride_ + p] = kernels().dot_dd(planes_[n].difference.data(), other.data(), other.size());
    }
  });
  for (std::size_t p = 0; p < n; ++p) gram_[p * stride_ + n] = gram_[n * stride_ + p];
}

bool PlaneSet::prune(std::uint32_t rounds) {
  std::vector<std::size_t> kept;
  for (std::size_t p = 0; p < planes_.size(); ++p) {
    planes_[p].idle = weight_[p] > 0 ? 0 : planes_[p].idle + 1;
    if (p == 0 || planes_[p].idle < rounds) kept.push_back(p);
  }
  if (planes_.size() - kept.size() < 1 + planes_.size() / 8) return false;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    for (std::size_t j = 0; j < kept.size(); ++j) gram_[k * stride_ + j] = gram_[kept[k] * stride_ + kept[j]];
    if (k == kept[k]) continue;
    planes_[k] = std::move(planes_[kept[k]]);
    weight_[k] = weight_[kept[k]];
    loss_[k] = loss_[kept[k]];
  }
  planes_.resize(kept.size());
  weight_.resize(kept.size());
  loss_.resize(kept.size());
  return true;
}

void PlaneSet::write_weights(std::span<double> w) const {
  const double scale = 1 / problem_.objective.lambda;
  problem_.arena.for_each_block(w.size(), cells_per_block, [&](std::size_t begin, std::size_t end, int) {
    std::fill(w.begin() + static_cast<std::ptrdiff_t>(begin), w.begin() + static_cast<std::ptrdiff_t>(end),
              0);
    for (std::size_t p = 0; p < planes_.size(); ++p)
      if (weight_[p] > 0)
        kernels().add_scaled(planes_[p].difference.data() + begin, end - begin, scale * weight_[p],
                             w.data() + begin);
  });
}

void PlaneSet::masses(std::size_t m, std::vector<Mass>& out) const {
  const Topology& top = problem_.data[m].topology();
  append_mixture(
      top,
      [&](auto&& add) {
        for (std::size_t p = 0; p < planes_.size(); ++p) add(vertex(planes_[p], m), weight_[p]);
      },
      out);
}

// Labellings where the oracle searches among them; marginals where it searches the local polytope.
Certificate PlaneSet::certificate() const {
  const Dataset& data = problem_.data;
  if (!problem_.oracle->exact()) return {data.fingerprint(), stored_point(data, *this, true)};
  LabellingCollector collector;
  for (std::size_t m = 0; m < data.size(); ++m) {
    for (std::size_t p = 0; p < planes_.size(); ++p)
      collector.add({vertex(planes_[p], m).labels, data[m].variables()}, weight_[p]);
    collector.end_example();
  }
  return {data.fingerprint(), collector.take()};
}

std::uint64_t PlaneSet::bytes() const {
  std::uint64_t sum = gram_.size() * sizeof(double);
  for (const Plane& plane : planes_)
    sum += plane.difference.size() * sizeof(double) + plane.labels.size() * sizeof(CachedLabel) +
           plane.begin.size() * sizeof(std::uint64_t) + plane.fractions.size() * sizeof(Mass);
  return sum;
}

void PlaneSet::save(ByteWriter& out) const {
  out.put<std::uint64_t>(planes_.size());
  for (std::size_t p = 0; p < planes_.size(); ++p) {
    const Plane& plane = planes_[p];
    out.put(weight_[p]);
    out.put(plane.idle);
    out.put_array(std::span<const double>(plane.difference));
    out.put_array(std::span<const CachedLabel>(plane.labels));
    out.put_array(std::span<const std::uint64_t>(plane.begin));
    out.put_array(std::span<const Mass>(plane.fractions));
  }
}

void PlaneSet::read(ByteReader& in, bool same_features) {
  planes_.clear();
  weight_.clear();
  loss_.clear();
  const auto count = in.get<std::uint64_t>();
  double total = 0;
  for (std::uint64_t p = 0; p < count; ++p) {
    const auto weight = in.get<double>();
    Plane plane;
    plane.idle = in.get<std::uint32_t>();
    plane.difference = take_weights(in, problem_.data.templates());
    plane.labels = in.get_array<CachedLabel>();
    plane.begin = in.get_array<std::uint64_t>();
    plane.fractions = in.get_array<Mass>();
    check(plane, in);
    const std::vector<double> difference = difference_of(plane);
    if (same_features) {
      require_difference(in, plane.difference, difference);
    } else {
      plane.difference = difference;
    }
    if (!(weight >= 0 && weight <= 2)) in.fail("holds a plane's weight that is none");
    total += weight;
    add(std::move(plane), weight);
  }
  if (!(std::abs(total - 1) <= 1e-9)) in.fail("holds planes whose weights do not sum to 1");
}

void PlaneSet::check(const Plane& plane, ByteReader& in) const {
  const Dataset& data = problem_.data;
  if (plane.labels.size() != label_begin_.back() ||
      !(plane.begin.empty() || plane.begin.size() == data.size() + 1))
    in.fail("does not fit the data or the options");
  if (!plane.begin.empty() && (plane.begin.front() != 0 || plane.begin.back() != plane.fractions.size() ||
                               !std::is_sorted(plane.begin.begin(), plane.begin.end())))
    in.fail("holds a plane whose points are out of order");
  for (std::size_t m = 0; m < data.size(); ++m) {
    const Topology& top = data[m].topology();
    const VertexView v = vertex(plane, m);
    for (std::size_t i = 0; i < top.variables(); ++i)
      if (v.labels[i] >= top.states[i]) in.fail("holds a label that does not exist");
    const char* wrong = wrong_masses(top, v.fractional);
    if (wrong != nullptr) in.fail(wrong);
    if (problem_.oracle->exact() && !v.fractional.empty())
      in.fail("holds fractional points of a relaxation, and the oracle of this run is exact");
  }
}

}  // namespace margrave
