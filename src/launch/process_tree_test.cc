#include "launch/process_tree.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::launch {
namespace {

constexpr int64_t kLongNs = 60'000'000'000;

// Starts a child that starts a child in a session of its own that waits for ever; returns when both
// are there. The pipe's other end closes when both are gone.
int StartTwoGenerations() {
  int ends[2], ready[2];
  EXPECT_EQ(pipe(ends), 0);
  EXPECT_EQ(pipe(ready), 0);
  if (fork() == 0) {
    if (fork() == 0) setsid();
    close(ends[0]);
    (void)!write(ready[1], "x", 1);
    while (true) pause();
  }
  char two[2];
  EXPECT_EQ(read(ready[0], two, 1), 1);
  EXPECT_EQ(read(ready[0], two, 1), 1);
  close(ready[0]);
  close(ready[1]);
  close(ends[1]);
  return ends[0];
}

TEST(ProcessTreeTest, EndsGrandchildrenThatLeftTheGroup) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &child, nullptr), 0);
  const int end = StartTwoGenerations();
  EXPECT_EQ(Descendants(getpid()).size(), 2u);
  pollfd watch = {end, POLLIN, 0};
  EXPECT_EQ(poll(&watch, 1, 0), 0);
  EXPECT_TRUE(EndDescendants(MonotonicClock(), MonotonicClock().NowNs() + kLongNs));
  EXPECT_EQ(poll(&watch, 1, 0), 1);  // closed: both are gone
  EXPECT_THAT(Descendants(getpid()), ::testing::IsEmpty());
  close(end);
}

TEST(ProcessTreeTest, GivesUpAtTheDeadline) {
  ManualClock clock;
  const pid_t pid = fork();
  if (pid == 0) {
    while (true) pause();
  }
  EXPECT_FALSE(EndDescendants(clock, clock.NowNs()));
  kill(pid, SIGKILL);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

}  // namespace
}  // namespace syncopate::launch
