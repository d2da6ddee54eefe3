#include "schedule/planners.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/random_instances.h"
#include "schedule/timeline.h"

namespace syncopate::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Layer {
  double backward = 0;
  uint64_t bytes = 0;
};

// In forward order.
TensorTable Table(const std::vector<Layer>& layers) {
  TensorTable table{"test", {}};
  for (const Layer& layer : layers) {
    table.tensors.push_back({"t" + std::to_string(table.tensors.size()), layer.bytes / 4,
                             DataType::kFloat32, 0, layer.backward});
  }
  return table;
}

const cost::CommunicationCosts kCosts{1, 1e-3, {1, 1.5}, ""};

std::vector<Transfer> Plan(absl::string_view planner, const TensorTable& table,
                           const ScheduleOptions& options = {}) {
  const absl::StatusOr<Schedule> schedule = MakeSchedule(planner, table, kCosts, options);
  EXPECT_EQ(std::string(schedule.status().message()), "");
  if (!schedule.ok()) return {};
  EXPECT_EQ(schedule->planner, planner);
  return schedule->transfers;
}

TEST(PlannersTest, NoneAndWfbp) {
  const TensorTable table = Table({{1, 4}, {1, 4}, {1, 4}});
  EXPECT_THAT(Plan("none", table), ElementsAre(Transfer{0, 2, 0}));
  EXPECT_THAT(Plan("wfbp", table),
              ElementsAre(Transfer{2, 2, 0}, Transfer{1, 1, 0}, Transfer{0, 0, 0}));
}

TEST(PlannersTest, BucketsAreClosedByTheTensorThatFillsThem) {
  const TensorTable table = Table({{0, 4}, {0, 40}, {0, 100}, {0, 4}, {0, 12}, {0, 4}, {0, 4}});
  EXPECT_THAT(Plan("bucket", table, {.bucket_bytes = 100, .first_bucket_bytes = 8}),
              ElementsAre(Transfer{5, 6, 0}, Transfer{2, 4, 0}, Transfer{0, 1, 0}));
  EXPECT_THAT(Plan("bucket", table), ElementsAre(Transfer{0, 6, 0}));
}

TEST(PlannersTest, MgWfbpMergesWhatIsReadyWithinAStartUp) {
  // Ready at 1, 1.5, 2.25 (each within a second of the one before), then 5: later than a start-up
  // after 2.25. The last is ready at 6, before the transfer of 3 kB from 2.25 on is over.
  const TensorTable table = Table({{1, 1000}, {2.75, 1000}, {0.75, 1000}, {0.5, 1000}, {1, 1000}});
  EXPECT_THAT(Plan("mg-wfbp", table), ElementsAre(Transfer{2, 4, 0}, Transfer{0, 1, 0}));
}

TEST(AscWfbpTest, NormalIfItIsOverBeforeTheNextIsReady) {  // Q1
  EXPECT_THAT(Plan("asc-wfbp", Table({{3, 1000}, {1, 2000}})),
              ElementsAre(Transfer{1, 1, 0}, Transfer{0, 0, 1}));
  EXPECT_THAT(Plan("asc-wfbp", Table({{9, 4}, {3, 1000}, {1, 2000}})),
              ElementsAre(Transfer{2, 2, 0}, Transfer{1, 1, 0}, Transfer{0, 0, 1}));
}

TEST(AscWfbpTest, MergedIfTheNextIsReadyWithinAStartUp) {  // not Q1, Q2, not Q3
  EXPECT_THAT(Plan("asc-wfbp", Table({{0.5, 1000}, {1, 2000}})), ElementsAre(Transfer{0, 1, 0}));
}

TEST(AscWfbpTest, SimultaneousIfTheNextIsReadyLater) {  // neither Q1 nor Q2
  // The first from 1 to 10; the second ready at 3 would start at 10, but the third is ready at 13
  // and the second would be over only at 13.5.
  EXPECT_THAT(Plan("asc-wfbp", Table({{10, 4}, {2, 2500}, {1, 8000}})),
              ElementsAre(Transfer{2, 2, 0}, Transfer{1, 1, 1}, Transfer{0, 0, 1}));
}

TEST(AscWfbpTest, SimultaneousIfThatIsOverBeforeTheNextIsReady) {  // not Q1, Q2, Q3
  // The first from 1 to 10. The second, ready at 3: at once it is over at 3 + 2 + the penalty of
  // 0.5 * 8 * (1 - 2/9) = 8.11, before the third is ready at 8.5, which is before 10 + a.
  EXPECT_THAT(Plan("asc-wfbp", Table({{5.5, 4}, {2, 1000}, {1, 8000}})),
              ElementsAre(Transfer{2, 2, 0}, Transfer{1, 1, 1}, Transfer{0, 0, 1}));
  // With the third ready before that, at 8, it is merged.
  EXPECT_THAT(Plan("asc-wfbp", Table({{5, 4}, {2, 1000}, {1, 8000}})),
              ElementsAre(Transfer{2, 2, 0}, Transfer{0, 1, 1}));
}

TEST(PlannersTest, EveryPlannerIsValidOnRandomModels) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const testing::Instance instance =
        testing::RandomInstance(seed, static_cast<int>(seed) + 1, 1 + static_cast<int>(seed % 4));
    for (const SchedulePlanner& planner : SchedulePlanners()) {
      const absl::StatusOr<Schedule> schedule =
          MakeSchedule(planner.name, instance.table, instance.costs);
      ASSERT_EQ(std::string(schedule.status().message()), "");
      EXPECT_EQ(std::string(Validate(*schedule, instance.table.size()).message()), "")
          << planner.name << ", seed " << seed;
      EXPECT_EQ(*schedule, *MakeSchedule(planner.name, instance.table, instance.costs))
          << planner.name << " is not repeatable, seed " << seed;
    }
  }
}

TEST(PlannersTest, ThoseThatDoNotPlanByMeasurementsMakeTheSameOfAllOfThem) {
  const TensorTable fast = Table({{0.1, 4}, {0.1, 4000}, {0.1, 4}, {0.1, 4000}});
  const TensorTable slow = Table({{9, 4}, {1, 4000}, {9, 4}, {1, 4000}});
  const cost::CommunicationCosts cheap{1e-6, 1e-9, {1, 1}, ""}, dear{5, 1e-3, {1, 2}, ""};
  for (const SchedulePlanner& planner : SchedulePlanners()) {
    const bool same = MakeSchedule(planner.name, fast, dear)->transfers ==
                      MakeSchedule(planner.name, slow, cheap)->transfers;
    EXPECT_EQ(same, !PlansByMeasurements(planner.name)) << planner.name;
  }
  EXPECT_TRUE(PlansByMeasurements("unknown"));
}

TEST(PlannersTest, NetworksWithoutCostsDoNotConfuseThem) {
  const TensorTable table = Table({{0, 4}, {1, 4}, {0, 4}, {1, 4}});
  for (const cost::CommunicationCosts& costs :
       {cost::CommunicationCosts{0, 0, {1}, ""}, cost::CommunicationCosts{1, 0, {1}, ""},
        cost::CommunicationCosts{0, 1e-3, {1, 1, 1}, ""}}) {
    for (const SchedulePlanner& planner : SchedulePlanners()) {
      const absl::StatusOr<Schedule> schedule = MakeSchedule(planner.name, table, costs);
      ASSERT_EQ(std::string(schedule.status().message()), "") << planner.name;
      EXPECT_TRUE(PredictIteration(table, costs, *schedule).ok());
    }
  }
}

TEST(PlannersTest, RefusesWhatItCannotPlan) {
  const TensorTable table = Table({{1, 4}});
  const auto fault = [&](absl::string_view planner, const ScheduleOptions& options) {
    return std::string(MakeSchedule(planner, table, kCosts, options).status().message());
  };
  EXPECT_THAT(fault("fast", {}), HasSubstr("\"fast\" is not a schedule; choose one of none, wfbp, "
                                           "mg-wfbp, bucket, asc-wfbp, search"));
  EXPECT_THAT(fault("search", {.ways_max = 65}), HasSubstr("65 transfers at once"));
  EXPECT_THAT(fault("bucket", {.bucket_bytes = 0}), HasSubstr("0 bytes"));
  EXPECT_THAT(std::string(MakeSchedule("none", {"m", {}}, kCosts).status().message()),
              HasSubstr("the tensor table: tensors: there is none"));
}

}  // namespace
}  // namespace syncopate::schedule
