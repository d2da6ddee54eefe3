#include "sync/transfer_inbox.h"

#include <chrono>
#include <utility>

namespace syncopate::sync {

void TransferInbox::Add(EndedCall ended) {
  MutexLock lock(&mutex_);
  items_.push_back(std::move(ended));
  if (waiting_) {
    news_.Signal();
  } else {
    Tell();
  }
}

void TransferInbox::Add(strategy::Event event) {
  MutexLock lock(&mutex_);
  items_.push_back(std::move(event));
  Tell();
}

void TransferInbox::Add(absl::Status failure) {
  MutexLock lock(&mutex_);
  items_.emplace_back(std::move(failure));
  Tell();
}

void TransferInbox::Tell() {
  if (!std::exchange(told_, true)) tell_();
}

std::vector<TransferInbox::Item> TransferInbox::Take() {
  MutexLock lock(&mutex_);
  told_ = false;
  return std::exchange(items_, {});
}

void TransferInbox::Ring() {
  MutexLock lock(&mutex_);
  rung_ = true;
  news_.Signal();
}

bool TransferInbox::Wait(int64_t deadline_ns) {
  MutexLock lock(&mutex_);
  waiting_ = true;
  // Events wake the control thread, but whoever waits takes what is there.
  while (items_.empty() && !rung_) {
    const int64_t left_ns = deadline_ns - clock_.NowNs();
    if (left_ns <= 0) break;
    news_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
  }
  waiting_ = false;
  return std::exchange(rung_, false) || !items_.empty();
}

}  // namespace syncopate::sync
