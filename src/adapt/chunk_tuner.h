// Refines the sub-chunks of forests by measurement. The cost model proposes a size; calls that come
// again and again also try half and twice of it, in turn, and the quickest is kept.
//
// All workers try the same size at the same call. After the trials they tell rank 0 how long each took.
// When it knows that of all, it takes the size for which the slowest worker took least, and proposes it:
// from the call on that they agree on (value_agreement.h) all use it. Nobody waits for the records.
#ifndef SYNCOPATE_ADAPT_CHUNK_TUNER_H_
#define SYNCOPATE_ADAPT_CHUNK_TUNER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "adapt/job_exchange.h"
#include "adapt/network_watch.h"
#include "adapt/value_agreement.h"
#include "base/digest.h"
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
  // How many calls a worker may make while it does not know whether a size is agreed on. Only large calls are
  // tuned, but positions count all calls of the world group, small ones too; so it is that of the network
  // watch, for its reason.
  static constexpr uint8_t kCallsFurther = NetworkWatch::kCallsFurther;
  static constexpr size_t kTunedMax = 64;  // different calls

  // Both are used by this tuner alone, and outlive it. What is agreed on has passed DigestOfSizes().
  ChunkTuner(JobExchange& exchange, ValueAgreement& agreement)
      : exchange_(exchange), agreement_(agreement) {}

  struct Advice {
    uint64_t chunk_bytes = 0;  // 0: as proposed
    // If this call is a trial: where its time in ns goes when it has ended well.
    std::shared_ptr<std::atomic<int64_t>> took;
  };
  // Before each call that a forest is planned for with sub-chunks of `proposed` bytes, when the agreement
  // has let this worker reach it. `call` is its number among all calls of the group, `key` that of the
  // proposal (chunk_bytes = 0).
  Advice BeforeCall(int64_t call, const plan::ProgramKey& key, uint64_t proposed);
  // The size that BeforeCall() would advise for this call now. Asking changes nothing.
  uint64_t NextSize(int64_t call, const plan::ProgramKey& key, uint64_t proposed);

  // The digest of sizes as they are proposed, or why they are none.
  static absl::StatusOr<Digest> DigestOfSizes(absl::string_view bytes);

 private:
  // The sizes in force of all calls for which another one than the proposed was chosen, by DigestOfKey().
  using Sizes = std::map<std::pair<uint64_t, uint64_t>, uint64_t>;

  struct Call {
    std::vector<uint64_t> sizes;  // the proposed one first
    uint64_t calls = 0;
    std::vector<std::vector<std::shared_ptr<std::atomic<int64_t>>>> took;  // by size
    std::unique_ptr<JobExchange::Round> records;  // on rank 0, until it has decided
    Sizes::key_type name;
  };

  static std::vector<uint64_t> SizesAround(uint64_t proposed, uint64_t bytes);
  static std::string Encode(const Sizes& sizes);
  static absl::StatusOr<Sizes> Decode(absl::string_view bytes);
  static bool IsTuned(const plan::ProgramKey& key, uint64_t proposed);
  // That of the next call; 0: as proposed.
  uint64_t SizeFor(const Call& call) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The next call is a trial, one of every size in turn.
  static bool IsTrial(const Call& call);
  static size_t SizeOfTrial(const Call& call) {
    return (call.calls - kCallsBefore) % call.sizes.size();
  }
  // Tells rank 0 how long the trials took.
  void Report(Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On rank 0, when all have told it.
  void Decide(Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes over what counts from this call on.
  void TakeSizes(int64_t call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  JobExchange& exchange_;
  ValueAgreement& agreement_;
  Mutex mutex_;
  Sizes proposed_ ABSL_GUARDED_BY(mutex_);  // on rank 0: with all that it has proposed
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::pair<int64_t, Sizes>> coming_ ABSL_GUARDED_BY(mutex_);  // from which call on
  Sizes in_force_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<plan::ProgramKey, std::unique_ptr<Call>, plan::ProgramKeyHash> tuned_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_CHUNK_TUNER_H_
