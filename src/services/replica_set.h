// The workers that follow the host of the services: its standby, and beside it the next one while the
// standby leaves. An answer may go out when all of them have stepped the event that it follows from.
#ifndef SYNCOPATE_SERVICES_REPLICA_SET_H_
#define SYNCOPATE_SERVICES_REPLICA_SET_H_

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "services/service_message.h"

namespace syncopate::services {

class ReplicaSet {
 public:
  // It gets the state after event `sequence`, whose decisions have `digest`. `loaded`: it has it.
  void Add(int rank, uint64_t sequence, uint64_t digest, bool loaded);
  void Remove(int rank) { replicas_.erase(rank); }

  // An event is sent to all, in `bytes` bytes; `digest` is of all decisions up to it.
  void Sent(uint64_t sequence, uint64_t digest, uint64_t bytes);
  // An error if the replica has decided differently. Acks of workers that are none are ignored.
  absl::Status Acked(int rank, const AckMessage& ack);

  // All have stepped events up to this one; `last` if there are none.
  uint64_t AckedByAll(uint64_t last) const;
  // Whether another event may be sent: what is on its way to a replica that does not listen is
  // bounded.
  bool HasRoom() const;

  bool Contains(int rank) const { return replicas_.contains(rank); }
  bool IsLoaded(int rank) const {
    const auto found = replicas_.find(rank);
    return found != replicas_.end() && found->second.loaded;
  }
  bool empty() const { return replicas_.empty(); }
  std::vector<int> ranks() const;

 private:
  struct Replica {
    uint64_t acked = 0;
    bool loaded = false;
    std::deque<std::pair<uint64_t, uint64_t>> in_flight;  // sequence, bytes
    uint64_t bytes_in_flight = 0;
  };

  std::map<int, Replica> replicas_;
  std::map<uint64_t, uint64_t> digests_;  // by sequence, from the last that all have acked
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_REPLICA_SET_H_
