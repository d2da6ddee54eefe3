#include "plan/forest/tree_program.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

namespace syncopate::plan {

TreeProgram::TreeProgram(const PackingNetwork& network, size_t roots, Stages stages)
    : network_(network), roots_(roots), stages_(stages) {
  for (const PackingResource& resource : network.resources()) {
    scale_ = std::max(scale_, resource.rate);
  }
  if (scale_ == 0) scale_ = 1;  // workers that share a device
  lp_.setLogLevel(0);
  lp_.resize(SumRow() + 1, 0);
  // Rows of resources say that load <= rate * time, so they are at most 0 with the time on the left
  // side; balances are equations.
  for (int row = 0; row < SumRow(); ++row) {
    const bool balance = row >= BalanceRow(0, true);
    lp_.setRowBounds(row, balance ? 0 : -COIN_DBL_MAX, 0);
  }
  lp_.setRowBounds(SumRow(), 1, 1);
  for (size_t column = 0; column < TimeColumns(); ++column) {
    // One time for both stages counts twice in the objective T1 + T2. The coefficients -1 are
    // placeholders for the rates, which SetRates() writes.
    const size_t rows_of_it = EqualStages() ? 2 * resources() : resources();
    std::vector<int> rows(rows_of_it);
    const std::vector<double> values(rows_of_it, -1);
    for (size_t i = 0; i < rows_of_it; ++i) rows[i] = static_cast<int>(column * resources() + i);
    lp_.addColumn(static_cast<int>(rows_of_it), rows.data(), values.data(), 0, COIN_DBL_MAX,
                  EqualStages() ? 2 : 1);
  }
  for (size_t root = 0; root < roots_; ++root) {
    const int rows[] = {BalanceRow(root, true), BalanceRow(root, false), SumRow()};
    const double values[] = {-1, -1, 1};
    lp_.addColumn(3, rows, values, 0, COIN_DBL_MAX, 0);
  }
  SetRates();
}

// The coefficient of a stage's time in the row of a resource is what the resource can carry in a
// second, with a minus.
void TreeProgram::SetRates() {
  for (size_t stage = 0; stage < stages(); ++stage) {
    const int column = stages_ == Stages::kTwo ? static_cast<int>(stage) : 0;
    for (size_t i = 0; i < resources(); ++i) {
      lp_.modifyCoefficient(static_cast<int>(i + stage * resources()), column, -Rate(i));
    }
  }
}

void TreeProgram::Normalize(StagePrices& prices) const {
  double first = 0;
  double second = 0;
  for (size_t i = 0; i < resources(); ++i) {
    first += Rate(i) * prices.first[i];
    if (HasSecondStage()) second += Rate(i) * prices.second[i];
  }
  const double most = EqualStages() ? (first + second) / 2 : std::max(first, second);
  if (most <= 0) return;
  for (double& price : prices.first) price /= most;
  for (double& price : prices.second) price /= most;
}

absl::Status TreeProgram::Solve() {
  // New columns keep the basis primal feasible, so the primal simplex goes on from where it stood.
  // If that fails, the program is solved from a fresh basis.
  lp_.primal();
  if (lp_.status() == 0) return absl::OkStatus();
  lp_.allSlackBasis();
  lp_.dual();
  if (lp_.status() == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the linear program of the trees could not be solved (status ", lp_.status(), ")"));
}

double TreeProgram::StageSeconds(size_t stage) const {
  return lp_.primalColumnSolution()[stage < TimeColumns() ? stage : 0];
}

StagePrices TreeProgram::Prices() const {
  StagePrices prices;
  const double* duals = lp_.dualRowSolution();
  // The price of a resource is what a unit more of its rate would save: the dual value of its row,
  // which is never positive but for rounding.
  for (size_t i = 0; i < resources(); ++i) prices.first.push_back(std::max(0.0, -duals[i]));
  if (HasSecondStage()) {
    for (size_t i = 0; i < resources(); ++i) {
      prices.second.push_back(std::max(0.0, -duals[i + resources()]));
    }
  }
  Normalize(prices);
  return prices;
}

bool TreeProgram::Add(TreeRole role, size_t root, const WorkerTree& tree,
                      absl::Span<const TreeLoad> loads) {
  if (!known_.insert(absl::HashOf(role, root, tree.parent)).second) return false;
  std::vector<int> rows;
  std::vector<double> values;
  // A broadcast of the second stage loads the rows of the second stage.
  const int offset = role == TreeRole::kBroadcastAfter ? static_cast<int>(resources()) : 0;
  for (const auto& [resource, load] : loads) {
    rows.push_back(resource + offset);
    values.push_back(load);
  }
  rows.push_back(BalanceRow(root, role == TreeRole::kReduce));
  values.push_back(1);
  lp_.addColumn(static_cast<int>(rows.size()), rows.data(), values.data(), 0, COIN_DBL_MAX, 0);
  pool_.push_back({role, root, tree});
  return true;
}

void TreeProgram::Forget() {
  // A basis has as many columns as there are rows, so nearly all of this many are unused.
  if (pool_.size() < 8 * static_cast<size_t>(SumRow())) return;
  std::vector<std::pair<double, int>> unused;
  for (size_t i = 0; i < pool_.size(); ++i) {
    const int column = static_cast<int>(i + FirstTreeColumn());
    if (lp_.getColumnStatus(column) == ClpSimplex::basic) continue;
    unused.emplace_back(-lp_.dualColumnSolution()[column], column);
  }
  std::sort(unused.begin(), unused.end());
  unused.resize(unused.size() / 2);
  std::vector<int> columns;
  for (const auto& [cost, column] : unused) columns.push_back(column);
  std::sort(columns.begin(), columns.end());
  lp_.deleteColumns(static_cast<int>(columns.size()), columns.data());
  std::vector<Column> pool;
  size_t next = 0;
  for (size_t i = 0; i < pool_.size(); ++i) {
    if (next < columns.size() && columns[next] == static_cast<int>(i + FirstTreeColumn())) {
      known_.erase(absl::HashOf(pool_[i].role, pool_[i].root, pool_[i].tree.parent));
      ++next;
      continue;
    }
    pool.push_back(std::move(pool_[i]));
  }
  pool_ = std::move(pool);
}

// Joins the reduce trees and the broadcast trees of each root. Both lists carry the same bytes, so
// matching them from the largest on uses up both, with fewer pairs than there are trees.
std::vector<TreePair> TreeProgram::Pairs() const {
  const double* values = lp_.primalColumnSolution();
  struct Used {
    const Column* column;
    double left;
  };
  std::vector<std::vector<Used>> reduce(roots_);
  std::vector<std::vector<Used>> broadcast(roots_);
  for (size_t i = 0; i < pool_.size(); ++i) {
    const double share = values[i + FirstTreeColumn()];
    if (share <= kTolerance) continue;
    auto& lists = pool_[i].role == TreeRole::kReduce ? reduce : broadcast;
    lists[pool_[i].root].push_back({&pool_[i], share});
  }
  std::vector<TreePair> pairs;
  double sum = 0;
  for (size_t root = 0; root < roots_; ++root) {
    const auto larger = [](const Used& a, const Used& b) { return a.left > b.left; };
    std::stable_sort(reduce[root].begin(), reduce[root].end(), larger);
    std::stable_sort(broadcast[root].begin(), broadcast[root].end(), larger);
    size_t i = 0;
    size_t j = 0;
    while (i < reduce[root].size() && j < broadcast[root].size()) {
      Used& up = reduce[root][i];
      Used& down = broadcast[root][j];
      const double share = std::min(up.left, down.left);
      if (share > kTolerance) {
        pairs.push_back({up.column->tree, down.column->tree, share,
                         down.column->role == TreeRole::kBroadcastAfter});
        sum += share;
      }
      up.left -= share;
      down.left -= share;
      if (up.left <= kTolerance) ++i;
      if (down.left <= kTolerance) ++j;
    }
  }
  for (TreePair& pair : pairs) pair.share /= sum;
  return pairs;
}

std::vector<TreePair> TreeProgram::KnownPairs() const {
  std::vector<TreePair> pairs;
  std::vector<std::vector<std::pair<int, const Column*>>> reduce(roots_);
  std::vector<std::vector<std::pair<int, const Column*>>> broadcast(roots_);
  for (const Column& column : pool_) {
    auto& lists = column.role == TreeRole::kReduce ? reduce : broadcast;
    lists[column.root].emplace_back(DepthOf(column.tree), &column);
  }
  const auto shallower = [](const auto& a, const auto& b) { return a.first < b.first; };
  for (size_t root = 0; root < roots_; ++root) {
    if (reduce[root].empty() || broadcast[root].empty()) continue;
    std::stable_sort(reduce[root].begin(), reduce[root].end(), shallower);
    std::stable_sort(broadcast[root].begin(), broadcast[root].end(), shallower);
    const size_t count = std::max(reduce[root].size(), broadcast[root].size());
    for (size_t i = 0; i < count; ++i) {
      const Column& up = *reduce[root][std::min(i, reduce[root].size() - 1)].second;
      const Column& down = *broadcast[root][std::min(i, broadcast[root].size() - 1)].second;
      pairs.push_back({up.tree, down.tree, 0, down.role == TreeRole::kBroadcastAfter});
    }
  }
  return pairs;
}

}  // namespace syncopate::plan
