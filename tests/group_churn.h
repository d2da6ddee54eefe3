// A job that makes very many groups, one after the other, some of whose members die: what its workers
// found, and the memory that they took. The workers are forked from the caller.
#ifndef SYNCOPATE_TESTS_GROUP_CHURN_H_
#define SYNCOPATE_TESTS_GROUP_CHURN_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace syncopate {

struct ChurnOptions {
  int workers = 16;
  uint64_t groups = 10'000;
  int size_min = 2;  // members of a group
  int size_max = 8;
  uint64_t seed = 1;
  // The job on one host, or each worker on a "host" of its own that it reaches over the loopback.
  bool tcp = false;
  // After this many groups a worker dies in the middle of a call, and so on, the last rank first, as long
  // as more than size_max are left; 0: nobody dies.
  uint64_t death_every = 0;
  // Memory is compared between this many groups and all.
  uint64_t first_mark = 1'000;
  uint64_t elements = 1024;  // floats that a group averages
  // Rounds in which 1 MiB on a new group and on an old one are timed; 0: none.
  int timed_rounds = 200;
  absl::Duration limit = absl::Minutes(20);
};

// What a worker tells. All of it is in memory that the processes share.
struct ChurnOfWorker {
  std::atomic<uint64_t> met{0};   // groups whose result was right
  std::atomic<uint64_t> lost{0};  // groups that failed, or were not made, since a member had died
  std::atomic<int64_t> bytes_first{0}, bytes_last{0};  // RSS and memory files, at the two marks
  std::atomic<int64_t> fresh_ns{0}, cached_ns{0};      // medians, at the first worker
};
struct ChurnReport {
  static constexpr int kWorkersMax = 48;
  std::array<ChurnOfWorker, kWorkersMax> workers;
};

// The members of all groups, by the seed: all different.
std::vector<std::vector<int>> DrawGroups(const ChurnOptions& options);
// By rank: the number of the group in which that worker dies; UINT64_MAX: it lives.
std::vector<uint64_t> DrawDeaths(const ChurnOptions& options,
                                 const std::vector<std::vector<int>>& groups);

// Runs the job. An error if a worker did not end as it should: one that lives, with 0; one that dies, by
// its own SIGKILL. `report` must be in memory that is shared with forked processes.
absl::Status RunChurn(const ChurnOptions& options, ChurnReport& report);

}  // namespace syncopate

#endif  // SYNCOPATE_TESTS_GROUP_CHURN_H_
