#include "sync/long_work.h"

#include <utility>

namespace syncopate::sync {

void LongWork::Add(Piece piece) {
  MutexLock lock(&mutex_);
  jobs_.push_back(std::make_shared<Piece>(std::move(piece)));
  // With more jobs a turn is under way or has been asked for.
  if (jobs_.size() == 1) tasks_.Do([this] { TakeTurn(); });
}

void LongWork::TakeTurn() {
  const int64_t end_ns = clock_.NowNs() + kTurnNs;
  std::shared_ptr<Piece> job;
  {
    MutexLock lock(&mutex_);
    job = jobs_.front();
  }
  do {
    if (!(*job)()) continue;
    MutexLock lock(&mutex_);
    jobs_.pop_front();
    if (jobs_.empty()) return;
    job = jobs_.front();
  } while (clock_.NowNs() < end_ns);
  tasks_.Do([this] { TakeTurn(); });
}

}  // namespace syncopate::sync
