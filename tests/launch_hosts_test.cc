// `syncopate launch` on several hosts: agents that work, fail and hang on one machine, and network
// namespaces as hosts where the test may make them.
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

using Options = Subprocess::Options;

// An agent that runs the command on this machine, whatever the host.
constexpr char kHostsAgent[] = "env AGENT_FOR={host}";

std::vector<std::string> LaunchOnHosts(const std::vector<std::string>& options,
                                       const std::vector<std::string>& program) {
  std::vector<std::string> command = {SYNCOPATE_BINARY, "launch"};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back("--");
  command.insert(command.end(), program.begin(), program.end());
  return command;
}
std::vector<std::string> LaunchScript(std::vector<std::string> options, const std::string& script) {
  options.insert(options.end(), {"--agent", kHostsAgent});
  return LaunchOnHosts(options, {"sh", "-c", script});
}

std::vector<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST(LaunchHostsTest, PlacesRanksHostByHost) {
  Subprocess launch(
      LaunchScript({"-H", "a:2,b,c:2", "-n", "4"},
                   "echo $SYNCOPATE_RANK of $SYNCOPATE_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE at "
                   "$SYNCOPATE_HOST by $AGENT_FOR; echo err $RANK >&2"));
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
  EXPECT_THAT(LinesOf(launch.out()),
              UnorderedElementsAre("[0] 0 of 4, 0 of 2 at a by a", "[1] 1 of 4, 1 of 2 at a by a",
                                   "[2] 2 of 4, 0 of 1 at b by b", "[3] 3 of 4, 0 of 1 at c by c"));
  EXPECT_THAT(LinesOf(launch.err()),
              UnorderedElementsAre("[0] err 0", "[1] err 1", "[2] err 2", "[3] err 3"));
}

TEST(LaunchHostsTest, ReadsAHostFileAndNamesBadLines) {
  const std::string path = ::testing::TempDir() + UniqueMarker();
  std::ofstream(path) << "# two\na slots=2\nb:1\n";
  Subprocess launch(LaunchScript({"--hostfile", path}, "echo $SYNCOPATE_HOST"));
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
  EXPECT_THAT(LinesOf(launch.out()), UnorderedElementsAre("[0] a", "[1] a", "[2] b"));
  std::ofstream(path) << "a\nb c\n";
  Subprocess bad(LaunchScript({"--hostfile", path}, "true"));
  EXPECT_EQ(bad.Wait(), 2);
  EXPECT_THAT(bad.err(), HasSubstr(path + ":2: "));
  std::filesystem::remove(path);
}

TEST(LaunchHostsTest, LocalHostsNeedNoAgent) {
  Subprocess launch(
      LaunchOnHosts({"-H", "localhost:2"}, {"sh", "-c", "echo $SYNCOPATE_RENDEZVOUS"}));
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
  EXPECT_EQ(launch.Count("127.0.0.1:"), 2) << launch.out();
}

TEST(LaunchHostsTest, WorkersMeetAtTheRendezvous) {
  Subprocess launch(
      LaunchOnHosts({"-H", "a:2,b:1,c:1", "--agent", kHostsAgent}, {PRINT_MEETING_BINARY, "2"}));
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
  EXPECT_EQ(launch.Count(": p0 p1 p2 p3\n"), 8) << launch.out();
}

TEST(LaunchHostsTest, TheKeyIsOnNoCommandLine) {
  // Every process that the ranks can see, their launcher and its agents among them.
  Subprocess launch(LaunchScript({"-H", "a,b"},
                                 "for file in /proc/[0-9]*/cmdline; do case \"$(tr '\\0' ' ' "
                                 "<$file 2>/dev/null)\" in *$SYNCOPATE_KEY*) echo seen;; esac; "
                                 "done; echo ${#SYNCOPATE_KEY}"));
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
  EXPECT_THAT(LinesOf(launch.out()), UnorderedElementsAre("[0] 64", "[1] 64"));
}

// They stood before the job's in the ranks' environment, and the first of two counts.
TEST(LaunchHostsTest, VariablesOfTheCallerReplacedThoseOfTheJob) {
  const Options callers = {.environment = {"SYNCOPATE_KEY=" + std::string(64, '0'),
                                           "SYNCOPATE_RENDEZVOUS=127.0.0.1:9",
                                           "SYNCOPATE_HOST=elsewhere"}};
  Subprocess meet(LaunchOnHosts({"-H", "a,b", "--agent", kHostsAgent, "-x", "SYNCOPATE_HOST=there"},
                                {PRINT_MEETING_BINARY}),
                  callers);
  EXPECT_EQ(meet.Wait(), 0) << meet.err();
  EXPECT_EQ(meet.Count(": p0 p1\n"), 2) << meet.out();
  Subprocess look(LaunchScript({"-H", "a,b"},
                               "tr '\\0' '\\n' </proc/$$/environ | "
                               "grep -E '^SYNCOPATE_(KEY|RENDEZVOUS|HOST)=' | wc -l; "
                               "tr '\\0' '\\n' </proc/$$/environ | grep ^SYNCOPATE_HOST="),
                  callers);
  EXPECT_EQ(look.Wait(), 0) << look.err();
  EXPECT_THAT(LinesOf(look.out()), UnorderedElementsAre("[0] 3", "[0] SYNCOPATE_HOST=a", "[1] 3",
                                                        "[1] SYNCOPATE_HOST=b"));
}

TEST(LaunchHostsTest, BySshTheCommandReachesTheShellThereUnchanged) {
  // A program named ssh that checks its options and does what a server would do with the rest.
  const std::string folder = ::testing::TempDir() + UniqueMarker() + " it's";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/ssh")
      << "#!/bin/sh\n[ \"$1 $2 $3 $4 $5 $6 $7\" = '-o BatchMode=yes -o ServerAliveInterval=15 -o '"
         "'ServerAliveCountMax=3 -T' ] || exit 9\nexport REACHED=$8; exec sh -c \"$9\"\n";
  std::filesystem::permissions(folder + "/ssh", std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(SYNCOPATE_BINARY, folder + "/syncopate");
  Subprocess launch(
      LaunchOnHosts({"-H", "far1,user@far2", "--remote-syncopate", folder + "/syncopate"},
                    {"sh", "-c", "echo $REACHED"}),
      Options{.environment = {absl::StrCat("PATH=", folder, ":", getenv("PATH"))}});
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
  EXPECT_THAT(LinesOf(launch.out()), UnorderedElementsAre("[0] far1", "[1] user@far2"));
  std::filesystem::remove_all(folder);
}

TEST(LaunchHostsTest, ArgumentsAndVariablesArriveAsTheyAre) {
  Subprocess launch(
      LaunchOnHosts(
          {"-H", "a,b", "--agent", kHostsAgent, "-x", "WORD=it's $x", "-x", "GIVEN", "--interface",
           "=lo"},
          {"sh", "-c", "echo \"$0|$1|$WORD|$GIVEN|$SYNCOPATE_SOCKET_IFNAME\"", "a b", "'$c\""}),
      Options{.environment = {"GIVEN=yes"}});
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
  EXPECT_THAT(LinesOf(launch.out()), UnorderedElementsAre("[0] a b|'$c\"|it's $x|yes|=lo",
                                                          "[1] a b|'$c\"|it's $x|yes|=lo"));
}

TEST(LaunchHostsTest, RankZeroGetsTheInput) {
  std::string input;
  for (int i = 0; i < 6000; ++i) absl::StrAppend(&input, "line ", i, "\n");
  Subprocess launch(LaunchScript({"-H", "a:2,b", "--no-tag"}, "[ $RANK = 0 ] && cat | md5sum"),
                    Options{.input = input.substr(0, 60'000)});
  Subprocess sum({"md5sum"}, Options{.input = input.substr(0, 60'000)});
  EXPECT_EQ(sum.Wait(), 0);
  launch.Wait();
  EXPECT_EQ(launch.out(), sum.out()) << launch.err();
}

TEST(LaunchHostsTest, InputThatNobodyWantsHoldsNothingUp) {
  Subprocess launch(LaunchScript({"-H", "a,b"}, "true"),
                    Options{.input = std::string(60'000, 'x'), .input_stays_open = true});
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
}

TEST(LaunchHostsTest, AnEndlessOutputDoesNotFillTheMemory) {
  constexpr size_t kBytes = 96 << 20;
  Subprocess launch(
      LaunchScript({"-H", "a", "--no-tag"}, absl::StrCat("head -c ", kBytes, " /dev/zero")));
  EXPECT_EQ(launch.Wait(), 0);
  EXPECT_EQ(launch.out().size(), kBytes);
  EXPECT_LT(launch.MemoryBytesMax(), kBytes);
}

TEST(LaunchHostsTest, AFailedRankIsNamedWithItsHost) {
  const std::string marker = UniqueMarker();
  Subprocess launch(
      LaunchScript({"-H", "a:2,b:2"},
                   "if [ $RANK = 3 ]; then echo my last words >&2; exit 7; fi; sleep 1000"),
      Options{.environment = {"MARK=" + marker}});
  EXPECT_EQ(launch.Wait(), 7);
  EXPECT_THAT(launch.err(),
              HasSubstr("syncopate launch: rank 3 on b exited with code 7; ended the other 3\n"
                        "its last output:\n  [3] my last words\n"));
  EXPECT_THAT(MarkedProcesses(marker), IsEmpty());
}

TEST(LaunchHostsTest, AKilledRankIsTheCauseAndNotWhoNoticed) {
  const std::string flag = ::testing::TempDir() + UniqueMarker();
  Subprocess launch(
      LaunchScript({"-H", "a,b,c"},
                   absl::StrCat("if [ $RANK = 1 ]; then touch ", flag,
                                "; kill -9 $$; fi; until [ -e ", flag, " ]; do :; done; exit 5")));
  EXPECT_EQ(launch.Wait(), 137);
  EXPECT_THAT(launch.err(), HasSubstr("rank 1 on b was killed by signal 9 (SIGKILL)"));
  std::filesystem::remove(flag);
}

TEST(LaunchHostsTest, TheOthersMayContinue) {
  Subprocess launch(LaunchScript({"-H", "a:2,b:2", "--on-failure", "continue"},
                                 "[ $RANK = 3 ] && exit 7; sleep 0.3; echo done"));
  EXPECT_EQ(launch.Wait(), 7);
  EXPECT_EQ(launch.Count("done"), 3);
  EXPECT_THAT(launch.err(), HasSubstr("rank 3 on b exited with code 7"));
  Subprocess here(LaunchOnHosts({"-n", "2", "--on-failure", "continue"},
                                {"sh", "-c", "[ $RANK = 1 ] && kill -9 $$; sleep 0.3; echo done"}));
  EXPECT_EQ(here.Wait(), 0);
  EXPECT_EQ(here.Count("[0] done"), 1);
  Subprocess lost(LaunchOnHosts({"-H", "a,b", "--on-failure", "continue", "--agent", kHostsAgent},
                                {"sh", "-c", "[ $RANK = 1 ] && kill -9 $$; sleep 0.3; echo done"}));
  EXPECT_EQ(lost.Wait(), 0);
  EXPECT_EQ(LinesOf(lost.err()).size(), 1u) << lost.err();
  EXPECT_THAT(lost.err(),
              StartsWith("syncopate launch: rank 1 on b was killed by signal 9 (SIGKILL)"));
}

TEST(LaunchHostsTest, AHostThatCannotBeReachedIsNamed) {
  // As ssh does it: for one host of two.
  Subprocess launch(
      LaunchOnHosts({"-H", "a:2,b:2", "--agent",
                     "sh -c 'if [ {host} = b ]; then echo Permission denied >&2; exit 255; "
                     "fi; exec \"$@\"' agent"},
                    {"sleep", "1000"}));
  EXPECT_EQ(launch.Wait(), 1);
  EXPECT_THAT(launch.err(),
              AllOf(HasSubstr("host b (ranks 2-3) did not start: its agent exited with code 255"),
                    HasSubstr("its last output:\n  b: Permission denied\n")));
}

TEST(LaunchHostsTest, AHostThatHangsIsNamedAtTheDeadline) {
  const std::string marker = UniqueMarker();
  const int64_t begin_ns = MonotonicClock().NowNs();
  Subprocess launch(
      LaunchOnHosts(
          {"-H", "a,b", "--start-timeout", "3s", "--agent",
           "sh -c 'if [ {host} = b ]; then echo connecting; sleep 1000; fi; exec \"$@\"' agent"},
          {"sleep", "1000"}),
      Options{.environment = {"MARK=" + marker}});
  EXPECT_EQ(launch.Wait(), 1);
  EXPECT_GE(MonotonicClock().NowNs() - begin_ns, 3'000'000'000);
  EXPECT_THAT(launch.err(), HasSubstr("host b (rank 1) did not start within 3s"));
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker));
}

TEST(LaunchHostsTest, AnAgentThatIsNoneIsAnError) {
  Subprocess missing(LaunchOnHosts({"-H", "a", "--agent", "/no/such/agent {host}"}, {"true"}));
  EXPECT_EQ(missing.Wait(), 1);
  EXPECT_THAT(missing.err(), HasSubstr("host a (rank 0) cannot be reached"));
  Subprocess chatty(LaunchOnHosts({"-H", "a", "--agent", "sh -c yes {host}"}, {"true"}));
  EXPECT_EQ(chatty.Wait(), 1);
  EXPECT_THAT(chatty.err(), HasSubstr("does not run syncopate launch"));
  Subprocess nowhere(LaunchOnHosts({"-H", "a", "--agent", "ssh"}, {"true"}));
  EXPECT_EQ(nowhere.Wait(), 2);
  EXPECT_THAT(nowhere.err(), HasSubstr("{host}"));
}

TEST(LaunchHostsTest, AGreetingOfTheLoginShellDoesNotMatter) {
  Subprocess launch(
      LaunchOnHosts({"-H", "a", "--agent", "sh -c 'echo Welcome to {host}; exec \"$@\"' agent"},
                    {"echo", "hello"}));
  EXPECT_EQ(launch.Wait(), 0) << launch.err();
  EXPECT_EQ(launch.out(), "[0] hello\n");
}

TEST(LaunchHostsTest, ARankThatNeverComesIsNamed) {
  // Two come to the rendezvous; the third says something and stays away.
  Subprocess launch(LaunchOnHosts(
      {"-H", "a:2,b", "--start-timeout", "5s", "--agent", kHostsAgent},
      {"sh", "-c",
       absl::StrCat("if [ $RANK = 2 ]; then echo loading the data; exec sleep 1000; fi; exec ",
                    PRINT_MEETING_BINARY)}));
  EXPECT_EQ(launch.Wait(), 1);
  EXPECT_THAT(launch.err(), AllOf(HasSubstr("rank 2 on b has not come to the rendezvous within 5s"),
                                  HasSubstr("its last output:\n  [2] loading the data\n")));
}

TEST(LaunchHostsTest, NamesAProgramThatCannotBeRun) {
  Subprocess launch(LaunchOnHosts({"-H", "a,b", "--agent", kHostsAgent}, {"/no/such/program"}));
  EXPECT_EQ(launch.Wait(), 2);
  EXPECT_THAT(launch.err(), HasSubstr("cannot run \"/no/such/program\" on "));
}

TEST(LaunchHostsTest, RefusesWrongUsage) {
  const std::vector<std::vector<std::string>> cases = {{"-H", "a,,b"},
                                                       {"-H", "a", "-n", "2"},
                                                       {"-H", "-x"},
                                                       {"-H", "a:0"},
                                                       {"-H", "a", "-x", "=v"},
                                                       {"-H", "a", "--on-failure", "hope"},
                                                       {},
                                                       {"--hostfile", "/no/file"}};
  for (const std::vector<std::string>& options : cases) {
    Subprocess launch(LaunchOnHosts(options, {"true"}));
    EXPECT_EQ(launch.Wait(), 2) << ::testing::PrintToString(options);
    EXPECT_THAT(launch.err(), StartsWith("syncopate launch: "));
  }
}

TEST(LaunchHostsTest, TimesOut) {
  Subprocess launch(LaunchScript({"-H", "a,b", "--timeout", "300ms"}, "sleep 1000"));
  EXPECT_EQ(launch.Wait(), 1);
  EXPECT_THAT(launch.err(), StartsWith("syncopate launch: not done after 300ms; ended all 2"));
}

// Two hosts with a rank each that has a child in a session of its own.
class LaunchedHostsTest : public ::testing::Test {
 protected:
  void Start() {
    ASSERT_TRUE(launch_.ReadUntil([&] { return launch_.Count("ready") == 2; }));
    ASSERT_GE(MarkedProcesses(marker_).size(), 8u);
  }

  const std::string marker_ = UniqueMarker();
  Subprocess launch_ = Subprocess(
      LaunchScript({"-H", "a,b"}, "setsid sleep 1000 & echo ready; while :; do sleep 1000; done"),
      Options{.environment = {"MARK=" + marker_}});
};

TEST_F(LaunchedHostsTest, LeavesNothingBehindWhenTheLauncherIsKilled) {
  Start();
  kill(launch_.pid(), SIGKILL);
  EXPECT_EQ(launch_.Wait(), 137);
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
}

TEST_F(LaunchedHostsTest, LeavesNothingBehindWhenInterrupted) {
  Start();
  kill(launch_.pid(), SIGINT);
  EXPECT_EQ(launch_.Wait(), 130);
  EXPECT_THAT(launch_.err(), HasSubstr("interrupted; ended 2 ranks"));
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
}

TEST_F(LaunchedHostsTest, ALostAgentEndsTheJobAndNamesTheHost) {
  Start();
  // The agent of b: the process that has become the far launcher.
  pid_t agent = -1;
  for (const pid_t pid : MarkedProcesses(marker_)) {
    std::ifstream environ(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
    const std::string variables((std::istreambuf_iterator<char>(environ)), {});
    std::ifstream cmdline(absl::StrCat("/proc/", pid, "/cmdline"), std::ios::binary);
    const std::string words((std::istreambuf_iterator<char>(cmdline)), {});
    if (absl::StrContains(variables, "AGENT_FOR=b") && absl::StrContains(words, "--remote") &&
        (agent < 0 || pid < agent)) {
      agent = pid;
    }
  }
  ASSERT_GT(agent, 1);
  kill(agent, SIGKILL);
  EXPECT_EQ(launch_.Wait(), 1);
  EXPECT_THAT(launch_.err(), HasSubstr("host b (rank 1) is lost"));
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
}

// Runs print_meeting under another launcher, with nothing of ours started before.
void ExpectTheyMeetUnder(std::vector<std::string> launcher) {
  launcher.insert(launcher.end(), {PRINT_MEETING_BINARY, "2"});
  Subprocess process(launcher);
  EXPECT_EQ(process.Wait(), 0) << process.err();
  EXPECT_EQ(process.Count(": p0 p1 p2\n"), 6) << process.out() << process.err();
}

TEST(MeetingUnderLaunchersTest, OpenMpi) {
  ExpectTheyMeetUnder({"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "3"});
}

TEST(MeetingUnderLaunchersTest, Mpich) { ExpectTheyMeetUnder({"mpirun.mpich", "-n", "3"}); }

TEST(MeetingUnderLaunchersTest, TheVariablesOfTorchrun) {
  const std::string id = UniqueMarker();
  std::vector<std::unique_ptr<Subprocess>> workers;
  for (int rank = 2; rank >= 0; --rank) {
    workers.push_back(std::make_unique<Subprocess>(
        std::vector<std::string>{PRINT_MEETING_BINARY},
        Options{.environment = {absl::StrCat("RANK=", rank), "WORLD_SIZE=3",
                                "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29511",
                                "TORCHELASTIC_RUN_ID=" + id}}));
  }
  for (auto& worker : workers) {
    EXPECT_EQ(worker->Wait(), 0) << worker->err();
    EXPECT_EQ(worker->Count(": p0 p1 p2\n"), 1) << worker->out();
  }
}

// Three network namespaces at a bridge that is in the first one.
class NamespacesTest : public ::testing::Test {
 protected:
  static bool Run(const std::string& script) {
    Subprocess shell({"sh", "-c", script + " 2>&1"});
    const int code = shell.Wait();
    last_output_ = shell.out();
    return code == 0;
  }

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    if (!Run(absl::StrCat("ip netns add ", Name(0)))) {
      GTEST_SKIP() << "cannot make a network namespace: " << last_output_;
    }
    made_ = true;
    std::string script = absl::StrReplaceAll(
        "set -e; ip -n N0 link set lo up; ip -n N0 link add br0 type bridge; "
        "ip -n N0 addr add 10.251.0.1/24 dev br0; ip -n N0 link set br0 up; ",
        {{"N0", Name(0)}});
    for (int i = 1; i < 3; ++i) {
      absl::StrAppend(&script,
                      absl::StrReplaceAll(
                          "ip netns add NI; ip -n NI link set lo up; "
                          "ip -n NI link add eth0 type veth peer name pI netns N0; "
                          "ip -n NI addr add 10.251.0.A/24 dev eth0; ip -n NI link set eth0 up; "
                          "ip -n N0 link set pI master br0 up; ",
                          {{"NI", Name(i)},
                           {"pI", absl::StrCat("p", i)},
                           {"N0", Name(0)},
                           {"A/", absl::StrCat(i + 1, "/")}}));
    }
    if (!Run(script)) GTEST_SKIP() << "cannot set up the network: " << last_output_;
  }
  void TearDown() override {
    for (int i = 0; made_ && i < 3; ++i) Run(absl::StrCat("ip netns del ", Name(i)));
  }

  std::string Name(int i) const { return absl::StrCat(prefix_, i); }

  static inline std::string last_output_;
  const std::string prefix_ = absl::StrCat("syt", getpid(), "x");
  bool made_ = false;
};

TEST_F(NamespacesTest, WorkersOfThreeHostsMeet) {
  const std::string agent = absl::StrCat("ip netns exec ", prefix_, "{host}");
  std::vector<std::string> command = {"ip", "netns", "exec", Name(0)};
  const std::vector<std::string> launch =
      LaunchOnHosts({"-H", "0:2,1,2:2", "--agent", agent}, {PRINT_MEETING_BINARY});
  command.insert(command.end(), launch.begin(), launch.end());
  Subprocess process(command);
  EXPECT_EQ(process.Wait(), 0) << process.err();
  EXPECT_EQ(process.Count(": p0 p1 p2 p3 p4\n"), 5) << process.out() << process.err();
}

TEST_F(NamespacesTest, AHostThatDoesNotReachTheRendezvousIsNamed) {
  ASSERT_TRUE(Run(absl::StrCat("ip -n ", Name(2), " link set eth0 down")));
  const std::string agent = absl::StrCat("ip netns exec ", prefix_, "{host}");
  std::vector<std::string> command = {"ip", "netns", "exec", Name(0)};
  const std::vector<std::string> launch = LaunchOnHosts(
      {"-H", "0,1,2", "--start-timeout", "1s", "--agent", agent}, {PRINT_MEETING_BINARY});
  command.insert(command.end(), launch.begin(), launch.end());
  Subprocess process(command);
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_THAT(process.err(), HasSubstr("rank 2 on 2 has not come to the rendezvous"));
}

}  // namespace
}  // namespace syncopate::testing
