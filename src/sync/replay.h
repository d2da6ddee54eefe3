// Plays the training of a model without computing it: every tensor's forward and backward waits as
// long as its table says, and the real bytes move by a schedule. For models and networks that this
// machine could not train.
#ifndef SYNCOPATE_SYNC_REPLAY_H_
#define SYNCOPATE_SYNC_REPLAY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/compute_pace.h"
#include "model/schedule.h"
#include "model/tensor_table.h"
#include "model/trace.h"
#include "observe/recorder.h"
#include "sync/synchronizer.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

struct ReplayOptions {
  // A tensor's next forward waits for its own transfer only, instead of for all of them.
  bool overlap_forward = false;
  absl::Duration timeout = absl::Minutes(5);
  observe::Recorder* recorder = nullptr;  // null: nothing is recorded
  std::string strategy = "bsp";           // of the registry
  ComputePace pace = {};  // of this worker; an iteration has the samples of its batch
};

// One worker's part; all workers of the job make one with the same arguments and call the same
// functions in the same order. Not thread-safe.
class Replay {
 public:
  // `worker` must outlive it.
  static absl::StatusOr<std::unique_ptr<Replay>> Make(Worker& worker, const TensorTable& table,
                                                      const Schedule& schedule,
                                                      const ReplayOptions& options);
  ~Replay();
  Replay(const Replay&) = delete;

  // From the next iteration on.
  absl::Status SetSchedule(const Schedule& schedule);

  // Plays `iterations`, or fewer if the strategy ends the job, and waits for the end of all transfers.
  // How long each took here, in seconds: from the begin of its forward to the begin of the next one's,
  // the last one's to the end of all transfers. A worker whose strategy gives it a batch of k samples
  // computes k times as long as for the first ones, which are of one sample.
  absl::StatusOr<std::vector<double>> Run(int iterations);

  int64_t iteration() const;  // the last one that was played; -1: none

 private:
  class Impl;
  explicit Replay(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// A clock that computing is played by: work takes time on it one after the other, and the thread
// sleeps until it is over. A thread that wakes up late makes up for it with the next work, so that
// many short works take no longer than they should.
class PlayedTime {
 public:
  explicit PlayedTime(int64_t now_ns) : at_ns_(now_ns) {}

  // Sleeps until work of `seconds` is over.
  void Work(double seconds);
  // The thread could not go on before now: the next work begins now.
  void Held(int64_t now_ns);
  int64_t at_ns() const { return at_ns_; }

 private:
  int64_t at_ns_;
  double rest_ns_ = 0;  // of a nanosecond
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_REPLAY_H_
