// Keeps the topology of a job on several hosts current while it runs, from what the job's own transfers
// achieve.
//
// Every half a second each worker sends the *host*, the worker that decides, what came from whom by time,
// whatever group or call moved it; nothing if nothing came. The host shows that to its detector
// (network_detector.h) on a thread beside. Who hosts is what the job's services say (docs/services.md); a worker that
// becomes the host learns anew from then on, from the newest version.
//
// Programs must change at the same call everywhere, so a version that the detector makes is proposed
// to all workers, and counts for planning from the call of the world group on that they agree on
// (value_agreement.h). When it has counted for some seconds and the job moves less by it than it did just before, under
// the same conditions, the rates that were planned by before come back into force.
#ifndef SYNCOPATE_ADAPT_NETWORK_WATCH_H_
#define SYNCOPATE_ADAPT_NETWORK_WATCH_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "adapt/network_detector.h"
#include "adapt/network_trial.h"
#include "adapt/value_agreement.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/mutex.h"
#include "model/topology.h"
#include "syncopate/syncopate.h"
#include "transport/transport.h"

namespace syncopate::adapt {

// Thread-safe.
class NetworkWatch {
 public:
  // How often Tick() is to be called.
  static constexpr int64_t kTickNs = 500'000'000;
  // How many calls a worker may make while it does not know whether a version is agreed on. Small ones
  // take a tenth of a millisecond, and so do a question and its answer.
  static constexpr uint8_t kCallsFurther = 16;
  static constexpr size_t kPeersMax = 24;  // of a worker, in a message

  // What joins the watch with its worker.
  struct Seams {
    // What has come from each other worker since it was last called.
    std::function<std::vector<transport::Traffic>()> take_traffic;
    // Sends another worker a message, whose Received() gets it. It may get lost.
    std::function<void(int to, const std::string& message)> send;
    // The rank that decides, as far as this worker knows.
    std::function<int()> host;
    // Has work done on another thread, in order.
    std::function<void(std::function<void()>)> beside;
    // Told a version and its topology when it is agreed on, before Newest() returns it and before any call is
    // to be planned by it.
    std::function<void(uint64_t, const Topology&)> new_plans;
  };

  // `placement` has for each rank the device of `topology` that it is on. `measured`: its rates are known, not
  // assumed. The agreement is used by this watch alone; it and the clock outlive the watch, and so does work that
  // was given to `beside`. What is agreed on has passed DigestOfVersion().
  NetworkWatch(int rank, const Topology& topology, const std::vector<int>& placement, bool measured,
               Seams seams, ValueAgreement& agreement, const Clock& clock);

  // The network is this, by a measurement. All are to plan by it; to be called before the first Tick().
  void Know(Topology topology, const std::string& reason);

  // Once in kTickNs, on the thread that Received() is called on. Neither waits nor works for long.
  void Tick();
  void Received(int from, absl::string_view message);

  // To be called before each call of the world group, in their order, when the agreement has let this
  // worker reach it; `call` is its number, `bytes` what it moves. Returns the version of the topology to
  // plan it by.
  uint64_t BeforeCall(int64_t call, uint64_t bytes);
  // The version that BeforeCall() will return for this call, which the agreement has let this worker reach.
  uint64_t VersionFor(int64_t call);

  // The newest version that has been agreed on.
  NetworkVersion Newest();
  // Its number, as far as the last call knew; from anywhere, without a lock.
  uint64_t NewestNumber() const { return newest_number_; }

  // The digest of a version as it is proposed, or why it is none.
  static absl::StatusOr<Digest> DigestOfVersion(absl::string_view bytes);

 private:
  // A version that has been agreed on.
  struct Switch {
    int64_t from = 0;  // the first call that is planned by it
    uint64_t version = 0;
  };
  // A record as it came, and by how much the clocks of its worker and of the host differ.
  struct Coming {
    int from = 0;
    int64_t clocks_ns = 0;
    std::string message;
  };

  // On the thread beside, at the host.
  void Judge(std::deque<Coming> records, int64_t now_ns);
  // Returns its version.
  uint64_t Propose(const Topology& topology, const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(judging_);
  void Tell(const NetworkFindings& findings, int64_t now_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(judging_);
  // This worker takes part in agreeing from now on.
  void Begin();
  // Takes over what has been agreed on.
  void TakeVersions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int rank_;
  const std::vector<int> placement_;
  const bool measured_;
  const Seams seams_;
  ValueAgreement& agreement_;
  const Clock& clock_;

  std::atomic<uint64_t> newest_number_;

  Mutex mutex_;
  // Calls of the world group: the last one, when that was, and the bytes of all.
  int64_t call_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t called_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t moved_ ABSL_GUARDED_BY(mutex_) = 0;
  NetworkVersion newest_ ABSL_GUARDED_BY(mutex_);
  std::optional<Topology> newest_topology_ ABSL_GUARDED_BY(mutex_);
  const uint64_t first_version_;
  uint64_t planned_version_ ABSL_GUARDED_BY(mutex_);
  std::deque<Switch> switches_ ABSL_GUARDED_BY(mutex_);
  std::deque<Coming> coming_ ABSL_GUARDED_BY(mutex_);
  // By worker: the host's clock less its own, as the last messages told, which took some time themselves.
  std::map<int, std::deque<int64_t>> clocks_ ABSL_GUARDED_BY(mutex_);
  bool judges_ ABSL_GUARDED_BY(mutex_) = false;                                    // beside
  std::optional<std::pair<Topology, std::string>> known_ ABSL_GUARDED_BY(mutex_);  // and why

  // Of the host; held by the thread beside.
  Mutex judging_;
  std::unique_ptr<NetworkDetector> detector_ ABSL_GUARDED_BY(judging_);
  Topology planned_ ABSL_GUARDED_BY(judging_);  // what programs are planned by, or soon will
  NetworkTrial trial_ ABSL_GUARDED_BY(judging_);
  uint64_t judged_by_ ABSL_GUARDED_BY(judging_) = 0;   // the version that the detector knows of
  uint64_t going_back_ ABSL_GUARDED_BY(judging_) = 0;  // the version that takes plans back
  int64_t told_ns_ ABSL_GUARDED_BY(judging_) = INT64_MIN;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_NETWORK_WATCH_H_
