// What is going to happen to workers, by time: a binary heap of small entries. Those of one time come in
// seeded order, because a strategy must not count on the order of events that real workers would see at
// nearly the same moment.
#ifndef SYNCOPATE_SIM_EVENT_QUEUE_H_
#define SYNCOPATE_SIM_EVENT_QUEUE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"

namespace syncopate::sim {

class EventQueue {
 public:
  // Nearly all entries are of the first kinds, which need no memory of their own.
  enum class Kind : uint8_t {
    kForward,   // of tensor `value` begins
    kGradient,  // of tensor `value` is ready
    kDone,      // news number `value` of a transfer
    kCall,      // function number `value`
  };
  struct Entry {
    double time = 0;
    uint64_t order = 0;  // among those of the same time
    int rank = 0;        // whom it concerns; nothing happens if the worker has ended; -1: nobody
    Kind kind = Kind::kCall;
    int value = 0;

    bool operator<(const Entry& other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };

  // `random` must outlive this.
  explicit EventQueue(Random& random) : random_(random) {}

  void Add(double time, int rank, Kind kind, int value) {
    entries_.push(
        {.time = time, .order = random_.Next(), .rank = rank, .kind = kind, .value = value});
  }
  void Call(double time, int rank, std::function<void()> action) {
    if (free_.empty()) {
      free_.push_back(static_cast<int>(calls_.size()));
      calls_.emplace_back();
    }
    const int number = free_.back();
    free_.pop_back();
    calls_[static_cast<size_t>(number)] = std::move(action);
    Add(time, rank, Kind::kCall, number);
  }

  size_t size() const { return entries_.size(); }
  // The time of the next entry; infinity if there is none.
  double NextTime() const {
    return entries_.empty() ? std::numeric_limits<double>::infinity() : entries_.top().time;
  }
  Entry Take() {
    const Entry entry = entries_.top();
    entries_.pop();
    return entry;
  }
  // The function of a kCall entry, once.
  std::function<void()> TakeCall(int number) {
    free_.push_back(number);
    return std::exchange(calls_[static_cast<size_t>(number)], nullptr);
  }

 private:
  Random& random_;
  std::priority_queue<Entry> entries_;
  std::vector<std::function<void()>> calls_;
  std::vector<int> free_;
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_EVENT_QUEUE_H_
