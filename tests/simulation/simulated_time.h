// Virtual time for a job that runs in one thread: what happens is a queue of events, and the clock
// jumps from one to the next.
#ifndef SYNCOPATE_TESTS_SIMULATION_SIMULATED_TIME_H_
#define SYNCOPATE_TESTS_SIMULATION_SIMULATED_TIME_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace syncopate::simulation {

inline constexpr int64_t kUs = 1'000;
inline constexpr int64_t kMs = 1'000'000;
inline constexpr int64_t kSecond = 1'000'000'000;

// Not thread-safe.
class SimulatedTime {
 public:
  int64_t now_ns() const { return now_ns_; }
  uint64_t events() const { return events_run_; }

  void At(int64_t at_ns, std::function<void()> what) {
    queue_.push({std::max(at_ns, now_ns_), ++events_made_, std::move(what)});
  }
  void After(int64_t delay_ns, std::function<void()> what) {
    At(now_ns_ + delay_ns, std::move(what));
  }
  // Runs the next event; of two at the same time, the one that was made first.
  void Step() {
    std::function<void()> what = std::move(const_cast<Event&>(queue_.top()).what);
    now_ns_ = queue_.top().at_ns;
    queue_.pop();
    ++events_run_;
    what();
  }
  bool empty() const { return queue_.empty(); }

 private:
  struct Event {
    int64_t at_ns = 0;
    uint64_t number = 0;
    std::function<void()> what;
    friend bool operator<(const Event& a, const Event& b) {
      return std::pair(a.at_ns, a.number) > std::pair(b.at_ns, b.number);
    }
  };

  int64_t now_ns_ = 0;
  uint64_t events_made_ = 0;
  uint64_t events_run_ = 0;
  std::priority_queue<Event> queue_;
};

// The clock of one host: it does not agree with those of the others.
class HostClock final : public Clock {
 public:
  HostClock(const SimulatedTime& time, int64_t ahead_ns) : time_(time), ahead_ns_(ahead_ns) {}
  int64_t NowNs() const override {
    if (rushing_) rushed_ns_ += 10 * kSecond;
    return time_.now_ns() + ahead_ns_ + rushed_ns_;
  }
  int64_t ahead_ns() const { return ahead_ns_; }
  // From now on every look at the clock is ten seconds later: what waits by itself, as destructors do,
  // is at its end before it does anything. A worker that died must not go on working in memory that
  // its peers have given back since.
  void Rush() { rushing_ = true; }

 private:
  const SimulatedTime& time_;
  const int64_t ahead_ns_;
  bool rushing_ = false;
  mutable int64_t rushed_ns_ = 0;
};

}  // namespace syncopate::simulation

#endif  // SYNCOPATE_TESTS_SIMULATION_SIMULATED_TIME_H_
