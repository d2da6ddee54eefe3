#include "probe/evidence.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

namespace syncopate::probe {
namespace {

// A log-likelihood ratio: how much more likely it is inside a rack than between two racks that a
// flow achieves `part` of what its NICs can do. It is linear between the points. It is bounded on
// both sides, since flows inside a rack are sometimes disturbed, and flows between racks often find
// an uplink that has room for them.
struct Point {
  double part, likeness;
};
constexpr std::array<Point, 5> kLikeness = {
    {{0.4, -3}, {0.65, -1}, {0.78, 0}, {0.9, 0.8}, {0.97, 1}}};

// The members from whose point of view the search for groups begins.
constexpr size_t kViewsMax = 16;

double LikenessOf(double part) {
  if (part <= kLikeness.front().part) return kLikeness.front().likeness;
  for (size_t i = 1; i < kLikeness.size(); ++i) {
    const Point &low = kLikeness[i - 1], &high = kLikeness[i];
    if (part > high.part) continue;
    return low.likeness +
           (high.likeness - low.likeness) * (part - low.part) / (high.part - low.part);
  }
  return kLikeness.back().likeness;
}

// Looks for groups of members with the greatest sum of likenesses inside (correlation clustering):
// moves single members and joins groups while that helps.
class Grouping {
 public:
  Grouping(std::vector<std::vector<double>> likeness, std::vector<int> group_of)
      : likeness_(std::move(likeness)), group_of_(std::move(group_of)), n_(group_of_.size()) {}

  void Improve() {
    while (MoveOne() || JoinTwo()) {
    }
  }

  double Value() const {
    double value = 0;
    for (size_t a = 0; a < n_; ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (group_of_[a] == group_of_[b]) value += likeness_[a][b];
      }
    }
    return value;
  }

  const std::vector<int>& group_of() const { return group_of_; }

 private:
  static constexpr double kWorthwhile = 1e-9;

  // What `member` has in common with each group, itself left out.
  std::vector<double> WithGroups(size_t member) const {
    std::vector<double> sums(n_, 0);
    for (size_t other = 0; other < n_; ++other) {
      if (other != member) sums[static_cast<size_t>(group_of_[other])] += likeness_[member][other];
    }
    return sums;
  }

  bool MoveOne() {
    bool moved = false;
    for (size_t member = 0; member < n_; ++member) {
      const std::vector<double> sums = WithGroups(member);
      size_t best = static_cast<size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
      if (sums[best] <= 0) best = SomeEmptyGroup();  // rather alone
      if (sums[best] > sums[static_cast<size_t>(group_of_[member])] + kWorthwhile) {
        group_of_[member] = static_cast<int>(best);
        moved = true;
      }
    }
    return moved;
  }

  // There is one if any two members are together.
  size_t SomeEmptyGroup() const {
    for (size_t group = 0; group < n_; ++group) {
      if (std::count(group_of_.begin(), group_of_.end(), static_cast<int>(group)) == 0) {
        return group;
      }
    }
    return 0;
  }

  bool JoinTwo() {
    std::vector<std::vector<double>> between(n_, std::vector<double>(n_, 0));
    for (size_t a = 0; a < n_; ++a) {
      for (size_t b = 0; b < n_; ++b) {
        const size_t of_a = static_cast<size_t>(group_of_[a]);
        const size_t of_b = static_cast<size_t>(group_of_[b]);
        if (of_a < of_b) between[of_a][of_b] += likeness_[a][b];
      }
    }
    double best = kWorthwhile;
    std::pair<int, int> which = {-1, -1};
    for (size_t a = 0; a < n_; ++a) {
      for (size_t b = a + 1; b < n_; ++b) {
        if (between[a][b] <= best) continue;
        best = between[a][b];
        which = {static_cast<int>(a), static_cast<int>(b)};
      }
    }
    if (which.first < 0) return false;
    std::replace(group_of_.begin(), group_of_.end(), which.second, which.first);
    return true;
  }

  const std::vector<std::vector<double>> likeness_;
  std::vector<int> group_of_;
  const size_t n_;
};

}  // namespace

Evidence::Evidence(int members)
    : members_(members),
      seen_(static_cast<size_t>(members) * static_cast<size_t>(members)),
      best_out_(static_cast<size_t>(members), 0),
      best_in_(static_cast<size_t>(members), 0) {}

void Evidence::Saw(int from, int to, double rate, double weight) {
  seen_[Index(from, to)].push_back({rate, weight});
  best_out_[static_cast<size_t>(from)] = std::max(best_out_[static_cast<size_t>(from)], rate);
  best_in_[static_cast<size_t>(to)] = std::max(best_in_[static_cast<size_t>(to)], rate);
}

void Evidence::SetCapacities(std::vector<double> out, std::vector<double> in) {
  known_out_ = std::move(out);
  known_in_ = std::move(in);
}

double Evidence::out(int member) const {
  return (known_out_.empty() ? best_out_ : known_out_)[static_cast<size_t>(member)];
}

double Evidence::in(int member) const {
  return (known_in_.empty() ? best_in_ : known_in_)[static_cast<size_t>(member)];
}

double Evidence::rate(int from, int to) const {
  double least = 0;
  for (const Seen& seen : seen_[Index(from, to)]) {
    least = least > 0 ? std::min(least, seen.rate) : seen.rate;
  }
  return least;
}

bool Evidence::Measured(int a, int b) const {
  return !seen_[Index(a, b)].empty() && !seen_[Index(b, a)].empty();
}

double Evidence::Likeness(int a, int b) const {
  double sum = 0;
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    const double possible = std::min(out(from), in(to));
    for (const Seen& seen : seen_[Index(from, to)]) {
      sum += seen.weight * LikenessOf(possible > 0 ? seen.rate / possible : 0) / 2;
    }
  }
  return sum;
}

double Evidence::LikenessWith(int member, const std::vector<int>& group) const {
  double sum = 0;
  for (const int other : group) sum += other == member ? 0 : Likeness(member, other);
  return sum;
}

std::vector<std::vector<int>> Evidence::Cluster() const {
  const size_t n = static_cast<size_t>(members_);
  std::vector<std::vector<double>> likeness(n, std::vector<double>(n, 0));
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < a; ++b) {
      likeness[a][b] = likeness[b][a] = Likeness(static_cast<int>(a), static_cast<int>(b));
    }
  }
  // From everybody alone, from all together, and from some members' own view of who is with them:
  // from one of these the best groups are found.
  std::vector<std::vector<int>> beginnings(2, std::vector<int>(n, 0));
  std::iota(beginnings[0].begin(), beginnings[0].end(), 0);
  for (size_t a = 0; a < std::min(n, kViewsMax) && n > 1; ++a) {
    std::vector<int> beginning(n, 0);
    for (size_t b = 0; b < n; ++b) beginning[b] = b == a || likeness[a][b] > 0 ? 0 : 1;
    beginnings.push_back(std::move(beginning));
  }
  std::vector<int> best_group_of(n, 0);
  double best = -1;
  for (std::vector<int>& beginning : beginnings) {
    Grouping grouping(likeness, std::move(beginning));
    grouping.Improve();
    if (grouping.Value() <= best) continue;
    best = grouping.Value();
    best_group_of = grouping.group_of();
  }
  std::vector<std::vector<int>> groups(n);
  for (size_t member = 0; member < n; ++member) {
    groups[static_cast<size_t>(best_group_of[member])].push_back(static_cast<int>(member));
  }
  groups.erase(
      std::remove_if(groups.begin(), groups.end(), [](const auto& group) { return group.empty(); }),
      groups.end());
  std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace syncopate::probe
