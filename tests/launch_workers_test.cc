// `syncopate launch` with programs that are workers: those that wait for others, and those that are
// lost.
#include <sys/stat.h>
#include <sys/types.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kAgent[] = "env AGENT_FOR={host}";

// A job with its ranks' processes.
class LaunchedWorkersTest : public ::testing::Test {
 protected:
  LaunchedWorkersTest() {
    std::string pattern = ::testing::TempDir() + "workers-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    gate_ = folder_ + "/gate";
    EXPECT_EQ(mkfifo(gate_.c_str(), 0600), 0);
  }
  ~LaunchedWorkersTest() override { std::filesystem::remove_all(folder_); }

  void Start(std::vector<std::string> options, const std::vector<std::string>& program) {
    options.insert(options.begin(), {SYNCOPATE_BINARY, "launch"});
    options.push_back("--");
    options.insert(options.end(), program.begin(), program.end());
    process_ = std::make_unique<Subprocess>(
        options, Subprocess::Options{.environment = {absl::StrCat("MARK=", marker_)}});
  }
  // A program that rank `rank` becomes only when the gate is opened.
  std::vector<std::string> BehindTheGate(int rank, const std::string& program) const {
    return {"sh", "-c",
            absl::StrCat("[ $RANK = ", rank, " ] && read x < ", gate_, "; exec ", program)};
  }
  void OpenTheGate() { std::ofstream(gate_) << "open\n"; }
  bool HasSaid(const std::string& text) {
    return process_->ReadUntil([&] { return absl::StrContains(process_->err(), text); }) &&
           absl::StrContains(process_->err(), text);
  }
  // The process of that rank.
  pid_t Rank(int rank) const {
    for (const pid_t pid : MarkedProcesses(marker_)) {
      std::ifstream file(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
      const std::string variables((std::istreambuf_iterator<char>(file)), {});
      if (absl::StrContains(variables, absl::StrCat("SYNCOPATE_RANK=", rank))) return pid;
    }
    return -1;
  }
  // Stops rank 2 of three that have met.
  void StopOne() {
    ASSERT_TRUE(process_->ReadUntil([&] { return process_->Count("ready") == 3; }));
    const pid_t pid = Rank(2);
    ASSERT_GT(pid, 1);
    ASSERT_EQ(kill(pid, SIGSTOP), 0);
  }

  const std::string marker_ = UniqueMarker();
  std::string folder_, gate_;
  std::unique_ptr<Subprocess> process_;
};

TEST_F(LaunchedWorkersTest, OneThatIsAwaitedIsNamed) {
  Start({"-n", "3"}, BehindTheGate(1, PRINT_JOB_BINARY));
  ASSERT_TRUE(HasSaid("waiting for rank 1\n"));
  OpenTheGate();
  EXPECT_EQ(process_->Wait(), 0) << process_->err();
  // Only one of those that wait says so.
  const std::vector<std::string> lines = absl::StrSplit(process_->err(), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines, SizeIs(1)) << process_->err();
}

TEST_F(LaunchedWorkersTest, TheFirstThatIsThereNamesTheFirst) {
  Start({"-n", "3"}, BehindTheGate(0, PRINT_JOB_BINARY));
  ASSERT_TRUE(HasSaid("waiting for rank 0\n"));
  OpenTheGate();
  EXPECT_EQ(process_->Wait(), 0) << process_->err();
  EXPECT_THAT(process_->err(), StartsWith("[1] "));
}

TEST_F(LaunchedWorkersTest, OneThatIsAwaitedIsNamedWithItsHost) {
  Start({"-H", "a,b", "--agent", kAgent}, BehindTheGate(1, PRINT_MEETING_BINARY));
  ASSERT_TRUE(HasSaid("syncopate launch: waiting for rank 1 on b\n"));
  OpenTheGate();
  EXPECT_EQ(process_->Wait(), 0) << process_->err();
}

TEST_F(LaunchedWorkersTest, AHostThatIsAwaitedIsNamed) {
  Start({"-H", "a,b", "--agent",
         absl::StrCat("sh -c '[ {host} = b ] && read x < ", gate_, "; exec \"$@\"' agent")},
        {"echo", "hello"});
  ASSERT_TRUE(HasSaid("syncopate launch: waiting for host b (rank 1)\n"));
  OpenTheGate();
  EXPECT_EQ(process_->Wait(), 0) << process_->err();
}

TEST_F(LaunchedWorkersTest, AStoppedWorkerIsCalledStuck) {
  Start({"-n", "3"}, {RUN_BARRIERS_BINARY});
  ASSERT_NO_FATAL_FAILURE(StopOne());
  EXPECT_EQ(process_->Wait(), 137);
  EXPECT_THAT(
      process_->err(),
      // Survivors that have not ended by themselves are ended.
      ContainsRegex("syncopate launch: rank 2 was stuck \\(no heartbeat\\) and was ended by "
                    "rank [01]"));
}

TEST_F(LaunchedWorkersTest, AStoppedWorkerOfAHostIsCalledStuck) {
  // Both hosts are this machine; workers of one share no memory with those of the other.
  Start({"-H", "a,b:2", "--agent", kAgent},
        {"sh", "-c", absl::StrCat("SYNCOPATE_MACHINE=$SYNCOPATE_HOST exec ", RUN_BARRIERS_BINARY)});
  ASSERT_NO_FATAL_FAILURE(StopOne());
  EXPECT_EQ(process_->Wait(), 137);
  EXPECT_THAT(process_->err(), ContainsRegex("syncopate launch: rank 2 on b was stuck \\(.*\\) and "
                                             "was ended by rank 1"));
}

TEST_F(LaunchedWorkersTest, SurvivorsOfAStoppedWorkerMayFinish) {
  Start({"-n", "3", "--on-failure", "continue"}, {RUN_BARRIERS_BINARY, "0"});
  ASSERT_NO_FATAL_FAILURE(StopOne());
  EXPECT_EQ(process_->Wait(), 0) << process_->err();
  EXPECT_THAT(process_->err(), HasSubstr("syncopate launch: rank 2 was stuck (no heartbeat) and "));
}

}  // namespace
}  // namespace syncopate::testing
