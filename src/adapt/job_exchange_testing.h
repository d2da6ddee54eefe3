// The workers of a job as threads of one process that agree by a barrier, for tests.
#ifndef SYNCOPATE_ADAPT_JOB_EXCHANGE_TESTING_H_
#define SYNCOPATE_ADAPT_JOB_EXCHANGE_TESTING_H_

#include <algorithm>
#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "adapt/job_exchange.h"

namespace syncopate::adapt {

// Where the threads leave what they bring. The barrier orders writing before reading.
struct ThreadMeeting {
  explicit ThreadMeeting(int size)
      : barrier(size), numbers(static_cast<size_t>(size)), texts(static_cast<size_t>(size)) {}
  std::barrier<> barrier;
  std::vector<std::vector<double>> numbers;
  std::vector<std::string> texts;
};

class ThreadExchange final : public JobExchange {
 public:
  ThreadExchange(ThreadMeeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.texts.size()); }
  absl::Status Largest(std::vector<double>& numbers) override {
    return Combine(numbers, [](double a, double b) { return std::max(a, b); });
  }
  absl::Status Smallest(std::vector<double>& numbers) override {
    return Combine(numbers, [](double a, double b) { return std::min(a, b); });
  }
  absl::StatusOr<std::string> FromFirst(const std::string& text) override {
    return Texts(text).front();
  }
  absl::Status CompareDigests(const std::string& what, const std::string& digest) override {
    const std::vector<std::string> all = Texts(digest);
    for (const std::string& other : all) {
      if (other != all.front()) return absl::InternalError(what + " differs");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Combine(std::vector<double>& numbers,
                       const std::function<double(double, double)>& combine) {
    meeting_.numbers[static_cast<size_t>(rank_)] = numbers;
    meeting_.barrier.arrive_and_wait();
    for (const std::vector<double>& other : meeting_.numbers) {
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = combine(numbers[i], other[i]);
    }
    meeting_.barrier.arrive_and_wait();
    return absl::OkStatus();
  }
  std::vector<std::string> Texts(const std::string& text) {
    meeting_.texts[static_cast<size_t>(rank_)] = text;
    meeting_.barrier.arrive_and_wait();
    std::vector<std::string> all = meeting_.texts;
    meeting_.barrier.arrive_and_wait();
    return all;
  }

  ThreadMeeting& meeting_;
  const int rank_;
};

// One of the threads.
class TestRank {
 public:
  TestRank(ThreadMeeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const { return rank_; }
  std::unique_ptr<JobExchange> Exchange() const {
    return std::make_unique<ThreadExchange>(meeting_, rank_);
  }

 private:
  ThreadMeeting& meeting_;
  const int rank_;
};

// Runs `body` once for each rank, all at the same time. A body that ends early lets the others go
// on without it.
inline void RunRanks(int size, const std::function<void(const TestRank&)>& body) {
  ThreadMeeting meeting(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&meeting, &body, rank] {
      body(TestRank(meeting, rank));
      meeting.barrier.arrive_and_drop();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_JOB_EXCHANGE_TESTING_H_
