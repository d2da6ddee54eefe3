// What is promised when a worker on another host dies, stops or is cut off (docs/failure.md), on an
// emulated cluster. Needs root. SYNCOPATE_TEST_REPEATS=50 repeats each case so often.
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

constexpr int kSize = 8;
constexpr uint64_t kElements = 1 << 19;  // 2 MiB: 150 ms at 200 Mbit/s

// What the workers tell the test.
struct Story {
  std::atomic<int> rounds[kSize];   // all-reduces done before the failure
  std::atomic<int> suspect[kSize];  // -1: no failure yet
  std::atomic<int64_t> failed_ns[kSize];
  std::atomic<int> data[kSize];  // 1 old, 2 new, 3 something else, 4 old as it is not active
  std::atomic<int> code[kSize];
  std::atomic<int> regrouped[kSize];  // 1: an all-reduce of the survivors was right
};

class HostsFailureTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (geteuid() != 0) return;
    absl::StatusOr<lab::Spec> spec = lab::ParseLab(
        lab::TwoRacksToml("failure", kSize / 2, "200mbit", "200mbit"), "the test's lab");
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

  // All-reduces among `active` (if there are any: the others relay) until one fails; then tells
  // how, and goes on with the survivors.
  static int Body(Worker& worker, Story& story, const std::vector<int>& active) {
    const size_t rank = static_cast<size_t>(worker.rank());
    std::vector<float> data(kElements);
    const float all = kSize * (kSize + 1) / 2;
    float all_active = active.empty() ? all : 0;
    for (const int other : active) all_active += static_cast<float>(other + 1);
    const bool is_active =
        active.empty() || std::find(active.begin(), active.end(), worker.rank()) != active.end();
    Call call = {.data = Array::Of(data.data(), kElements), .active = active};
    if (!active.empty()) call.algorithm = "parameter-server";  // uses those that are not active
    for (int round = 0; round < 1000; ++round) {
      const float scale = static_cast<float>(round % 50 + 1);
      const float mine = static_cast<float>(rank + 1) * scale;
      std::fill(data.begin(), data.end(), mine);
      const absl::Status status = worker.world().Run(call);
      if (status.ok()) {
        for (const float value : data) {
          if (value != (is_active ? all_active * scale : mine)) return 10;
        }
        ++story.rounds[rank];
        continue;
      }
      story.failed_ns[rank] = MonotonicClock().NowNs();
      const auto everywhere = [&](float value) {
        return std::all_of(data.begin(), data.end(), [&](float f) { return f == value; });
      };
      story.data[rank] = everywhere(mine)                 ? (is_active ? 1 : 4)
                         : everywhere(all_active * scale) ? 2
                                                          : 3;
      story.code[rank] = static_cast<int>(status.code());
      const std::optional<int> suspect = GetSuspect(status);
      story.suspect[rank] = suspect.value_or(-2);
      std::fprintf(stderr, "rank %zu: %s\n", rank, status.ToString().c_str());
      if (!suspect || *suspect == worker.rank()) return 0;
      std::vector<int> survivors;
      for (int other = 0; other < kSize; ++other) {
        if (other != *suspect) survivors.push_back(other);
      }
      absl::StatusOr<Group> group = worker.NewGroup(survivors);
      if (!group.ok()) return 11;
      std::fill(data.begin(), data.end(), static_cast<float>(rank + 1));
      if (absl::Status again = group->AllReduce(Array::Of(data.data(), kElements), ReduceOp::kSum);
          !again.ok()) {
        std::fprintf(stderr, "rank %zu, after regrouping: %s\n", rank, again.ToString().c_str());
        return 12;
      }
      if (data[0] != all - static_cast<float>(*suspect + 1) || data[kElements - 1] != data[0]) {
        return 13;
      }
      story.regrouped[rank] = 1;
      return 0;
    }
    return 14;
  }

  // Waits until everybody has done some rounds, lets `fail` happen to `victim`, and looks at what
  // the others say.
  void Check(
      int victim, const std::function<void(HostWorkers&)>& fail, double limit_seconds,
      bool victim_learns, const std::function<void()>& mend = [] {},
      const std::vector<int>& active = {}) {
    for (int repeat = 0; repeat < Repeats(); ++repeat) {
      SCOPED_TRACE("repeat " + std::to_string(repeat));
      Shared<Story> story;
      for (auto& suspect : story->suspect) suspect = -1;
      const auto workers = HostWorkers::InLab(
          **lab_, 1, [&](Worker& worker) { return Body(worker, *story, active); });
      const int64_t wait_until_ns = MonotonicClock().NowNs() + 60'000'000'000;
      const auto all_work = [&] {
        return std::all_of(std::begin(story->rounds), std::end(story->rounds),
                           [&](const auto& rounds) { return rounds >= 2; });
      };
      while (!all_work() && MonotonicClock().NowNs() < wait_until_ns) usleep(1000);
      ASSERT_TRUE(all_work());
      usleep(static_cast<useconds_t>(repeat * 7919 % 150 * 1000));  // somewhere in an all-reduce
      const int64_t failed_ns = MonotonicClock().NowNs();
      fail(*workers);
      const std::vector<int> codes = workers->Join(absl::Seconds(victim_learns ? 60 : 30));
      mend();
      int agreed_data = 0;
      int least = 1 << 30, most = 0;
      for (int rank = 0; rank < kSize; ++rank) {
        SCOPED_TRACE("rank " + std::to_string(rank));
        const size_t r = static_cast<size_t>(rank);
        if (rank == victim) {
          if (victim_learns) {
            EXPECT_EQ(codes[r], 0) << "it should have learnt that it is out";
            EXPECT_EQ(story->suspect[r], victim);
          }
          continue;
        }
        EXPECT_EQ(codes[r], 0);
        EXPECT_EQ(story->suspect[r], victim);
        EXPECT_LT(static_cast<double>(story->failed_ns[r] - failed_ns) / 1e9, limit_seconds);
        EXPECT_NE(story->data[r], 3) << "neither old nor new";
        if (story->data[r] != 4) {
          if (agreed_data == 0) agreed_data = story->data[r];
          EXPECT_EQ(story->data[r], agreed_data) << "some have old data, some new";
        }
        EXPECT_EQ(story->regrouped[r], 1);
        least = std::min(least, story->rounds[r].load());
        most = std::max(most, story->rounds[r].load());
      }
      EXPECT_EQ(least, most) << "the same all-reduces succeeded everywhere";
      if (HasFailure()) return;
    }
  }

  std::string HostOf(int rank) { return (*lab_)->hosts()[static_cast<size_t>(rank)].name; }

  std::string Change(const std::vector<std::string>& words) { return ChangeLab(**lab_, words); }

  void CheckCut(int victim, const std::vector<std::string>& words) {
    std::string cut;
    Check(
        victim, [&](HostWorkers&) { cut = Change(words); }, 5.0, true,
        [&] { EXPECT_TRUE((*lab_)->Undo(cut).ok()); });
  }

  static lab::ScopedLab* lab_;
  static std::string reason_;
};

lab::ScopedLab* HostsFailureTest::lab_ = nullptr;
std::string HostsFailureTest::reason_;

TEST_F(HostsFailureTest, KilledWorkerIsNamedByAllWithinASecond) {
  Check(
      3, [&](HostWorkers& workers) { workers.Signal(3, SIGKILL); }, 1.0, false);
}

TEST_F(HostsFailureTest, KilledFirstWorkerToo) {
  Check(
      0, [&](HostWorkers& workers) { workers.Signal(0, SIGKILL); }, 1.0, false);
}

TEST_F(HostsFailureTest, KilledRelayIsNamedLikeAnyOther) {
  Check(
      6, [&](HostWorkers& workers) { workers.Signal(6, SIGKILL); }, 1.0, false, [] {},
      {0, 1, 3, 5, 7});
}

TEST_F(HostsFailureTest, StoppedWorkerIsNamedAndLearnsItWhenItWakes) {
  Check(
      5,
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

}  // namespace
}  // namespace syncopate
