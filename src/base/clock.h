// The seam for time. Nothing in Syncopate reads a clock except through a Clock that it was given.
#ifndef SYNCOPATE_BASE_CLOCK_H_
#define SYNCOPATE_BASE_CLOCK_H_

#include <cstdint>

namespace syncopate {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since an arbitrary start that all processes of one machine share; never goes back.
  virtual int64_t NowNs() const = 0;
};

// The machine's monotonic clock.
const Clock& MonotonicClock();

inline double SecondsOf(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// A clock that moves only when told to. Not thread-safe.
class ManualClock final : public Clock {
 public:
  int64_t NowNs() const override { return now_ns_; }
  void AdvanceNs(int64_t ns) { now_ns_ += ns; }

 private:
  int64_t now_ns_ = 0;
};

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_CLOCK_H_
