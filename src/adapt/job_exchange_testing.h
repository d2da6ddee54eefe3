// The workers of a job in one process, on one thread or on several, that exchange texts over a board,
// for tests.
#ifndef SYNCOPATE_ADAPT_JOB_EXCHANGE_TESTING_H_
#define SYNCOPATE_ADAPT_JOB_EXCHANGE_TESTING_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapt/job_exchange.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace syncopate::adapt {

// What the workers have put together, by the number of the round.
class Board {
 public:
  // `patience`: how long a worker waits for the others. A test on one thread must not wait at all.
  explicit Board(int workers, std::chrono::seconds patience = std::chrono::seconds(0))
      : workers_(workers), patience_(patience) {}

  int workers() const { return workers_; }
  // This round and later ones fail.
  void Break(size_t round) {
    MutexLock lock(&mutex_);
    broken_ = round;
  }
  // The worker starts no more rounds.
  void Leave(int rank) {
    MutexLock lock(&mutex_);
    left_.insert(rank);
    changed_.SignalAll();
  }
  // How many rounds somebody has started.
  size_t rounds() {
    MutexLock lock(&mutex_);
    return rounds_.size();
  }

  void Put(size_t round, int rank, JobExchange::Contribution mine) {
    MutexLock lock(&mutex_);
    if (rounds_.size() <= round) rounds_.resize(round + 1);
    rounds_[round][rank] = std::move(mine);
    changed_.SignalAll();
  }
  bool Done(size_t round) {
    MutexLock lock(&mutex_);
    return DoneNow(round);
  }
  bool WaitUntil(size_t round, int64_t deadline_ns) {
    MutexLock lock(&mutex_);
    while (!DoneNow(round)) {
      const int64_t left_ns = deadline_ns - MonotonicClock().NowNs();
      if (left_ns <= 0) return false;
      ++waiting_;
      changed_.SignalAll();
      changed_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
      --waiting_;
    }
    return true;
  }
  // Returns when a worker is in WaitUntil(); false if none comes for a minute.
  bool AwaitWaiter() {
    MutexLock lock(&mutex_);
    for (int i = 0; waiting_ == 0 && i < 60; ++i) {
      changed_.WaitFor(&mutex_, std::chrono::seconds(1));
    }
    return waiting_ > 0;
  }
  // What `rank` gets.
  absl::StatusOr<std::vector<std::string>> Wait(size_t round, int rank) {
    MutexLock lock(&mutex_);
    const auto until = std::chrono::steady_clock::now() + patience_;
    while (!DoneNow(round)) {
      const auto left = until - std::chrono::steady_clock::now();
      if (left.count() <= 0) return absl::DeadlineExceededError("would wait for ever");
      changed_.WaitFor(&mutex_, left);
    }
    if (broken_ && round >= *broken_) return absl::UnavailableError("broken");
    if (!Complete(round)) return absl::UnavailableError("a worker has ended");
    std::vector<std::string> texts(static_cast<size_t>(workers_));
    const JobExchange::Contribution& mine = rounds_[round].at(rank);
    for (const auto& [other, theirs] : rounds_[round]) {
      if (theirs.what != mine.what || theirs.root != mine.root) {
        return absl::FailedPreconditionError(absl::StrCat(mine.what, " and ", theirs.what));
      }
      if (mine.root < 0 || mine.root == rank || mine.root == other || rank == other) {
        texts[static_cast<size_t>(other)] = theirs.text;
      }
    }
    return texts;
  }

 private:
  bool Complete(size_t round) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return rounds_[round].size() == static_cast<size_t>(workers_);
  }
  bool DoneNow(size_t round) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (Complete(round) || (broken_ && round >= *broken_)) return true;
    for (const int rank : left_) {
      if (!rounds_[round].contains(rank)) return true;
    }
    return false;
  }

  const int workers_;
  const std::chrono::seconds patience_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::map<int, JobExchange::Contribution>> rounds_ ABSL_GUARDED_BY(mutex_);
  std::set<int> left_ ABSL_GUARDED_BY(mutex_);
  std::optional<size_t> broken_ ABSL_GUARDED_BY(mutex_);
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // workers in WaitUntil()
};

// One worker's side of a board.
class BoardExchange final : public JobExchange {
 public:
  BoardExchange(Board& board, int rank) : board_(board), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return board_.workers(); }
  std::unique_ptr<Round> Start(Contribution mine) override {
    board_.Put(next_, rank_, std::move(mine));
    return std::make_unique<BoardRound>(board_, next_++, rank_);
  }
  void Stop(absl::string_view /*why*/) override { board_.Leave(rank_); }

 private:
  class BoardRound final : public Round {
   public:
    BoardRound(Board& board, size_t round, int rank) : board_(board), round_(round), rank_(rank) {}
    bool Done() override { return board_.Done(round_); }
    bool WaitUntil(int64_t deadline_ns) override { return board_.WaitUntil(round_, deadline_ns); }
    absl::StatusOr<std::vector<std::string>> Wait() override { return board_.Wait(round_, rank_); }

   private:
    Board& board_;
    const size_t round_;
    const int rank_;
  };

  Board& board_;
  const int rank_;
  size_t next_ = 0;
};

// Runs `body` once for each rank, all at the same time. A body that ends early makes the rounds of
// the others fail.
inline void RunRanks(int size, const std::function<void(JobExchange&)>& body) {
  Board board(size, std::chrono::seconds(60));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&board, &body, rank] {
      BoardExchange exchange(board, rank);
      body(exchange);
      board.Leave(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_JOB_EXCHANGE_TESTING_H_
