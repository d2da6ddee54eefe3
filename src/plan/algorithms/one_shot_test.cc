// The order of the steps of one-shot programs is a promise to the engine; here it is spelled out.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_samples.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

using samples::Copy;
using samples::Receive;
using samples::ReceiveReduce;
using samples::Reduce;
using samples::Send;
using ::testing::ElementsAreArray;

std::vector<Step> ExpectedSteps(const std::vector<int>& active, size_t k) {
  std::vector<Step> steps = {Copy(Space::kScratch, 0, Space::kData, 0)};
  for (size_t j = 0; j < active.size(); ++j) {
    if (j != k) steps.push_back(Send(active[j], 0, {0}, 1, Space::kScratch));
  }
  uint32_t previous = 0;
  const auto add = [&](Step step) {
    previous = static_cast<uint32_t>(steps.size());
    steps.push_back(std::move(step));
  };
  if (k > 0) add(Receive(active[0], 0, {previous}));
  for (size_t j = 1; j < active.size(); ++j) {
    if (j == k) {
      add(Reduce(Space::kData, 0, Space::kScratch, 0, {previous}));
    } else {
      add(ReceiveReduce(active[j], 0, {previous}));
    }
  }
  return steps;
}

TEST(OneShotTest, AllReduce) {
  ProveRandomPlans(
      Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "one-shot"), [](const Plan& plan) {
        if (plan.size() == 1) return;
        EXPECT_EQ(plan.program.data_bounds, (std::vector<uint64_t>{0, plan.request.elements}));
        EXPECT_EQ(plan.program.scratch_bounds, plan.program.data_bounds);
        for (size_t k = 0; k < plan.request.active.size(); ++k) {
          EXPECT_THAT(plan.StepsOf(k), ElementsAreArray(ExpectedSteps(plan.request.active, k)));
        }
        EXPECT_EQ(plan.proof.rounds, 1);
        EXPECT_EQ(plan.proof.sent_elements_max, (plan.size() - 1) * plan.request.elements);
      });
}

}  // namespace
}  // namespace syncopate::plan::testing
