#include "plan/forest/few_trees.h"

#include <algorithm>
#include <coin/ClpSimplex.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::plan {
namespace {

constexpr double kLeastShare = 1e-9;
// Larger programs are not solved again and again to save a few trees.
constexpr size_t kProgramCellsMax = 40000;

void Compact(std::vector<TreePair>& pairs) {
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(),
                             [](const TreePair& pair) { return pair.share <= kLeastShare; }),
              pairs.end());
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const TreePair& a, const TreePair& b) { return a.share > b.share; });
}

// The linear program over given pairs; it keeps its basis when fewer of them may be used.
class ShareProgram {
 public:
  ShareProgram(const PackingNetwork& network, const std::vector<TreePair>& pairs)
      : pairs_(pairs.size()) {
    const std::vector<PackingResource>& resources = network.resources();
    const int sum_row = static_cast<int>(resources.size());
    for (const PackingResource& resource : resources) scale_ = std::max(scale_, resource.rate);
    lp_.setLogLevel(0);
    lp_.resize(sum_row + 1, 0);
    std::vector<int> rows;
    std::vector<double> values;
    for (int row = 0; row < sum_row; ++row) {
      lp_.setRowBounds(row, -COIN_DBL_MAX, 0);
      rows.push_back(row);
      values.push_back(-resources[row].rate / scale_);
    }
    lp_.setRowBounds(sum_row, 1, 1);
    lp_.addColumn(sum_row, rows.data(), values.data(), 0, COIN_DBL_MAX, 1);
    for (const TreePair& pair : pairs) {
      rows.clear();
      values.clear();
      for (const TreeLoad& load : LoadsOf(network, pair)) {
        rows.push_back(load.resource);
        values.push_back(load.times);
      }
      rows.push_back(sum_row);
      values.push_back(1);
      lp_.addColumn(static_cast<int>(rows.size()), rows.data(), values.data(), 0, COIN_DBL_MAX, 0);
    }
  }

  // Only the first `count` pairs may have a share.
  void UseOnly(size_t count) {
    for (size_t i = 0; i < pairs_; ++i) {
      lp_.setColumnUpper(static_cast<int>(i + 1), i < count ? COIN_DBL_MAX : 0);
    }
  }

  // The seconds a byte takes.
  absl::StatusOr<double> Solve() {
    // Changing a bound keeps the basis dual feasible, so the dual simplex needs few steps.
    if (solved_) {
      lp_.dual();
    } else {
      lp_.primal();
    }
    solved_ = true;
    if (lp_.status() == 0) return lp_.objectiveValue() / scale_;
    return absl::FailedPreconditionError(absl::StrCat(
        "the linear program of the shares could not be solved (status ", lp_.status(), ")"));
  }

  void CopyShares(std::vector<TreePair>& pairs) const {
    double sum = 0;
    for (size_t i = 0; i < pairs_; ++i) {
      const double share = lp_.primalColumnSolution()[i + 1];
      pairs[i].share = share <= kLeastShare ? 0 : share;
      sum += pairs[i].share;
    }
    for (TreePair& pair : pairs) pair.share /= sum;
  }

 private:
  const size_t pairs_;
  double scale_ = 0;
  ClpSimplex lp_;
  bool solved_ = false;
};

}  // namespace

double SecondsOf(const PackingNetwork& network, const std::vector<TreePair>& pairs) {
  std::vector<double> busy(network.resources().size(), 0);
  for (const TreePair& pair : pairs) {
    for (const TreeLoad& load : LoadsOf(network, pair)) {
      busy[static_cast<size_t>(load.resource)] += pair.share * load.times;
    }
  }
  double most = 0;
  for (size_t i = 0; i < busy.size(); ++i) {
    most = std::max(most, busy[i] / network.resources()[i].rate);
  }
  return most;
}

absl::StatusOr<double> ShareOut(const PackingNetwork& network, std::vector<TreePair>& pairs) {
  ShareProgram program(network, pairs);
  SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, program.Solve());
  program.CopyShares(pairs);
  return seconds;
}

absl::StatusOr<std::vector<TreePair>> KeepFew(const PackingNetwork& network,
                                              const std::vector<TreePair>& pairs,
                                              double seconds_max) {
  std::vector<TreePair> best = pairs;
  Compact(best);
  // First without a linear program: if the pairs that are left out have the part 1 - kept of the
  // bytes and the others take these over in proportion, the time grows by a factor of at most
  // 1 / kept.
  const double seconds_now = SecondsOf(network, best);
  double kept = 0;
  size_t count = 0;
  while (count < best.size() && kept * seconds_max < seconds_now) kept += best[count++].share;
  if (kept * seconds_max >= seconds_now) {
    best.resize(count);
    for (TreePair& pair : best) pair.share /= kept;
  }
  if (best.size() * network.resources().size() > kProgramCellsMax) return best;
  // Bisection for the smallest number of pairs, in the order of their shares, that is enough. It is
  // repeated with the new shares, because small ones may have become unnecessary.
  for (bool again = true; again;) {
    ShareProgram program(network, best);
    SYNCOPATE_ASSIGN_OR_RETURN(const double seconds_of_all, program.Solve());
    if (seconds_of_all > seconds_max) break;
    std::vector<TreePair> found = best;
    program.CopyShares(found);
    size_t too_few = 0;
    size_t enough = best.size();
    while (enough - too_few > 1) {
      const size_t middle = (too_few + enough) / 2;
      program.UseOnly(middle);
      SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, program.Solve());
      if (seconds <= seconds_max) {
        enough = middle;
        program.CopyShares(found);
      } else {
        too_few = middle;
      }
    }
    const size_t before = best.size();
    best = std::move(found);
    Compact(best);
    again = best.size() < before;
  }
  return best;
}

}  // namespace syncopate::plan
