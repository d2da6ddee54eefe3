// The laboratory on the real machine: labs come, hold their rates, change, and leave nothing
// behind. Needs root and a kernel with veth, bridge and tbf; skipped elsewhere.
#include "lab/lab.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interrupt_testing.h"
#include "lab/check.h"
#include "lab/child_process.h"
#include "lab/cpu_share.h"
#include "lab/flow.h"
#include "lab/lab_testing.h"
#include "lab/netns.h"
#include "lab/requirements.h"
#include "lab/state.h"
#include "lab_command_testing.h"
#include "nlohmann/json.hpp"
#include "subprocess.h"

namespace syncopate::lab {
namespace {

using syncopate::testing::Subprocess;
using ::testing::HasSubstr;

TEST_F(LabTest, HoldsItsRatesAndSharesFairly) {
  ASSERT_EQ(Up("a").code, 0);
  const Lab lab = Lab::Open(Name("a"), MonotonicClock()).value();
  const std::vector<Trial> trials = PlanTrials(lab.plan(), Effective(lab.plan().spec, {}));
  ASSERT_GE(trials.size(), 4u + 3u + 1u);
  for (const Trial& trial : trials) {
    // On a busy machine one measurement may fail; a shaper that is wrong fails always.
    bool holds = false;
    std::string seen;
    for (int attempt = 0; attempt < 4 && !holds; ++attempt) {
      const absl::StatusOr<std::vector<TrialResult>> results =
          RunTrials(lab.plan(), {trial}, 2, MonotonicClock(), nullptr);
      ASSERT_TRUE(results.ok()) << results.status();
      holds = Holds(results->front());
      absl::StrAppend(&seen, " ", Got(results->front()) / Asked(results->front()), " fair ",
                      Fairness(results->front()));
    }
    EXPECT_TRUE(holds) << trial.what << ": got of what was asked:" << seen;
  }
}

TEST_F(LabTest, CheckPrintsWhatItMeasured) {
  ASSERT_EQ(Up("a").code, 0);
  const Outcome check = Syncopate({"check", Name("a"), "--only", "shared", "--json"});
  const nlohmann::json json = nlohmann::json::parse(check.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << check.out << check.err;
  ASSERT_EQ(json["trials"].size(), 3u);
  EXPECT_EQ(check.code, json["hold"].get<bool>() ? 0 : 1);
  EXPECT_EQ(json["trials"][0]["got_bits_per_second"].size(), 2u);
  EXPECT_EQ(Syncopate({"check", Name("a"), "--only", "some"}).code, 2);
}

TEST_F(LabTest, AskingForMoreThanTheCpuCarriesIsReported) {
  const std::string file = Write("fast.toml",
                                 "[lab]\nname = \"fast\"\nnic = \"400gbit\"\n[[switch]]\nname = "
                                 "\"s\"\n[[host]]\nname = \"h\"\ncount = 4\nswitch = \"s\"\n");
  const Outcome up = Syncopate({"up", file, "--name", Name("fast")});
  ASSERT_EQ(up.code, 0) << up.err;
  EXPECT_THAT(up.err, HasSubstr("Gbit/s in all, more than"));
  const std::string status = Syncopate({"status", Name("fast")}).out;
  EXPECT_THAT(status, HasSubstr(": 4 hosts, 1 switch, 4 links\n"));
  EXPECT_THAT(status, HasSubstr("note: the hosts can ask for"));
}

TEST_F(LabTest, TwoLabsStandSideBySide) {
  ASSERT_EQ(Up("a").code, 0);
  const Outcome again = Up("a");
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("take it down with syncopate lab down"));
  ASSERT_EQ(Up("b").code, 0);
  EXPECT_TRUE(CanTalk(Name("a"), "h0", "h3"));
  EXPECT_TRUE(CanTalk(Name("b"), "h0", "h3"));
  EXPECT_EQ(Syncopate({"down", Name("a")}).code, 0);
  EXPECT_TRUE(CanTalk(Name("b"), "h0", "h3"));
  EXPECT_EQ(Syncopate({"down", Name("a")}).code, 2) << "it is gone already";
}

TEST_F(LabTest, DownLeavesNothing) {
  const Machine before;
  ASSERT_EQ(Up("a").code, 0);
  EXPECT_NE(Machine(), before);
  // A program on a host that minds no signal but one, and a flow.
  Subprocess stubborn({SYNCOPATE_BINARY, "lab", "exec", "--lab", Name("a"), "h1", "--", "sh", "-c",
                       "trap '' TERM INT HUP; echo here; while :; do sleep 1; done"});
  ASSERT_TRUE(stubborn.ReadUntil([&] { return stubborn.Count("here") > 0; }));
  ASSERT_EQ(Syncopate({"flow", "add", "h0", "h3", "--lab", Name("a")}).code, 0);
  const std::vector<Change> changes = Lab::Open(Name("a"), MonotonicClock())->Changes().value();
  ASSERT_EQ(changes.size(), 1u);
  for (const ProcessId& process : changes[0].processes) EXPECT_TRUE(IsAlive(process));
  EXPECT_EQ(Syncopate({"down", Name("a")}).code, 0);
  EXPECT_EQ(stubborn.Wait(), 128 + SIGKILL);
  for (const ProcessId& process : changes[0].processes) EXPECT_FALSE(IsAlive(process));
  EXPECT_EQ(Machine(), before);
}

// Kills `lab up` when that many namespaces are there and `later_us` have passed.
void KillUp(const std::string& file, const std::string& name, size_t namespaces, int later_us) {
  Subprocess up({SYNCOPATE_BINARY, "lab", "up", file, "--name", name});
  const auto count = [&] {
    const std::vector<std::string> all = ListNamespaces();
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const std::string& each) {
      return absl::StartsWith(each, absl::StrCat("sy.", name));
    }));
  };
  const int64_t deadline_ns = MonotonicClock().NowNs() + syncopate::testing::kDeadlineNs;
  while (count() < namespaces && MonotonicClock().NowNs() < deadline_ns) {
  }
  usleep(static_cast<useconds_t>(later_us));  // any moment will do: it is where the fault strikes
  kill(up.pid(), SIGKILL);
  up.Wait();
}

TEST_F(LabTest, DownRestoresTheMachineWhenUpWasKilledInTheMiddle) {
  const std::string file = SmallLab();
  const Machine before;
  int half_made = 0;
  for (const auto& [namespaces, later_us] : std::vector<std::pair<size_t, int>>{{1, 0},
                                                                                {2, 0},
                                                                                {4, 0},
                                                                                {5, 0},
                                                                                {5, 2000},
                                                                                {5, 5000},
                                                                                {5, 10'000},
                                                                                {5, 20'000},
                                                                                {5, 40'000}}) {
    const std::string name = Name(absl::StrCat("k", half_made));
    KillUp(file, name, namespaces, later_us);
    const absl::StatusOr<State> state = LoadState(name);
    ASSERT_TRUE(state.ok()) << state.status();
    if (!state->complete) {
      ++half_made;
      EXPECT_EQ(Syncopate({"exec", "--lab", name, "h9", "--", "true"}).code, 2);
      const Outcome status = Syncopate({"status", name});
      EXPECT_EQ(status.code, 1);
      EXPECT_THAT(status.err, HasSubstr("half there"));
      EXPECT_EQ(Syncopate({"up", file, "--name", name}).code, 1);
    }
    EXPECT_EQ(Syncopate({"down", name}).code, 0);
    EXPECT_EQ(Machine(), before) << namespaces << " namespaces, " << later_us << " us";
  }
  EXPECT_GT(half_made, 0) << "no kill hit the middle";
}

TEST_F(LabTest, DownNeedsNoStateFile) {
  const Machine before;
  ASSERT_EQ(Up("a").code, 0);
  ASSERT_EQ(unlink(StatePath(Name("a")).c_str()), 0);
  EXPECT_THAT(Syncopate({"list"}).out, HasSubstr(Name("a") + "  half made"));
  EXPECT_EQ(Syncopate({"down", Name("a")}).code, 0);
  EXPECT_EQ(Machine(), before);
}

// Labs of others may be up on this machine, so the command looks at folders that hide them.
TEST_F(LabTest, AnEmptyListSaysHowToStartALab) {
  const auto listed = [](const std::string& options) {
    Subprocess process(
        {"unshare", "--mount", "sh", "-c",
         absl::StrCat("mkdir -p /run/syncopate /run/netns && mount -t tmpfs none /run/syncopate &&"
                      " mount -t tmpfs none /run/netns && exec ",
                      SYNCOPATE_BINARY, " lab list", options)});
    EXPECT_EQ(process.Wait(), 0) << process.err();
    EXPECT_EQ(process.err(), "");
    return process.out();
  };
  ASSERT_EQ(Up("a").code, 0);  // one that is hidden
  EXPECT_EQ(listed(""),
            "no lab is up; start one with syncopate lab up FILE.toml, for example "
            "labs/two-racks.toml\n");
  EXPECT_EQ(listed(" --json"), "[]\n");
  EXPECT_THAT(Syncopate({"list"}).out, HasSubstr(Name("a") + "  4 hosts, 0 changes"));
}

TEST_F(LabTest, ALinkChangesItsRateAndGetsItBack) {
  ASSERT_EQ(Up("a").code, 0);
  Lab lab = Lab::Open(Name("a"), MonotonicClock()).value();
  EXPECT_NEAR(Measure(lab, "h0", "h2", 47.8), 47.8, 47.8 * 0.05);
  const Outcome change =
      Syncopate({"link", "rack0", "rack1", "rate", "20mbit", "--one-way", "--lab", Name("a")});
  ASSERT_EQ(change.code, 0) << change.err;
  EXPECT_THAT(change.out, HasSubstr("rate1"));
  EXPECT_NEAR(Measure(lab, "h0", "h2", 19.1), 19.1, 19.1 * 0.05);
  EXPECT_NEAR(Measure(lab, "h2", "h0", 47.8), 47.8, 47.8 * 0.05) << "one way only";
  EXPECT_EQ(Syncopate({"undo", "rate1", "--lab", Name("a")}).code, 0);
  EXPECT_NEAR(Measure(lab, "h0", "h2", 47.8), 47.8, 47.8 * 0.05);
  EXPECT_EQ(Syncopate({"undo", "rate1", "--lab", Name("a")}).code, 2);
}

TEST_F(LabTest, CutsLosePacketsAndHeal) {
  ASSERT_EQ(Up("a").code, 0);
  const std::string lab = Name("a");
  for (const std::vector<std::string>& cut :
       std::vector<std::vector<std::string>>{{"cut", "h0"},
                                             {"cut", "h0", "--one-way", "in"},
                                             {"cut", "h0", "--one-way", "out"},
                                             {"cut", "rack1", "rack0"},
                                             {"cut", "h0", "h3"},
                                             {"cut", "h0", "h3", "--one-way", "in"}}) {
    std::vector<std::string> words = cut;
    words.insert(words.end(), {"--lab", lab, "--as", "it"});
    ASSERT_EQ(Syncopate(words).code, 0);
    EXPECT_FALSE(CanTalk(lab, "h0", "h3")) << ::testing::PrintToString(cut);
    EXPECT_TRUE(CanTalk(lab, "h2", "h3")) << ::testing::PrintToString(cut);
    ASSERT_EQ(Syncopate({"undo", "it", "--lab", lab}).code, 0);
    EXPECT_TRUE(CanTalk(lab, "h0", "h3")) << ::testing::PrintToString(cut);
  }
  ASSERT_EQ(Syncopate({"cut", "h0", "h3", "--lab", lab}).code, 0);
  EXPECT_TRUE(CanTalk(lab, "h0", "h2")) << "only the two do not hear each other";
}

// CPU seconds of a busy loop on a host during a second.
double BusySeconds(const std::string& lab, const std::string& host) {
  const Outcome busy = Syncopate({"exec", "--lab", lab, host, "--", "bash", "-c",
                                  "TIMEFORMAT=%U; time timeout 1 bash -c 'while :; do :; done'"});
  double seconds = -1;
  EXPECT_TRUE(absl::SimpleAtod(busy.err, &seconds)) << busy.err;
  return seconds;
}

// At best, of some attempts on a machine that may be busy, more than `least`.
double FreeSeconds(const std::string& lab, const std::string& host, double least) {
  double free = BusySeconds(lab, host);
  for (int attempt = 0; attempt < 5 && free < least; ++attempt) free = BusySeconds(lab, host);
  return free;
}

TEST_F(LabTest, SlowHostsGetLessCpuTime) {
  const absl::Status can = CanLimitCpu();
  if (!can.ok()) GTEST_SKIP() << can.message();
  ASSERT_EQ(Up("a").code, 0);
  ASSERT_EQ(Syncopate({"slow", "h1", "10x", "--cores", "0.5", "--lab", Name("a")}).code, 0);
  const double slow = BusySeconds(Name("a"), "h1");
  EXPECT_GT(slow, 0);
  EXPECT_LT(slow, 0.15) << "a twentieth of a core";
  ASSERT_EQ(Syncopate({"undo", "slow1", "--lab", Name("a")}).code, 0);
  EXPECT_GT(FreeSeconds(Name("a"), "h1", 2 * slow), 2 * slow);
}

TEST_F(LabTest, HostsHaveTheCoresOfTheirFile) {
  const absl::Status can = CanLimitCpu();
  if (!can.ok()) GTEST_SKIP() << can.message();
  const std::string file = Write("cores.toml", TwoHostsToml("cores") + "cores = 0.2\n");
  ASSERT_EQ(Syncopate({"up", file, "--name", Name("a")}).code, 0);
  const double own = FreeSeconds(Name("a"), "h1", 0.15);
  EXPECT_GT(own, 0);
  EXPECT_LT(own, 0.35);
  ASSERT_EQ(Syncopate({"slow", "h1", "5x", "--lab", Name("a")}).code, 0);
  const double slow = BusySeconds(Name("a"), "h1");
  EXPECT_LT(slow, 0.12) << "a fifth of a fifth of a core";
  ASSERT_EQ(Syncopate({"undo", "slow1", "--lab", Name("a")}).code, 0);
  const double again = FreeSeconds(Name("a"), "h1", 2 * slow);
  EXPECT_GT(again, 2 * slow);
  EXPECT_LT(again, 0.35);
}

TEST_F(LabTest, ProgramsRunOnHostsAsIfThere) {
  ASSERT_EQ(Up("a").code, 0);
  const std::string lab = Name("a");
  EXPECT_EQ(Syncopate({"exec", "--lab", lab, "h2", "--", "sh", "-c", "exit 7"}).code, 7);
  EXPECT_EQ(Syncopate({"exec", "--lab", lab, "h2", "sh", "-c", "exit 6"}).code, 6);
  EXPECT_EQ(Syncopate({"exec", "--lab", lab, "h2", "--", "no-such-program"}).code, 127);
  EXPECT_EQ(Syncopate({"exec", "--lab", lab, "h2"}).code, 2);
  const Outcome wrong = Syncopate({"exec", "--lab", lab, "h9", "--", "true"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("hosts: h0, h1, h2, h3"));
  const Outcome there = Syncopate({"exec", "--lab", lab, "h2", "--", "sh", "-c",
                                   "hostname; ls /sys/class/net | tr '\\n' ' '; getent hosts h3"});
  EXPECT_THAT(there.out, HasSubstr("h2\neth0 lo 10.250.0.4"));
  Subprocess waiting({SYNCOPATE_BINARY, "lab", "exec", "--lab", lab, "h2", "--", "sh", "-c",
                      "echo here; exec sleep 1000"});
  ASSERT_TRUE(waiting.ReadUntil([&] { return waiting.Count("here") > 0; }));
  kill(waiting.pid(), SIGTERM);
  EXPECT_EQ(waiting.Wait(), 128 + SIGTERM);
  EXPECT_TRUE(ProcessesIn({HostNamespace(lab, "h2")}).empty());
}

TEST_F(LabTest, AJobRunsOnAllHosts) {
  ASSERT_EQ(Up("a").code, 0);
  const Outcome job = Syncopate({"run", "--lab", Name("a"), "--slots", "2", "--", "sh", "-c",
                                 "echo $(hostname) is $SYNCOPATE_RANK of $SYNCOPATE_SIZE."});
  EXPECT_EQ(job.code, 0) << job.err;
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_THAT(job.out, HasSubstr(absl::StrCat("h", rank / 2, " is ", rank, " of 8.")));
  }
  EXPECT_EQ(Syncopate({"run", "--lab", Name("a")}).code, 2);
  EXPECT_EQ(Syncopate({"run", "--lab", Name("a"), "--", "sh", "-c", "exit 5"}).code, 5);
}

TEST_F(LabTest, AJobTakesTheOptionsOfLaunch) {
  ASSERT_EQ(Up("a").code, 0);
  const Outcome some = Syncopate({"run", "--lab", Name("a"), "-H", "h1,h3:2", "-x", "A=1 2",
                                  "--no-tag", "--", "sh", "-c", "echo $(hostname) has $A."});
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_THAT(absl::StrSplit(some.out, '\n', absl::SkipEmpty()),
              ::testing::UnorderedElementsAre("h1 has 1 2.", "h3 has 1 2.", "h3 has 1 2."));
  const Outcome late =
      Syncopate({"run", "--lab", Name("a"), "--timeout", "300ms", "--", "sleep", "1000"});
  EXPECT_EQ(late.code, 1);
  EXPECT_EQ(late.err,
            "syncopate lab run: not done after 300ms; ended all 4 ranks; give more time with "
            "--timeout\n");
  const Outcome lost = Syncopate({"run", "--lab", Name("a"), "-n", "2", "--on-failure", "continue",
                                  "--", "sh", "-c", "[ $RANK = 0 ] || kill -9 $$"});
  EXPECT_EQ(lost.code, 0);
  EXPECT_THAT(lost.err,
              ::testing::StartsWith("syncopate lab run: rank 1 on h1 was killed by signal 9"));
}

TEST_F(LabTest, AnInterruptedJobOrCheckLeavesNothing) {
  ASSERT_EQ(Up("a").code, 0);
  // The launcher, its supervisor, and for each of two hosts an agent, a supervisor and a rank, which is there a
  // little before the launcher hears of it.
  syncopate::testing::ExpectCleanEndOnInterrupt(
      {SYNCOPATE_BINARY, "lab", "run", "--lab", Name("a"), "-n", "2", "--", "sleep", "1000"}, 8,
      ::testing::MatchesRegex("syncopate lab run: interrupted; ended [12] ranks?\n"));
  if (!CheckIperf().ok()) GTEST_SKIP() << CheckIperf();
  // The command and both ends of a flow.
  syncopate::testing::ExpectCleanEndOnInterrupt(
      {SYNCOPATE_BINARY, "lab", "check", Name("a"), "--seconds", "100"}, 3,
      "syncopate lab check: interrupted\n");
}

TEST_F(LabTest, AScenarioThatIsInterruptedUndoesItsChanges) {
  ASSERT_EQ(Up("a").code, 0);
  const std::string file = Write("s.toml",
                                 "[[event]]\nat = \"0s\"\ndo = \"cut h0\"\nfor = \"10ms\"\n"
                                 "[[event]]\nat = \"20ms\"\ndo = \"link h1 rack0 rate 10mbit\"\n"
                                 "[[event]]\nat = \"1000s\"\ndo = \"cut h3\"\n");
  Subprocess scenario({SYNCOPATE_BINARY, "lab", "scenario", file, "--lab", Name("a")});
  const Lab lab = Lab::Open(Name("a"), MonotonicClock()).value();
  ASSERT_TRUE(scenario.ReadUntil([&] { return scenario.Count("rate 10mbit") > 0; }));
  const int64_t deadline_ns = MonotonicClock().NowNs() + syncopate::testing::kDeadlineNs;
  while (lab.Changes().value().size() != 1 && MonotonicClock().NowNs() < deadline_ns) {
  }
  EXPECT_EQ(lab.Changes().value()[0].name, "event2");
  kill(scenario.pid(), SIGINT);
  EXPECT_EQ(scenario.Wait(), 128 + SIGINT);
  EXPECT_EQ(scenario.err(),
            "syncopate lab scenario: interrupted; what the scenario had changed is undone\n");
  EXPECT_TRUE(lab.Changes().value().empty());
}

TEST_F(LabTest, SaysWhatIsMissing) {
  Subprocess::Options nobody;
  nobody.before_exec = [] {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(99);
  };
  // A copy that everybody may run, wherever the tests were built.
  const std::string binary = absl::StrCat(folder_, "/syncopate");
  std::filesystem::copy_file(SYNCOPATE_BINARY, binary);
  const std::string file = SmallLab();
  Subprocess up({binary, "lab", "up", file}, nobody);
  EXPECT_EQ(up.Wait(), 1);
  EXPECT_THAT(up.err(), HasSubstr("run this as root"));
  const std::string delayed = Write("delay.toml",
                                    "[lab]\nname = \"d\"\ndelay = \"1ms\"\n[[switch]]\nname = "
                                    "\"s\"\n[[host]]\nname = \"h\"\ncount = 2\nswitch = \"s\"\n");
  const Outcome delay = Syncopate({"up", delayed, "--name", Name("d")});
  if (delay.code != 0) {
    EXPECT_EQ(delay.code, 1);
    EXPECT_THAT(delay.err, HasSubstr("this kernel lacks netem"));
  }
  const std::string strange = Write("strange.toml",
                                    "[lab]\nname = \"d\"\ncongestion = \"carrier-pigeon\"\n"
                                    "[[host]]\nname = \"h\"\n");
  EXPECT_THAT(Syncopate({"up", strange}).err, HasSubstr("no congestion control"));
}

TEST_F(LabTest, ReadyMadeLabsComeUpAndTalk) {
  for (const auto& entry : std::filesystem::directory_iterator(LABS_FOLDER)) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path().filename().string());
    ASSERT_EQ(Syncopate({"up", entry.path().string(), "--name", Name("r")}).code, 0);
    const Lab lab = Lab::Open(Name("r"), MonotonicClock()).value();
    EXPECT_TRUE(CanTalk(Name("r"), lab.hosts().front().name, lab.hosts().back().name));
    EXPECT_EQ(Syncopate({"status", Name("r")}).code, 0);
    EXPECT_EQ(Syncopate({"down", Name("r")}).code, 0);
  }
}

TEST(ReadyMadeLabsTest, DeclareValidTopologies) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(LABS_FOLDER)) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    const absl::StatusOr<Spec> spec = ReadLab(entry.path().string());
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->name, entry.path().stem().string());
    const absl::Status valid = Validate(DeclaredTopology(*spec));
    EXPECT_TRUE(valid.ok()) << entry.path() << ": " << valid;
  }
  EXPECT_GE(files, 10);
}

}  // namespace
}  // namespace syncopate::lab
