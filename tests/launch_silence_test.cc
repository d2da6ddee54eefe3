// `syncopate launch` on several hosts when one side of an agent falls silent without an end, as
// when the network between them goes. The silence is made by stopping a supervisor.
#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/pidfd.h"
#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::HasSubstr;

// The fields of /proc/PID/stat after the name: state, parent, ...
std::vector<std::string> StatOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  return absl::StrSplit(line.substr(std::min(line.size(), line.rfind(')') + 2)), ' ');
}
pid_t ParentOf(pid_t pid) {
  const std::vector<std::string> fields = StatOf(pid);
  return fields.size() > 1 ? std::stoi(fields[1]) : -1;
}
bool IsStopped(pid_t pid) { return StatOf(pid)[0] == "T"; }

void Stop(pid_t pid) {
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  const int64_t deadline_ns = MonotonicClock().NowNs() + kDeadlineNs;
  while (!IsStopped(pid)) ASSERT_LT(MonotonicClock().NowNs(), deadline_ns);
}

// A job of one rank on each of the hosts a and b, which are this machine.
class LaunchSilenceTest : public ::testing::Test {
 protected:
  // Ranks run until Release().
  void Start(const std::string& host_timeout) {
    launch_ = std::make_unique<Subprocess>(
        std::vector<std::string>{
            SYNCOPATE_BINARY, "launch", "-H", "a,b", "--host-timeout", host_timeout, "--agent",
            "env AGENT_FOR={host}", "--", "sh", "-c",
            absl::StrCat("echo pid $$ by $PPID at $SYNCOPATE_RANK; until [ -e ", file_,
                         " ]; do sleep 0.1; done; echo released")},
        Subprocess::Options{.environment = {"SILENCE_TEST=" + marker_}});
    ASSERT_TRUE(launch_->ReadUntil([this] { return launch_->Count(" at ") == 2; }));
    const std::vector<std::string> lines = absl::StrSplit(launch_->out(), '\n', absl::SkipEmpty());
    for (const std::string& line : lines) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      ASSERT_EQ(words.size(), 7u) << line;
      const size_t rank = std::stoul(words[6]);
      ASSERT_LT(rank, 2u);
      ranks_[rank] = OpenPidFd(std::stoi(words[2]));
      far_[rank] = std::stoi(words[4]);
    }
    supervisor_ = ParentOf(ParentOf(far_[0]));
    ASSERT_EQ(ParentOf(supervisor_), launch_->pid());
  }
  void TearDown() override {
    launch_.reset();
    std::filesystem::remove(file_);
    EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
  }

  void Release() { std::ofstream(file_) << "go"; }
  bool RankHasEnded(size_t rank, int wait_ms) {
    pollfd ended = {.fd = ranks_[rank].get(), .events = POLLIN, .revents = 0};
    return poll(&ended, 1, wait_ms) == 1;
  }

  const std::string marker_ = UniqueMarker();
  const std::string file_ = ::testing::TempDir() + marker_;
  std::unique_ptr<Subprocess> launch_;
  UniqueFd ranks_[2];     // pidfds
  pid_t far_[2] = {};     // the supervisors on the hosts
  pid_t supervisor_ = 0;  // the launcher's own
};

// Ranks whose launcher had vanished from the network stayed for hours: nothing told them.
TEST_F(LaunchSilenceTest, RanksEndWhenTheirLauncherHasFallenSilent) {
  ASSERT_NO_FATAL_FAILURE(Start("2s"));
  const int64_t begin_ns = MonotonicClock().NowNs();
  ASSERT_NO_FATAL_FAILURE(Stop(supervisor_));
  for (const size_t rank : {0, 1}) EXPECT_TRUE(RankHasEnded(rank, 30'000)) << "rank " << rank;
  EXPECT_GE(MonotonicClock().NowNs() - begin_ns, 1'000'000'000) << "that was no silence yet";
  EXPECT_TRUE(IsStopped(supervisor_)) << "it may have ended them itself";
  kill(supervisor_, SIGCONT);
  EXPECT_EQ(launch_->Wait(), 1);
  EXPECT_THAT(launch_->err(), HasSubstr("is lost"));
}

// The launcher waited for it for ever.
TEST_F(LaunchSilenceTest, AHostThatHasFallenSilentIsNamedAndTheOthersEnd) {
  ASSERT_NO_FATAL_FAILURE(Start("2s"));
  ASSERT_NO_FATAL_FAILURE(Stop(far_[1]));
  EXPECT_EQ(launch_->Wait(), 1);
  EXPECT_THAT(launch_->err(), HasSubstr("host b (rank 1) is lost: nothing was heard of it for 2s"));
  EXPECT_TRUE(RankHasEnded(0, 0));
}

TEST_F(LaunchSilenceTest, AStopOfAMomentEndsNothing) {
  ASSERT_NO_FATAL_FAILURE(Start("20s"));
  for (const pid_t pid : {supervisor_, far_[1]}) {
    ASSERT_NO_FATAL_FAILURE(Stop(pid));
    EXPECT_FALSE(RankHasEnded(0, 1'000));
    kill(pid, SIGCONT);
  }
  Release();
  EXPECT_EQ(launch_->Wait(), 0) << launch_->err();
  EXPECT_EQ(launch_->Count("released"), 2);
}

// Ctrl-Z stops the launcher, but neither its supervisor nor the job.
TEST_F(LaunchSilenceTest, ALauncherStoppedAtItsTerminalEndsNothing) {
  ASSERT_NO_FATAL_FAILURE(Start("3s"));
  ASSERT_NO_FATAL_FAILURE(Stop(launch_->pid()));
  EXPECT_FALSE(RankHasEnded(0, 5'000));
  Release();
  EXPECT_TRUE(RankHasEnded(0, 30'000));
  kill(launch_->pid(), SIGCONT);
  EXPECT_EQ(launch_->Wait(), 0) << launch_->err();
  EXPECT_EQ(launch_->Count("released"), 2);
}

}  // namespace
}  // namespace syncopate::testing
