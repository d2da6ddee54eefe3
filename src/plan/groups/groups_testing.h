// Racks and random trees of places, and what a pattern makes of workers' values, one by one and by
// definition, for the tests of groups.
#ifndef SYNCOPATE_PLAN_GROUPS_GROUPS_TESTING_H_
#define SYNCOPATE_PLAN_GROUPS_GROUPS_TESTING_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "model/pattern.h"
#include "plan/groups/places.h"

namespace syncopate::plan {

// A rack and whether its uplink is slow, and which of its workers have a slow NIC.
struct RackOf {
  int size = 0;
  bool slow = false;
  std::vector<int> slow_members = {};
  bool whole = false;
};

inline Place Racks(const std::vector<RackOf>& racks, bool whole = false) {
  Place root{"network", -1, false, whole, {}};
  int next = 0;
  for (const RackOf& rack : racks) {
    Place& place = root.children.emplace_back();
    place = {"rack" + std::to_string(root.children.size() - 1), -1, rack.slow, rack.whole, {}};
    for (int i = 0; i < rack.size; ++i) {
      place.children.push_back({"worker" + std::to_string(next), next, false, false, {}});
      ++next;
    }
    for (const int i : rack.slow_members) place.children[static_cast<size_t>(i)].slow = true;
  }
  return root;
}

// Numbers the workers below in order and returns how many there are.
inline int NumberWorkers(Place& place, int next = 0) {
  if (place.children.empty()) place.worker = next++;
  for (Place& child : place.children) next = NumberWorkers(child, next);
  return next;
}

// Places below places up to `depth`, of 1 to `width` children each, some of them slow.
inline Place RandomPlace(Random& random, int depth, int width, double slow) {
  Place place;
  place.slow = random.Unit() < slow;
  if (depth > 0) {
    for (int64_t i = random.Between(1, width); i > 0; --i) {
      place.children.push_back(
          RandomPlace(random, random.Below(5) == 0 ? depth - 2 : depth - 1, width, slow));
    }
  }
  return place;
}

inline Place RandomPlaces(uint64_t seed, int workers_max) {
  Random random(seed);
  for (;;) {
    constexpr double kSlow[] = {0, 0.15, 0.4, 1};
    Place root = RandomPlace(random, static_cast<int>(random.Between(1, 4)),
                             static_cast<int>(random.Between(1, 9)), kSlow[random.Below(4)]);
    root.slow = false;
    if (NumberWorkers(root) <= workers_max) return root;
  }
}

// The values after the averages of a round.
inline void Average(const Pattern::Round& round, std::vector<double>& values) {
  for (const Pattern::Group& group : round) {
    double sum = 0;
    for (const int rank : group) sum += values[static_cast<size_t>(rank)];
    for (const int rank : group) {
      values[static_cast<size_t>(rank)] = sum / static_cast<double>(group.size());
    }
  }
}

// Values between -1 and 1 with a mean of 0.
inline std::vector<double> RandomValues(int workers, Random& random) {
  std::vector<double> values(static_cast<size_t>(workers));
  double sum = 0;
  for (double& value : values) sum += value = 2 * random.Unit() - 1;
  for (double& value : values) value -= sum / workers;
  return values;
}

inline double LengthOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// V by its definition: the covariance of all pairs of workers, after so many periods of noise and
// averages that nothing changes any more.
inline double VarianceByCovariance(const Pattern& pattern) {
  const size_t n = static_cast<size_t>(pattern.workers);
  if (n == 1) return 0;
  std::vector<std::vector<double>> rows(n, std::vector<double>(n, 0));
  const auto transpose = [&] {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < i; ++j) std::swap(rows[i][j], rows[j][i]);
    }
  };
  double last = -1;
  for (;;) {
    double sum = 0;
    for (const Pattern::Round& round : pattern.rounds) {
      for (size_t i = 0; i < n; ++i) {
        for (double& entry : rows[i]) entry -= 1 / static_cast<double>(n);
        rows[i][i] += 1;
      }
      for (std::vector<double>& row : rows) Average(round, row);
      transpose();
      for (std::vector<double>& row : rows) Average(round, row);
      for (size_t i = 0; i < n; ++i) sum += rows[i][i];
    }
    const double mean =
        sum / static_cast<double>(pattern.rounds.size()) / static_cast<double>(n - 1);
    if (std::abs(mean - last) < 1e-6 * mean + 1e-12) return mean;
    last = mean;
  }
}

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_GROUPS_GROUPS_TESTING_H_
