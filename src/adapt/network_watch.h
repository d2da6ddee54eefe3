// Keeps the topology of a job on several hosts current while it runs: what the job's own transfers
// achieve goes through the detector of probe/upkeep.h, the same on every worker.
//
// A *period* is a run of calls of the world group that move 1 MiB or more in all; its end is the
// same call on all workers. After it every worker starts a small all-gather of what has come
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
#include "adapt/record_exchange.h"
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

  // `placement`: by rank, the device of `topology` that it is on.
  // `take_traffic`: what has come from each other worker since the last call.
  // `new_plans` is told the version and its topology before any call is to be planned by it.
  NetworkWatch(const Topology& topology, const std::vector<int>& placement, int rank,
               std::function<std::vector<transport::Traffic>()> take_traffic,
               std::unique_ptr<RecordExchange> exchange,
               std::function<void(uint64_t, const Topology&)> new_plans, const Clock& clock);

  // Before a call of the world group that moves `bytes`, in the order of the calls. Returns the
  // version of the topology to plan it by.
  uint64_t BeforeCall(uint64_t bytes);
  // What that call runs.
  void Planned(uint64_t program_digest);
  // It has ended, or did not even start. Calls that run at once slow each other down, which is no
  // change of the network. May be called from anywhere: takes no lock.
  void Ended() { --under_way_; }
  // The caller waited so long for it. Without this, it is not known how much of a period was spent
  // on calls, and all of it counts.
  void Waited(int64_t ns);

  // The newest version.
  NetworkVersion Newest();

 private:
  struct Period {
    uint64_t kind = 0;  // a digest of the programs that ran in it
    std::unique_ptr<RecordExchange::Pending> records;
  };
  struct Switch {
    uint64_t period = 0;  // the first that is planned by it
    Topology topology;
  };

  void EndPeriod() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RecordExchange::Record TakeRecord() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Shows the detector the periods whose records are here; waits for those before `needed`.
  void Learn(uint64_t needed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Show(uint64_t period, uint64_t kind, const RecordExchange::Record& all)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int rank_;
  const size_t workers_;
  const uint64_t period_bytes_;
  const std::function<std::vector<transport::Traffic>()> take_traffic_;
  const std::unique_ptr<RecordExchange> exchange_;
  const std::function<void(uint64_t, const Topology&)> new_plans_;
  const Clock& clock_;

  std::atomic<int> under_way_{0};  // calls
  Mutex mutex_;
  probe::Upkeep upkeep_ ABSL_GUARDED_BY(mutex_);
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t planned_version_ ABSL_GUARDED_BY(mutex_);
  uint64_t period_ ABSL_GUARDED_BY(mutex_) = 0;  // the one that is under way
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;   // of its calls
  uint64_t kind_ ABSL_GUARDED_BY(mutex_) = 0;    // likewise
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;   // in it
  int at_once_ ABSL_GUARDED_BY(mutex_) = 0;      // the most calls at once in it
  uint64_t waited_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t waited_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t begin_ns_ ABSL_GUARDED_BY(mutex_);            // of it
  std::deque<Period> unknown_ ABSL_GUARDED_BY(mutex_);  // the last before period_, in order
  std::deque<Switch> switches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_NETWORK_WATCH_H_
