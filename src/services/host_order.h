// Who hosts the services of a job: a function of the agreed order of losses, so that all workers
// that know the same changes name the same host, standby and incarnation.
#ifndef SYNCOPATE_SERVICES_HOST_ORDER_H_
#define SYNCOPATE_SERVICES_HOST_ORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncopate::services {

// A change of the job's workers. All workers learn the same changes in the same order, not at the
// same moment.
struct Change {
  enum class Kind : uint8_t { kLost = 1, kLeft = 2, kJoined = 3 };
  Kind kind = Kind::kLost;
  int rank = -1;
  uint64_t order = 0;     // from 1
  bool may_host = false;  // of kJoined: it stands at the end of the host order

  friend bool operator==(const Change&, const Change&) = default;
};

class HostOrder {
 public:
  // `candidates` are the ranks that may host, first choice first: the training ranks by number, never
  // a server's rank, or what the user says. Each is below `size`, and none is there twice. `absent`
  // are ranks below `size` that are not there until they join.
  static absl::StatusOr<HostOrder> Make(int size, std::vector<int> candidates,
                                        const std::vector<int>& absent = {});

  // An error if it is not the next change, or cannot be.
  absl::Status Apply(const Change& change);

  // The first live candidate, and the second; -1 if there is none.
  int host() const { return host_; }
  int standby() const { return standby_; }
  // The order of the change that made host() the host; 0 for the first one. A worker hosts in one
  // incarnation only, and a later host has a higher one.
  uint64_t incarnation() const { return incarnation_; }

  bool IsLive(int rank) const {
    return rank >= 0 && static_cast<size_t>(rank) < live_.size() &&
           live_[static_cast<size_t>(rank)];
  }
  std::vector<int> LiveRanks() const;
  const std::vector<int>& candidates() const { return *candidates_; }  // some may be gone
  const std::vector<Change>& changes() const { return changes_; }

 private:
  HostOrder(std::vector<bool> live, std::vector<int> candidates);
  void Choose(uint64_t order);

  // Those of a copy are the same until somebody joins, so that very many orders take little memory.
  std::shared_ptr<const std::vector<int>> candidates_;
  std::vector<bool> live_;
  std::vector<Change> changes_;
  int host_ = -1;
  int standby_ = -1;
  uint64_t incarnation_ = 0;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_HOST_ORDER_H_
