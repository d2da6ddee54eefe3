#include "train/options/checkpoint_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace syncopate::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CheckpointNoteTest, RoundTripsAndRefusesWhatIsNone) {
  const std::string folder = ::testing::TempDir() + "/checkpoint-note";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(absl::IsNotFound(ReadCheckpointNote(folder).status()));
  ASSERT_TRUE(WriteCheckpointNote(folder, {.iteration = 220, .workers = 4}).ok());
  EXPECT_EQ(*ReadCheckpointNote(folder), (CheckpointNote{.iteration = 220, .workers = 4}));
  const CheckpointNote second = {.iteration = 240, .workers = 4, .previous = 220};
  ASSERT_TRUE(WriteCheckpointNote(folder, second).ok());
  EXPECT_EQ(*ReadCheckpointNote(folder), second);
  // Of workers some of which are lost; ranks that are their own go without saying.
  const CheckpointNote fewer = {
      .iteration = 260, .workers = 3, .previous = 240, .ranks = {0, 2, 3}, .previous_ranks = {}};
  ASSERT_TRUE(WriteCheckpointNote(folder, fewer).ok());
  EXPECT_EQ(*ReadCheckpointNote(folder), fewer);
  EXPECT_EQ(fewer.RankOf(1), 2);
  EXPECT_EQ(fewer.PreviousRankOf(1), 1);
  CheckpointNote own = second;
  own.ranks = {0, 1, 2, 3};
  ASSERT_TRUE(WriteCheckpointNote(folder, own).ok());
  EXPECT_EQ(*ReadCheckpointNote(folder), second);
  for (const char* text : {R"({"iteration": 5, "workers": 2, "ranks": [0]})",
                           R"({"iteration": 5, "workers": 2, "ranks": [0, -1]})", "", "{", "[1]",
                           R"({"iteration": 5})", R"({"iteration": "x", "workers": 1})",
                           R"({"iteration": 5, "workers": 1, "previous": "x"})"}) {
    std::ofstream(CheckpointNotePath(folder)) << text;
    EXPECT_TRUE(absl::IsDataLoss(ReadCheckpointNote(folder).status())) << text;
  }
  std::filesystem::remove_all(folder);
}

TEST(CheckpointNoteTest, AnotherNumberOfWorkersIsExplained) {
  EXPECT_TRUE(CheckWorkers({.iteration = 1, .workers = 4}, 4).ok());
  EXPECT_THAT(CheckWorkers({.iteration = 1, .workers = 4}, 2).message(),
              AllOf(HasSubstr("is of 4 workers, this job has 2"), HasSubstr("leave -n out")));
}

}  // namespace
}  // namespace syncopate::train
