#include "transport/control_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "base/unique_fd.h"
#include "gtest/gtest.h"

namespace syncopate::transport {
namespace {

constexpr int64_t kFarNs = 3'600'000'000'000;

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 60'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

void Write(const UniqueFd& fd) {
  const uint64_t one = 1;
  ASSERT_EQ(write(fd.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
}
void Drain(const UniqueFd& fd) {
  uint64_t drained = 0;
  ASSERT_EQ(read(fd.get(), &drained, sizeof(drained)), static_cast<ssize_t>(sizeof(drained)));
}

TEST(ControlThreadTest, DutiesAreDoneAtOnceAndWhenTheyAreDue) {
  ControlThread thread(MonotonicClock());
  std::atomic<int> rounds{0};
  thread.Start([&] {
    ++rounds;
    return MonotonicClock().NowNs() + 1'000'000;
  });
  EXPECT_TRUE(Eventually([&] { return rounds > 5; }));
}

TEST(ControlThreadTest, EachReasonHasItsOwnEffect) {
  ControlThread thread(MonotonicClock());
  const UniqueFd duty(eventfd(0, 0)), work(eventfd(0, 0)), network(eventfd(0, 0));
  std::atomic<int> rounds{0}, works{0}, listens{0};
  thread.Add(duty.get(), ControlThread::kDuty);
  thread.SetWork([&] {
    if (works > 0 && works % 2 == 1) Drain(work);
    ++works;
  });
  thread.Start(
      [&] {
        if (rounds == 1) Drain(duty);
        ++rounds;
        return MonotonicClock().NowNs() + kFarNs;
      },
      [&]() -> uint32_t {
        ++listens;
        return 0;
      });
  ASSERT_TRUE(Eventually([&] { return rounds == 1 && works == 1; })) << "at its start";
  Write(duty);
  ASSERT_TRUE(Eventually([&] { return rounds == 2; }));
  thread.Add(work.get(), ControlThread::kWork);
  Write(work);
  ASSERT_TRUE(Eventually([&] { return works == 2; }));
  thread.Wake(ControlThread::kWork);
  ASSERT_TRUE(Eventually([&] { return works == 3; }));
  // A descriptor that is armed wakes it once, though it stays readable.
  Write(network);
  for (int i = 1; i <= 3; ++i) {
    thread.Arm(network.get(), ControlThread::kListen);
    ASSERT_TRUE(Eventually([&] { return listens == i; }));
  }
  thread.Stop();
  EXPECT_EQ(rounds, 2);
  EXPECT_EQ(works, 3);
  EXPECT_EQ(listens, 3);
}

// Nobody reads it: each ring is heard once, also one before it was added and one during the work.
TEST(ControlThreadTest, ABellIsHeardEachTimeThatItRings) {
  ControlThread thread(MonotonicClock());
  const UniqueFd bell(eventfd(0, 0));
  std::atomic<int> works{0};
  thread.SetWork([&] {
    if (++works == 3) Write(bell);
  });
  thread.Start([] { return MonotonicClock().NowNs() + kFarNs; });
  ASSERT_TRUE(Eventually([&] { return works == 1; })) << "at its start";
  Write(bell);
  thread.AddBell(bell.get(), ControlThread::kWork);
  ASSERT_TRUE(Eventually([&] { return works == 2; })) << "it had rung before";
  Write(bell);
  ASSERT_TRUE(Eventually([&] { return works == 4; })) << "it rang during the work";
  for (int i = 5; i <= 100; ++i) {
    Write(bell);
    ASSERT_TRUE(Eventually([&] { return works == i; }));
  }
  thread.Remove(bell.get());
  Write(bell);
  thread.Wake(ControlThread::kWork);
  ASSERT_TRUE(Eventually([&] { return works == 101; }));
  thread.Stop();
  EXPECT_EQ(works, 101) << "it is not heard any more";
}

TEST(ControlThreadTest, WorkIsDoneAtTheTimeThatItSays) {
  ControlThread thread(MonotonicClock());
  std::atomic<int> works{0};
  std::atomic<int64_t> began_ns{0}, again_ns{0};
  thread.SetWork([&] {
    const int64_t now_ns = MonotonicClock().NowNs();
    if (++works == 1) {
      began_ns = now_ns;
      thread.WorkAt(now_ns + 20'000'000);
    } else {
      again_ns = now_ns;
    }
  });
  thread.Start([] { return MonotonicClock().NowNs() + kFarNs; });
  ASSERT_TRUE(Eventually([&] { return works == 2; }));
  EXPECT_GE(again_ns - began_ns, 20'000'000);
  thread.Stop();
  EXPECT_EQ(works, 2) << "it is said once";
}

TEST(ControlThreadTest, WorkThatWasTakenAwayDoesNotRun) {
  ControlThread thread(MonotonicClock());
  thread.Start([] { return MonotonicClock().NowNs() + kFarNs; });
  for (int i = 0; i < 100; ++i) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    thread.SetWork([count = alive.get()] { ++*count; });
    thread.Wake(ControlThread::kWork);
    if (i % 2 == 0) {
      ASSERT_TRUE(Eventually([&] { return *alive > 0; }));
    }
    thread.SetWork(nullptr);
    alive.reset();  // the address sanitizer finds work that still runs
  }
}

}  // namespace
}  // namespace syncopate::transport
