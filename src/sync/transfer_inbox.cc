#include "sync/transfer_inbox.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace syncopate::sync {
namespace {

// The longest wait for news.
constexpr int64_t kSleepNs = 100'000'000;

}  // namespace

void TransferInbox::Add(EndedCall ended) { AddItem(std::move(ended)); }
void TransferInbox::Add(strategy::Event event) { AddItem(std::move(event)); }
void TransferInbox::Add(Task task) { AddItem(std::move(task)); }

void TransferInbox::AddItem(Item item) {
  MutexLock lock(&mutex_);
  items_.push_back(std::move(item));
  wanted_.Signal();
}

void TransferInbox::WakeAt(int64_t at_ns) {
  MutexLock lock(&mutex_);
  wake_ups_.push_back(at_ns);
  wanted_.SignalAll();
}

void TransferInbox::Stop() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  wanted_.SignalAll();
}

TransferInbox::News TransferInbox::Take() {
  MutexLock lock(&mutex_);
  // Once: whoever takes has something to see to from time to time, such as losses that no transfer
  // tells of.
  if (items_.empty() && !stopping_) {
    int64_t left_ns = kSleepNs;
    for (const int64_t at_ns : wake_ups_) left_ns = std::min(left_ns, at_ns - clock_.NowNs());
    if (left_ns > 0) wanted_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
  }
  News news;
  news.items.swap(items_);
  news.times_passed =
      std::erase_if(wake_ups_, [now = clock_.NowNs()](int64_t at_ns) { return at_ns <= now; });
  // What has ended is still told after Stop(): its memory is given back by that.
  news.over = stopping_ && news.items.empty();
  return news;
}

}  // namespace syncopate::sync
