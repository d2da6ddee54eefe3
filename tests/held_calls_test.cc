// Calls between hosts that would have to wait for other workers, from a thread that must not wait: they
// are refused or held, and start when they can, in their order.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "sync/call_queue.h"
#include "tests/host_workers.h"
#include "worker/held_planner_testing.h"
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

// ---- calls that wait for a plan

using worker::HeldPlanner;

// It is held at worker 0 alone.
HeldPlanner& Planner() {
  static Shared<HeldPlanner>* const planner = [] {
    auto* made = new Shared<HeldPlanner>;
    EXPECT_TRUE((*made)->Register().ok());
    return made;
  }();
  return **planner;
}

HeldPlanner& HoldAtWorker0() {
  HeldPlanner& planner = Planner();
  planner.entered = 0;
  planner.gave_up = false;
  planner.holder = 0;
  planner.held = true;
  return planner;
}

Call HeldCall(std::vector<float>& data) {
  return {.data = Array::Of(data.data(), data.size()),
          .op = ReduceOp::kSum,
          .algorithm = HeldPlanner::kName};
}

absl::Status RunPromptly(Group& group, const Call& call) {
  for (;;) {
    Handle handle = [&] {
      const worker::PromptStart prompt;
      return group.Start(call);
    }();
    const absl::Status status = handle.Wait();
    if (!worker::PromptStart::IsWouldWait(status)) return status;
    std::this_thread::yield();
  }
}

// To plan by an algorithm that is named may take long, so it is done beside.
TEST(HeldPlanTest, TheFirstCallOfANamedAlgorithmIsRefusedUntilItIsPlanned) {
  HeldPlanner& planner = HoldAtWorker0();
  const auto workers = HostWorkers::OnLoopback(2, 1, [&](Worker& worker) {
    HeldPlanner::me = worker.rank();
    std::vector<float> data(HeldPlanner::kElements, 1);
    if (worker.rank() == 0) {
      const worker::PromptStart prompt;
      Handle refused = worker.world().Start(HeldCall(data));
      if (!refused.Done() || !worker::PromptStart::IsWouldWait(refused.Wait())) return 40;
      planner.AwaitEntry();
      refused = worker.world().Start(HeldCall(data));
      if (!refused.Done() || !worker::PromptStart::IsWouldWait(refused.Wait())) return 41;
      planner.held = false;
    }
    if (!RunPromptly(worker.world(), HeldCall(data)).ok()) return 42;
    return data == std::vector<float>(HeldPlanner::kElements, 2) ? 0 : 43;
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
  EXPECT_FALSE(planner.gave_up);
}

struct KilledCase {
  int hosts = 0, slots = 0;
  bool prompt = false;  // worker 0 must not wait, and tries again
};

class KilledMeanwhileTest : public ::testing::TestWithParam<KilledCase> {};

// A worker that plans by a named algorithm when another one is killed did not notice it before it had planned.
TEST_P(KilledMeanwhileTest, AllSurvivorsNameItAtOnce) {
  HeldPlanner& planner = HoldAtWorker0();
  Shared<Report> report;
  const int size = GetParam().hosts * GetParam().slots;
  const auto body = [&](Worker& worker) {
    HeldPlanner::me = worker.rank();
    if (!worker.world().Barrier().ok()) return 80;
    if (worker.rank() == size - 1) {
      planner.AwaitEntry();
      while (report->later < size - 2) std::this_thread::yield();
      std::raise(SIGKILL);
    }
    std::vector<float> data(HeldPlanner::kElements, 1);
    const std::vector<float> before = data;
    absl::Status status;
    if (worker.rank() == 0 && GetParam().prompt) {
      status = RunPromptly(worker.world(), HeldCall(data));
    } else {
      if (worker.rank() != 0) ++report->later;
      status = worker.world().Run(HeldCall(data));
    }
    if (worker.rank() == 0) {
      if (planner.gave_up) return 81;
      planner.held = false;
    }
    if (!absl::IsUnavailable(status) || GetBlast(status) != BlastRadius::kGroup) {
      std::fprintf(stderr, "rank %d: %s\n", worker.rank(), status.ToString().c_str());
      return 82;
    }
    if (GetSuspect(status) != size - 1) return 83;
    if (data != before) return 84;
    std::vector<int> survivors;
    for (int rank = 0; rank < size - 1; ++rank) survivors.push_back(rank);
    absl::StatusOr<Group> left = worker.NewGroup(survivors);
    return left.ok() && left->Barrier().ok() ? 0 : 85;
  };
  const auto workers = HostWorkers::OnLoopback(GetParam().hosts, GetParam().slots, body);
  const std::vector<int> codes = workers->Join();
  for (int rank = 0; rank < size - 1; ++rank)
    EXPECT_EQ(codes[static_cast<size_t>(rank)], 0) << rank;
  EXPECT_EQ(codes.back(), SIGKILL);
  EXPECT_GT(planner.entered, 0);
}

INSTANTIATE_TEST_SUITE_P(Jobs, KilledMeanwhileTest,
                         ::testing::Values(KilledCase{3, 1, false}, KilledCase{3, 1, true},
                                           KilledCase{2, 2, false}, KilledCase{1, 3, false}),
                         [](const auto& each) {
                           return std::to_string(each.param.hosts) + "Hosts" +
                                  std::to_string(each.param.slots) + "Slots" +
                                  (each.param.prompt ? "Prompt" : "");
                         });

// The others are in the operation meanwhile, and the worker that was late joins them when it makes the call again.
TEST(HeldPlanTest, ACallThatWasLateHasNotHappened) {
  HeldPlanner& planner = HoldAtWorker0();
  const auto workers = HostWorkers::OnLoopback(2, 1, [&](Worker& worker) {
    HeldPlanner::me = worker.rank();
    std::vector<float> data(HeldPlanner::kElements, 1);
    const std::vector<float> before = data;
    const Call call = HeldCall(data);
    if (worker.rank() == 0) {
      Call hasty = call;
      hasty.timeout = absl::Milliseconds(300);
      const absl::Status late = worker.world().Run(hasty);
      if (planner.gave_up) return 90;
      planner.held = false;
      if (!absl::IsDeadlineExceeded(late) || GetBlast(late) != BlastRadius::kOperation) return 91;
      if (data != before) return 92;
    }
    const absl::Status status = worker.world().Run(call);
    if (!status.ok()) {
      std::fprintf(stderr, "rank %d: %s\n", worker.rank(), status.ToString().c_str());
      return 93;
    }
    if (data != std::vector<float>(HeldPlanner::kElements, 2)) return 94;
    for (size_t i = 0; i < kCalls; ++i) {
      float value = 1;
      if (!worker.world().Run(SumOf(value)).ok() || value != 2) return 95;
    }
    return 0;
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
  EXPECT_GT(planner.entered, 0);
}

}  // namespace
}  // namespace syncopate::sync
