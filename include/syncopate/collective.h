// The collectives, by what they promise. Data is always in place.
#ifndef SYNCOPATE_COLLECTIVE_H_
#define SYNCOPATE_COLLECTIVE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate {
// What each promises of the data after it.
enum class Collective : uint8_t {
  // data = reduction of all active workers' data.
  kAllReduce,
  // data of `root` = reduction of all active workers' data; the others' data is undefined after.
  kReduce,
  // data = root's data.
  kBroadcast,
  // Block i = block i of the i-th active worker, for all i.
  kAllGather,
  // The i-th active worker's block i = reduction of all blocks i; its other blocks are undefined
  // after.
  kReduceScatter,
  // On `root`, block i = block i of the i-th active worker; the others' data is undefined after.
  kGather,
  // The i-th active worker's block i = root's block i; its other blocks are undefined after.
  kScatter,
  // The i-th active worker's block j = the j-th active worker's block i.
  kAllToAll,
  // No data; nobody finishes before everybody has started.
  kBarrier,
  // target's data = root's data; all other data is as before.
  kSendReceive,
};
inline constexpr Collective kCollectives[] = {Collective::kAllReduce,     Collective::kReduce,
                                              Collective::kBroadcast,     Collective::kAllGather,
                                              Collective::kReduceScatter, Collective::kGather,
                                              Collective::kScatter,       Collective::kAllToAll,
                                              Collective::kBarrier,       Collective::kSendReceive};

absl::string_view Name(Collective collective);  // "all-reduce", "reduce-scatter", ...
// Also reads the spelling without hyphens ("allreduce", "alltoall").
absl::StatusOr<Collective> ParseCollective(absl::string_view name);
// Whether the collective adds numbers.
bool Reduces(Collective collective);
// Whether data consists of one block per active worker.
bool HasBlocks(Collective collective);
// Whether the collective has a root.
bool HasRoot(Collective collective);

}  // namespace syncopate

#endif  // SYNCOPATE_COLLECTIVE_H_
