#include "transport/shm/held_process.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/pidfd.h"
#include "gtest/gtest.h"

namespace syncopate::transport::shm {
namespace {

// A /proc and a /sys of the test's own.
class HeldProcessTest : public ::testing::Test {
 protected:
  HeldProcessTest() : root_(::testing::TempDir() + "held-" + std::to_string(getpid())) {
    Put("/proc/5/status", "Name:\tworker\nState:\tS (sleeping)\nTracerPid:\t0\n");
    Put("/proc/5/cgroup", "6:freezer:/jobs/a\n4:memory:/x\n0::/slice/a\n");
    Put("/proc/5/wchan", "futex_wait_queue");
  }
  ~HeldProcessTest() override { std::filesystem::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) const {
    const std::filesystem::path file(root_ + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  HeldProcess Look() const { return LookAtProcess(5, root_); }

  const std::string root_;
};

TEST_F(HeldProcessTest, ASleepingOrStoppedProcessIsNotHeld) {
  EXPECT_EQ(Look().hold, Hold::kNone);
  Put("/proc/5/status", "Name:\tworker\nState:\tT (stopped)\nTracerPid:\t0\n");
  EXPECT_EQ(Look().hold, Hold::kNone);
  EXPECT_EQ(Look().how, "");
  EXPECT_EQ(LookAtProcess(6, root_).hold, Hold::kNone) << "there is no such process";
}

TEST_F(HeldProcessTest, ADebuggerIsNamed) {
  Put("/proc/5/status", "State:\tS (sleeping)\nTracerPid:\t77\n");
  EXPECT_EQ(Look().hold, Hold::kDebugger);
  EXPECT_EQ(Look().how, "it is being debugged by process 77");
  Put("/proc/77/comm", "gdb\n");
  EXPECT_EQ(Look().how, "it is being debugged by process 77 (gdb)");
}

TEST_F(HeldProcessTest, ADebuggerOfAnotherNamespaceShowsByTheState) {
  Put("/proc/5/status", "State:\tt (tracing stop)\nTracerPid:\t0\n");
  EXPECT_EQ(Look().hold, Hold::kDebugger);
}

TEST_F(HeldProcessTest, FreezersOfBothVersionsCount) {
  Put("/sys/fs/cgroup/freezer/jobs/a/freezer.state", "THAWED\n");
  Put("/sys/fs/cgroup/slice/a/cgroup.events", "populated 1\nfrozen 0\n");
  EXPECT_EQ(Look().hold, Hold::kNone);
  for (const char* state : {"FROZEN\n", "FREEZING\n"}) {
    Put("/sys/fs/cgroup/freezer/jobs/a/freezer.state", state);
    EXPECT_EQ(Look().hold, Hold::kFreezer) << state;
  }
  Put("/sys/fs/cgroup/freezer/jobs/a/freezer.state", "THAWED\n");
  Put("/sys/fs/cgroup/slice/a/cgroup.events", "populated 1\nfrozen 1\n");
  EXPECT_EQ(Look().hold, Hold::kFreezer);
  Put("/sys/fs/cgroup/slice/a/cgroup.events", "populated 1\nfrozen 0\n");
  Put("/sys/fs/cgroup/unified/slice/a/cgroup.events", "frozen 1\n");
  EXPECT_EQ(Look().hold, Hold::kFreezer);
}

TEST_F(HeldProcessTest, WithoutCgroupsTheKernelsPlaceOfWaitingTells) {
  Put("/proc/5/cgroup", "");
  for (const char* place : {"__refrigerator", "do_freezer_trap"}) {
    Put("/proc/5/wchan", place);
    EXPECT_EQ(Look().hold, Hold::kFreezer) << place;
  }
}

TEST_F(HeldProcessTest, GarbageIsNotHeld) {
  Put("/proc/5/status", std::string(100'000, ':'));
  Put("/proc/5/cgroup", "::::\n0\n:\n6:freezer:\n\n");
  EXPECT_EQ(Look().hold, Hold::kNone);
}

TEST(NumberInProcTest, IsThatOfTheProcess) {
  EXPECT_EQ(NumberInProc(OpenPidFd(getpid())), getpid());
  EXPECT_EQ(NumberInProc(UniqueFd()), 0);
}

}  // namespace
}  // namespace syncopate::transport::shm
