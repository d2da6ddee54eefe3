// Ctrl-C and its kin as users meet them, in commands that run as jobs on this machine.
#include <csignal>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interrupt_testing.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::EndsWith;

// A launcher, its supervisor and two ranks.
constexpr size_t kProcesses = 4;

TEST(InterruptTest, Launch) {
  ExpectCleanEndOnInterrupt({SYNCOPATE_BINARY, "launch", "-n", "2", "--", "sleep", "1000"},
                            kProcesses, "syncopate launch: interrupted; ended 2 ranks\n");
}

TEST(InterruptTest, Probe) {
  ExpectCleanEndOnInterrupt(
      {SYNCOPATE_BINARY, "probe", "--allreduce", "-n", "2", "--budget", "100s"}, kProcesses,
      "syncopate probe: interrupted; ended 2 ranks\n");
}

TEST(InterruptTest, Replay) {
  ExpectCleanEndOnInterrupt({SYNCOPATE_BINARY, "replay", "--model", "resnet-152", "-n", "2",
                             "--bytes-scale", "0.01", "--iterations", "100000"},
                            kProcesses, "syncopate replay: interrupted; ended 2 ranks\n");
}

// Commands that only compute have nothing to end, and end alike. A line of progress proves that the
// command is at work.
TEST(InterruptTest, CommandsThatComputeEndAlike) {
  Subprocess reproduce({SYNCOPATE_BINARY, "reproduce", "forest"},
                       {.environment = {"SYNCOPATE_PROGRESS=1ms"}});
  ASSERT_TRUE(reproduce.ReadUntil([&] { return !reproduce.err().empty(); }));
  kill(reproduce.pid(), SIGINT);
  EXPECT_EQ(reproduce.Wait(), 128 + SIGINT);
  EXPECT_THAT(reproduce.err(), EndsWith("\nsyncopate reproduce forest: interrupted\n"));
}

TEST(InterruptTest, OtherSignalsAreNamed) {
  const std::pair<int, const char*> cases[] = {{SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};
  for (const auto& [signal, name] : cases) {
    InterruptedCommand launch({SYNCOPATE_BINARY, "launch", "-n", "1", "--", "sleep", "1000"});
    ASSERT_TRUE(WaitForProcesses(launch.marker(), 3));
    launch.Interrupt(signal, false);
    launch.ExpectCleanEnd(
        signal, absl::StrCat("syncopate launch: interrupted by ", name, "; ended 1 rank\n"));
  }
}

}  // namespace
}  // namespace syncopate::testing
