// Workers of one process that agree on values at once, for tests.
#ifndef SYNCOPATE_ADAPT_VALUE_AGREEMENT_TESTING_H_
#define SYNCOPATE_ADAPT_VALUE_AGREEMENT_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "adapt/value_agreement.h"
#include "base/mutex.h"

namespace syncopate::adapt {

// What a job has agreed on, and how far its workers are. Thread-safe.
class AgreedValues {
 public:
  // As in a live job, a value counts from a position on that nobody can have reached meanwhile.
  AgreedValues(int workers, int64_t further)
      : further_(further),
        positions_(static_cast<size_t>(workers)),
        untaken_(static_cast<size_t>(workers)) {}

  void Reach(int rank, int64_t position) {
    MutexLock lock(&mutex_);
    int64_t& reached = positions_[static_cast<size_t>(rank)];
    reached = std::max(reached, position);
  }
  void Propose(uint64_t version, const std::string& bytes) {
    MutexLock lock(&mutex_);
    const int64_t from = *std::max_element(positions_.begin(), positions_.end()) + further_ + 1;
    for (auto& values : untaken_) {
      values.push_back({.version = version, .bytes = bytes, .from = from});
    }
    ++proposals_;
  }
  std::vector<ValueAgreement::Value> Take(int rank) {
    MutexLock lock(&mutex_);
    return std::exchange(untaken_[static_cast<size_t>(rank)], {});
  }
  int proposals() {
    MutexLock lock(&mutex_);
    return proposals_;
  }

 private:
  const int64_t further_;
  Mutex mutex_;
  std::vector<int64_t> positions_ ABSL_GUARDED_BY(mutex_);                           // by rank
  std::vector<std::vector<ValueAgreement::Value>> untaken_ ABSL_GUARDED_BY(mutex_);  // by rank
  int proposals_ ABSL_GUARDED_BY(mutex_) = 0;
};

// One worker's side.
class InstantAgreement final : public ValueAgreement {
 public:
  InstantAgreement(AgreedValues& agreed, int rank) : agreed_(agreed), rank_(rank) {}

  void Begin(int64_t position) override { agreed_.Reach(rank_, position); }
  void Reach(int64_t position) { agreed_.Reach(rank_, position); }
  void Propose(uint64_t version, std::string bytes) override { agreed_.Propose(version, bytes); }
  std::vector<Value> TakeNew() override { return agreed_.Take(rank_); }

 private:
  AgreedValues& agreed_;
  const int rank_;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_VALUE_AGREEMENT_TESTING_H_
