#include "services/replica_set.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/limits.h"

namespace syncopate::services {

void ReplicaSet::Add(int rank, uint64_t sequence, uint64_t digest, bool loaded) {
  replicas_[rank] = {.acked = loaded ? sequence : 0, .loaded = loaded, .in_flight = {}};
  digests_[sequence] = digest;
}

void ReplicaSet::Sent(uint64_t sequence, uint64_t digest, uint64_t bytes) {
  if (replicas_.empty()) return;
  digests_[sequence] = digest;
  for (auto& [rank, replica] : replicas_) {
    replica.in_flight.emplace_back(sequence, bytes);
    replica.bytes_in_flight += bytes;
  }
}

absl::Status ReplicaSet::Acked(int rank, const AckMessage& ack) {
  const auto found = replicas_.find(rank);
  if (found == replicas_.end()) return absl::OkStatus();
  Replica& replica = found->second;
  const auto digest = digests_.find(ack.sequence);
  if (digest == digests_.end() || digest->second != ack.digest) {
    return absl::InternalError(
        absl::StrFormat("the services decide differently at rank %d after event %d: %016x, here %s",
                        rank, ack.sequence, ack.digest,
                        digest == digests_.end() ? "there is no such event"
                                                 : absl::StrFormat("%016x", digest->second)));
  }
  replica.loaded = true;
  replica.acked = std::max(replica.acked, ack.sequence);
  while (!replica.in_flight.empty() && replica.in_flight.front().first <= ack.sequence) {
    replica.bytes_in_flight -= replica.in_flight.front().second;
    replica.in_flight.pop_front();
  }
  digests_.erase(digests_.begin(), digests_.lower_bound(AckedByAll(ack.sequence)));
  return absl::OkStatus();
}

uint64_t ReplicaSet::AckedByAll(uint64_t last) const {
  for (const auto& [rank, replica] : replicas_) last = std::min(last, replica.acked);
  return last;
}

bool ReplicaSet::HasRoom() const {
  return std::all_of(replicas_.begin(), replicas_.end(), [](const auto& item) {
    return item.second.bytes_in_flight < limits::kReplicationBytesMax;
  });
}

std::vector<int> ReplicaSet::ranks() const {
  std::vector<int> ranks;
  for (const auto& [rank, replica] : replicas_) ranks.push_back(rank);
  return ranks;
}

}  // namespace syncopate::services
