// Calls between hosts that would have to wait for other workers, from a thread that must not wait: they
// are refused or held, and start when they can, in their order.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "sync/call_queue.h"
#include "tests/host_workers.h"
#include "worker/prompt_start.h"

namespace syncopate::sync {
namespace {

constexpr size_t kCalls = 12;
// The third call votes beside whether all have its plan, and the fourth needs the outcome: it cannot
// start before the others have come to the third.
constexpr size_t kWaits = 3;

struct Report {
  std::atomic<bool> refused{false};
  std::atomic<bool> go_on{false};
  std::atomic<int> later{0};
};

Call SumOf(float& value) { return {.data = Array::Of(&value, 1), .op = ReduceOp::kSum}; }

// The other one, which does not come before it may.
int Come(Worker& worker, Report& report, size_t calls) {
  while (!report.go_on) std::this_thread::yield();
  for (size_t i = 0; i < calls; ++i) {
    float value = 1;
    if (!worker.world().Run(SumOf(value)).ok() || value != 2) return 10;
  }
  return 0;
}

TEST(HeldCallsTest, ACallThatWouldWaitIsRefusedAndHasNotHappened) {
  Shared<Report> report;
  const auto workers = HostWorkers::OnLoopback(2, 1, [&](Worker& worker) {
    if (worker.rank() == 1) return Come(worker, *report, kCalls);
    std::vector<float> values(kCalls, 1);
    std::vector<Handle> handles;
    for (size_t i = 0; i < kCalls; ++i) {
      for (;;) {
        const worker::PromptStart prompt;
        Handle handle = worker.world().Start(SumOf(values[i]));
        if (handle.Done() && worker::PromptStart::IsWouldWait(handle.Wait())) {
          if (i < kWaits) return 20;
          report->refused = true;
          report->go_on = true;
          std::this_thread::yield();
          continue;
        }
        handles.push_back(std::move(handle));
        break;
      }
    }
    for (size_t i = 0; i < kCalls; ++i) {
      if (!handles[i].Wait().ok() || values[i] != 2) return 21;
    }
    return 0;
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
  EXPECT_TRUE(report->refused);
}

TEST(HeldCallsTest, HeldCallsStartInTheirOrderWhenTheyCan) {
  Shared<Report> report;
  const auto workers = HostWorkers::OnLoopback(2, 1, [&](Worker& worker) {
    if (worker.rank() == 1) return Come(worker, *report, kCalls);
    std::vector<float> values(kCalls, 1);
    std::atomic<size_t> ended{0}, wrong{0};
    CallQueue queue([&] { ++report->later; }, absl::Minutes(1));
    std::vector<std::shared_ptr<CallQueue::Started>> started;
    for (size_t i = 0; i < kCalls; ++i) {
      started.push_back(queue.Start(worker.world(), SumOf(values[i]), [&](const absl::Status& end) {
        ++ended;
        if (!end.ok()) ++wrong;
      }));
    }
    if (report->later != 1 || ended != 0) return 30;  // held once, and nobody waited
    report->go_on = true;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (int tried = 1; ended < kCalls; std::this_thread::yield()) {
      if (std::chrono::steady_clock::now() > deadline) return 31;
      if (report->later < tried) continue;  // none is held
      queue.StartHeld();
      ++tried;
    }
    for (const auto& call : started) call->Wait();
    for (const float value : values) wrong += value == 2 ? 0 : 1;
    return wrong == 0 ? 0 : 32;
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
}

// The calls of both groups were held behind each other: worker 0 held the fourth in the first group until worker 1
// came to the third there, which was behind a call in the second group that worker 1 held for worker 0.
TEST(HeldCallsTest, GroupsThatWorkersUseInAnotherOrderDoNotHoldUpEachOther) {
  const auto workers = HostWorkers::OnLoopback(2, 1, [](Worker& worker) {
    std::vector<Group> groups = {worker.world()};
    const absl::StatusOr<Group> other = worker.NewGroup({0, 1});
    if (!other.ok()) return 50;
    groups.push_back(*other);
    std::vector<float> values(2 * kCalls, 1);
    std::atomic<size_t> ended{0}, wrong{0};
    int later = 0;
    CallQueue queue([&] { ++later; }, absl::Minutes(1));
    std::vector<std::shared_ptr<CallQueue::Started>> started;
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t group = (i / kCalls + static_cast<size_t>(worker.rank())) % 2;
      started.push_back(queue.Start(groups[group], SumOf(values[i]), [&](const absl::Status& end) {
        ++ended;
        if (!end.ok()) ++wrong;
      }));
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (int tried = 0; ended < values.size(); std::this_thread::yield()) {
      if (std::chrono::steady_clock::now() > deadline) return 51;
      if (later == tried) continue;  // none is held
      tried = later;
      queue.StartHeld();
    }
    for (const auto& call : started) call->Wait();
    for (const float value : values) wrong += value == 2 ? 0 : 1;
    return wrong == 0 ? 0 : 52;
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
}

// Nobody waits for a call that is held, so nothing but its own time ends it.
TEST(HeldCallsTest, ACallThatIsHeldForTooLongFailsWithThoseBehindIt) {
  Shared<Report> report;
  const auto workers = HostWorkers::OnLoopback(2, 1, [&](Worker& worker) {
    if (worker.rank() == 1) {  // is there, but does not come
      while (!report->go_on) std::this_thread::yield();
      return 0;
    }
    ManualClock clock;
    std::vector<float> values(kCalls, 1);
    std::atomic<size_t> ended{0}, late{0};
    CallQueue queue([] {}, absl::Seconds(10), clock);
    for (size_t i = 0; i < kCalls; ++i) {
      Call call = SumOf(values[i]);
      call.timeout = absl::Seconds(1);
      queue.Start(worker.world(), call, [&](const absl::Status& end) {
        ++ended;
        if (i > kWaits - 1 && absl::IsDeadlineExceeded(end) &&
            GetBlast(end) == BlastRadius::kGroup) {
          ++late;
        }
      });
    }
    clock.AdvanceNs(9'999'000'000);
    queue.StartHeld();
    const size_t early = late;
    clock.AdvanceNs(2'000'000);
    queue.StartHeld();
    report->go_on = true;
    if (early != 0) return 60;
    return late == kCalls - kWaits ? 0 : 61;
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
}

// The vote had the timeout of the call beside which it began, and the call its own after that.
TEST(HeldCallsTest, ACallThatWaitsForAVoteDoesSoUntilItsOwnDeadline) {
  Shared<Report> report;
  const auto workers = HostWorkers::OnLoopback(2, 1, [&](Worker& worker) {
    if (worker.rank() == 1) {
      while (!report->go_on) std::this_thread::yield();
      return 0;
    }
    std::vector<float> values(kWaits + 1, 1);
    std::vector<Handle> handles;
    for (size_t i = 0; i < kWaits; ++i) {
      Call call = SumOf(values[i]);
      call.timeout = absl::Seconds(20);
      handles.push_back(worker.world().Start(call));
    }
    Call call = SumOf(values[kWaits]);
    call.timeout = absl::Milliseconds(300);
    const int64_t begin_ns = MonotonicClock().NowNs();
    const absl::Status status = worker.world().Run(call);
    const int64_t took_ns = MonotonicClock().NowNs() - begin_ns;
    report->go_on = true;
    if (status.ok()) return 70;
    if (took_ns < 300'000'000) return 71;
    return took_ns < 10'000'000'000 ? 0 : 72;
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
}

// To plan by an algorithm that is named may take long, so it is done beside.
TEST(HeldCallsTest, TheFirstCallOfANamedAlgorithmIsHeldUntilItIsPlanned) {
  Shared<Report> report;
  report->go_on = true;
  ASSERT_EQ(setenv("SYNCOPATE_ALGORITHM", "allreduce:double-tree", 1), 0);
  const auto workers = HostWorkers::OnLoopback(2, 1, [&](Worker& worker) {
    if (worker.rank() == 1) return Come(worker, *report, 1);
    float value = 1;
    for (;;) {
      const worker::PromptStart prompt;
      Handle handle = worker.world().Start(SumOf(value));
      if (!handle.Done() || !worker::PromptStart::IsWouldWait(handle.Wait())) {
        return handle.Wait().ok() && value == 2 ? 0 : 40;
      }
      report->refused = true;
      std::this_thread::yield();
    }
  });
  ASSERT_EQ(unsetenv("SYNCOPATE_ALGORITHM"), 0);
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
  EXPECT_TRUE(report->refused);
}

}  // namespace
}  // namespace syncopate::sync
