// Keeps the topology of a job on several hosts current while it runs: what the job's own transfers
// achieve goes through the detector of probe/upkeep.h, on rank 0.
//
// A *period* is a run of calls of the world group that move 1 MiB or more in all; its end is the
// same call on all workers. After it every worker sends rank 0 a small record of what has come from
// whom in it and how quickly. Nobody waits for that, unless it is kPeriodsAheadMax periods ahead of
// rank 0, or rank 0 of another one: then it waits until the deadline of the call that it is about to make.
// A watch that cannot go on says so, and ends on all workers. Whenever rank 0 has the records of all, it shows them to the
// detector, period by period.
//
// Programs must change at the same call everywhere, so a version that the detector makes is proposed
// to all workers, and counts for planning from the call on that they agree on (value_agreement.h).
#ifndef SYNCOPATE_ADAPT_NETWORK_WATCH_H_
#define SYNCOPATE_ADAPT_NETWORK_WATCH_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "adapt/job_exchange.h"
#include "adapt/value_agreement.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/mutex.h"
#include "model/topology.h"
#include "probe/upkeep.h"
#include "syncopate/syncopate.h"
#include "transport/transport.h"

namespace syncopate::adapt {

// Thread-safe.
class NetworkWatch {
 public:
  static constexpr uint64_t kPeriodBytes = 1 << 20;
  static constexpr size_t kPeriodsAheadMax = 16;
  // How many calls a worker may make while it does not know whether a version is agreed on. Small ones
  // take a tenth of a millisecond, and so do a question and its answer.
  static constexpr uint8_t kCallsFurther = 16;
  static constexpr size_t kPeersMax = 8;  // of a worker, in a period

  // `placement` has for each rank the device of `topology` that it is on.
  // `take_traffic` returns what has come from each other worker since it was last called.
  // `new_plans` is told a version and its topology when it is agreed on, before Newest() returns it and before
  // any call is to be planned by it.
  // `exchange` and `agreement` are used by this watch alone, and outlive it. What is agreed on has passed
  // DigestOfVersion().
  NetworkWatch(const Topology& topology, const std::vector<int>& placement,
               std::function<std::vector<transport::Traffic>()> take_traffic, JobExchange& exchange,
               ValueAgreement& agreement, std::function<void(uint64_t, const Topology&)> new_plans,
               const Clock& clock);

  // To be called before each call of the world group, in their order, when the agreement has let this
  // worker reach it; `call` is its number, `bytes` what it moves. Returns the version of the topology to
  // plan it by. Waits for others until the deadline at most; where that was not enough, the watch has ended.
  uint64_t BeforeCall(int64_t call, uint64_t bytes, int64_t deadline_ns);
  // The version that BeforeCall() will return for this call, which the agreement has let this worker reach. It
  // counts nothing.
  uint64_t VersionFor(int64_t call);
  // Whether BeforeCall() would have to wait for another worker now.
  bool WouldWait();
  // To be called before each call of any other group, in which this worker may be alone with some: such
  // calls make no periods, since others do not see them, but what they bring is traffic as any other, and
  // a period in which they run beside calls of the world group is compared with its like.
  void BesideCall();
  // Tells which program that call runs.
  void Planned(uint64_t program_digest);
  // A call of any group has ended, or did not even start. Calls that run at once slow each other down, which
  // is no change of the network. It takes no lock and may be called from anywhere.
  void Ended() { --under_way_; }
  // The caller waited `ns` for the call. Unless this is told of every call of a period, it is not
  // known how much of the period was spent on calls, and all of it counts.
  void Waited(int64_t ns);

  // The newest version that has been agreed on. Never waits for others, whatever other threads do.
  NetworkVersion Newest();
  // Its number, as far as the last call knew; from anywhere, without a lock.
  uint64_t NewestNumber() const { return newest_number_; }

  // The digest of a version as it is proposed, or why it is none.
  static absl::StatusOr<Digest> DigestOfVersion(absl::string_view bytes);

 private:
  struct Period {
    uint64_t kind = 0;  // a digest of the programs that ran in it
    std::shared_ptr<JobExchange::Round> records;
  };
  // A version that has been agreed on.
  struct Switch {
    int64_t from = 0;  // the first call that is planned by it
    uint64_t version = 0;
  };

  void EndPeriod(int64_t call, int64_t deadline_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What this worker saw in a period, in words (network_watch.cc).
  using Record = std::vector<int64_t>;
  Record TakeRecord() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets go of the periods whose records have arrived; on rank 0 the detector sees them.
  void Learn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same, and waits while there are more than kPeriodsAheadMax others, until the deadline. The lock is
  // released meanwhile: readers never wait for other workers.
  void LearnAndWait(int64_t deadline_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `all`: by rank.
  void Show(uint64_t period, uint64_t kind, const std::vector<Record>& all)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SawAtOnce(int at_once);
  // Takes over what has been agreed on.
  void TakeVersions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t workers_;
  const uint64_t period_bytes_;
  const std::function<std::vector<transport::Traffic>()> take_traffic_;
  JobExchange& exchange_;
  ValueAgreement& agreement_;
  const std::function<void(uint64_t, const Topology&)> new_plans_;
  const Clock& clock_;

  std::atomic<int> under_way_{0};  // calls
  std::atomic<int> at_once_{0};    // the most of them in the period that is under way
  std::atomic<uint64_t> newest_number_;
  Mutex mutex_;
  std::optional<probe::Upkeep> upkeep_ ABSL_GUARDED_BY(mutex_);  // on rank 0
  NetworkVersion newest_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t planned_version_ ABSL_GUARDED_BY(mutex_);
  // The period that is under way: its number, the bytes of its calls, the digest of their programs and how
  // many they are.
  uint64_t period_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t kind_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  // The calls of the period that Waited() told of, how long they took, and when the period began.
  uint64_t waited_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t waited_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t begin_ns_ ABSL_GUARDED_BY(mutex_);
  // The last periods before period_, in order, whose records are under way.
  std::deque<Period> unknown_ ABSL_GUARDED_BY(mutex_);
  std::deque<Switch> switches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_NETWORK_WATCH_H_
