// Keeps the topology of a job on several hosts current while it runs: what the job's own transfers
// achieve goes through the detector of probe/upkeep.h, the same on every worker.
//
// A *period* is a run of calls of the world group that move 1 MiB or more in all; its end is the
// same call on all workers. After it every worker sends all others a small record of what has come
// from whom in it and how quickly. Nobody waits for that: whenever a worker has the records of all,
// it shows them to its detector, period by period. All detectors see the same, so all make the same
// versions of the topology without a leader, each a little earlier or later.
//
// Programs must change at the same call everywhere, so a version that period k brought about counts
// for planning from period k + kSwitchPeriods on. Only a worker that is so far ahead of another one
// waits there until it knows period k.
#ifndef SYNCOPATE_ADAPT_NETWORK_WATCH_H_
#define SYNCOPATE_ADAPT_NETWORK_WATCH_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "adapt/job_exchange.h"
#include "base/clock.h"
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
  static constexpr uint64_t kSwitchPeriods = 16;
  static constexpr size_t kPeersMax = 8;  // of a worker, in a period

  // `placement` has for each rank the device of `topology` that it is on.
  // `take_traffic` returns what has come from each other worker since it was last called.
  // `new_plans` is told the version and its topology before any call is to be planned by it.
  // `exchange` is used by this watch alone, and outlives it.
  NetworkWatch(const Topology& topology, const std::vector<int>& placement,
               std::function<std::vector<transport::Traffic>()> take_traffic, JobExchange& exchange,
               std::function<void(uint64_t, const Topology&)> new_plans, const Clock& clock);

  // To be called before each call of the world group, in their order; `bytes` is what it moves.
  // Returns the version of the topology to plan it by.
  uint64_t BeforeCall(uint64_t bytes);
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

  // The newest version.
  NetworkVersion Newest();

 private:
  struct Period {
    uint64_t kind = 0;  // a digest of the programs that ran in it
    std::unique_ptr<JobExchange::Round> records;
  };
  struct Switch {
    uint64_t period = 0;  // the first that is planned by it
    Topology topology;
  };

  void EndPeriod() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What this worker saw in a period, in words (network_watch.cc).
  using Record = std::vector<int64_t>;
  Record TakeRecord() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Shows the detector the periods whose records are here; waits for those before `needed`.
  void Learn(uint64_t needed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `all`: by rank.
  void Show(uint64_t period, uint64_t kind, const std::vector<Record>& all)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t workers_;
  const uint64_t period_bytes_;
  const std::function<std::vector<transport::Traffic>()> take_traffic_;
  JobExchange& exchange_;
  const std::function<void(uint64_t, const Topology&)> new_plans_;
  const Clock& clock_;

  std::atomic<int> under_way_{0};  // calls
  Mutex mutex_;
  probe::Upkeep upkeep_ ABSL_GUARDED_BY(mutex_);
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t planned_version_ ABSL_GUARDED_BY(mutex_);
  // The period that is under way: its number, the bytes of its calls, the digest of their programs,
  // how many they are, and the most that ran at once.
  uint64_t period_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t kind_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int at_once_ ABSL_GUARDED_BY(mutex_) = 0;
  // The calls of the period that Waited() told of, how long they took, and when the period began.
  uint64_t waited_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t waited_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t begin_ns_ ABSL_GUARDED_BY(mutex_);
  // The last periods before period_, in order, whose records the detector has not seen.
  std::deque<Period> unknown_ ABSL_GUARDED_BY(mutex_);
  std::deque<Switch> switches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_NETWORK_WATCH_H_
