// Which version of the network counts for which iteration, as a strategy is told of them (NewValue): what it
// names in the transfers of groups that it decides on by itself, and tells a service that decides for it.
#ifndef SYNCOPATE_STRATEGY_NETWORK_VERSIONS_H_
#define SYNCOPATE_STRATEGY_NETWORK_VERSIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <variant>

#include "model/topology.h"
#include "strategy/event.h"

namespace syncopate::strategy {

class NetworkVersions {
 public:
  // Values that are no topology are passed over.
  void Add(const NewValue& event) {
    const auto* topology = std::get_if<std::shared_ptr<const Topology>>(&event.value);
    if (topology == nullptr || *topology == nullptr) return;
    newest_ = std::max(newest_, (*topology)->version);
    versions_.emplace_back(event.from, (*topology)->version);
    if (versions_.size() > kKeptMax) versions_.pop_front();
  }

  // The version for what belongs to this iteration: the same on every worker that has begun it, whatever it is
  // doing now. 0: the one that the job began with.
  uint64_t At(int64_t iteration) const {
    uint64_t version = 0;
    for (const auto& [from, one] : versions_) {
      if (from <= iteration) version = one;
    }
    return version;
  }
  // The newest that this worker was told of, and so may plan by. Others may not have been told of it yet.
  uint64_t newest() const { return newest_; }

 private:
  // As many as a worker can plan by (Worker::NewGroup).
  static constexpr size_t kKeptMax = 64;

  std::deque<std::pair<int64_t, uint64_t>> versions_;  // by the iteration from which they count
  uint64_t newest_ = 0;
};

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_NETWORK_VERSIONS_H_
