// How long workers compute in experiments on few cores. A worker computes really, or plays it, and then
// waits until its iteration has taken as long as it would on a device of its own:
//
//     t = (1 + k) * max(computed, delay + samples / rate)
//
// `--pace DELAY,RATE` gives the delay in front of every iteration and the samples a second, `--slow RANKS:K`
// the factor k: as much as k iterations without communication is slept in addition. Time in which the
// worker could not compute, since it waited for others, does not count as computed.
#ifndef SYNCOPATE_MODEL_COMPUTE_PACE_H_
#define SYNCOPATE_MODEL_COMPUTE_PACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncopate {

// As on the command line. Each text is an entry or a list of entries divided by semicolons. Entries of `pace`
// are DELAY,RATE for all workers that no other entry is for, or RANKS:DELAY,RATE; entries of `slow` are RANKS:K.
// RANKS are one or several, as 3 or 0-3,6; each has the device to itself.
struct PaceOptions {
  std::vector<std::string> pace = {};
  std::vector<std::string> slow = {};

  friend bool operator==(const PaceOptions&, const PaceOptions&) = default;
};

// The pace of one worker.
class ComputePace {
 public:
  ComputePace() = default;  // as quick as it computes

  // InvalidArgument names the option and the entry. `size`: of the job; ranks must be below it.
  static absl::StatusOr<ComputePace> Make(const PaceOptions& options, int rank, int size);

  // Whether an iteration may take longer than computing it.
  bool waits() const { return rate_ > 0 || slow_ > 0; }

  // How long an iteration of `samples` that was computed in `computed_seconds` takes in all.
  double Seconds(double computed_seconds, double samples) const;

  double delay_seconds() const { return delay_seconds_; }
  double rate() const { return rate_; }  // samples a second; 0: as quick as it computes
  double slow() const { return slow_; }

 private:
  double delay_seconds_ = 0;
  double rate_ = 0;  // samples a second; 0: as quick as it computes
  double slow_ = 0;
};

// What of one iteration a worker has computed so far; for the thread that computes.
class PacedIteration {
 public:
  explicit PacedIteration(const ComputePace& pace) : pace_(pace) {}

  void Begin(int64_t now_ns) {
    begin_ns_ = now_ns;
    held_ns_ = 0;
  }
  // The worker could not compute for so long.
  void Held(int64_t ns) { held_ns_ += ns; }
  // When the iteration, all of which is computed now, is over.
  int64_t EndNs(int64_t now_ns, double samples) const;

  bool waits() const { return pace_.waits(); }

 private:
  ComputePace pace_;
  int64_t begin_ns_ = 0;
  int64_t held_ns_ = 0;
};

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_COMPUTE_PACE_H_
