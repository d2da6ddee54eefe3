// Ctrl-C while a training job runs.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interrupt_testing.h"

namespace syncopate::testing {
namespace {

using ::testing::StartsWith;

const std::vector<std::string> kJob = {"--model",   "mlp",          "--data",
                                       "synthetic", "--iterations", "1000000"};

std::vector<std::string> Command(std::vector<std::string> words) {
  words.insert(words.begin(), SYNCOPATE_BINARY);
  words.insert(words.end(), kJob.begin(), kJob.end());
  return words;
}

class TrainInterruptTest : public ::testing::TestWithParam<bool> {
 protected:
  ~TrainInterruptTest() override { std::filesystem::remove_all(run_); }

  // `processes`: when it is under way.
  void Expect(const std::vector<std::string>& words, size_t processes, const std::string& said) {
    InterruptedCommand train(Command(words));
    ASSERT_TRUE(WaitForProcesses(train.marker(), processes)) << train.process().err();
    train.Interrupt(SIGINT, GetParam());
    EXPECT_EQ(train.process().Wait(), 128 + SIGINT);
    EXPECT_THAT(train.process().err(), StartsWith(said));
    EXPECT_TRUE(WaitUntilNoneIsLeft(train.marker()));
    EXPECT_TRUE(std::filesystem::is_empty(train.folder()));
  }

  const std::string run_ = absl::StrCat(::testing::TempDir(), "interrupted-", getpid());
};

TEST_P(TrainInterruptTest, HereTheLauncherEndsTheRanks) {
  Expect({"train", "-n", "2", "--run", run_}, 4, "syncopate train: interrupted; ended 2 ranks\n");
}

TEST_P(TrainInterruptTest, OfAFileTheLabGoesToo) {
  if (geteuid() != 0) GTEST_SKIP() << "labs need root";
  // The command, the guard of the lab, the launcher, its supervisor, and for each of eight hosts an
  // agent, a supervisor and a rank.
  Expect({"train", "--lab", LABS_FOLDER "/two-racks.toml", "--run", run_}, 4 + 8 * 3,
         "syncopate train: interrupted; ended 8 ranks\n");
}

TEST_P(TrainInterruptTest, BenchEndsTheContestantAndItsFolder) {
  Expect({"bench", "train", "-n", "2"}, 5, "syncopate bench train: interrupted\n");
}

INSTANTIATE_TEST_SUITE_P(Signal, TrainInterruptTest, ::testing::Bool(),
                         [](const auto& group) { return group.param ? "ToTheGroup" : "ToThePid"; });

}  // namespace
}  // namespace syncopate::testing
