#include "base/clock.h"

#include <ctime>

namespace syncopate {
namespace {
class RealClock final : public Clock {
 public:
  int64_t NowNs() const override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
};
}  // namespace

const Clock& MonotonicClock() {
  static const RealClock clock;
  return clock;
}

}  // namespace syncopate
