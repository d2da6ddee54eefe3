#include "probe/evidence.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace syncopate {
Evidence::Evidence(int members)
    : members_(members),
      rates_(static_cast<size_t>(members) * static_cast<size_t>(members), 0),
      best_rates_(rates_.size(), 0),
      best_out_(static_cast<size_t>(members), 0),
      best_in_(static_cast<size_t>(members), 0) {}

void Evidence::Saw(int from, int to, double rate) {
  double& worst = rates_[Index(from, to)];
  worst = worst > 0 ? std::min(worst, rate) : rate;
  double& best = best_rates_[Index(from, to)];
  best = std::max(best, rate);
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

bool Evidence::Measured(int a, int b) const { return rate(a, b) > 0 && rate(b, a) > 0; }

double Evidence::Fullness(int a, int b) const { return FullnessIn(rates_, a, b); }
double Evidence::BestFullness(int a, int b) const { return FullnessIn(best_rates_, a, b); }

double Evidence::FullnessIn(const std::vector<double>& rates, int a, int b) const {
  const double there = std::min(out(a), in(b));
  const double back = std::min(out(b), in(a));
  if (there <= 0 || back <= 0) return 0;
  return (std::min(1.0, rates[Index(a, b)] / there) + std::min(1.0, rates[Index(b, a)] / back)) / 2;
}

bool Evidence::Apart(int a, int b) const { return Measured(a, b) && Fullness(a, b) < kFullAtLeast; }

std::vector<std::vector<int>> Evidence::Cluster() const {
  // Of two groups: nothing measured, some pair apart, or all measured pairs full.
  enum class Relation { kUnknown, kApart, kFull };
  std::vector<std::vector<int>> groups;
  for (int member = 0; member < members_; ++member) groups.push_back({member});
  const size_t n = groups.size();
  std::vector<std::vector<Relation>> relation(n, std::vector<Relation>(n, Relation::kUnknown));
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < n; ++b) {
      if (a == b || !Measured(static_cast<int>(a), static_cast<int>(b))) continue;
      const bool apart = Apart(static_cast<int>(a), static_cast<int>(b));
      relation[a][b] = apart ? Relation::kApart : Relation::kFull;
    }
  }
  while (true) {
    // Groups of one rack agree about all others. Members that are apart from one of the two only
    // speak against joining them.
    double best = -1;
    size_t best_a = 0, best_b = 0;
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = a + 1; b < n; ++b) {
        if (relation[a][b] != Relation::kFull) continue;
        double agree = 1, differ = 0;
        for (size_t c = 0; c < n; ++c) {
          if (c == a || c == b || groups[c].empty()) continue;
          const Relation to_a = relation[a][c], to_b = relation[b][c];
          if (to_a == Relation::kUnknown || to_b == Relation::kUnknown) continue;
          (to_a == to_b ? agree : differ) += static_cast<double>(groups[c].size());
        }
        const double score = agree / (agree + differ);
        if (score > best) best = score, best_a = a, best_b = b;
      }
    }
    if (best < 0) break;
    groups[best_a].insert(groups[best_a].end(), groups[best_b].begin(), groups[best_b].end());
    groups[best_b].clear();
    for (size_t c = 0; c < n; ++c) {
      Relation& joint = relation[best_a][c];
      const Relation other = relation[best_b][c];
      if (joint == Relation::kUnknown || other == Relation::kApart) joint = other;
      relation[c][best_a] = joint;
      relation[best_b][c] = relation[c][best_b] = Relation::kUnknown;
    }
  }
  groups.erase(
      std::remove_if(groups.begin(), groups.end(), [](const auto& group) { return group.empty(); }),
      groups.end());
  for (std::vector<int>& group : groups) std::sort(group.begin(), group.end());
  std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace syncopate
