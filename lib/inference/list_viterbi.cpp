// List Viterbi (Seshadri and Sundberg 1994, parallel form): every
// state of every position keeps its k best prefixes, sorted.
//
// A prefix is named by (state before, rank there); prefixes of one state with different names are different
// labellings, so that nothing is listed twice. Equal scores are ordered by state, then by rank, from the end
// of the chain, which puts the labelling of argmax first. K²·k·log K time per position: a heap merges the K
// sorted lists that lead into a state.
#include "inference/list_viterbi.hpp"

#include <algorithm>
#include <limits>

namespace margrave {

namespace {

struct Entry {
  double score;
  std::uint32_t state, rank;  // of the prefix one position before
};

// Best score first, then the lowest state, then the lowest rank.
bool comes_before(const Entry& a, const Entry& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.state != b.state ? a.state < b.state : a.rank < b.rank;
}

struct Lists {
  std::vector<Entry> entries;
  std::vector<std::size_t> begin;  // of each state's list, plus one
  std::size_t size(std::size_t state) const { return begin[state + 1] - begin[state]; }
  const Entry& at(std::size_t state, std::size_t rank) const { return entries[begin[state] + rank]; }
};

// Appends the k best ways into a state, given what each state before adds.
template <class Gain>
void merge(const Lists& before, std::size_t k, Gain gain, std::vector<Entry>& heap, std::vector<Entry>& out) {
  const auto later = [](const Entry& a, const Entry& b) { return comes_before(b, a); };
  const auto number = [](double score) {  // a NaN would break the order of the heap; it never wins
    return score == score ? score : -std::numeric_limits<double>::infinity();
  };
  heap.clear();
  for (std::uint32_t a = 0; a + 1 < before.begin.size(); ++a)
    if (before.size(a) > 0) heap.push_back({number(before.at(a, 0).score + gain(a)), a, 0});
  std::make_heap(heap.begin(), heap.end(), later);
  for (std::size_t n = 0; n < k && !heap.empty(); ++n) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Entry& top = heap.back();
    out.push_back(top);
    if (++top.rank < before.size(top.state)) {
      top.score = number(before.at(top.state, top.rank).score + gain(top.state));
      std::push_heap(heap.begin(), heap.end(), later);
    } else {
      heap.pop_back();
    }
  }
}

}  // namespace

std::vector<ScoredLabelling> list_viterbi(const Topology& top, const TreePlan& plan,
                                          const Potentials& potentials, Scratch& scratch, std::size_t k) {
  std::vector<ScoredLabelling> result;
  if (k == 0) return result;
  OrientedTables tables(top, potentials, scratch.reals[2]);
  const std::size_t length = plan.steps.size();
  std::vector<Lists> positions(length);
  std::vector<Entry> heap;
  for (std::size_t t = 0; t < length; ++t) {
    const std::size_t states = top.states[plan.steps[t].variable];
    const double* node = potentials.node(plan.steps[t].variable);
    Lists& here = positions[t];
    here.begin.assign(1, 0);
    // Independent variables are a chain whose tables are 0.
    const bool joined = t > 0 && plan.steps[t - 1].parent != no_parent;
    const double* table = joined ? tables(plan.steps[t - 1]) : nullptr;
    for (std::size_t b = 0; b < states; ++b) {
      if (t == 0) {
        here.entries.push_back({node[b], 0, 0});
      } else {
        const std::size_t first = here.entries.size();
        const auto gain = [&](std::size_t a) { return joined ? table[a * padded(states) + b] : 0.0; };
        merge(positions[t - 1], k, gain, heap, here.entries);
        for (std::size_t e = first; e < here.entries.size(); ++e) here.entries[e].score += node[b];
      }
      here.begin.push_back(here.entries.size());
    }
  }

  std::vector<Entry> best;
  merge(
      positions[length - 1], k, [](std::size_t) { return 0.0; }, heap, best);
  result.reserve(best.size());
  for (const Entry& end : best) {
    ScoredLabelling labelling{end.score, std::vector<std::uint32_t>(top.variables())};
    Entry at = end;
    for (std::size_t t = length; t-- > 0;) {
      labelling.labels[plan.steps[t].variable] = at.state;
      at = positions[t].at(at.state, at.rank);
    }
    result.push_back(std::move(labelling));
  }
  return result;
}

}  // namespace margrave
