#include "plan/groups/consensus.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace syncopate::plan {
namespace {

// A smaller factor within one round means that what was left is exactly 0, and only rounding shows.
constexpr double kNothingLeft = 1e-9;
// Rounds by which lambda is measured, after as many that let the largest eigenvalue come out.
constexpr int kGrowthRoundsMin = 600;
constexpr int kLanczosStepsMax = 60;
// V is summed until the rest is a smaller part of it than this.
constexpr double kVarianceRest = 1e-6;
constexpr int kVariancePeriodsMax = 10000;

class WorkerSets {
 public:
  explicit WorkerSets(int count) : parent_(static_cast<size_t>(count)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int Find(int i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      int& parent = parent_[static_cast<size_t>(i)];
      parent = parent_[static_cast<size_t>(parent)];
      i = parent;
    }
    return i;
  }
  void Join(int a, int b) { parent_[static_cast<size_t>(Find(a))] = Find(b); }

 private:
  std::vector<int> parent_;
};

// The rounds on one number a group. That of a group of n members is sqrt(n) times its value, so
// that lengths are those of the workers' vector; the mean of all is the direction sqrt(n / N).
class GroupRounds {
 public:
  explicit GroupRounds(const Pattern& pattern);

  size_t period() const { return means_.size(); }
  size_t groups(size_t t) const { return means_[t].size(); }
  const std::vector<double>& mean(size_t t) const { return means_[t]; }

  // From the groups of round t to those of the round after it, with the mean of all taken out.
  std::vector<double> Forward(size_t t, const std::vector<double>& values) const;
  // The transpose of Forward(): from the groups of the round after t to those of round t.
  std::vector<double> Backward(size_t t, const std::vector<double>& values) const;
  // A random vector on the groups of round t without the mean of all.
  std::vector<double> Start(size_t t, uint64_t seed) const;
  // Forward() on both sides of a symmetric matrix on the groups of round t.
  std::vector<double> ForwardBoth(size_t t, const std::vector<double>& matrix) const;

 private:
  struct Share {
    uint32_t from;
    double weight;
  };
  // What each group of the next round takes from those of this one.
  struct Transition {
    std::vector<uint32_t> begins;  // of each group's shares, and their end
    std::vector<Share> shares;
  };
  void TakeOutMean(size_t t, std::vector<double>& values) const;

  std::vector<std::vector<double>> means_;
  std::vector<Transition> transitions_;
};

GroupRounds::GroupRounds(const Pattern& pattern) {
  const size_t period = pattern.rounds.size();
  for (const Pattern::Round& round : pattern.rounds) {
    std::vector<double>& mean = means_.emplace_back();
    for (const Pattern::Group& group : round) {
      mean.push_back(std::sqrt(static_cast<double>(group.size()) / pattern.workers));
    }
  }
  std::vector<uint32_t> group_of(static_cast<size_t>(pattern.workers));
  std::vector<int> members;
  for (size_t t = 0; t < period; ++t) {
    const Pattern::Round& from = pattern.rounds[t];
    const Pattern::Round& to = pattern.rounds[(t + 1) % period];
    for (size_t g = 0; g < from.size(); ++g) {
      for (const int rank : from[g]) group_of[static_cast<size_t>(rank)] = static_cast<uint32_t>(g);
    }
    members.assign(from.size(), 0);
    Transition& transition = transitions_.emplace_back();
    transition.begins.push_back(0);
    for (const Pattern::Group& group : to) {
      for (const int rank : group) ++members[group_of[static_cast<size_t>(rank)]];
      for (const int rank : group) {
        const uint32_t g = group_of[static_cast<size_t>(rank)];
        if (members[g] == 0) continue;
        transition.shares.push_back(
            {g, members[g] / std::sqrt(static_cast<double>(group.size() * from[g].size()))});
        members[g] = 0;
      }
      transition.begins.push_back(static_cast<uint32_t>(transition.shares.size()));
    }
  }
}

void GroupRounds::TakeOutMean(size_t t, std::vector<double>& values) const {
  const std::vector<double>& mean = means_[t];
  const double along = std::inner_product(values.begin(), values.end(), mean.begin(), 0.0);
  for (size_t g = 0; g < values.size(); ++g) values[g] -= along * mean[g];
}

std::vector<double> GroupRounds::Forward(size_t t, const std::vector<double>& values) const {
  const Transition& transition = transitions_[t];
  std::vector<double> result(transition.begins.size() - 1, 0);
  for (size_t g = 0; g < result.size(); ++g) {
    for (uint32_t i = transition.begins[g]; i < transition.begins[g + 1]; ++i) {
      result[g] += transition.shares[i].weight * values[transition.shares[i].from];
    }
  }
  TakeOutMean((t + 1) % period(), result);
  return result;
}

std::vector<double> GroupRounds::Backward(size_t t, const std::vector<double>& values) const {
  const Transition& transition = transitions_[t];
  std::vector<double> result(groups(t), 0);
  for (size_t g = 0; g < values.size(); ++g) {
    for (uint32_t i = transition.begins[g]; i < transition.begins[g + 1]; ++i) {
      result[transition.shares[i].from] += transition.shares[i].weight * values[g];
    }
  }
  TakeOutMean(t, result);
  return result;
}

std::vector<double> GroupRounds::Start(size_t t, uint64_t seed) const {
  Random random(seed);
  std::vector<double> values(groups(t));
  for (double& value : values) value = random.Unit() - 0.5;
  TakeOutMean(t, values);
  return values;
}

std::vector<double> GroupRounds::ForwardBoth(size_t t, const std::vector<double>& matrix) const {
  const Transition& transition = transitions_[t];
  const size_t before = groups(t);
  const size_t after = groups((t + 1) % period());
  std::vector<double> half(after * before, 0);
  for (size_t g = 0; g < after; ++g) {
    for (uint32_t i = transition.begins[g]; i < transition.begins[g + 1]; ++i) {
      const double weight = transition.shares[i].weight;
      const double* row = &matrix[transition.shares[i].from * before];
      for (size_t k = 0; k < before; ++k) half[g * before + k] += weight * row[k];
    }
  }
  std::vector<double> whole(after * after, 0);
  for (size_t row = 0; row < after; ++row) {
    for (size_t g = 0; g < after; ++g) {
      double sum = 0;
      for (uint32_t i = transition.begins[g]; i < transition.begins[g + 1]; ++i) {
        sum += transition.shares[i].weight * half[row * before + transition.shares[i].from];
      }
      whole[row * after + g] = sum;
    }
  }
  return whole;
}

double Length(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

void Scale(std::vector<double>& values, double factor) {
  for (double& value : values) value *= factor;
}

// By the growth of a random vector over many rounds, at least two periods of them.
double Lambda(const GroupRounds& rounds) {
  std::vector<double> values = rounds.Start(0, 1);
  const double length = Length(values);
  if (length < kNothingLeft) return 0;  // one group
  Scale(values, 1 / length);
  const size_t period = rounds.period();
  const size_t half = ((kGrowthRoundsMin + period - 1) / period + 1) * period;
  double growth = 0;  // logarithm, over the second half
  for (size_t i = 0; i < 2 * half; ++i) {
    values = rounds.Forward(i % period, values);
    const double factor = Length(values);
    if (factor < kNothingLeft) return 0;
    Scale(values, 1 / factor);
    if (i >= half) growth += std::log(factor);
  }
  return std::exp(growth / static_cast<double>(half));
}

// The largest eigenvalue of the symmetric tridiagonal matrix with this diagonal and these entries
// beside it, by bisection: a number is above all eigenvalues if no pivot of the matrix less that
// number is positive.
double LargestEigenvalue(const std::vector<double>& diagonal, const std::vector<double>& beside) {
  double low = 0, high = 0;
  for (size_t i = 0; i < diagonal.size(); ++i) {
    high = std::max(high, diagonal[i] + (i > 0 ? beside[i - 1] : 0) +
                              (i + 1 < diagonal.size() ? beside[i] : 0));
  }
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    bool above = true;
    double pivot = 1;
    for (size_t i = 0; i < diagonal.size() && above; ++i) {
      pivot = diagonal[i] - middle - (i > 0 ? beside[i - 1] * beside[i - 1] / pivot : 0);
      above = pivot < 0;
    }
    (above ? high : low) = middle;
  }
  return high;
}

// The largest singular value of the way from the groups of round 0 to those of the last one, by
// Lanczos' method on that way there and back, with all its vectors kept orthogonal.
double Sigma2(const GroupRounds& rounds) {
  std::vector<double> values = rounds.Start(0, 2);
  double length = Length(values);
  if (length < kNothingLeft) return 0;
  std::vector<std::vector<double>> basis;
  std::vector<double> diagonal, beside;
  double largest = 0;
  for (int step = 0; step < kLanczosStepsMax; ++step) {
    Scale(values, 1 / length);
    basis.push_back(values);
    for (size_t t = 0; t + 1 < rounds.period(); ++t) values = rounds.Forward(t, values);
    for (size_t t = rounds.period() - 1; t-- > 0;) values = rounds.Backward(t, values);
    diagonal.push_back(std::inner_product(values.begin(), values.end(), basis.back().begin(), 0.0));
    for (int twice = 0; twice < 2; ++twice) {
      for (const std::vector<double>& known : basis) {
        const double along = std::inner_product(values.begin(), values.end(), known.begin(), 0.0);
        for (size_t g = 0; g < values.size(); ++g) values[g] -= along * known[g];
      }
    }
    largest = LargestEigenvalue(diagonal, beside);
    length = Length(values);
    if (length <= 1e-10 * largest || length < 1e-200) break;
    beside.push_back(length);
  }
  return std::sqrt(std::max(0.0, largest));
}

// By the covariance of what the groups hold: S_t = T S_(t-1) T' + noise, until it repeats.
double VarianceOf(const GroupRounds& rounds, int workers) {
  if (workers < 2) return 0;
  const size_t period = rounds.period();
  std::vector<double> covariance(rounds.groups(0) * rounds.groups(0), 0);
  double last = 0, last_change = 0;
  for (int pass = 0; pass < kVariancePeriodsMax; ++pass) {
    double sum = 0;
    for (size_t t = 0; t < period; ++t) {
      // Here it is before the noise and the averages of round t, on that round's groups.
      const std::vector<double>& mean = rounds.mean(t);
      const size_t groups = mean.size();
      for (size_t g = 0; g < groups; ++g) {
        for (size_t h = 0; h < groups; ++h) covariance[g * groups + h] -= mean[g] * mean[h];
        covariance[g * groups + g] += 1;
        sum += covariance[g * groups + g];
      }
      covariance = rounds.ForwardBoth(t, covariance);
    }
    const double mean = sum / static_cast<double>(period) / (workers - 1);
    const double change = mean - last;
    // The changes become a geometric series, whose rest is known.
    const double ratio =
        pass > 1 && last_change > 0 ? std::clamp(change / last_change, 0.0, 0.999999) : 0;
    const double rest = change * ratio / (1 - ratio);
    if (pass > 1 && rest <= kVarianceRest * mean) return mean + rest;
    last = mean;
    last_change = change;
  }
  return last;
}

}  // namespace

absl::Status CheckConnected(const Pattern& pattern) {
  WorkerSets sets(pattern.workers);
  for (const Pattern::Round& round : pattern.rounds) {
    for (const Pattern::Group& group : round) {
      for (const int rank : group) sets.Join(group[0], rank);
    }
  }
  for (int rank = 1; rank < pattern.workers; ++rank) {
    if (sets.Find(rank) == sets.Find(0)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the groups never join all workers: workers 0 and ", rank,
                     " do not learn of each other in any number of rounds"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Consensus> ConsensusOf(const Pattern& pattern) {
  if (absl::Status status = CheckConnected(pattern); !status.ok()) return status;
  const GroupRounds rounds(pattern);
  return Consensus{Sigma2(rounds), Lambda(rounds), VarianceOf(rounds, pattern.workers)};
}

double VarianceOf(const Pattern& pattern) {
  return VarianceOf(GroupRounds(pattern), pattern.workers);
}

double LambdaOf(const Pattern& pattern) {
  return CheckConnected(pattern).ok() ? Lambda(GroupRounds(pattern)) : 1;
}

}  // namespace syncopate::plan
