// The clock of a run, as one worker reads it: how long the run has lasted, and how much of that was no
// part of an iteration.
#ifndef SYNCOPATE_TRAIN_RUN_CLOCK_H_
#define SYNCOPATE_TRAIN_RUN_CLOCK_H_

#include <cstdint>

#include "base/clock.h"
#include "observe/recorder.h"

namespace syncopate::train {

// A moment, and how much of the time up to it was no part of an iteration.
struct Mark {
  int64_t at_ns = 0;
  int64_t outside_ns = 0;
  int64_t iteration = 0;
};

// The seconds between two marks without what was no part of an iteration.
inline double InsideSeconds(const Mark& from, const Mark& to) {
  return static_cast<double>(to.at_ns - from.at_ns - (to.outside_ns - from.outside_ns)) * 1e-9;
}

class RunClock {
 public:
  // `began_ns`: the moment of MonotonicClock() from which this part of the run counts. The recorder
  // must outlive it.
  RunClock(const observe::Recorder& recorder, int64_t began_ns)
      : recorder_(recorder), began_ns_(began_ns) {}

  // What earlier parts of a run that is resumed took.
  void SetEarlier(double seconds) { earlier_ = seconds; }
  // Since the run began, without the time between its parts.
  double Seconds() const {
    return earlier_ + static_cast<double>(MonotonicClock().NowNs() - began_ns_) * 1e-9;
  }
  int64_t began_ns() const { return began_ns_; }

  Mark Now(int64_t iteration) const {
    return {MonotonicClock().NowNs(),
            recorder_.TotalNs(SpanKind::kEvaluate) + recorder_.TotalNs(SpanKind::kCheckpoint) +
                recorder_.TotalNs(SpanKind::kMeasure),
            iteration};
  }

 private:
  const observe::Recorder& recorder_;
  const int64_t began_ns_;
  double earlier_ = 0;
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_RUN_CLOCK_H_
