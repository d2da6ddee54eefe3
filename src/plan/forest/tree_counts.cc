#include "plan/forest/tree_counts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace syncopate::plan {
namespace {

constexpr double kCountTolerance = 1e-7;
constexpr int kAny = std::numeric_limits<int>::max();

// Rounds the surpluses of the groups, larger groups first, so that in every tree the surpluses of a
// group's parts add up to its own and one less than there are parts.
class Rounding {
 public:
  Rounding(const std::vector<TreeGroup>& groups, const std::vector<double>& surplus, bool reduce,
           int trees, absl::Span<const double> rates, std::vector<double>& bytes)
      : groups_(groups),
        surplus_(surplus),
        reduce_(reduce),
        trees_(trees),
        rates_(rates),
        bytes_(bytes),
        least_(groups.size(), 0),
        most_(groups.size(), kAny),
        whole_(groups.size(), std::vector<int>(trees, 0)) {
    FindLimits();
  }

  std::vector<std::vector<int>> Run() {
    std::fill(whole_[0].begin(), whole_[0].end(), -1);
    for (size_t group = 0; group < groups_.size(); ++group) {
      if (groups_[group].member < 0) SpreadOverChildren(static_cast<int>(group));
    }
    return std::move(whole_);
  }

 private:
  // A group with a negative surplus: in a broadcast it receives more than its first message, and
  // sends none that it need not.
  bool IsStarved(int group) const {
    return group != 0 && groups_[group].member < 0 && surplus_[group] < -kCountTolerance;
  }

  // Finds what a group's surplus may be in a single tree if no surplus changes its sign.
  void FindLimits() {
    for (size_t i = groups_.size(); i-- > 1;) {
      if (!IsStarved(static_cast<int>(i))) continue;
      const int joins = static_cast<int>(groups_[i].children.size()) - 1;
      least_[i] = most_[i] = -joins;
      bool all_starved = true;
      for (const int child : groups_[i].children) {
        least_[i] += least_[child];
        if (IsStarved(child)) most_[i] += most_[child];
        all_starved = all_starved && IsStarved(child);
      }
      if (!all_starved) most_[i] = 0;
    }
  }

  void SpreadOverChildren(int group) {
    const std::vector<int>& children = groups_[group].children;
    std::vector<int> starved, others;
    for (const int child : children) (IsStarved(child) ? starved : others).push_back(child);
    std::vector<int> left(trees_);  // for the others
    for (int tree = 0; tree < trees_; ++tree) {
      left[tree] = whole_[group][tree] + static_cast<int>(children.size()) - 1;
    }
    SpreadOverStarved(starved, !others.empty(), left);
    const std::vector<int> quotas =
        Quotas(others, std::accumulate(left.begin(), left.end(), int64_t{0}));
    // One after the other takes all it can: few of them have a surplus in the same tree.
    int tree = 0;
    for (size_t i = 0; i < others.size(); ++i) {
      for (int quota = quotas[i]; quota > 0;) {
        if (left[tree] == 0) {
          ++tree;
          continue;
        }
        const int taken = std::min(quota, left[tree]);
        whole_[others[i]][tree] += taken;
        left[tree] -= taken;
        quota -= taken;
      }
    }
  }

  // Spreads the negative surpluses evenly over the trees, such that nothing negative is left for
  // the others, and nothing at all if there are no others.
  void SpreadOverStarved(const std::vector<int>& starved, bool others, std::vector<int>& left) {
    std::vector<double> ahead(starved.size(), 0);  // of the average so far
    for (int tree = 0; tree < trees_ && !starved.empty(); ++tree) {
      for (size_t i = 0; i < starved.size(); ++i) {
        const int group = starved[i];
        ahead[i] -= surplus_[group];
        const int value =
            std::clamp(static_cast<int>(-std::floor(ahead[i] + 0.5)), least_[group], most_[group]);
        whole_[group][tree] = value;
        ahead[i] += value;
        left[tree] -= value;
      }
      while (left[tree] < 0 || (left[tree] > 0 && !others)) {
        const int step = left[tree] < 0 ? -1 : 1;
        size_t best = starved.size();
        for (size_t i = 0; i < starved.size(); ++i) {
          const int value = whole_[starved[i]][tree];
          if (value == (step < 0 ? least_ : most_)[starved[i]]) continue;
          if (best == starved.size() || step * ahead[i] < step * ahead[best]) best = i;
        }
        if (best == starved.size()) break;  // the averages did not add up
        whole_[starved[best]][tree] += step;
        ahead[best] += step;
        left[tree] -= step;
      }
    }
    for (size_t i = 0; i < starved.size(); ++i) {
      // What it lacks comes in by a broadcast, goes out by a reduction.
      const TreeGroup& group = groups_[starved[i]];
      for (const int resource : reduce_ ? group.out : group.in) {
        bytes_[resource] -= ahead[i] / trees_;
      }
    }
  }

  const std::vector<int>& LoadedBySurplus(int group) const {
    return reduce_ ? groups_[group].in : groups_[group].out;
  }

  // How busy a group's links become if it gets `more` than its average over all trees.
  double BusyWith(int group, double more) const {
    double busy = 0;
    for (const int resource : LoadedBySurplus(group)) {
      busy = std::max(busy, (bytes_[resource] + more / trees_) / rates_[resource]);
    }
    return busy;
  }

  // For each of the groups, the sum of its surpluses over all trees: whole numbers that add up to
  // `sum`. What rounding down leaves over goes to the groups whose links are least busy.
  std::vector<int> Quotas(const std::vector<int>& of, int64_t sum) {
    std::vector<int> quotas;
    for (const int group : of) {
      const double wanted = std::max(0.0, surplus_[group]) * trees_;
      quotas.push_back(static_cast<int>(std::floor(wanted + kCountTolerance)));
      sum -= quotas.back();
    }
    const auto busy = [&](size_t i, int step) {
      return BusyWith(of[i], quotas[i] + step - surplus_[of[i]] * trees_);
    };
    for (; sum != 0; sum -= sum > 0 ? 1 : -1) {
      size_t best = of.size();
      double best_busy = 0;
      for (size_t i = 0; i < of.size(); ++i) {
        if (sum < 0 && quotas[i] == 0) continue;
        const double now = sum > 0 ? busy(i, 1) : -busy(i, 0);
        if (best == of.size() || now < best_busy) best = i, best_busy = now;
      }
      if (best == of.size()) break;
      quotas[best] += sum > 0 ? 1 : -1;
    }
    for (size_t i = 0; i < of.size(); ++i) {
      for (const int resource : LoadedBySurplus(of[i])) {
        bytes_[resource] += quotas[i] / static_cast<double>(trees_) - surplus_[of[i]];
      }
    }
    return quotas;
  }

  const std::vector<TreeGroup>& groups_;
  const std::vector<double>& surplus_;
  const bool reduce_;
  const int trees_;
  const absl::Span<const double> rates_;
  std::vector<double>& bytes_;
  std::vector<int> least_;  // by group, for a single tree
  std::vector<int> most_;
  std::vector<std::vector<int>> whole_;
};

// A member that may have more children.
struct Place {
  int member = 0;
  int count = 0;
};

// A part of the tree that is being built: all but its head have their parents.
struct Part {
  int head = 0;
  int height = 0;
  int places = 0;
  bool has_root = false;
  std::multimap<int, Place> where;  // by depth below the head
};

void Attach(const Part& part, Part& core, WorkerTree& tree) {
  // A part without places is attached as deep as it can be without making the core higher, so that
  // the places near the head stay free. A part that brings places goes to the top, so that its
  // places are near the head too.
  auto place = core.where.begin();
  if (part.places == 0) {
    const auto beyond = core.where.upper_bound(core.height - 1 - part.height);
    if (beyond != core.where.begin()) place = std::prev(beyond);
  }
  const int depth = place->first + 1;
  tree.parent[part.head] = place->second.member;
  if (--place->second.count == 0) core.where.erase(place);
  for (const auto& [below, more] : part.where) core.where.emplace(depth + below, more);
  core.places += part.places - 1;
  core.height = std::max(core.height, depth + part.height);
}

// Joins the parts of a group as far as their places allow. If the root is among them, a place is
// left for what lies outside.
std::vector<Part> Join(std::vector<Part> parts, bool holds_all, WorkerTree& tree) {
  // The core first, then those that bring places, then the others; the higher ones nearer to the
  // core's head.
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    if (a.has_root != b.has_root) return a.has_root;
    if (a.places != b.places) return a.places > b.places;
    return a.height > b.height;
  });
  Part& core = parts[0];
  const int kept = core.has_root && !holds_all ? 1 : 0;
  size_t next = 1;
  for (; next < parts.size(); ++next) {
    if (core.places <= (parts[next].places > 0 ? 0 : kept)) break;
    Attach(parts[next], core, tree);
  }
  parts.erase(parts.begin() + 1, parts.begin() + static_cast<std::ptrdiff_t>(next));
  return parts;
}

}  // namespace

std::vector<std::vector<int>> WholeSurpluses(const std::vector<TreeGroup>& groups,
                                             const std::vector<double>& surplus, bool reduce,
                                             int trees, absl::Span<const double> rates,
                                             std::vector<double>& bytes) {
  return Rounding(groups, surplus, reduce, trees, rates, bytes).Run();
}

WorkerTree BuildTree(const std::vector<TreeGroup>& groups, absl::Span<const int> surplus,
                     int root) {
  WorkerTree tree;
  tree.root = root;
  tree.parent.assign((groups.size() + 1), -1);
  std::vector<std::vector<Part>> parts(groups.size());
  size_t members = 0;
  for (size_t i = groups.size(); i-- > 0;) {
    const TreeGroup& group = groups[i];
    if (group.member >= 0) {
      ++members;
      Part part;
      part.head = group.member;
      part.has_root = group.member == root;
      part.places = surplus[i] + (part.has_root ? 1 : 0);
      if (part.places > 0) part.where = {{0, {part.head, part.places}}};
      parts[i].push_back(std::move(part));
      continue;
    }
    std::vector<Part> all;
    for (const int child : group.children) {
      std::move(parts[child].begin(), parts[child].end(), std::back_inserter(all));
      parts[child].clear();
    }
    parts[i] = Join(std::move(all), i == 0, tree);
  }
  tree.parent.resize(members);
  tree.parent[root] = root;
  return tree;
}

}  // namespace syncopate::plan
