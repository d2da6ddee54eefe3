// For tests: a planner from outside that does not come to an end before it may, so that a test decides what
// happens while a call is being planned.
#ifndef SYNCOPATE_WORKER_HELD_PLANNER_TESTING_H_
#define SYNCOPATE_WORKER_HELD_PLANNER_TESTING_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "model/program.h"
#include "plan/collective/planners.h"
#include "syncopate/planner.h"

namespace syncopate::worker {

// Once in a process; before it forks, in memory that its children share.
class HeldPlanner {
 public:
  // "held-ring" is a ring, which is held for all-reduces of kElements; sizes near that are planned as that is.
  static constexpr const char* kName = "held-ring";
  static constexpr uint64_t kElements = 12288;

  std::atomic<bool> held{true};
  std::atomic<int> entered{0};           // plans that were begun while it was held
  std::atomic<bool> gave_up{false};      // it was held for so long that whoever waits for it hangs
  std::atomic<int> holder{-1};           // the process that is held; -1: all
  static inline std::atomic<int> me{0};  // this process

  absl::Status Register() {
    return RegisterPlanner({.name = kName,
                            .collective = Collective::kAllReduce,
                            .summary = "a ring that is planned when it may be",
                            .plan = [this](const PlanRequest& wanted) { return Plan(wanted); }});
  }

  // Until somebody plans by it.
  void AwaitEntry(int plans = 1) const {
    while (entered < plans) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  absl::StatusOr<std::string> Plan(const PlanRequest& wanted) {
    if (held && wanted.elements == kElements && (holder < 0 || holder == me)) {
      ++entered;
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(40);
      while (held && !gave_up) {
        if (std::chrono::steady_clock::now() > limit) gave_up = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    plan::CollectiveRequest request;
    request.collective = wanted.collective;
    request.workers = wanted.workers;
    request.active = wanted.active;
    request.elements = wanted.elements;
    absl::StatusOr<Program> ring = plan::PlanBy("ring", request, {});
    if (!ring.ok()) return ring.status();
    return ToText(*ring);
  }
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_HELD_PLANNER_TESTING_H_
