#include "sync/control_tasks.h"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

void WaitFor(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

TEST(ControlTasksTest, TasksRunInOrderOnTheControlThread) {
  worker::RunWorkers(1, [](Worker& worker) {
    std::vector<int> order;
    std::thread::id first, second;
    std::atomic<bool> given{false}, done{false};
    ControlTasks tasks(worker::MailboxOf(worker));
    tasks.Do([&] {
      WaitFor(given);
      order.push_back(1);
      first = std::this_thread::get_id();
      // Given from a task: behind those that were given before.
      tasks.Do([&] {
        order.push_back(3);
        done = true;
      });
    });
    tasks.Do([&] {
      order.push_back(2);
      second = std::this_thread::get_id();
    });
    given = true;
    WaitFor(done);
    EXPECT_EQ(first, second);
    EXPECT_NE(first, std::this_thread::get_id());
    tasks.Stop();
    EXPECT_THAT(order, ::testing::ElementsAre(1, 2, 3));
  });
}

// A task holds the control thread while the others are given, so they are left when it is stopped.
TEST(ControlTasksTest, WhatIsLeftRunsWhereItIsStoppedAndNothingAfterThat) {
  worker::RunWorkers(1, [](Worker& worker) {
    worker::Mailbox& mailbox = worker::MailboxOf(worker);
    std::atomic<bool> held{false}, go_on{false};
    mailbox.Do([&] {
      held = true;
      WaitFor(go_on);
    });
    WaitFor(held);
    std::vector<std::thread::id> ran;
    bool timed = false;
    {
      ControlTasks tasks(mailbox);
      tasks.Do([&] {
        ran.push_back(std::this_thread::get_id());
        tasks.Do([&] { ran.push_back(std::this_thread::get_id()); });
      });
      tasks.DoAt(0, [&] { timed = true; });
      tasks.Stop();
      tasks.Do([&] { ran.push_back({}); });
    }
    const std::thread::id own = std::this_thread::get_id();
    EXPECT_THAT(ran, ::testing::ElementsAre(own, own));
    // The control thread finds what it was told of, and does nothing.
    go_on = true;
    std::atomic<bool> after{false};
    mailbox.DoAt(1, [&] { after = true; });
    WaitFor(after);
    EXPECT_EQ(ran.size(), 2u);
    EXPECT_FALSE(timed);
  });
}

TEST(ControlTasksTest, StopWaitsForTheTaskThatRuns) {
  worker::RunWorkers(1, [](Worker& worker) {
    ControlTasks tasks(worker::MailboxOf(worker));
    std::atomic<bool> begun{false}, stopping{false};
    bool ended = false;
    tasks.Do([&] {
      begun = true;
      WaitFor(stopping);
      ended = true;
    });
    WaitFor(begun);
    stopping = true;
    tasks.Stop();
    EXPECT_TRUE(ended);
  });
}

}  // namespace
}  // namespace syncopate::sync
