// `syncopate launch` as a user meets it: real processes, real signals.
#include <sys/stat.h>
#include <sys/types.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

using Options = Subprocess::Options;

// The launcher's command line with a shell script as the program.
std::vector<std::string> Launch(const std::vector<std::string>& options,
                                const std::string& script) {
  std::vector<std::string> command = {SYNCOPATE_BINARY, "launch"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"--", "sh", "-c", script});
  return command;
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// Of the launcher: its supervisor.
pid_t OnlyChildOf(pid_t pid) {
  pid_t child = -1;
  std::ifstream(absl::StrCat("/proc/", pid, "/task/", pid, "/children")) >> child;
  return child;
}

TEST(LaunchTest, TagsLinesAndKeepsTheTwoOutputsApart) {
  Subprocess launch(
      Launch({"-n", "3"}, "echo out $SYNCOPATE_RANK of $SYNCOPATE_SIZE; echo err $RANK >&2"));
  EXPECT_EQ(launch.Wait(), 0);
  EXPECT_THAT(Lines(launch.out()),
              UnorderedElementsAre("[0] out 0 of 3", "[1] out 1 of 3", "[2] out 2 of 3"));
  EXPECT_THAT(Lines(launch.err()), UnorderedElementsAre("[0] err 0", "[1] err 1", "[2] err 2"));
}

TEST(LaunchTest, ThreadsOfRanksWaitPassivelyUnlessTheUserSaysOtherwise) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{}, "[0] passive,,\n"},
      {{"OMP_WAIT_POLICY=active"}, "[0] active,,\n"},
      {{"GOMP_SPINCOUNT=300"}, "[0] ,300,\n"},
      {{"KMP_BLOCKTIME=200"}, "[0] ,,200\n"},
  };
  for (const auto& [environment, line] : cases) {
    Subprocess launch(Launch({"-n", "1"}, "echo $OMP_WAIT_POLICY,$GOMP_SPINCOUNT,$KMP_BLOCKTIME"),
                      {.environment = environment});
    EXPECT_EQ(launch.Wait(), 0) << launch.err();
    EXPECT_EQ(launch.out(), line);
  }
}

TEST(LaunchTest, DoesNotTearLines) {
  // Half lines and whole lines, of all lengths around a pipe's capacity, from four ranks at once.
  Subprocess launch(Launch({"-n", "4"},
                           "i=0; x=$RANK; while [ $i -lt 60 ]; do printf %s $x; echo :$i; "
                           "i=$((i + 1)); x=$x$x; if [ ${#x} -gt 50000 ]; then x=$RANK; fi; done"));
  EXPECT_EQ(launch.Wait(), 0);
  std::map<char, int> next;
  for (const std::string& line : Lines(launch.out())) {
    ASSERT_GT(line.size(), 5u);
    const char rank = line[1];
    const std::vector<std::string> halves = absl::StrSplit(line.substr(4), ':');
    ASSERT_EQ(halves.size(), 2u) << line.substr(0, 80);
    ASSERT_EQ(halves[0].find_first_not_of(rank), std::string::npos) << line.substr(0, 80);
    EXPECT_EQ(halves[1], absl::StrCat(next[rank]++));
  }
  EXPECT_THAT(next, ElementsAre(std::pair('0', 60), std::pair('1', 60), std::pair('2', 60),
                                std::pair('3', 60)));
}

TEST(LaunchTest, PrintsALastLineWithoutNewline) {
  Subprocess launch(Launch({"-n", "1"}, "printf half"));
  EXPECT_EQ(launch.Wait(), 0);
  EXPECT_EQ(launch.out(), "[0] half\n");
}

TEST(LaunchTest, WithoutTagsNoByteIsChanged) {
  Subprocess launch(Launch({"-n", "1", "--no-tag"}, "printf 'a\\n\\nhalf'"));
  EXPECT_EQ(launch.Wait(), 0);
  EXPECT_EQ(launch.out(), "a\n\nhalf");
}

TEST(LaunchTest, AnEndlessLineDoesNotFillTheMemory) {
  constexpr size_t kBytes = 96 << 20;
  Subprocess launch(
      Launch({"-n", "1", "--no-tag"}, absl::StrCat("head -c ", kBytes, " /dev/zero")));
  EXPECT_EQ(launch.Wait(), 0);
  EXPECT_EQ(launch.out().size(), kBytes);
  EXPECT_LT(launch.MemoryBytesMax(), kBytes);
}

TEST(LaunchTest, RankZeroGetsTheInput) {
  Subprocess launch(Launch({"-n", "3"}, "cat; echo end"), Options{.input = "hello\n"});
  EXPECT_EQ(launch.Wait(), 0);
  EXPECT_THAT(Lines(launch.out()),
              UnorderedElementsAre("[0] hello", "[0] end", "[1] end", "[2] end"));
}

TEST(LaunchTest, RanksGetTheVariablesOfTheUser) {
  const std::vector<std::vector<std::string>> ways = {
      {"-n", "2", "-x", "A=1"}, {"-n", "2", "-xA=1"},        {"-x", "A=1", "-n", "2"},
      {"-n", "2", "-x", "B"},   {"-n", "2", "--export=A=1"}, {"-H", "localhost:2", "-x", "A=1"}};
  for (const std::vector<std::string>& options : ways) {
    SCOPED_TRACE(::testing::PrintToString(options));
    Subprocess launch(Launch(options, "echo $A$B"), Options{.environment = {"B=1"}});
    EXPECT_EQ(launch.Wait(), 0) << launch.err();
    const bool both = options.back() != "B";
    EXPECT_THAT(Lines(launch.out()),
                UnorderedElementsAre(both ? "[0] 11" : "[0] 1", both ? "[1] 11" : "[1] 1"));
  }
  Subprocess twice(Launch({"-n", "1", "-x", "A=x y", "-x", "C=z"}, "echo $A,$C"));
  EXPECT_EQ(twice.Wait(), 0) << twice.err();
  EXPECT_EQ(twice.out(), "[0] x y,z\n");
  // Without the mark the first word that is no option's is the program.
  Subprocess bare({SYNCOPATE_BINARY, "launch", "-n", "1", "-x", "A=1", "sh", "-c", "echo $A"});
  EXPECT_EQ(bare.Wait(), 0) << bare.err();
  EXPECT_EQ(bare.out(), "[0] 1\n");
  Subprocess unset(Launch({"-n", "1", "-x", "NOT_SET_HERE"}, "true"));
  EXPECT_EQ(unset.Wait(), 2);
  EXPECT_THAT(unset.err(), HasSubstr("NOT_SET_HERE is not set"));
}

// Those need no lab, since nothing is asked of one before.
TEST(LaunchTest, LabRunSpeaksForItself) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--timeout", "soon", "--", "true"}, "--timeout: "},
      {{"--on-failure", "hope", "--", "true"},
       "--on-failure: \"hope\" is neither end nor continue"},
      {{"-x", "=1", "--", "true"}, "-x: "},
      {{"-n", "2"}, "no program to run; write it after the options, as in syncopate lab run -- "},
      {{"--no-such-option", "3", "--", "sh", "-c", "true"}, "there is no option --no-such-option"}};
  for (const auto& [words, said] : cases) {
    std::vector<std::string> command = {SYNCOPATE_BINARY, "lab", "run"};
    command.insert(command.end(), words.begin(), words.end());
    Subprocess run(command);
    EXPECT_EQ(run.Wait(), 2);
    EXPECT_THAT(run.err(), StartsWith(absl::StrCat("syncopate lab run: ", said)));
    EXPECT_THAT(Lines(run.err()), SizeIs(1));
  }
}

TEST(LaunchTest, SurvivorsDecideTheExitCodeIfTheyContinue) {
  const std::vector<std::string> options = {"-n", "4", "--on-failure", "continue"};
  Subprocess lost(Launch(options, "[ $RANK = 2 ] && kill -9 $$; exit 0"));
  EXPECT_EQ(lost.Wait(), 0);
  EXPECT_THAT(Lines(lost.err()), SizeIs(1));
  EXPECT_THAT(lost.err(), StartsWith("syncopate launch: rank 2 was killed by signal 9 (SIGKILL)"));

  // A rank that says itself that it failed is believed, whether one was lost before it or after.
  Subprocess failed(
      Launch(options, "[ $RANK = 2 ] && kill -9 $$; [ $RANK = 3 ] && exit 5; exit 0"));
  EXPECT_EQ(failed.Wait(), 5);
  EXPECT_THAT(Lines(failed.err()), SizeIs(2));
  EXPECT_THAT(failed.err(), HasSubstr("rank 3 exited with code 5"));

  Subprocess nobody(Launch({"-n", "2", "--on-failure", "continue"}, "kill -9 $$"));
  EXPECT_EQ(nobody.Wait(), 137);
  EXPECT_THAT(Lines(nobody.err()), SizeIs(2));
}

TEST(LaunchTest, TheFirstFailureEndsTheOthers) {
  const std::string marker = UniqueMarker();
  Subprocess launch(Launch({"-n", "4"}, "[ $SYNCOPATE_RANK = 2 ] && exit 7; sleep 1000"),
                    Options{.environment = {"MARK=" + marker}});
  EXPECT_EQ(launch.Wait(), 7);
  EXPECT_EQ(launch.err(), "syncopate launch: rank 2 exited with code 7; ended the other 3\n");
  EXPECT_THAT(MarkedProcesses(marker), IsEmpty());
}

TEST(LaunchTest, AKilledRankEndsTheOthers) {
  Subprocess launch(Launch({"-n", "4"}, "[ $SYNCOPATE_RANK = 3 ] && kill -9 $$; exec sleep 1000"));
  EXPECT_EQ(launch.Wait(), 137);
  EXPECT_EQ(launch.err(),
            "syncopate launch: rank 3 was killed by signal 9 (SIGKILL); ended the other 3\n");
}

// Rank 0 gets ready and says so to rank 1 through a pipe with a name, on which rank 1 fails.
class LaunchedPairTest : public ::testing::Test {
 protected:
  LaunchedPairTest() {
    std::string pattern = ::testing::TempDir() + "launch_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    EXPECT_EQ(mkfifo((folder_ + "/ready").c_str(), 0600), 0);
  }
  ~LaunchedPairTest() override { std::filesystem::remove_all(folder_); }

  // In both scripts `$ready` is the pipe.
  std::vector<std::string> Pair(const std::string& grace, const std::string& rank0,
                                const std::string& rank1) {
    return Launch({"-n", "2", "--grace", grace},
                  absl::StrCat("ready=", folder_, "/ready; if [ $RANK = 0 ]; then ", rank0,
                               "; else ", rank1, "; fi"));
  }

  std::string folder_;
};

TEST_F(LaunchedPairTest, SaysAtOnceThatOneIsLostAndTheOtherGoesOn) {
  Subprocess launch(Launch({"-n", "2", "--on-failure", "continue"},
                           absl::StrCat("if [ $RANK = 1 ]; then kill -9 $$; fi; read x < ", folder_,
                                        "/ready; echo $x")));
  ASSERT_TRUE(launch.ReadUntil([&] { return absl::StrContains(launch.err(), "\n"); }));
  EXPECT_EQ(launch.err(),
            "syncopate launch: rank 1 was killed by signal 9 (SIGKILL); the other goes on\n");
  std::ofstream(folder_ + "/ready") << "done\n";
  EXPECT_EQ(launch.Wait(), 0);
  EXPECT_EQ(launch.out(), "[0] done\n");
}

TEST_F(LaunchedPairTest, ARankThatDoesNotWantToEndIsKilledAfterTheGrace) {
  const int64_t begin_ns = MonotonicClock().NowNs();
  Subprocess launch(Pair("300ms", "trap '' TERM; echo x > $ready; while :; do sleep 1000; done",
                         "read x < $ready; exit 3"));
  EXPECT_EQ(launch.Wait(), 3);
  EXPECT_GE(MonotonicClock().NowNs() - begin_ns, 300'000'000);
  EXPECT_EQ(launch.err(), "syncopate launch: rank 1 exited with code 3; ended the other 1\n");
}

TEST_F(LaunchedPairTest, ARankMayCleanUpWhenAskedToEnd) {
  Subprocess launch(Pair("1h",
                         "trap 'echo clean; exit 0' TERM; echo x > $ready; "
                         "while :; do sleep 0.01; done",
                         "read x < $ready; exit 3"));
  EXPECT_EQ(launch.Wait(), 3);
  EXPECT_EQ(launch.out(), "[0] clean\n");
}

TEST_F(LaunchedPairTest, AStoppedRankIsAskedToo) {
  Subprocess launch(
      Pair("1h", "echo $$ > $ready; kill -STOP $$; sleep 1000",
           "read x < $ready; until grep -q ') T ' /proc/$x/stat; do :; done; exit 3"));
  EXPECT_EQ(launch.Wait(), 3);
}

TEST(LaunchTest, TimesOut) {
  const std::string marker = UniqueMarker();
  const int64_t begin_ns = MonotonicClock().NowNs();
  Subprocess launch(Launch({"-n", "2", "--timeout", "300ms"}, "sleep 1000"),
                    Options{.environment = {"MARK=" + marker}});
  EXPECT_EQ(launch.Wait(), 1);
  EXPECT_GE(MonotonicClock().NowNs() - begin_ns, 300'000'000);
  EXPECT_THAT(launch.err(), StartsWith("syncopate launch: not done after 300ms; ended all 2"));
  EXPECT_THAT(Lines(launch.err()), SizeIs(1));
  EXPECT_THAT(MarkedProcesses(marker), IsEmpty());
}

TEST(LaunchTest, NamesAProgramThatCannotBeRun) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"no-such-program", "No such file"},
      {"/no/such/program", "No such file"},
      {"/etc/passwd", "Permission denied"},
      {"/", "Permission denied"}};
  for (const auto& [program, why] : cases) {
    Subprocess launch({SYNCOPATE_BINARY, "launch", "-n", "4", program, "argument"});
    EXPECT_EQ(launch.Wait(), 2);
    EXPECT_THAT(Lines(launch.err()), SizeIs(1));
    EXPECT_THAT(launch.err(), HasSubstr(absl::StrCat("\"", program, "\": ", why)));
  }
}

TEST(LaunchTest, RefusesWrongUsage) {
  for (const char* ranks : {"0", "-1", "1000000", "four", ""}) {
    Subprocess launch({SYNCOPATE_BINARY, "launch", "-n", ranks, "--", "true"});
    EXPECT_EQ(launch.Wait(), 2) << ranks;
    EXPECT_THAT(Lines(launch.err()), SizeIs(1)) << ranks;
  }
}

TEST(LaunchTest, EndsWhenNobodyReadsItsOutput) {
  Subprocess launch(Launch({"-n", "2"}, "exec yes"));
  launch.ReadUntil([&] { return launch.Count("[1] y") > 0; });
  launch.CloseOutput();
  EXPECT_EQ(launch.Wait(), 1);
  EXPECT_THAT(launch.err(), HasSubstr("cannot write standard output: Broken pipe"));
}

// Ranks with a child in a session of its own, and one that has lost its parent as well.
constexpr char kFamily[] =
    "setsid sleep 1000 & (setsid sleep 1000 &) ; echo ready; while :; do sleep 1000; done";

class LaunchedFamilyTest : public ::testing::Test {
 protected:
  // Waits until all is there.
  void Start() {
    ASSERT_TRUE(launch_.ReadUntil([&] { return launch_.Count("ready") == 2; }));
    ASSERT_GE(MarkedProcesses(marker_).size(), 8u);
  }

  const std::string marker_ = UniqueMarker();
  Subprocess launch_ =
      Subprocess(Launch({"-n", "2"}, kFamily), Options{.environment = {"MARK=" + marker_}});
};

TEST_F(LaunchedFamilyTest, LeavesNothingBehindWhenTheLauncherIsKilled) {
  Start();
  kill(launch_.pid(), SIGKILL);
  EXPECT_EQ(launch_.Wait(), 137);
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
}

TEST_F(LaunchedFamilyTest, LeavesNothingBehindWhenTheSupervisorIsKilled) {
  Start();
  const pid_t supervisor = OnlyChildOf(launch_.pid());
  ASSERT_GT(supervisor, 1);
  kill(supervisor, SIGKILL);
  EXPECT_EQ(launch_.Wait(), 1);
  EXPECT_THAT(launch_.err(), HasSubstr("supervisor process was killed by signal 9"));
  EXPECT_THAT(MarkedProcesses(marker_), IsEmpty());
}

TEST_F(LaunchedFamilyTest, LeavesNothingBehindWhenInterrupted) {
  Start();
  kill(launch_.pid(), SIGINT);
  EXPECT_EQ(launch_.Wait(), 130);
  EXPECT_EQ(launch_.err(), "syncopate launch: interrupted; ended 2 ranks\n");
  EXPECT_THAT(MarkedProcesses(marker_), IsEmpty());
}

TEST_F(LaunchedFamilyTest, LeavesNothingBehindWhenTerminated) {
  Start();
  kill(launch_.pid(), SIGTERM);
  EXPECT_EQ(launch_.Wait(), 143);
  EXPECT_THAT(MarkedProcesses(marker_), IsEmpty());
}

TEST(LaunchTest, LeavesNothingBehindWhenAllIsWell) {
  const std::string marker = UniqueMarker();
  Subprocess launch(Launch({"-n", "2"}, "setsid sleep 1000 & echo started"),
                    Options{.environment = {"MARK=" + marker}});
  EXPECT_EQ(launch.Wait(), 0);
  EXPECT_EQ(launch.Count("started"), 2);
  EXPECT_THAT(MarkedProcesses(marker), IsEmpty());
}

TEST(LaunchTest, ASecondInterruptKillsAtOnce) {
  Subprocess launch(Launch({"-n", "2", "--grace", "1h"},
                           "trap 'echo no' INT; echo ready; while :; do sleep 0.01; done"));
  launch.ReadUntil([&] { return launch.Count("ready") == 2; });
  kill(launch.pid(), SIGINT);
  launch.ReadUntil([&] { return launch.Count("no") >= 2; });
  kill(launch.pid(), SIGINT);
  EXPECT_EQ(launch.Wait(), 130);
}

TEST(LaunchTest, WhatTheShellIgnoresStaysIgnored) {
  Subprocess launch(Launch({"-n", "1"}, "echo ready; exec sleep 1000"),
                    Options{.before_exec = [] { signal(SIGHUP, SIG_IGN); }});
  launch.ReadUntil([&] { return launch.Count("ready") == 1; });
  kill(launch.pid(), SIGHUP);
  kill(launch.pid(), SIGTERM);
  EXPECT_EQ(launch.Wait(), 143);
}

TEST(LaunchTest, OnATerminalRankZeroHearsTheUserAndCtrlCEndsAll) {
  const std::string marker = UniqueMarker();
  Subprocess launch(Launch({"-n", "2"}, "echo ready; cat; sleep 1000"),
                    Options{.terminal = true, .environment = {"MARK=" + marker}});
  launch.ReadUntil([&] { return launch.Count("ready") == 2; });
  launch.Write("hello\n");
  launch.ReadUntil([&] { return launch.Count("[0] hello") == 1; });
  launch.Write("\x03");
  EXPECT_EQ(launch.Wait(), 130);
  EXPECT_THAT(launch.out(), HasSubstr("interrupted; ended 2 ranks"));
  EXPECT_THAT(MarkedProcesses(marker), IsEmpty());
}

}  // namespace
}  // namespace syncopate::testing
