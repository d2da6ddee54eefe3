#include "plan/forest/dense_arborescence.h"

#include <algorithm>

namespace syncopate::plan {

double DenseArborescence::Solve(const EdgeCosts& incoming, absl::Span<const int> members) {
  Load(incoming, members);
  for (int start = 1; start < size_; ++start) {
    if (!GrowFrom(start)) return EdgeCosts::kNone;
  }
  Expand();
  // The sum of true costs: reduced costs have collected rounding errors.
  double sum = 0;
  for (int member = 1; member < size_; ++member) {
    sum += incoming.at(members[member], members[parent_[member]]);
  }
  return sum;
}

void DenseArborescence::Load(const EdgeCosts& incoming, absl::Span<const int> members) {
  size_ = static_cast<int>(members.size());
  const size_t entries = members.size() * members.size();
  if (cost_.size() < entries) {
    cost_.resize(entries);
    target_.resize(entries);
  }
  outermost_.resize(members.size());
  for (auto* of_nodes : {&row_, &container_, &from_, &to_, &place_}) {
    of_nodes->assign(2 * members.size(), -1);
  }
  price_.assign(2 * members.size(), 0);
  progress_.assign(2 * members.size(), Progress::kNew);
  progress_[0] = Progress::kDone;
  for (int to = 0; to < size_; ++to) {
    outermost_[to] = row_[to] = to;
    const double* costs = incoming.row(members[to]);
    double* row = &cost_[to * size_];
    for (int from = 0; from < size_; ++from) row[from] = costs[members[from]];
    row[to] = EdgeCosts::kNone;
    std::fill_n(&target_[to * size_], size_, to);
  }
  row_.resize(members.size());  // grows with each contraction
}

bool DenseArborescence::GrowFrom(int start) {
  if (progress_[outermost_[start]] == Progress::kDone) return true;
  path_.assign(1, outermost_[start]);
  while (true) {
    const int node = path_.back();
    progress_[node] = Progress::kOnPath;
    place_[node] = static_cast<int>(path_.size()) - 1;
    const double* row = &cost_[row_[node] * size_];
    int best = 0;
    for (int from = 1; from < size_; ++from) {
      if (row[from] < row[best]) best = from;
    }
    if (row[best] == EdgeCosts::kNone) return false;
    price_[node] = row[best];
    from_[node] = best;
    to_[node] = target_[row_[node] * size_ + best];
    const int sender = outermost_[best];
    if (progress_[sender] == Progress::kDone) break;
    if (progress_[sender] == Progress::kNew) {
      path_.push_back(sender);
    } else {
      Contract(place_[sender]);
    }
  }
  // The path has met a part that the root already reaches, so the root reaches all of it.
  for (const int node : path_) progress_[node] = Progress::kDone;
  return true;
}

// Makes one node of the path's end from `cycle_start` on: a later edge into it replaces the edge
// that its target has inside, hence the prices are taken off.
void DenseArborescence::Contract(int cycle_start) {
  const int node = static_cast<int>(row_.size());
  const int kept = row_[path_[cycle_start]];
  double* row = &cost_[kept * size_];
  int* target = &target_[kept * size_];
  const double first_price = price_[path_[cycle_start]];
  for (int from = 0; from < size_; ++from) row[from] -= first_price;
  for (size_t i = cycle_start + 1; i < path_.size(); ++i) {
    const double* other = &cost_[row_[path_[i]] * size_];
    const int* other_target = &target_[row_[path_[i]] * size_];
    const double price = price_[path_[i]];
    for (int from = 0; from < size_; ++from) {
      if (other[from] - price < row[from]) {
        row[from] = other[from] - price;
        target[from] = other_target[from];
      }
    }
  }
  for (int from = 0; from < size_; ++from) {
    const int outer = outermost_[from];
    if (progress_[outer] != Progress::kOnPath || place_[outer] < cycle_start) continue;
    outermost_[from] = node;
    row[from] = EdgeCosts::kNone;
  }
  for (size_t i = cycle_start; i < path_.size(); ++i) container_[path_[i]] = node;
  row_.push_back(kept);
  path_.resize(cycle_start);
  path_.push_back(node);
}

// Outer nodes first: the edge into a node arrives at one position, and whatever lies between that
// position and the node loses the edge that it had inside.
void DenseArborescence::Expand() {
  parent_.assign(size_, 0);
  prices_.assign(size_, 0);
  const int nodes = static_cast<int>(row_.size());
  entered_.assign(nodes, 0);
  for (int node = nodes - 1; node > 0; --node) {
    // From here on price_ is the sum over the node and all nodes around it.
    if (container_[node] >= 0) price_[node] += price_[container_[node]];
    if (node < size_) prices_[node] = price_[node];
    if (entered_[node]) continue;
    parent_[to_[node]] = from_[node];
    for (int inner = to_[node]; inner != node; inner = container_[inner]) entered_[inner] = 1;
  }
}

}  // namespace syncopate::plan
