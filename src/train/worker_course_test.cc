#include "train/worker_course.h"

#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/worker_testing.h"

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

// Gives what a test says, and keeps what it is told.
class ScriptedSource : public sync::SampleSource {
 public:
  absl::StatusOr<sync::GrantAnswer> Next(uint64_t want) override {
    wanted.push_back(want);
    if (grants.empty()) return absl::DeadlineExceededError("no more in the script");
    sync::GrantAnswer grant = grants.front();
    grants.pop_front();
    return grant;
  }
  void Use(const std::vector<ServiceId>& ranges) override {
    for (const ServiceId& id : ranges) used.push_back(id.number);
  }
  absl::StatusOr<sync::SummaryAnswer> Say() override {
    return sync::SummaryAnswer{.progress = progress, .repeated = 7};
  }

  std::deque<sync::GrantAnswer> grants;
  sync::SampleProgress progress;
  std::vector<uint64_t> wanted;
  std::vector<uint64_t> used;  // numbers of ranges
};

sync::SampleRange Range(uint64_t number, uint64_t epoch, uint64_t first, uint64_t count) {
  return {.id = {0, number}, .epoch = epoch, .samples = {first, count}};
}

TEST(WorkerCourseTest, RangesNeedASource) {
  EXPECT_EQ(WorkerCourse::Make(Options(DataMode::kRanges, 0)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(WorkerCourseTest, ABatchIsMadeOfTheRangesThatItGotInTheOrderOfTheirEpoch) {
  ScriptedSource source;
  source.grants = {{.ranges = {Range(1, 1, 10, 3), Range(2, 1, 50, 1)}},
                   {.ranges = {Range(3, 0, 99, 1)}}};
  WorkerCourse::Options options = Options(DataMode::kRanges, 1);
  options.source = &source;
  auto course = WorkerCourse::Make(options);
  ASSERT_TRUE(course.ok()) << course.status();
  EXPECT_EQ(course->all_samples(), 0);
  Sampler sampler(options.samples, options.seed);
  const auto first = course->Next();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->epoch, 1);
  auto order = sampler.OrderOf(1);
  EXPECT_THAT(first->samples, ::testing::ElementsAre(order[10], order[11], order[12], order[50]));
  EXPECT_EQ(course->RateIteration(0), 15);  // an epoch and a half of 10 iterations
  ASSERT_TRUE(course->SetBatch(1).ok());
  const auto second = course->Next();  // what a lost worker held
  order = sampler.OrderOf(0);
  EXPECT_EQ(second->epoch, 0);
  EXPECT_THAT(second->samples, ::testing::ElementsAre(order[99]));
  EXPECT_EQ(course->RateIteration(0), 15);
  EXPECT_THAT(source.wanted, ::testing::ElementsAre(6, 1));
  EXPECT_EQ(*course->Repeated(), 7u);
}

TEST(WorkerCourseTest, RangesCountWhenTheirUpdatesHaveBeenApplied) {
  ScriptedSource source;
  source.grants = {{.ranges = {Range(1, 0, 0, 4), Range(2, 0, 8, 2)}},
                   {.ranges = {Range(3, 0, 10, 4)}},
                   {},  // others wait for what it holds
                   {.ranges = {}, .done = 1, .over = true}};
  WorkerCourse::Options options = Options(DataMode::kRanges, 0);
  options.source = &source;
  auto course = WorkerCourse::Make(options);
  ASSERT_TRUE(course.ok()) << course.status();
  ASSERT_TRUE(course->Next().ok());
  course->UpdatesApplied();  // of nothing yet
  EXPECT_THAT(source.used, ::testing::IsEmpty());
  ASSERT_TRUE(course->Next().ok());
  EXPECT_THAT(source.used, ::testing::IsEmpty());
  course->UpdatesApplied();
  EXPECT_THAT(source.used, ::testing::ElementsAre(1, 2));
  auto next = course->Next();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(next->samples, ::testing::IsEmpty());
  EXPECT_FALSE(course->Ended(1000));  // the service says when, no number of iterations
  course->AllApplied();
  EXPECT_THAT(source.used, ::testing::ElementsAre(1, 2, 3));
  next = course->Next();
  EXPECT_THAT(next->samples, ::testing::IsEmpty());
  EXPECT_TRUE(course->Ended(2));
  EXPECT_FALSE(course->Next().ok());  // errors come through
}

TEST(WorkerCourseTest, ImpossibleRangesAreAnError) {
  for (const sync::SampleRange& wrong : {Range(1, 0, 99, 2), Range(2, 1, 0, 1)}) {
    ScriptedSource source;
    source.grants = {{.ranges = {Range(1, 0, 0, 4), wrong}}};
    WorkerCourse::Options options = Options(DataMode::kRanges, 0);
    options.source = &source;
    auto course = WorkerCourse::Make(options);
    EXPECT_EQ(course->Next().status().code(), absl::StatusCode::kInternal);
  }
}

TEST(WorkerCourseTest, WhatCountsIsWhatTheFirstFoundAndWhatEachHasCountedSince) {
  // The second worker makes its state later: it has counted 8 to 11 since the first one's, and knows that
  // the first has counted 12 to 15, which is not in its state.
  ScriptedSource first_source, second_source;
  first_source.grants = {{.ranges = {Range(1, 2, 0, 4)}}};
  first_source.progress = {.done = 2, .open = {{{0, 8}}}};
  second_source.grants = {{.ranges = {Range(2, 2, 4, 4)}}, {.ranges = {Range(3, 2, 8, 4)}}};
  second_source.progress = {.done = 2, .open = {{{0, 16}}}};
  std::vector<std::string> states;
  for (ScriptedSource* source : {&first_source, &second_source}) {
    WorkerCourse::Options options = Options(DataMode::kRanges, source == &first_source ? 0 : 1);
    options.source = source;
    auto course = WorkerCourse::Make(options);
    ASSERT_TRUE(course.ok()) << course.status();
    while (!source->grants.empty()) ASSERT_TRUE(course->Next().ok());
    ASSERT_TRUE(course->SetBatch(source == &first_source ? 3 : 9).ok());
    course->AllApplied();
    states.push_back(*course->State());
  }
  const auto progress = WorkerCourse::ProgressOf(states, 100);
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_EQ(*progress, (sync::SampleProgress{.done = 2, .open = {{{0, 12}}}}));

  WorkerCourse::Options options = Options(DataMode::kRanges, 1);
  options.source = &second_source;
  options.states = states;
  auto course = WorkerCourse::Make(options);
  ASSERT_TRUE(course.ok()) << course.status();
  EXPECT_EQ(course->batch(), 9);
  EXPECT_EQ(course->RateIteration(0), 21);
  // A strategy begins to count anew.
  ASSERT_TRUE(course->SetProgress({.total_samples = 8}).ok());
  EXPECT_EQ(course->RateIteration(0), 22);
  // What it counted before its last state is not its own any more.
  second_source.progress = *progress;
  EXPECT_EQ(*WorkerCourse::ProgressOf({*course->State()}, 100), *progress);

  for (size_t length = 0; length < states[1].size(); ++length) {
    options.states[1] = states[1].substr(0, length);
    EXPECT_EQ(WorkerCourse::Make(options).status().code(), absl::StatusCode::kDataLoss) << length;
  }
}

TEST(WorkerCourseTest, AWorkerOnItsOwnGoesOnFromWhereTheLeastFarWas) {
  std::vector<std::string> states;
  for (const int rank : {0, 1}) {
    auto course = WorkerCourse::Make(Options(DataMode::kIndependent, rank));
    states.push_back(*course->State());  // nobody counts the job's samples
    ASSERT_TRUE(course->SetProgress({.total_samples = rank == 0 ? 55u : 42u}).ok());
    states.push_back(*course->State());
  }
  WorkerCourse::Options options = Options(DataMode::kIndependent, 0);
  options.states = {states[1], states[3]};
  EXPECT_EQ(WorkerCourse::Make(options)->RateIteration(7), 4);
  options.mark_samples = 50;  // not all have heard of it
  EXPECT_EQ(WorkerCourse::Make(options)->RateIteration(7), 5);
  options.states = {states[0], states[2]};
  EXPECT_EQ(WorkerCourse::Make(options)->RateIteration(7), 7);
  EXPECT_EQ(*WorkerCourse::ProgressOf({}, 100), sync::SampleProgress());
}

// At unequal speed, with batches that change: each sample once an epoch, and nobody waits for itself.
TEST(WorkerCourseTest, WorkersThatShareRangesMakeExactEpochs) {
  constexpr int kWorkers = 3;
  constexpr uint64_t kEpochs = 3;
  std::mutex mutex;
  std::map<std::pair<int64_t, int64_t>, int> computed;
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    auto source = sync::StartSampleSource(worker, {.samples = 100, .epochs = kEpochs});
    ASSERT_TRUE(source.ok()) << source.status();
    WorkerCourse::Options options = {.data = DataMode::kRanges,
                                     .rank = worker.rank(),
                                     .batches = {3, 4, 5},
                                     .samples = 100,
                                     .seed = 1,
                                     .source = source->get()};
    auto course = WorkerCourse::Make(options);
    ASSERT_TRUE(course.ok()) << course.status();
    for (int64_t iteration = 0; !course->Ended(iteration); ++iteration) {
      const auto batch = course->Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      if (batch->samples.empty()) {
        course->AllApplied();
        continue;
      }
      course->UpdatesApplied();
      ASSERT_TRUE(course->SetBatch(1 + static_cast<uint64_t>(iteration) % 7).ok());
      const std::lock_guard lock(mutex);
      for (const int64_t sample : batch->samples) ++computed[{batch->epoch, sample}];
    }
    EXPECT_EQ(*course->Repeated(), 0u);
  });
  EXPECT_EQ(computed.size(), kEpochs * 100);
  for (const auto& [sample, times] : computed) EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace syncopate::train
