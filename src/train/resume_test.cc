// Training that stops and goes on from its checkpoint gives the bits of training that never
// stopped, on every worker; what cannot be gone on from is refused before anything changes.
#include <filesystem>
#include <fstream>

#include "base/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "observe/metrics.h"
#include "train/data/load.h"
#include "train/model_copy.h"
#include "train/models.h"
#include "train/snapshots.h"
#include "train/trainer_testing.h"

namespace syncopate::train {
namespace {

using ::testing::AllOf;
using testing::ExpectSameBits;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunJob;
using testing::SmallJob;
using testing::TensorsAt;

struct Case {
  const char* name;
  int workers;
  int64_t half;  // iterations to the checkpoint, and from there to the end
  std::function<void(TrainOptions&)> change;
};

void ExpectAllWell(const std::vector<absl::Status>& ends) {
  for (const absl::Status& end : ends) ASSERT_TRUE(end.ok()) << end;
}

// Snapshots that a part of the run had taken after its last checkpoint were averaged with those of the next.
TEST(ResumeTest, SnapshotsOfWhatIsDoneAgainDoNotCount) {
  const TemporaryFolder folder;
  TrainOptions options = SmallJob("mlp");
  options.run_folder = folder.path();
  options.evaluate = "after";
  options.evaluate_every = 2;
  options.checkpoint_every = 4;
  ExpectAllWell(RunJob(2, options));
  const auto leave = [&](int64_t mark, double number) {
    LoadOptions load;
    load.synthetic.train_samples = options.synthetic_samples;
    const DatasetInfo info = LoadDataset(options.data, load)->info;
    const auto model = *MakeModel({options.model, info.sample_shape, info.classes, 1, 0});
    ModelCopy copy = CopyOf(*model);
    copy.numbers.fill_(number);
    // Of a rank that writes none in this job, and which is gone.
    ASSERT_TRUE(SaveSnapshot(folder.path(), 3, {.mark = mark, .seconds = 1, .model = copy}).ok());
  };
  leave(2, 0);     // before the checkpoint: it is that of the run
  leave(6, 1000);  // after it
  ASSERT_EQ(SnapshotMarks(folder.path()), std::vector<int64_t>({2, 6}));
  options.resume = true;
  options.iterations = 6;
  ExpectAllWell(RunJob(2, options));
  EXPECT_TRUE(SnapshotMarks(folder.path()).empty());
  std::map<int64_t, std::vector<double>> losses;
  const auto text = ReadFile(folder.path() + "/metrics.jsonl", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  for (const observe::Metric& metric : observe::ReadMetrics(*text).metrics) {
    if (metric.kind == "evaluate") losses[metric.iteration].push_back(*metric.Value("loss"));
  }
  EXPECT_EQ(losses[2].size(), 2u);  // of both parts
  // The last one is of the very model that the run ends with.
  ASSERT_EQ(losses[6].size(), 2u);
  EXPECT_NEAR(losses[6][0], losses[6][1], 1e-6);
}

class BitForBitTest : public ::testing::TestWithParam<Case> {};

TEST_P(BitForBitTest, GoesOn) {
  const Case& test = GetParam();
  TrainOptions options = SmallJob("mlp");
  test.change(options);
  options.checkpoint_every = test.half;
  options.iterations = 2 * test.half;
  const TemporaryFolder straight, stopped;

  options.run_folder = straight.path();
  ExpectAllWell(RunJob(test.workers, options));

  options.run_folder = stopped.path();
  options.iterations = test.half;
  ExpectAllWell(RunJob(test.workers, options));
  ASSERT_FALSE(std::filesystem::exists(
      absl::StrCat(stopped.path(), "/checkpoint-", 2 * test.half)));  // it really stopped
  options.resume = true;
  options.iterations = 2 * test.half;
  ExpectAllWell(RunJob(test.workers, options));

  for (int rank = 0; rank < test.workers; ++rank) {
    SCOPED_TRACE(rank);
    ExpectSameBits(TensorsAt(straight.path(), 2 * test.half, rank),
                   TensorsAt(stopped.path(), 2 * test.half, rank));
  }
}

const Case kCases[] = {
    {"momentum", 2, 10, [](TrainOptions&) {}},
    {"momentum_of_four_workers", 4, 10, [](TrainOptions& o) { o.schedule = "bucket"; }},
    {"alone", 1, 10, [](TrainOptions&) {}},
    // A plan divides gradients by what it measured, but two numbers have only one sum.
    {"planned_schedule_of_two_workers", 2, 8,
     [](TrainOptions& o) {
       o.schedule = "search";
       o.measure_first = true;
     }},
    {"adam", 2, 10, [](TrainOptions& o) { o.optimizer.name = "adam"; }},
    {"uneven_clipped_accumulated_with_warmup", 2, 5,
     [](TrainOptions& o) {
       o.batches = {5, 11};
       o.clip_norm = 1;
       o.accumulate = 2;
       o.rate.warmup = 8;
     }},
    {"batch_norm", 2, 3,
     [](TrainOptions& o) {
       o = SmallJob("resnet20");
       o.batch = 8;
       o.augment = true;
     }},
    // Buffers are averaged when the model is evaluated.
    {"batch_norm_evaluated", 2, 2,
     [](TrainOptions& o) {
       o = SmallJob("resnet20");
       o.batch = 8;
       o.evaluate_every = 1;
     }},
    {"transformer", 2, 3, [](TrainOptions& o) { o = SmallJob("transformer"); }},
};

INSTANTIATE_TEST_SUITE_P(All, BitForBitTest, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

// ---- what cannot be gone on from

class RefusedTest : public ::testing::Test {
 protected:
  static constexpr int kWorkers = 3;
  RefusedTest() : options_(SmallJob("mlp")) {
    options_.run_folder = folder_.path();
    options_.checkpoint_every = 2;
    ExpectAllWell(RunJob(kWorkers, options_));
    options_.resume = true;
    options_.iterations = 6;
    config_ = *ReadFile(folder_.path() + "/config.json", 1 << 20);
  }

  // All workers refuse; one of them, `who`, says why, and that is returned. Nothing has changed.
  std::string RefusalBy(int who, int workers = kWorkers) {
    const std::vector<absl::Status> ends = RunJob(workers, options_);
    for (int rank = 0; rank < workers; ++rank) {
      EXPECT_EQ(ends[static_cast<size_t>(rank)].code(),
                rank == who ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kCancelled)
          << ends[static_cast<size_t>(rank)];
    }
    EXPECT_EQ(*ReadFile(folder_.path() + "/config.json", 1 << 20), config_);
    return std::string(ends[static_cast<size_t>(who)].message());
  }

  // Leaves only the last set to go on from.
  void RemoveTheSetBefore() { std::filesystem::remove_all(folder_.path() + "/checkpoint-2"); }

  std::string RankFile(int rank) const {
    return absl::StrCat(folder_.path(), "/checkpoint-4/rank-", rank);
  }

  const TemporaryFolder folder_;
  TrainOptions options_;
  std::string config_;
};

TEST_F(RefusedTest, OtherOptionsAreNamed) {
  options_.batch = 15;
  options_.optimizer.momentum = 0.5;
  EXPECT_THAT(RefusalBy(0), AllOf(HasSubstr(folder_.path()), HasSubstr("batch 15 (before: 16)"),
                                  HasSubstr("momentum 0.5 (before: 0.9)"),
                                  Not(HasSubstr("iterations")), Not(HasSubstr("seed"))));
}

TEST_F(RefusedTest, OtherModel) {
  options_.model = "cnn";
  EXPECT_THAT(RefusalBy(0), HasSubstr("model \"cnn\" (before: \"mlp\")"));
}

TEST_F(RefusedTest, OtherNumberOfWorkers) {
  EXPECT_THAT(RefusalBy(0, 2), AllOf(HasSubstr("3 workers"), HasSubstr("2")));
}

TEST_F(RefusedTest, DamagedFileIsNamedByItsWorker) {
  RemoveTheSetBefore();
  std::fstream file(RankFile(1), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(RankFile(1)) / 2));
  file.put('x');
  file.put('y');
  file.close();
  EXPECT_THAT(RefusalBy(1), HasSubstr("rank-1"));
}

TEST_F(RefusedTest, ShortFileIsNamedByItsWorker) {
  RemoveTheSetBefore();
  std::filesystem::resize_file(RankFile(2), 1000);
  EXPECT_THAT(RefusalBy(2), HasSubstr("rank-2"));
}

TEST_F(RefusedTest, MissingFile) {
  RemoveTheSetBefore();
  std::filesystem::remove(RankFile(2));
  EXPECT_THAT(RefusalBy(2), HasSubstr("rank-2"));
}

TEST_F(RefusedTest, DamagedNote) {
  std::ofstream(folder_.path() + "/checkpoint.json") << "{\"iteration\": 4, \"work";
  EXPECT_THAT(RefusalBy(0), HasSubstr("checkpoint.json"));
}

TEST_F(RefusedTest, NoCheckpoint) {
  std::filesystem::remove(folder_.path() + "/checkpoint.json");
  EXPECT_THAT(RefusalBy(0), AllOf(HasSubstr(folder_.path()), HasSubstr("no whole checkpoint")));
}

// What a job left that was ended while it saved: files of a set that no note speaks of.
TEST_F(RefusedTest, UnfinishedSetIsPassedOver) {
  const std::string unfinished = folder_.path() + "/checkpoint-6";
  std::filesystem::create_directory(unfinished);
  std::ofstream(unfinished + "/rank-0") << "half";
  ExpectAllWell(RunJob(kWorkers, options_));
  EXPECT_FALSE(TensorsAt(folder_.path(), 6, 2).empty());
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/checkpoint-4"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/checkpoint-2"));
}

TEST_F(RefusedTest, DamagedSetIsPassedOverForTheOneBefore) {
  std::filesystem::resize_file(RankFile(2), 1000);
  ExpectAllWell(RunJob(kWorkers, options_));
  EXPECT_FALSE(TensorsAt(folder_.path(), 6, 2).empty());
  EXPECT_FALSE(TensorsAt(folder_.path(), 4, 2).empty()) << "it did not go on from iteration 2";
}

TEST_F(RefusedTest, RunThatIsOverEndsAtOnce) {
  options_.iterations = 4;
  ExpectAllWell(RunJob(kWorkers, options_));
}

}  // namespace
}  // namespace syncopate::train
