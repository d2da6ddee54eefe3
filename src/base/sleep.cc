#include "base/sleep.h"

#include <cerrno>
#include <ctime>

namespace syncopate {

// CLOCK_MONOTONIC is what MonotonicClock() reads. It takes a deadline, not a duration, so that what passes
// between reading the clock and sleeping does not add up.
void SleepUntil(int64_t at_ns) {
  const timespec at{.tv_sec = at_ns / 1'000'000'000, .tv_nsec = at_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

}  // namespace syncopate
