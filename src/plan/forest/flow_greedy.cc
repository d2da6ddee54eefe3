#include "plan/forest/flow_greedy.h"

#include <algorithm>

namespace syncopate::plan {

FlowGreedy::FlowGreedy(const EdgeCosts& incoming)
    : incoming_(incoming),
      workers_(incoming.workers()),
      words_((static_cast<size_t>(workers_) + 63) / 64),
      senders_(workers_),
      rate_(workers_),
      level_(workers_),
      since_(workers_),
      full_at_(workers_),
      next_(workers_),
      drains_(words_ * workers_),
      before_(workers_),
      after_(workers_) {}

WorkerTree FlowGreedy::Find(int root, absl::Span<const int> terminals, int64_t work_max) {
  work_left_ = work_max;
  WorkerTree tree{.root = root, .parent = std::vector<int>(workers_, -1)};
  tree.parent[root] = root;
  std::vector<int> missing(terminals.begin(), terminals.end());
  while (true) {
    std::erase_if(missing, [&](int terminal) { return tree.parent[terminal] >= 0; });
    if (missing.empty()) return tree;
    Start(missing);
    if (!FlowInto(tree)) return tree;
  }
}

void FlowGreedy::Start(absl::Span<const int> missing) {
  now_ = 0;
  wet_.clear();
  std::fill(rate_.begin(), rate_.end(), 0);
  std::fill(level_.begin(), level_.end(), 0.0);
  std::fill(since_.begin(), since_.end(), 0.0);
  std::fill(next_.begin(), next_.end(), size_t{0});
  std::fill(drains_.begin(), drains_.end(), uint64_t{0});
  for (int worker = 0; worker < workers_; ++worker) {
    before_[worker].clear();
    after_[worker].clear();
  }
  for (const int terminal : missing) {
    if (rate_[terminal] > 0) continue;  // named twice
    rate_[terminal] = 1;
    drains_[terminal * words_ + terminal / 64] |= uint64_t{1} << (terminal % 64);
    wet_.push_back(terminal);
    Predict(terminal);
  }
}

bool FlowGreedy::FlowInto(WorkerTree& tree) {
  while (work_left_ > 0) {
    work_left_ -= static_cast<int64_t>(wet_.size());
    int to = wet_.front();
    for (const int worker : wet_) {
      if (full_at_[worker] < full_at_[to]) to = worker;
    }
    if (full_at_[to] == EdgeCosts::kNone) return false;
    now_ = full_at_[to];
    Settle(to);
    const int from = SendersTo(to)[next_[to]++];
    Predict(to);
    if (tree.parent[from] >= 0) {
      JoinAll(from, to, tree);
      return true;
    }
    Open(from, to);
  }
  return false;
}

void FlowGreedy::Open(int from, int to) {
  // The workers through which more water would flow: `from`, and all to which it passes water on.
  // If a terminal drains through one of them and through `to` already, two streams would meet.
  std::vector<int>& growing = stack_;
  growing.assign(1, from);
  const uint64_t* added = &drains_[to * words_];
  for (size_t i = 0; i < growing.size(); ++i) {
    const uint64_t* has = &drains_[growing[i] * words_];
    for (size_t word = 0; word < words_; ++word) {
      if ((has[word] & added[word]) != 0) return;
    }
    growing.insert(growing.end(), before_[growing[i]].begin(), before_[growing[i]].end());
  }
  before_[to].push_back(from);
  after_[from].push_back(to);
  for (const int worker : growing) {
    if (rate_[worker] == 0) {
      wet_.push_back(worker);
      since_[worker] = now_;
    } else {
      Settle(worker);
    }
    rate_[worker] += rate_[to];
    uint64_t* drains = &drains_[worker * words_];
    for (size_t word = 0; word < words_; ++word) drains[word] |= added[word];
    Predict(worker);
  }
}

void FlowGreedy::Settle(int worker) {
  level_[worker] += (now_ - since_[worker]) * rate_[worker];
  since_[worker] = now_;
}

void FlowGreedy::Predict(int worker) {
  const std::vector<int>& senders = SendersTo(worker);
  if (next_[worker] >= senders.size()) {
    full_at_[worker] = EdgeCosts::kNone;
    return;
  }
  const double cost = incoming_.at(worker, senders[next_[worker]]);
  // Rounding must not turn time back.
  full_at_[worker] = since_[worker] + std::max(0.0, cost - level_[worker]) / rate_[worker];
}

void FlowGreedy::JoinAll(int from, int to, WorkerTree& tree) {
  tree.parent[to] = from;
  std::vector<int>& joined = stack_;
  joined.assign(1, to);
  for (size_t i = 0; i < joined.size(); ++i) {
    const int parent = joined[i];
    for (const int child : after_[parent]) {
      tree.parent[child] = parent;
      joined.push_back(child);
    }
  }
}

const std::vector<int>& FlowGreedy::SendersTo(int worker) {
  std::vector<int>& senders = senders_[worker];
  if (!senders.empty()) return senders;
  const double* costs = incoming_.row(worker);
  for (int from = 0; from < workers_; ++from) {
    if (from != worker && costs[from] != EdgeCosts::kNone) senders.push_back(from);
  }
  std::stable_sort(senders.begin(), senders.end(),
                   [costs](int a, int b) { return costs[a] < costs[b]; });
  return senders;
}

}  // namespace syncopate::plan
