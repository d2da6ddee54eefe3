#include "worker/side_thread.h"

#include <utility>

namespace syncopate::worker {

SideThread::~SideThread() {
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    thread.swap(thread_);
    wanted_.SignalAll();
  }
  if (thread.joinable()) thread.join();
}

void SideThread::Do(std::function<void()> work) {
  MutexLock lock(&mutex_);
  if (stopping_) return;
  work_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wanted_.Signal();
}

void SideThread::Run() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    if (work_.empty()) {
      wanted_.Wait(&mutex_);
      continue;
    }
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    mutex_.Unlock();
    work();
    work = nullptr;  // what it holds may need time, too
    mutex_.Lock();
  }
}

}  // namespace syncopate::worker
