// What is promised when a worker on another host dies, stops or is cut off (docs/failure.md), on an
// emulated cluster. Needs root. SYNCOPATE_TEST_REPEATS=50 repeats each case that often.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "lab/lab_testing.h"
#include "lab/scoped_lab.h"
#include "lab/spec.h"
#include "syncopate/status.h"
#include "tests/forked.h"
#include "tests/host_workers.h"

namespace syncopate {
namespace {

constexpr int kHosts = 8;
constexpr int kSizeMax = kHosts;  // workers

// When in an all-reduce the fault comes.
enum class Moment {
  kAnywhere,  // some time after all have done two
  kBegin,     // the victim has just begun one
  kMiddle,    // half of the time that one takes later
  kEnd,       // another worker has the result, and the victim has not returned from the call
};
const char* Name(Moment moment) {
  constexpr const char* kNames[] = {"anywhere", "begin", "middle", "end"};
  return kNames[static_cast<int>(moment)];
}

struct JobSetup {
  const char* wire = "tcp";
  int hosts = kHosts;
  int slots = 1;                // workers a host
  uint64_t elements = 1 << 19;  // 2 MiB: 150 ms at 200 Mbit/s
  Moment moment = Moment::kAnywhere;
  std::vector<int> active = {};  // the others relay; empty: all take part

  int size() const { return hosts * slots; }
  std::string Text() const {
    return std::string(wire) + ", " + std::to_string(slots) + " a host, " +
           std::to_string(elements * sizeof(float)) + " bytes, at " + Name(moment);
  }
};

// What the workers tell the test.
struct Story {
  std::atomic<int> begun[kSizeMax];    // all-reduces begun
  std::atomic<int> rounds[kSizeMax];   // and done before the failure
  std::atomic<int> suspect[kSizeMax];  // -1: no failure yet
  std::atomic<int64_t> failed_ns[kSizeMax];
  std::atomic<int> data[kSizeMax];  // 1 old, 2 new, 3 something else, 4 old as it is not active
  std::atomic<int> code[kSizeMax];
  std::atomic<int> regrouped[kSizeMax];  // 1: an all-reduce of the survivors was right
};

// What became of the all-reduce in which the fault came: all survivors have the old data and an
// error, or all have the new data; or the victim was between two of them.
struct Outcomes {
  int old_data = 0;
  int new_data = 0;
};

// Small whole numbers, so that sums are exact in any order; different from element to element.
float Element(uint64_t index, int round) {
  return static_cast<float>(1 + (index * 7 + index / 1021 + static_cast<uint64_t>(round) * 3) % 61);
}

class HostsFailureTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    BringUp(lab::ParseLab(lab::TwoRacksToml("failure", kHosts / 2, "200mbit", "200mbit"),
                          "the test's lab"));
  }
  static void BringUp(const absl::StatusOr<lab::Spec>& spec) {
    if (geteuid() != 0) return;
    ASSERT_TRUE(spec.ok()) << spec.status();
    absl::StatusOr<std::unique_ptr<lab::ScopedLab>> made =
        lab::ScopedLab::Up(*spec, "failure-" + std::to_string(getpid()), MonotonicClock());
    if (!made.ok()) {
      reason_ = made.status().ToString();
      return;
    }
    lab_ = made->release();
  }
  static void TearDownTestSuite() {
    delete lab_;
    lab_ = nullptr;
  }
  void SetUp() override {
    if (lab_ == nullptr) GTEST_SKIP() << "emulated clusters need root: " << reason_;
  }

  static int Repeats() {
    const char* text = std::getenv("SYNCOPATE_TEST_REPEATS");
    return text == nullptr ? 1 : std::max(1, std::atoi(text));
  }

  // Whether all elements are what they were made of times `factor`.
  static bool AllAre(const std::vector<float>& data, int round, float factor) {
    for (uint64_t i = 0; i < data.size(); ++i) {
      if (data[i] != factor * Element(i, round)) return false;
    }
    return true;
  }
  static void Fill(std::vector<float>& data, int round, float factor) {
    for (uint64_t i = 0; i < data.size(); ++i) data[i] = factor * Element(i, round);
  }

  // All-reduces until one fails; then tells how, and goes on with the survivors.
  static int Body(Worker& worker, Story& story, const JobSetup& setup) {
    const size_t rank = static_cast<size_t>(worker.rank());
    const std::vector<int>& active = setup.active;
    std::vector<float> data(setup.elements);
    const float all = static_cast<float>(setup.size() * (setup.size() + 1)) / 2;
    float all_active = active.empty() ? all : 0;
    for (const int other : active) all_active += static_cast<float>(other + 1);
    const bool is_active =
        active.empty() || std::find(active.begin(), active.end(), worker.rank()) != active.end();
    const float mine = static_cast<float>(rank + 1);
    Call call = {.data = Array::Of(data.data(), data.size()), .active = active};
    if (!active.empty()) call.algorithm = "parameter-server";  // uses those that are not active
    for (int round = 0; round < 100'000; ++round) {
      Fill(data, round, mine);
      ++story.begun[rank];
      const absl::Status status = worker.world().Run(call);
      if (status.ok()) {
        ++story.rounds[rank];
        if (!AllAre(data, round, is_active ? all_active : mine)) return 10;
        continue;
      }
      story.failed_ns[rank] = MonotonicClock().NowNs();
      story.data[rank] = AllAre(data, round, mine)         ? (is_active ? 1 : 4)
                         : AllAre(data, round, all_active) ? 2
                                                           : 3;
      story.code[rank] = static_cast<int>(status.code());
      const std::optional<int> suspect = GetSuspect(status);
      story.suspect[rank] = suspect.value_or(-2);
      std::fprintf(stderr, "rank %zu: %s\n", rank, status.ToString().c_str());
      if (!suspect || *suspect == worker.rank()) return 0;
      return RunWithoutSuspect(worker, story, *suspect, all, data);
    }
    return 14;
  }

  static int RunWithoutSuspect(Worker& worker, Story& story, int suspect, float all,
                               std::vector<float>& data) {
    const size_t rank = static_cast<size_t>(worker.rank());
    std::vector<int> survivors;
    for (int other = 0; other < worker.size(); ++other) {
      if (other != suspect) survivors.push_back(other);
    }
    absl::StatusOr<Group> group = worker.NewGroup(survivors);
    if (!group.ok()) return 11;
    Fill(data, 0, static_cast<float>(rank + 1));
    if (absl::Status again = group->AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kSum);
        !again.ok()) {
      std::fprintf(stderr, "rank %zu, after regrouping: %s\n", rank, again.ToString().c_str());
      return 12;
    }
    if (!AllAre(data, 0, all - static_cast<float>(suspect + 1))) return 13;
    story.regrouped[rank] = 1;
    return 0;
  }

  static bool WaitUntil(const std::function<bool()>& condition) {
    const int64_t until_ns = MonotonicClock().NowNs() + 60'000'000'000;
    while (!condition() && MonotonicClock().NowNs() < until_ns) usleep(100);
    return condition();
  }

  // Waits until the victim's all-reduce has come to where the fault is wanted.
  static bool WaitForMoment(const JobSetup& setup, Story& story, int victim, int repeat) {
    const auto size = static_cast<size_t>(setup.size());
    const size_t v = static_cast<size_t>(victim);
    const auto all_have = [&](int rounds) {
      return std::all_of(story.rounds, story.rounds + size,
                         [&](const auto& done) { return done >= rounds; });
    };
    if (!WaitUntil([&] { return all_have(1); })) return false;
    const int64_t first_ns = MonotonicClock().NowNs();
    if (!WaitUntil([&] { return all_have(2); })) return false;
    const int64_t round_us = (MonotonicClock().NowNs() - first_ns) / 1000;
    const int done = story.rounds[v];
    switch (setup.moment) {
      case Moment::kAnywhere:
        usleep(static_cast<useconds_t>(repeat * 7919 % 150 * 1000));
        return true;
      case Moment::kBegin:
        return WaitUntil([&] { return story.begun[v] > done + 1; });
      case Moment::kMiddle:
        if (!WaitUntil([&] { return story.begun[v] > done + 1; })) return false;
        usleep(static_cast<useconds_t>(std::min<int64_t>(round_us / 2, 1'000'000)));
        return true;
      case Moment::kEnd:
        return WaitUntil([&] {
          const int mine = story.rounds[v];
          return std::any_of(story.rounds, story.rounds + size,
                             [&](const auto& others) { return others > mine; });
        });
    }
    return false;
  }

  // Lets `fail` happen to `victim` at the moment that is wanted, and looks at what the others say.
  void Check(
      const JobSetup& setup, int victim, const std::function<void(HostWorkers&)>& fail,
      double limit_seconds, bool victim_learns, const std::function<void()>& mend = [] {},
      Outcomes* outcomes = nullptr) {
    setenv("SYNCOPATE_TRANSPORT", setup.wire, 1);
    for (int repeat = 0; repeat < Repeats(); ++repeat) {
      SCOPED_TRACE(setup.Text() + ", repeat " + std::to_string(repeat));
      Shared<Story> story;
      for (auto& suspect : story->suspect) suspect = -1;
      const auto workers = HostWorkers::InLab(
          **lab_, setup.slots, [&](Worker& worker) { return Body(worker, *story, setup); },
          setup.hosts);
      ASSERT_TRUE(WaitForMoment(setup, *story, victim, repeat));
      const int64_t failed_ns = MonotonicClock().NowNs();
      fail(*workers);
      const std::vector<int> codes = workers->Join(absl::Seconds(victim_learns ? 60 : 40));
      mend();
      CheckVictim(codes[static_cast<size_t>(victim)], *story, victim, victim_learns);
      CheckSurvivors(setup, codes, *story, victim, failed_ns, limit_seconds, outcomes);
      if (HasFailure()) return;
    }
  }

  static void CheckVictim(int code, const Story& story, int victim, bool learns) {
    if (learns) {
      EXPECT_EQ(code, 0) << "it should have learnt that it is out";
      EXPECT_EQ(story.suspect[victim], victim);
      return;
    }
    EXPECT_TRUE(WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL) << "wait status " << code;
    EXPECT_EQ(story.suspect[victim], -1) << "it had a failure before it was killed";
  }

  static void CheckSurvivors(const JobSetup& setup, const std::vector<int>& codes,
                             const Story& story, int victim, int64_t failed_ns,
                             double limit_seconds, Outcomes* outcomes) {
    int agreed_data = 0;
    int least = 1 << 30, most = 0;
    for (int rank = 0; rank < setup.size(); ++rank) {
      if (rank == victim) continue;
      SCOPED_TRACE("rank " + std::to_string(rank));
      const size_t r = static_cast<size_t>(rank);
      EXPECT_EQ(codes[r], 0);
      EXPECT_EQ(story.suspect[r], victim);
      EXPECT_LT(static_cast<double>(story.failed_ns[r] - failed_ns) / 1e9, limit_seconds);
      EXPECT_NE(story.data[r], 3) << "neither old nor new";
      if (story.data[r] != 4) {
        if (agreed_data == 0) agreed_data = story.data[r];
        EXPECT_EQ(story.data[r], agreed_data) << "some have old data, some new";
      }
      EXPECT_EQ(story.regrouped[r], 1);
      least = std::min(least, story.rounds[r].load());
      most = std::max(most, story.rounds[r].load());
    }
    EXPECT_EQ(least, most) << "the same all-reduces succeeded everywhere";
    if (outcomes == nullptr || story.begun[victim] == story.rounds[victim]) return;
    ++(least >= story.begun[victim] ? outcomes->new_data : outcomes->old_data);
  }

  std::string HostOf(int rank) { return (*lab_)->hosts()[static_cast<size_t>(rank)].name; }

  std::string Change(const std::vector<std::string>& words) { return ChangeLab(**lab_, words); }

  void CheckCut(int victim, const std::vector<std::string>& words) {
    std::string cut;
    Check(
        {}, victim, [&](HostWorkers&) { cut = Change(words); }, 5.0, true,
        [&] { EXPECT_TRUE((*lab_)->Undo(cut).ok()); });
  }

  void CheckKill(const JobSetup& setup, int victim, double limit_seconds = 1.0,
                 Outcomes* outcomes = nullptr) {
    Check(
        setup, victim, [&](HostWorkers& workers) { workers.Signal(victim, SIGKILL); },
        limit_seconds, false, [] {}, outcomes);
  }

  static lab::ScopedLab* lab_;
  static std::string reason_;
};

lab::ScopedLab* HostsFailureTest::lab_ = nullptr;
std::string HostsFailureTest::reason_;

TEST_F(HostsFailureTest, KilledWorkerIsNamedByAllWithinASecond) { CheckKill({}, 3); }

TEST_F(HostsFailureTest, KilledFirstWorkerToo) { CheckKill({}, 0); }

TEST_F(HostsFailureTest, KilledRelayIsNamedLikeAnyOther) {
  CheckKill({.active = {0, 1, 3, 5, 7}}, 6);
}

TEST_F(HostsFailureTest, StoppedWorkerIsNamedAndLearnsItWhenItWakes) {
  Check(
      {}, 5,
      [&](HostWorkers& workers) {
        workers.Signal(5, SIGSTOP);
        sleep(8);  // the time that the others have, and more
        workers.Signal(5, SIGCONT);
      },
      5.0, true);
}

TEST_F(HostsFailureTest, CutOffWorkerIsNamedAndNamesItself) { CheckCut(6, {"cut", HostOf(6)}); }

TEST_F(HostsFailureTest, CutOffFirstWorkerToo) { CheckCut(0, {"cut", HostOf(0)}); }

TEST_F(HostsFailureTest, WorkerThatIsHeardByNobodyIsNamed) {
  CheckCut(2, {"cut", HostOf(2), "--one-way", "out"});
}

TEST_F(HostsFailureTest, WorkerThatHearsNobodyIsNamed) {
  CheckCut(7, {"cut", HostOf(7), "--one-way", "in"});
}

// A worker is killed at the begin, in the middle and at the end of all-reduces from 4 KiB to 16 MiB,
// over both wires, with one and two workers a host. The campaign (tests/campaign --live) has the full
// product.
class KilledAtEveryMomentTest : public HostsFailureTest {
 protected:
  void CheckAll(const char* wire, int slots, const std::vector<uint64_t>& kilobytes) {
    Outcomes outcomes;
    int victim = 0;
    for (const uint64_t size : kilobytes) {
      for (const Moment moment : {Moment::kBegin, Moment::kMiddle, Moment::kEnd}) {
        const JobSetup setup = {.wire = wire,
                                .hosts = kHosts / slots,
                                .slots = slots,
                                .elements = size << 8,
                                .moment = moment};
        victim = (victim + 3) % setup.size();
        // The first call that fails may be the one after, when the new data has come to all.
        CheckKill(setup, victim, 5.0, &outcomes);
        if (HasFailure()) return;
      }
    }
    std::printf("old data %d times, new data %d times\n", outcomes.old_data, outcomes.new_data);
    EXPECT_GT(outcomes.old_data, 0);
    EXPECT_GT(outcomes.new_data, 0);
  }
};

TEST_F(KilledAtEveryMomentTest, OverTcp) { CheckAll("tcp", 1, {4, 256, 2048, 16384}); }
TEST_F(KilledAtEveryMomentTest, OverTcpWithTwoWorkersAHost) { CheckAll("tcp", 2, {64, 4096}); }
TEST_F(KilledAtEveryMomentTest, OverUcx) { CheckAll("ucx", 1, {4, 2048}); }
TEST_F(KilledAtEveryMomentTest, OverUcxWithTwoWorkersAHost) { CheckAll("ucx", 2, {64, 1024}); }

// Buffers this large are not kept for the next operation but freed: survivors that were still being
// sent to read into freed memory and cut each other off.
class LargeDataTest : public HostsFailureTest {
 protected:
  static void SetUpTestSuite() { BringUp(lab::ReadLab(LABS_FOLDER "/plain.toml")); }
};

TEST_F(LargeDataTest, SurvivorsOfAKillInTheMiddleOfALargeAllReduceGoOn) {
  const JobSetup setup = {.hosts = 4, .elements = uint64_t{75} << 20, .moment = Moment::kMiddle};
  // Nothing is shaped, so the workers take all of the processor from their sentries: the limit is not
  // that of the contract.
  Check(
      setup, 2, [](HostWorkers& workers) { workers.Signal(2, SIGKILL); }, 5.0, false);
}

}  // namespace
}  // namespace syncopate
