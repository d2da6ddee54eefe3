#include "schedule/timeline.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/random_instances.h"

namespace syncopate::schedule {
namespace {

using ::testing::HasSubstr;

// Tensors of `bytes`, in forward order, each after a second of backward and none of forward.
TensorTable TableOfBytes(const std::vector<uint64_t>& bytes) {
  TensorTable table{"test", {}};
  for (const uint64_t size : bytes) {
    table.tensors.push_back(
        {"t" + std::to_string(table.tensors.size()), size / 4, DataType::kFloat32, 0, 1});
  }
  return table;
}

// A second to start up, a second for each kB, half as fast again with two.
const cost::CommunicationCosts kTimelineCosts{1, 1e-3, {1, 1.5}, ""};

IterationTimeline Predict(const TensorTable& table, const Schedule& schedule,
                          const TimelineOptions& options = {}) {
  const absl::StatusOr<IterationTimeline> timeline =
      PredictTimeline(table, kTimelineCosts, schedule, options);
  EXPECT_EQ(std::string(timeline.status().message()), "");
  return timeline.value_or(IterationTimeline());
}

TEST(TimelineTest, OneTransferAfterTheOther) {
  // Ready at 1 and 2; the first takes 1 + 4, the second waits for it and takes 1 + 2.
  TensorTable table = TableOfBytes({2000, 4000});
  table.tensors[0].forward_seconds = 0.5;
  table.tensors[1].forward_seconds = 0.25;
  const IterationTimeline timeline = Predict(table, {"wfbp", {{1, 1, 0}, {0, 0, 0}}});
  EXPECT_DOUBLE_EQ(timeline.transfers[0].start, 0.75 + 1);
  EXPECT_DOUBLE_EQ(timeline.transfers[0].end, 0.75 + 6);
  EXPECT_DOUBLE_EQ(timeline.transfers[1].ready, 0.75 + 2);
  EXPECT_DOUBLE_EQ(timeline.transfers[1].start, 0.75 + 6);
  EXPECT_DOUBLE_EQ(timeline.transfers[1].moving, 0.75 + 7);
  EXPECT_DOUBLE_EQ(timeline.iteration_seconds, 0.75 + 9);
  EXPECT_DOUBLE_EQ(timeline.compute_seconds, 2.75);
  EXPECT_DOUBLE_EQ(timeline.exposed_seconds, 7);
  EXPECT_DOUBLE_EQ(timeline.sending_seconds, 8);
  EXPECT_EQ(timeline.at_once_max, 1);
  EXPECT_EQ(timeline.backward[1], (TimeSpan{0.75, 1.75}));
  EXPECT_EQ(timeline.forward[1], (TimeSpan{0.5, 0.75}));
}

TEST(TimelineTest, MergedWaitsForItsLastGradientAndStartsUpOnce) {
  const IterationTimeline timeline = Predict(TableOfBytes({2000, 4000}), {"none", {{0, 1, 0}}});
  EXPECT_DOUBLE_EQ(timeline.transfers[0].start, 2);
  EXPECT_DOUBLE_EQ(timeline.iteration_seconds, 2 + 1 + 6);
}

TEST(TimelineTest, SimultaneousTransfersSlowEachOtherOnlyWhileBothMove) {
  // The first starts at 1, moves alone from 2 to 3: 1 of its 4 kB. The second starts at 2 and moves
  // from 3: both at 1.5 s/kB. The second's 2 kB are done at 6, the first has 1 kB left until 7.
  const IterationTimeline timeline =
      Predict(TableOfBytes({2000, 4000}), {"sc", {{1, 1, 0}, {0, 0, 1}}});
  EXPECT_DOUBLE_EQ(timeline.transfers[1].start, 2);
  EXPECT_EQ(timeline.transfers[1].beside, 1);
  EXPECT_DOUBLE_EQ(timeline.transfers[1].end, 6);
  EXPECT_DOUBLE_EQ(timeline.transfers[0].end, 7);
  EXPECT_EQ(timeline.at_once_max, 2);
}

TEST(TimelineTest, AtMostAsManyBesideAsAllowed) {
  // Three are ready long before the first is done. Two at once: the third waits for the second.
  TensorTable table = TableOfBytes({1000, 1000, 9000});
  for (TensorInfo& tensor : table.tensors) tensor.backward_seconds = 0.1;
  const IterationTimeline two = Predict(table, {"x", {{2, 2, 0}, {1, 1, 1}, {0, 0, 1}}});
  EXPECT_DOUBLE_EQ(two.transfers[2].start, two.transfers[1].end);
  EXPECT_LT(two.transfers[1].end, two.transfers[0].end);
  const IterationTimeline three = Predict(table, {"x", {{2, 2, 0}, {1, 1, 1}, {0, 0, 2}}});
  EXPECT_DOUBLE_EQ(three.transfers[2].start, 0.1 + 0.1 + 0.1);
  EXPECT_EQ(three.at_once_max, 3);
}

TEST(TimelineTest, ThePublishedContentionIsFormula13) {
  // The later one begins 1 s into the earlier one's 1 + 4: 4/5 of 4 kB overlap.
  EXPECT_DOUBLE_EQ(PublishedPenalty(kTimelineCosts, 4000, 1), 0.5 * 4 * (1 - 1.0 / 5));
  EXPECT_DOUBLE_EQ(PublishedPenalty(kTimelineCosts, 4000, 0), 0.5 * 4);
  EXPECT_DOUBLE_EQ(PublishedPenalty(kTimelineCosts, 4000, 9), 0) << "it is over";
  const IterationTimeline timeline = Predict(
      TableOfBytes({2000, 4000}), {"sc", {{1, 1, 0}, {0, 0, 1}}}, {.published_contention = true});
  EXPECT_DOUBLE_EQ(timeline.transfers[0].end, 6) << "the earlier one is not slowed";
  EXPECT_DOUBLE_EQ(timeline.transfers[1].end, 2 + 3 + 1.6);
}

TEST(TimelineTest, ForwardMayWaitForItsOwnTensorsOnly) {
  TensorTable table = TableOfBytes({2000, 4000});
  table.tensors[0].forward_seconds = 3;
  table.tensors[1].forward_seconds = 1;
  // The transfers end at 7 (tensor 1) and 6 (tensor 0), as above.
  const Schedule schedule{"sc", {{1, 1, 0}, {0, 0, 1}}};
  const IterationTimeline timeline = Predict(table, schedule, {.overlap_forward = true});
  EXPECT_EQ(timeline.forward[0], (TimeSpan{6, 9}));
  EXPECT_EQ(timeline.forward[1], (TimeSpan{9, 10}));
  EXPECT_DOUBLE_EQ(timeline.iteration_seconds, 10);
  EXPECT_DOUBLE_EQ(Predict(table, schedule).iteration_seconds, 4 + 7);
}

TEST(TimelineTest, RefusesAScheduleOfAnotherModel) {
  const auto fault = [](const Schedule& schedule, const TimelineOptions& options) {
    return std::string(PredictTimeline(TableOfBytes({4, 4, 4}), kTimelineCosts, schedule, options)
                           .status()
                           .message());
  };
  EXPECT_THAT(fault({"x", {{0, 1, 0}}}, {}), HasSubstr("the schedule: transfers[0]"));
  EXPECT_THAT(fault({"x", {{1, 2, 0}, {0, 0, 2}}}, {.published_contention = true}),
              HasSubstr("two transfers at once"));
}

// The same model in other words: small steps in which every byte is moved by itself.
double ByPlainSteps(const TensorTable& table, const cost::CommunicationCosts& costs,
                    const Schedule& schedule) {
  struct Running {
    double startup_left;
    double work_left;
  };
  const std::vector<double> ready = ReadyTimes(table);
  std::vector<Running> running;
  double now = 0;
  size_t next = 0;
  while (next < schedule.transfers.size() || !running.empty()) {
    if (next < schedule.transfers.size()) {
      const Transfer& transfer = schedule.transfers[next];
      if (ready[static_cast<size_t>(transfer.first)] <= now &&
          running.size() <= static_cast<size_t>(transfer.beside)) {
        double work = 0;
        for (int i = transfer.first; i <= transfer.last; ++i) {
          work += costs.b * static_cast<double>(table.tensors[static_cast<size_t>(i)].bytes());
        }
        running.push_back({costs.a, work});
        ++next;
        continue;
      }
    }
    // Up to the next thing that changes anything.
    int moving = 0;
    for (const Running& one : running) moving += one.startup_left <= 0;
    double step = 1e30;
    if (next < schedule.transfers.size()) {
      const double until = ready[static_cast<size_t>(schedule.transfers[next].first)] - now;
      if (until > 0) step = until;
    }
    for (const Running& one : running) {
      step = std::min(
          step, one.startup_left > 0 ? one.startup_left : one.work_left * costs.Gamma(moving));
    }
    for (Running& one : running) {
      if (one.startup_left > 0) {
        one.startup_left = one.startup_left - step < 1e-15 ? 0 : one.startup_left - step;
      } else {
        one.work_left -= step / costs.Gamma(moving);
      }
    }
    now += step;
    running.erase(std::remove_if(running.begin(), running.end(),
                                 [](const Running& one) {
                                   return one.startup_left <= 0 && one.work_left < 1e-15;
                                 }),
                  running.end());
  }
  return std::max(now, ready[0]) + table.forward_seconds();
}

TEST(TimelineTest, AgreesWithPlainStepsOnRandomSchedules) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const int ways = static_cast<int>(random.Between(1, 4));
    const int tensors = static_cast<int>(random.Between(1, 40));
    const testing::Instance instance = testing::RandomInstance(seed, tensors, ways);
    Schedule schedule{"random", {}};
    for (int left = tensors; left > 0;) {
      const int length = static_cast<int>(random.Between(1, std::min(left, 5)));
      const int beside = schedule.transfers.empty() ? 0 : static_cast<int>(random.Below(4));
      schedule.transfers.push_back({left - length, left - 1, beside});
      left -= length;
    }
    const absl::StatusOr<double> seconds =
        PredictIteration(instance.table, instance.costs, schedule);
    ASSERT_EQ(std::string(seconds.status().message()), "");
    EXPECT_NEAR(*seconds, ByPlainSteps(instance.table, instance.costs, schedule), *seconds * 1e-9)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace syncopate::schedule
