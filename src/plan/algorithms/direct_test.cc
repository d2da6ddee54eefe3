// The order of the steps of direct programs is a promise to the engine; here it is spelled out.
#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_samples.h"
#include "plan/collective/planner_testing.h"
#include "plan/collective/shares.h"

namespace syncopate::plan::testing {
namespace {

using samples::Receive;
using samples::ReceiveReduce;
using samples::Send;
using ::testing::ElementsAreArray;

// Step (1) and (2) of worker k: sends everybody their chunk, adds up its own.
std::vector<Step> ExchangeSteps(const std::vector<int>& active, uint32_t k) {
  std::vector<Step> steps;
  const uint32_t size = static_cast<uint32_t>(active.size());
  for (uint32_t j = 0; j < size; ++j) {
    if (j != k) steps.push_back(Send(active[j], j));
  }
  bool first = true;
  for (uint32_t j = 0; j < size; ++j) {
    if (j == k) continue;
    Step step = ReceiveReduce(active[j], k);
    if (!first) step.after.push_back(static_cast<uint32_t>(steps.size()) - 1);
    steps.push_back(step);
    first = false;
  }
  return steps;
}

// Steps (3) and (4): sends the sum to everybody, and receives theirs where it sent from in (1).
std::vector<Step> AllReduceSteps(const std::vector<int>& active, uint32_t k) {
  std::vector<Step> steps = ExchangeSteps(active, k);
  const uint32_t size = static_cast<uint32_t>(active.size());
  const uint32_t last = static_cast<uint32_t>(steps.size()) - 1;
  for (uint32_t j = 0; j < size; ++j) {
    if (j != k) steps.push_back(Send(active[j], k, {last}));
  }
  for (uint32_t j = 0; j < size; ++j) {
    if (j == k) continue;
    steps.push_back(Receive(active[j], j, {j < k ? j : j - 1}));
  }
  return steps;
}

TEST(DirectTest, AllReduce) {
  ProveRandomPlans(
      Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "direct"), [](const Plan& plan) {
        if (plan.size() == 1) return;
        EXPECT_EQ(plan.program.data_bounds,
                  *CutEvenly(plan.request.elements, plan.request.active.size()));
        EXPECT_EQ(plan.program.scratch_elements(), 0u);
        for (uint32_t k = 0; k < plan.request.active.size(); ++k) {
          EXPECT_THAT(plan.StepsOf(k), ElementsAreArray(AllReduceSteps(plan.request.active, k)));
        }
        EXPECT_EQ(plan.proof.rounds, 2);
        EXPECT_EQ(plan.proof.sent_elements_total, 2 * (plan.size() - 1) * plan.request.elements);
      });
}

TEST(DirectTest, ReduceScatter) {
  ProveRandomPlans(
      Collective::kReduceScatter, PlannerOf(Collective::kReduceScatter, "direct"),
      [](const Plan& plan) {
        if (plan.size() == 1) return;
        for (uint32_t k = 0; k < plan.request.active.size(); ++k) {
          EXPECT_THAT(plan.StepsOf(k), ElementsAreArray(ExchangeSteps(plan.request.active, k)));
        }
        EXPECT_EQ(plan.proof.rounds, 1);
        EXPECT_EQ(plan.proof.sent_elements_total, (plan.size() - 1) * plan.request.elements);
      });
}

TEST(DirectTest, AllGather) {
  ProveRandomPlans(
      Collective::kAllGather, PlannerOf(Collective::kAllGather, "direct"), [](const Plan& plan) {
        if (plan.size() == 1) return;
        const std::vector<int>& active = plan.request.active;
        for (uint32_t k = 0; k < active.size(); ++k) {
          std::vector<Step> expected;
          for (uint32_t j = 0; j < active.size(); ++j) {
            if (j != k) expected.push_back(Send(active[j], k));
          }
          for (uint32_t j = 0; j < active.size(); ++j) {
            if (j != k) expected.push_back(Receive(active[j], j));
          }
          EXPECT_THAT(plan.StepsOf(k), ElementsAreArray(expected));
        }
        EXPECT_EQ(plan.proof.rounds, 1);
        EXPECT_EQ(plan.proof.sent_elements_total, (plan.size() - 1) * plan.request.elements);
      });
}

TEST(DirectTest, Broadcast) {
  ProveRandomPlans(
      Collective::kBroadcast, PlannerOf(Collective::kBroadcast, "direct"), [](const Plan& plan) {
        std::vector<Step> expected;
        for (int rank : plan.request.active) {
          if (rank == plan.request.root) continue;
          expected.push_back(Send(rank, 0));
          EXPECT_THAT(plan.program.steps[static_cast<size_t>(rank)],
                      ElementsAreArray({Receive(plan.request.root, 0)}));
        }
        EXPECT_THAT(plan.program.steps[static_cast<size_t>(plan.request.root)],
                    ElementsAreArray(expected));
        EXPECT_EQ(plan.program.data_bounds, (std::vector<uint64_t>{0, plan.request.elements}));
        EXPECT_EQ(plan.proof.rounds, plan.size() > 1 ? 1 : 0);
      });
}

TEST(DirectTest, Reduce) {
  ProveRandomPlans(Collective::kReduce, PlannerOf(Collective::kReduce, "direct"),
                   [](const Plan& plan) {
                     std::vector<Step> expected;
                     for (int rank : plan.request.active) {
                       if (rank == plan.request.root) continue;
                       std::vector<uint32_t> after;
                       if (!expected.empty())
                         after.push_back(static_cast<uint32_t>(expected.size()) - 1);
                       expected.push_back(ReceiveReduce(rank, 0, after));
                       EXPECT_THAT(plan.program.steps[static_cast<size_t>(rank)],
                                   ElementsAreArray({Send(plan.request.root, 0)}));
                     }
                     EXPECT_THAT(plan.program.steps[static_cast<size_t>(plan.request.root)],
                                 ElementsAreArray(expected));
                     EXPECT_EQ(plan.proof.rounds, plan.size() > 1 ? 1 : 0);
                   });
}

TEST(DirectTest, Gather) {
  ProveRandomPlans(Collective::kGather, PlannerOf(Collective::kGather, "direct"),
                   [](const Plan& plan) {
                     EXPECT_LE(plan.proof.rounds, 1);
                     EXPECT_LE(plan.Messages(), plan.size() - 1);
                     EXPECT_LE(plan.proof.sent_elements_total, plan.request.elements);
                   });
}

TEST(DirectTest, Scatter) {
  ProveRandomPlans(Collective::kScatter, PlannerOf(Collective::kScatter, "direct"),
                   [](const Plan& plan) {
                     EXPECT_LE(plan.proof.rounds, 1);
                     EXPECT_LE(plan.Messages(), plan.size() - 1);
                     EXPECT_EQ(plan.proof.sent_elements_total, plan.proof.sent_elements_max);
                   });
}

TEST(DirectTest, AllToAll) {
  ProveRandomPlans(
      Collective::kAllToAll, PlannerOf(Collective::kAllToAll, "direct"), [](const Plan& plan) {
        const bool any = plan.size() > 1 && plan.request.elements > 0;
        EXPECT_EQ(plan.proof.rounds, any ? 1 : 0);
        EXPECT_EQ(plan.Messages(), any ? plan.size() * (plan.size() - 1) : 0);
        EXPECT_EQ(plan.proof.sent_elements_max,
                  any ? plan.request.elements - plan.request.block_elements[0] : 0);
        // Copies do not grow with the workers.
        for (const std::vector<Step>& steps : plan.program.steps) {
          const auto copies = std::count_if(steps.begin(), steps.end(), [](const Step& step) {
            return step.kind == StepKind::kCopy;
          });
          EXPECT_LE(copies, 4);
        }
      });
}

TEST(DirectTest, SendReceive) {
  ProveRandomPlans(Collective::kSendReceive, PlannerOf(Collective::kSendReceive, "direct"),
                   [](const Plan& plan) {
                     const bool any =
                         plan.request.root != plan.request.target && plan.request.elements > 0;
                     EXPECT_EQ(plan.Messages(), any ? 1 : 0);
                     EXPECT_EQ(plan.proof.sent_elements_total, any ? plan.request.elements : 0);
                   });
}

}  // namespace
}  // namespace syncopate::plan::testing
