// Refines the sub-chunks of forests by measurement. The cost model proposes a size; calls that come
// again and again also try half and twice of it, in turn, and the quickest is kept.
//
// All workers try the same size at the same call. After the trials they tell each other how long
// each took; kSwitchCalls later everyone knows everyone's, or waits for it, and takes the size for
// which the slowest worker took least. So all decide alike, at the same call, without a leader.
#ifndef SYNCOPATE_ADAPT_CHUNK_TUNER_H_
#define SYNCOPATE_ADAPT_CHUNK_TUNER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "adapt/job_exchange.h"
#include "base/mutex.h"
#include "plan/program_key.h"

namespace syncopate::adapt {

// Thread-safe; the calls of a group come in the same order on all workers.
class ChunkTuner {
 public:
  // Smaller calls are over before a difference could be seen.
  static constexpr uint64_t kBytesLeast = 1 << 20;
  // Calls before the first trial, and trials of each size, the first of which does not count: its
  // program is planned at different times by different workers.
  static constexpr uint64_t kCallsBefore = 4;
  static constexpr uint64_t kTrials = 4;
  static constexpr uint64_t kSwitchCalls = 4;
  static constexpr size_t kTunedMax = 64;  // different calls

  // `exchange` is used by this tuner alone, and outlives it.
  explicit ChunkTuner(JobExchange& exchange) : exchange_(exchange) {}

  struct Advice {
    uint64_t chunk_bytes = 0;  // 0: as proposed
    // If this call is a trial: where its time in ns goes when it has ended well.
    std::shared_ptr<std::atomic<int64_t>> took;
  };
  // Before each call that a forest is planned for with sub-chunks of `proposed` bytes. `key` is
  // that of the proposal (chunk_bytes = 0).
  Advice BeforeCall(const plan::ProgramKey& key, uint64_t proposed);

 private:
  struct Call {
    std::vector<uint64_t> sizes;  // the proposed one first
    uint64_t calls = 0;
    std::vector<std::vector<std::shared_ptr<std::atomic<int64_t>>>> took;  // by size
    std::unique_ptr<JobExchange::Round> records;
    bool decided = false;
    uint64_t chosen = 0;  // 0: as proposed
  };

  static std::vector<uint64_t> SizesAround(uint64_t proposed, uint64_t bytes);
  static void Decide(Call& call);

  JobExchange& exchange_;
  Mutex mutex_;
  absl::flat_hash_map<plan::ProgramKey, std::unique_ptr<Call>, plan::ProgramKeyHash> tuned_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_CHUNK_TUNER_H_
