// A running job notices that the network between its hosts has changed, and says so, on an emulated
// cluster; and nothing else makes it say so. Needs root. SYNCOPATE_TEST_REPEATS=5 repeats each case
// so often.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/lab_testing.h"
#include "lab/scoped_lab.h"
#include "lab/spec.h"
#include "model/topology.h"
#include "tests/forked.h"
#include "tests/host_workers.h"

namespace syncopate {
namespace {

using ::testing::HasSubstr;

constexpr int kSize = 8;
constexpr uint64_t kElements = 1 << 18;  // 1 MiB
constexpr int kQuietRounds = 60;         // before a change
constexpr int kNoticeRounds = 150;       // within which it must be noticed
constexpr int kLastRounds = 40;          // after it, so that programs follow it as well

constexpr uint64_t kFlowBytes = 1 << 20;

// What the workers tell the test.
struct Story {
  std::atomic<int> rounds[kSize];   // all-reduces done
  std::atomic<int> noticed[kSize];  // rounds done when another version was there; 0: none
  // Of the first new version.
  uint64_t version[kSize];
  char reason[kSize][1024];
  uint64_t digest[kSize];
  uint64_t last_version[kSize];
};

// Keeps the processors busy now and then, as other work on a machine does, and ends by itself.
class CpuNoise : public Forked {
 public:
  CpuNoise(int processes, int seconds, uint64_t seed) {
    for (int i = 0; i < processes; ++i) {
      Fork([&] {
        Random random(seed * 100 + static_cast<uint64_t>(i));
        const int64_t end_ns = MonotonicClock().NowNs() + int64_t{seconds} * 1'000'000'000;
        while (MonotonicClock().NowNs() < end_ns) {
          const int64_t until_ns =
              MonotonicClock().NowNs() + static_cast<int64_t>(random.Between(5, 200)) * 1'000'000;
          while (MonotonicClock().NowNs() < until_ns) continue;
          usleep(static_cast<useconds_t>(random.Between(5, 400) * 1000));
        }
        return 0;
      });
    }
  }
};

class UpkeepTest : public ::testing::Test {
 protected:
  // Makes the lab, with this rate between the racks, and tells workers what it is like. False: labs
  // are not possible here, and the test is skipped.
  bool Up(const std::string& uplink) {
    if (geteuid() != 0) {
      reason_ = "not root";
      return false;
    }
    absl::StatusOr<lab::Spec> spec =
        lab::ParseLab(lab::TwoRacksToml("upkeep", kSize / 2, "200mbit", uplink), "the test's lab");
    EXPECT_TRUE(spec.ok()) << spec.status();
    if (!spec.ok()) return false;
    absl::StatusOr<std::unique_ptr<lab::ScopedLab>> made =
        lab::ScopedLab::Up(*spec, "upkeep-" + std::to_string(getpid()), MonotonicClock());
    if (!made.ok()) {
      reason_ = made.status().ToString();
      return false;
    }
    lab_ = *std::move(made);
    topology_file_ = ::testing::TempDir() + "upkeep-" + std::to_string(getpid()) + ".json";
    std::ofstream(topology_file_) << ToJson(lab::DeclaredTopology(*spec));
    setenv("SYNCOPATE_TOPO_FILE", topology_file_.c_str(), 1);
    return true;
  }
  void TearDown() override {
    if (!topology_file_.empty()) std::remove(topology_file_.c_str());
  }

  static int Repeats() {
    const char* text = std::getenv("SYNCOPATE_TEST_REPEATS");
    return text == nullptr ? 1 : std::max(1, std::atoi(text));
  }

  // So many all-reduces of 1 MiB, all of them right.
  static int Body(Worker& worker, Story& story, int rounds) {
    const size_t rank = static_cast<size_t>(worker.rank());
    std::vector<float> data(kElements);
    const float all = kSize * (kSize + 1) / 2;
    const uint64_t first = worker.Network().version;
    for (int round = 0; round < rounds; ++round) {
      const float scale = static_cast<float>(round % 50 + 1);
      std::fill(data.begin(), data.end(), static_cast<float>(rank + 1) * scale);
      const absl::Status status =
          worker.world().AllReduce(Array::Of(data.data(), kElements), ReduceOp::kSum);
      if (!status.ok()) {
        std::fprintf(stderr, "rank %zu: %s\n", rank, status.ToString().c_str());
        return 10;
      }
      for (const float value : data) {
        if (value != all * scale) return 11;
      }
      const int done = ++story.rounds[rank];
      const NetworkVersion now = worker.Network();
      story.last_version[rank] = now.version;
      if (now.version == first || story.noticed[rank] != 0) continue;
      const absl::StatusOr<Topology> topology = ParseTopology(now.topology_json);
      if (!topology.ok() || topology->version != now.version) return 12;
      story.version[rank] = now.version;
      std::snprintf(story.reason[rank], sizeof(story.reason[rank]), "%s", now.reason.c_str());
      story.digest[rank] = DigestOf(*topology).low;
      story.noticed[rank] = done;
    }
    return 0;
  }

  // Runs a job, changes the lab, and looks at what its workers say. The reason.
  std::string Notice(const std::vector<std::vector<std::string>>& words) {
    Shared<Story> story;
    const int rounds = kQuietRounds + kNoticeRounds + kLastRounds;
    const auto workers =
        HostWorkers::InLab(**lab_, 1, [&](Worker& worker) { return Body(worker, *story, rounds); });
    const int64_t wait_until_ns = MonotonicClock().NowNs() + 60'000'000'000;
    const auto least = [&] {
      return std::min_element(story->rounds, story->rounds + kSize)->load();
    };
    while (least() < kQuietRounds && MonotonicClock().NowNs() < wait_until_ns) usleep(1000);
    EXPECT_GE(least(), kQuietRounds);
    std::vector<std::string> changes;
    for (const std::vector<std::string>& one : words) changes.push_back(Change(one));
    for (const std::string& change : changes) AwaitFlow(change);
    const int changed = std::max_element(story->rounds, story->rounds + kSize)->load();
    const std::vector<int> codes = workers->Join(absl::Seconds(120));
    for (const std::string& change : changes) EXPECT_TRUE((*lab_)->Undo(change).ok());
    EXPECT_THAT(codes, ::testing::Each(0));
    for (size_t rank = 0; rank < kSize; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      EXPECT_GT(story->noticed[rank], kQuietRounds) << "before anything had changed, or never";
      EXPECT_LE(story->noticed[rank], changed + kNoticeRounds);
      EXPECT_EQ(story->version[rank], story->version[0]);
      EXPECT_STREQ(story->reason[rank], story->reason[0]);
      EXPECT_EQ(story->digest[rank], story->digest[0]);
    }
    std::fprintf(stderr, "changed after %d, noticed after %d, last version %lu: %s\n", changed,
                 story->noticed[0].load(), story->last_version[0], story->reason[0]);
    return story->reason[0];
  }

  std::string Change(const std::vector<std::string>& words) { return ChangeLab(**lab_, words); }

  // A flow in the background takes some time to begin; it is there once it has carried something.
  void AwaitFlow(const std::string& name) {
    const absl::StatusOr<std::vector<lab::Change>> changes = (*lab_)->Changes();
    ASSERT_TRUE(changes.ok()) << changes.status();
    for (const lab::Change& change : *changes) {
      if (change.name != name || change.processes.empty()) continue;
      const std::string file = "/proc/" + std::to_string(change.processes.back().pid) + "/io";
      const int64_t wait_until_ns = MonotonicClock().NowNs() + 10'000'000'000;
      uint64_t bytes = 0;
      while (bytes < kFlowBytes && MonotonicClock().NowNs() < wait_until_ns) {
        usleep(1000);
        std::string word;
        std::ifstream(file) >> word >> bytes;  // "rchar: N"
      }
      ASSERT_GE(bytes, kFlowBytes) << "the flow does not begin";
    }
  }

  std::unique_ptr<lab::ScopedLab> lab_;
  std::string reason_;
  std::string topology_file_;
};

TEST_F(UpkeepTest, HalvedUplinkIsNoticed) {
  if (!Up("200mbit")) GTEST_SKIP() << "emulated clusters need root: " << reason_;
  for (int repeat = 0; repeat < Repeats() && !HasFailure(); ++repeat) {
    EXPECT_THAT(Notice({{"link", "rack1", "rack0", "rate", "100mbit"}}), HasSubstr("rack"));
  }
}

// A hierarchical program, which is what a narrow uplink asks for.
TEST_F(UpkeepTest, HalvedNarrowUplinkIsNoticed) {
  if (!Up("50mbit")) GTEST_SKIP() << "emulated clusters need root: " << reason_;
  for (int repeat = 0; repeat < Repeats() && !HasFailure(); ++repeat) {
    EXPECT_THAT(Notice({{"link", "rack1", "rack0", "rate", "25mbit"}}), HasSubstr("rack"));
  }
}

// What they take is no rate of a link, and no NIC has changed.
TEST_F(UpkeepTest, FlowsOfTcpInTheBackgroundNameNoNic) {
  if (!Up("200mbit")) GTEST_SKIP() << "emulated clusters need root: " << reason_;
  Shared<Story> story;
  const auto workers =
      HostWorkers::InLab(**lab_, 1, [&](Worker& worker) { return Body(worker, *story, 200); });
  std::vector<std::string> changes;
  for (const auto& [from, to] : {std::pair("h1", "h5"), std::pair("h2", "h6")}) {
    changes.push_back(Change({"flow", "add", from, to}));
    AwaitFlow(changes.back());
  }
  EXPECT_THAT(workers->Join(absl::Seconds(120)), ::testing::Each(0));
  for (const std::string& change : changes) EXPECT_TRUE((*lab_)->Undo(change).ok());
  EXPECT_THAT(std::string(story->reason[0]), ::testing::Not(HasSubstr("h")));
}

TEST_F(UpkeepTest, HalvedNicIsNoticed) {
  if (!Up("200mbit")) GTEST_SKIP() << "emulated clusters need root: " << reason_;
  for (int repeat = 0; repeat < Repeats() && !HasFailure(); ++repeat) {
    EXPECT_THAT(Notice({{"link", "h2", "rack0", "rate", "100mbit"}}), HasSubstr("h2"));
  }
}

TEST_F(UpkeepTest, NoFalseAlarmInAThousandIterationsUnderCpuNoise) {
  if (!Up("200mbit")) GTEST_SKIP() << "emulated clusters need root: " << reason_;
  for (int repeat = 0; repeat < Repeats() && !HasFailure(); ++repeat) {
    Shared<Story> story;
    const CpuNoise noise(2, 300, static_cast<uint64_t>(repeat) + 1);
    const auto workers =
        HostWorkers::InLab(**lab_, 1, [&](Worker& worker) { return Body(worker, *story, 1000); });
    EXPECT_THAT(workers->Join(absl::Seconds(280)), ::testing::Each(0));
    EXPECT_FALSE(noise.AnyHasEnded());
    for (size_t rank = 0; rank < kSize; ++rank) {
      EXPECT_EQ(story->noticed[rank], 0) << "rank " << rank << ": " << story->reason[rank];
    }
  }
}

// What nobody has declared is measured before the job begins, and all plan by it. How many racks there seem to be
// depends on what else the machine does.
TEST_F(UpkeepTest, AJobThatProbesAtItsStartKnowsItsHosts) {
  if (!Up("100mbit")) GTEST_SKIP() << "emulated clusters need root: " << reason_;
  unsetenv("SYNCOPATE_TOPO_FILE");
  const std::string cache = ::testing::TempDir() + "upkeep-cache-" + std::to_string(getpid());
  setenv("SYNCOPATE_CACHE", cache.c_str(), 1);
  setenv("SYNCOPATE_PROBE", "start", 1);
  Shared<Story> story;
  const auto workers =
      HostWorkers::InLab(**lab_, 1, [&](Worker& worker) { return Body(worker, *story, 150); });
  EXPECT_THAT(workers->Join(absl::Seconds(180)), ::testing::Each(0));
  unsetenv("SYNCOPATE_PROBE");
  unsetenv("SYNCOPATE_CACHE");
  std::filesystem::remove_all(cache);
  for (size_t rank = 0; rank < kSize; ++rank) {
    EXPECT_THAT(std::string(story->reason[rank]), HasSubstr("measured in"));
    EXPECT_THAT(std::string(story->reason[rank]), HasSubstr("8 hosts"));
    EXPECT_EQ(story->digest[rank], story->digest[0]);
  }
}

// Where the network is faster than the processors, whatever keeps those busy is no change of it.
TEST_F(UpkeepTest, NoFalseAlarmWhereTheNetworkHoldsUpNothing) {
  unsetenv("SYNCOPATE_TOPO_FILE");
  Shared<Story> story;
  const CpuNoise noise(2, 100, 7);
  const auto workers =
      HostWorkers::OnLoopback(kSize, 1, [&](Worker& worker) { return Body(worker, *story, 1000); });
  EXPECT_THAT(workers->Join(absl::Seconds(95)), ::testing::Each(0));
  for (size_t rank = 0; rank < kSize; ++rank) {
    EXPECT_EQ(story->noticed[rank], 0) << "rank " << rank << ": " << story->reason[rank];
  }
}

}  // namespace
}  // namespace syncopate
