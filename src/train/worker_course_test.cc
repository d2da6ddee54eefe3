#include "train/worker_course.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::train {
namespace {

using strategy::DataMode;

WorkerCourse::Options Options(DataMode data, int rank) {
  return {
      .data = data, .rank = rank, .batches = {4, 6}, .samples = 100, .seed = 5, .iterations = 10};
}

TEST(WorkerCourseTest, InStepEachWorkerTakesItsPieceAndCannotChangeItAlone) {
  auto first = WorkerCourse::Make(Options(DataMode::kInStep, 0));
  auto second = WorkerCourse::Make(Options(DataMode::kInStep, 1));
  ASSERT_TRUE(first.ok() && second.ok());
  std::set<int64_t> seen;
  for (int i = 0; i < 10; ++i) {
    for (WorkerCourse* course : {&*first, &*second}) {
      const auto batch = course->Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_EQ(batch->samples.size(), static_cast<size_t>(course->batch()));
      seen.insert(batch->samples.begin(), batch->samples.end());
    }
  }
  EXPECT_EQ(seen.size(), 100u);  // an epoch
  EXPECT_EQ(first->all_samples(), 10);
  EXPECT_EQ(first->SetBatch(5).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(first->batch(), 4);
}

TEST(WorkerCourseTest, InStepTheBatchesOfAllChangeTogether) {
  auto first = WorkerCourse::Make(Options(DataMode::kInStep, 0));
  auto second = WorkerCourse::Make(Options(DataMode::kInStep, 1));
  ASSERT_TRUE(first.ok() && second.ok());
  std::set<int64_t> seen;
  int64_t all = 0;
  for (int i = 0; i < 8; ++i) {
    for (WorkerCourse* course : {&*first, &*second}) {
      if (i == 4) {
        ASSERT_TRUE(course->SetBatches({{1, 11}}).ok());
      }
      EXPECT_EQ(course->all_samples(), i < 4 ? 10 : 15);
      const auto batch = course->Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_EQ(batch->samples.size(), static_cast<size_t>(course->batch()));
      seen.insert(batch->samples.begin(), batch->samples.end());
      all += course->batch();
    }
  }
  EXPECT_EQ(all, 100);
  EXPECT_EQ(seen.size(), 100u);  // each once
  EXPECT_EQ(first->SetBatches({{1, 97}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(first->SetBatches({{2, 1}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(first->SetBatches({{0, 0}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(first->batch(), 4);
  auto alone = WorkerCourse::Make(Options(DataMode::kIndependent, 0));
  EXPECT_EQ(alone->SetBatches({{0, 5}}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(WorkerCourseTest, AWorkerOnItsOwnDrawsItsOwnSamplesAndChangesItsBatch) {
  auto course = WorkerCourse::Make(Options(DataMode::kIndependent, 1));
  auto other = WorkerCourse::Make(Options(DataMode::kIndependent, 0));
  ASSERT_TRUE(course.ok() && other.ok());
  EXPECT_EQ(course->all_samples(), 0);
  EXPECT_EQ(course->batch(), 6);
  std::set<int64_t> seen;
  for (const uint64_t size : {uint64_t{6}, uint64_t{40}, uint64_t{54}}) {
    ASSERT_TRUE(course->SetBatch(size).ok());
    const auto batch = course->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(batch->samples.size(), size);
    EXPECT_EQ(batch->epoch, 0);
    seen.insert(batch->samples.begin(), batch->samples.end());
  }
  EXPECT_EQ(seen.size(), 100u);  // each once
  ASSERT_TRUE(other->SetBatch(100).ok());
  EXPECT_NE(other->Next()->samples, course->Next()->samples);
  EXPECT_EQ(course->SetBatch(0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(course->SetBatch(101).code(), absl::StatusCode::kInvalidArgument);
}

TEST(WorkerCourseTest, WithoutAWordOfTheStrategyItsOwnIterationsCount) {
  auto course = WorkerCourse::Make(Options(DataMode::kIndependent, 0));
  ASSERT_TRUE(course.ok());
  EXPECT_EQ(course->RateIteration(7), 7);
  EXPECT_FALSE(course->Ended(9));
  EXPECT_TRUE(course->Ended(10));
}

TEST(WorkerCourseTest, ProgressSetsTheRateAndTheEnd) {
  auto course = WorkerCourse::Make(Options(DataMode::kIndependent, 0));
  ASSERT_TRUE(course.ok());
  ASSERT_TRUE(course->SetProgress({.total_samples = 35}).ok());
  EXPECT_EQ(course->RateIteration(90), 3);
  EXPECT_FALSE(course->Ended(90));  // the job has not come so far
  ASSERT_TRUE(course->SetProgress({.total_samples = 20}).ok());
  EXPECT_EQ(course->RateIteration(90), 3);  // what comes late turns nothing back
  ASSERT_TRUE(course->SetProgress({.total_samples = 100}).ok());
  EXPECT_TRUE(course->Ended(1));
}

TEST(WorkerCourseTest, AStopStays) {
  auto course = WorkerCourse::Make(Options(DataMode::kIndependent, 0));
  ASSERT_TRUE(course.ok());
  ASSERT_TRUE(course->SetProgress({.total_samples = 30, .stop = true}).ok());
  ASSERT_TRUE(course->SetProgress({.total_samples = 40}).ok());
  EXPECT_TRUE(course->Ended(1));
  EXPECT_EQ(course->RateIteration(1), 4);
}

TEST(WorkerCourseTest, RangesOfAServiceAreRefused) {
  EXPECT_EQ(WorkerCourse::Make(Options(DataMode::kRanges, 0)).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace syncopate::train
