// `syncopate bench --lab` as a user runs it: its rows, and that no lab is left however it ends.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/lab_testing.h"
#include "lab/requirements.h"
#include "lab/spec.h"
#include "lab/state.h"
#include "nlohmann/json.hpp"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class BenchLabTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    std::ofstream(file_) << lab::TwoHostsToml("tiny");
    const absl::Status can =
        lab::CheckRequirements(*lab::ParseLab(lab::TwoHostsToml("tiny"), file_));
    if (!can.ok()) GTEST_SKIP() << can.message();
  }
  void TearDown() override {
    process_.reset();
    std::filesystem::remove_all(folder_);
    std::filesystem::remove(file_);
  }

  void Start(const std::vector<std::string>& words,
             const std::vector<std::string>& variables = {}) {
    std::vector<std::string> command = {SYNCOPATE_BINARY, "bench", "allreduce", "--lab", file_};
    command.insert(command.end(), words.begin(), words.end());
    std::vector<std::string> environment = {absl::StrCat("MARK=", marker_),
                                            absl::StrCat("TMPDIR=", folder_)};
    environment.insert(environment.end(), variables.begin(), variables.end());
    process_.emplace(command, Subprocess::Options{.environment = environment});
  }

  // A benchmark that has printed its first row and is far from the end of its second.
  void StartLong() {
    Start({"-b", "4K", "-e", "64K", "-f", "16", "--iters", "2", "--rounds", "1000", "--json"});
    ASSERT_TRUE(process_->ReadUntil([&] { return process_->Count("\n") == 1; }));
    lab_ = OwnLab();
    ASSERT_THAT(lab::LabNames(), Contains(lab_));
  }

  // The lab of the benchmark that runs: called after its scratch folder.
  std::string OwnLab() {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (absl::StartsWith(name, "syncopate-bench-")) {
        return absl::StrCat("bench-", name.substr(name.rfind('-') + 1));
      }
    }
    ADD_FAILURE() << "there is no scratch folder";
    return "";
  }

  const std::string marker_ = UniqueMarker();
  const std::string folder_ = absl::StrCat("/dev/shm/bench-lab-test-", marker_);
  const std::string file_ = absl::StrCat(::testing::TempDir(), "/bench-lab-", marker_, ".toml");
  std::string lab_;
  std::optional<Subprocess> process_;
};

TEST_F(BenchLabTest, RowsSayHowNearTheBoundTheyAre) {
  Start({"--slots", "2", "-b", "64K", "-e", "1M", "-f", "16", "--iters", "3", "--rounds", "2",
         "--json"});
  EXPECT_EQ(process_->Wait(), 0) << process_->err();
  const std::vector<std::string> lines = absl::StrSplit(process_->out(), '\n', absl::SkipEmpty());
  ASSERT_THAT(lines, SizeIs(2)) << process_->out();
  for (const std::string& line : lines) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row.at("workers"), 4);
    EXPECT_EQ(row.at("contestant"), "syncopate");
    EXPECT_EQ(row.at("wrong"), 0);
    // Two hosts: each must send and receive the whole buffer, by 95.6 % of 25 MB/s.
    const double bound_us = row.at("bytes").get<double>() / (25 * 0.956);
    EXPECT_NEAR(row.at("percent_of_bound"), bound_us / row.at("p50_us").get<double>() * 100, 0.1);
  }
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(BenchLabTest, SomeAreActiveAndTheOthersHelp) {
  Start({"--slots", "2", "--active", "0,3", "-b", "256K", "-e", "256K", "--iters", "3", "--rounds",
         "1", "--algorithm", "parameter-server", "--json"});
  EXPECT_EQ(process_->Wait(), 0) << process_->err();
  const auto row = nlohmann::json::parse(process_->out());
  EXPECT_EQ(row.at("active"), nlohmann::json({0, 3}));
  EXPECT_EQ(row.at("wrong"), 0);
  EXPECT_GT(row.at("percent_of_bound"), 0);
}

TEST_F(BenchLabTest, WhatItsWorkersRefuseIsBadUsage) {
  Start({"-b", "4K", "-e", "4K", "--rounds", "1"},
        {"SYNCOPATE_SECURE=1", "SYNCOPATE_TRANSPORT=ucx"});
  EXPECT_EQ(process_->Wait(), 2);
  EXPECT_THAT(process_->err(), HasSubstr("only tcp can be encrypted"));
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(BenchLabTest, CtrlCTakesTheLabDown) {
  StartLong();
  ASSERT_EQ(kill(process_->pid(), SIGTERM), 0);
  EXPECT_EQ(process_->Wait(), 128 + SIGTERM);
  EXPECT_THAT(process_->err(), EndsWith("\nsyncopate bench: interrupted by SIGTERM\n"));
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));
  EXPECT_THAT(lab::LabNames(), Not(Contains(lab_)));
}

TEST_F(BenchLabTest, ALabDoesNotOutliveACommandThatIsKilled) {
  StartLong();
  ASSERT_EQ(kill(process_->pid(), SIGKILL), 0);
  EXPECT_EQ(process_->Wait(), 128 + SIGKILL);
  EXPECT_TRUE(WaitUntilNoneIsLeft(marker_));  // the lab's guard is the last
  EXPECT_THAT(lab::LabNames(), Not(Contains(lab_)));
}

TEST(BenchLabUsageTest, AFileThatIsNotThereIsBadUsage) {
  Subprocess process({SYNCOPATE_BINARY, "bench", "allreduce", "--lab", "/nonexistent.toml"});
  EXPECT_EQ(process.Wait(), 2);
  EXPECT_THAT(process.err(), HasSubstr("/nonexistent.toml"));
}

}  // namespace
}  // namespace syncopate::testing
