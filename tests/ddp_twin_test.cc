// The twin of our training job on PyTorch is the same job: samples, models, initial parameters and
// losses are ours; and `syncopate bench train`, which lets both take turns.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "subprocess.h"
#include "train/data/sampler.h"
#include "train/models.h"

namespace syncopate::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class DdpTwinTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Subprocess check({DDP_TWIN, "check"});
    if (check.Wait() != 0) GTEST_SKIP() << "no twin here: " << check.err();
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::vector<std::string> Lines(const std::string& text) {
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }

  std::vector<std::string> Twin(std::vector<std::string> words) {
    words.insert(words.begin(), DDP_TWIN);
    Subprocess twin(words);
    EXPECT_EQ(twin.Wait(), 0) << twin.err();
    return Lines(twin.out());
  }

  const std::string marker_ = UniqueMarker();
  const std::string folder_ = absl::StrCat("/dev/shm/ddp-twin-test-", marker_);
  const Subprocess::Options options_ = {
      .environment = {absl::StrCat("MARK=", marker_), absl::StrCat("TMPDIR=", folder_)}};
};

TEST_F(DdpTwinTest, TakesTheSameSamples) {
  struct Case {
    int64_t samples;
    uint64_t seed;
    std::vector<int64_t> batches;
  };
  for (const auto& [samples, seed, batches] :
       {Case{100, 1, {3, 4}}, Case{1000, 0xfedcba9876543210u, {64, 1, 7}}, Case{5, 7, {2}}}) {
    constexpr int kIterations = 40;  // several epochs
    const std::vector<std::string> lines =
        Twin({"samples", absl::StrCat(samples), absl::StrCat(seed), absl::StrCat(kIterations),
              absl::StrJoin(batches, ",")});
    ASSERT_THAT(lines, SizeIs(kIterations * batches.size()));
    size_t line = 0;
    std::vector<train::Sampler> samplers(batches.size(), train::Sampler(samples, seed));
    for (int i = 0; i < kIterations; ++i) {
      for (size_t rank = 0; rank < batches.size(); ++rank) {
        const auto batch = samplers[rank].Next(batches, static_cast<int>(rank));
        ASSERT_TRUE(batch.ok()) << batch.status();
        EXPECT_EQ(lines[line++], absl::StrJoin(batch->samples, " "))
            << "seed " << seed << ", iteration " << i << ", rank " << rank;
      }
    }
  }
}

TEST_F(DdpTwinTest, HasTheSameModels) {
  for (const std::string model : {"mlp", "cnn", "resnet20", "resnet32"}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 32, 32}, {1, 28, 28}}) {
      const auto ours = train::MakeModel({.name = model, .sample_shape = shape, .classes = 10});
      ASSERT_TRUE(ours.ok()) << ours.status();
      std::vector<std::string> expected;
      for (const train::ModelParameter& parameter : (*ours)->ordered_parameters()) {
        expected.push_back(absl::StrCat(parameter.name, " ", parameter.tensor.numel()));
      }
      EXPECT_EQ(Twin({"parameters", model, absl::StrJoin(shape, ","), "10"}), expected) << model;
    }
  }
}

TEST_F(DdpTwinTest, LearnsTheSameAndTakesTurnsWithOurs) {
  for (const std::string model : {"mlp", "resnet20"}) {
    // Batches that do not divide evenly are weighted alike.
    Subprocess bench({SYNCOPATE_BINARY,
                      "bench",
                      "train",
                      "-n",
                      "2",
                      "--model",
                      model,
                      "--data",
                      "synthetic",
                      "--batch",
                      "15",
                      "--iterations",
                      "5",
                      "--rounds",
                      "1",
                      "--schedule",
                      "wfbp",
                      "--against",
                      "ddp",
                      "--json"},
                     options_);
    ASSERT_EQ(bench.Wait(), 0) << bench.err();
    const std::vector<std::string> rows = Lines(bench.out());
    ASSERT_THAT(rows, SizeIs(2)) << bench.out();
    const auto ddp = nlohmann::json::parse(rows[1]);
    EXPECT_EQ(nlohmann::json::parse(rows[0]).at("contestant"), "wfbp");
    EXPECT_EQ(ddp.at("contestant"), "ddp");
    // Five iterations with a loss each: the order of additions is all that differs.
    EXPECT_LT(ddp.at("loss_difference").get<double>(), 1e-3) << model;
    EXPECT_GT(ddp.at("loss").get<double>(), 0);
    EXPECT_GT(ddp.at("iteration_ms_p50").get<double>(), ddp.at("exposed_comm_ms_p50"));
    EXPECT_GT(ddp.at("ratio").get<double>(), 0);
  }
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// A user who looks at the list of processes sees who runs, without the job's options as JSON.
TEST_F(DdpTwinTest, CommandLinesOfRanksHaveNoJson) {
  Subprocess bench({SYNCOPATE_BINARY, "bench", "train", "-n", "2", "--model", "mlp", "--iterations",
                    "5", "--rounds", "1", "--schedule", "none", "--against", "ddp"},
                   options_);
  // Each of the twin's ranks loads PyTorch first, so they are there for a second or more.
  size_t twins = 0;
  const int64_t deadline_ns = MonotonicClock().NowNs() + kDeadlineNs;
  while (twins < 2 && MonotonicClock().NowNs() < deadline_ns) {
    twins = 0;
    for (const pid_t pid : MarkedProcesses(marker_)) {
      const std::string line = CommandLineOf(pid);
      EXPECT_THAT(line, Not(HasSubstr("{")));
      if (absl::StrContains(line, "/ddp_twin.py train ") && !absl::StrContains(line, " launch ")) {
        ++twins;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(twins, 2);
  EXPECT_EQ(bench.Wait(), 0) << bench.err();
}

TEST_F(DdpTwinTest, LeavesNothingBehindWhenItIsEnded) {
  Subprocess::Options options = options_;
  options.environment.push_back("SYNCOPATE_PROGRESS=10ms");
  Subprocess bench({SYNCOPATE_BINARY, "bench", "train", "-n", "2", "--model", "mlp", "--iterations",
                    "1", "--rounds", "1000", "--schedule", "wfbp,none"},
                   options);
  ASSERT_TRUE(bench.ReadUntil([&] { return bench.err().find("round 2 ") != std::string::npos; }));
  EXPECT_THAT(bench.err(), AllOf(HasSubstr("2000 runs of 1 iteration; the first will tell"),
                                 HasSubstr("1999 more runs, if all take as long as the first")));
  kill(bench.pid(), SIGTERM);
  EXPECT_EQ(bench.Wait(), 128 + SIGTERM);
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(DdpTwinTest, SaysWhatItDoesNotKnow) {
  Subprocess peer({SYNCOPATE_BINARY, "bench", "train", "--against", "horovod"});
  EXPECT_EQ(peer.Wait(), 2);
  EXPECT_THAT(peer.err(), HasSubstr("--against horovod: there is ddp"));
  Subprocess model({SYNCOPATE_BINARY, "bench", "train", "-n", "2", "--model", "vgg16", "--schedule",
                    "none", "--iterations", "1", "--rounds", "1", "--against", "ddp"});
  EXPECT_EQ(model.Wait(), 2);
  EXPECT_THAT(model.err(), HasSubstr("vgg16"));
}

}  // namespace
}  // namespace syncopate::testing
