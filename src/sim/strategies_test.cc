// The strategies in virtual time, and machines that are none of ours but need what later ones will:
// parameters averaged in changing groups, groups and permissions from a service, a server.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/planners.h"
#include "schedule/timeline.h"
#include "sim/strategy_conformance.h"
#include "strategy/bsp.h"

namespace syncopate::sim {
namespace {

using strategy::Command;
using strategy::Event;
using strategy::Strategy;
using strategy::WorkerInfo;

StrategyCase BspCase(const std::string& planner, strategy::BspOptions options = {}) {
  return {.name = "bsp-" + planner + (options.update_together ? "-together" : ""),
          .make =
              [=](const TensorTable& table, const cost::CommunicationCosts& costs) {
                const absl::StatusOr<Schedule> schedule = schedule::MakeSchedule(
                    planner, table, costs, {.bucket_bytes = 200'000, .first_bucket_bytes = 50'000});
                EXPECT_TRUE(schedule.ok()) << schedule.status();
                return [=](const WorkerInfo& info) {
                  return strategy::MakeBsp(info, std::make_shared<Schedule>(*schedule), options);
                };
              },
          .equals_one_worker = true};
}

INSTANTIATE_TEST_SUITE_P(Bsp, StrategyConformance,
                         testing::Values(BspCase("none"), BspCase("wfbp"), BspCase("mg-wfbp"),
                                         BspCase("bucket"), BspCase("asc-wfbp"), BspCase("search"),
                                         BspCase("search", {.update_together = true})),
                         CaseName);

// Steps locally, then averages each tensor's parameters in a group that changes every round, beside
// the backward pass and the next forward.
class GroupAverage : public Strategy {
 public:
  explicit GroupAverage(const WorkerInfo& info)
      : info_(info),
        busy_(static_cast<size_t>(info.tensors), false),
        needed_(static_cast<size_t>(info.tensors), false) {}
  std::string name() const override { return "group-average"; }

  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (failed_) return;
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) round_ = e->iteration;
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      if (busy_[static_cast<size_t>(e->tensor)]) {
        needed_[static_cast<size_t>(e->tensor)] = true;
      } else {
        commands.push_back(strategy::Proceed{e->tensor});
      }
    }
    if (const auto* e = std::get_if<strategy::GradientReady>(&event)) {
      commands.push_back(strategy::ApplyUpdate{strategy::Update::kStepLocal, e->tensor, e->tensor});
      const std::vector<int> members = Group();
      if (members.size() > 1) {
        busy_[static_cast<size_t>(e->tensor)] = true;
        commands.push_back(strategy::StartTransfer{.transfer = Id(e->tensor, members.front()),
                                                   .content = strategy::Content::kParameters,
                                                   .first = e->tensor,
                                                   .last = e->tensor,
                                                   .members = members});
      }
    }
    if (const auto* e = std::get_if<strategy::TransferDone>(&event)) {
      const int tensor = static_cast<int>(e->transfer) % info_.tensors;
      commands.push_back(
          strategy::ApplyUpdate{strategy::Update::kAdopt, tensor, tensor, e->transfer});
      busy_[static_cast<size_t>(tensor)] = false;
      if (needed_[static_cast<size_t>(tensor)]) {
        needed_[static_cast<size_t>(tensor)] = false;
        commands.push_back(strategy::Proceed{tensor});
      }
    }
    draining_ |= std::holds_alternative<strategy::Drain>(event);
    if (draining_ && std::find(busy_.begin(), busy_.end(), true) == busy_.end()) {
      draining_ = false;
      commands.push_back(strategy::Drained{});
    }
    if (const auto* e = std::get_if<strategy::WorkerLost>(&event)) {
      failed_ = true;
      commands.push_back(strategy::Fail{e->why});
    }
  }

 private:
  // Neighbours, shifted by one in every other round.
  std::vector<int> Group() const {
    const int other = (info_.rank + round_) % 2 == 0 ? info_.rank + 1 : info_.rank - 1;
    if (other < 0 || other >= info_.size) return {info_.rank};
    return {std::min(info_.rank, other), std::max(info_.rank, other)};
  }
  int64_t Id(int tensor, int first_member) const {
    return (round_ * info_.size + first_member) * info_.tensors + tensor;
  }

  const WorkerInfo info_;
  int64_t round_ = 0;
  std::vector<bool> busy_, needed_;
  bool draining_ = false, failed_ = false;
};

// After each backward pass asks a service for leave, then pulls from rank 0 what it has pushed to.
class Server : public Strategy {
 public:
  explicit Server(const WorkerInfo& info) : info_(info) {}
  std::string name() const override { return "server"; }

  void Step(double now, const Event& event, std::vector<Command>& commands) override {
    if (failed_) return;
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) iteration_ = e->iteration;
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      needed_.insert(e->tensor);
      Release(commands);
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      waiting_ = true;
      Move(strategy::Movement::kPush, strategy::Content::kGradients, commands);
    }
    if (const auto* e = std::get_if<strategy::TransferDone>(&event)) {
      if (pulling_) {
        commands.push_back(
            strategy::ApplyUpdate{strategy::Update::kAdopt, 0, info_.tensors - 1, e->transfer});
        waiting_ = pulling_ = false;
        Release(commands);
      } else {
        commands.push_back(strategy::WakeAt{now + 0.01});
      }
    }
    if (std::holds_alternative<strategy::TimePassed>(event)) {
      commands.push_back(strategy::AskService{.ticket = iteration_,
                                              .request = strategy::Request::kPermission,
                                              .iteration = iteration_});
    }
    if (const auto* e = std::get_if<strategy::PermissionGranted>(&event)) {
      commands.push_back(strategy::SetBatch{e->samples});
      pulling_ = true;
      Move(strategy::Movement::kPull, strategy::Content::kParameters, commands);
    }
    draining_ |= std::holds_alternative<strategy::Drain>(event);
    if (draining_ && !waiting_) {
      draining_ = false;
      commands.push_back(strategy::Drained{});
    }
    if (const auto* e = std::get_if<strategy::WorkerLost>(&event)) {
      if (e->rank != 0) return;  // the server is what it needs, not the others
      failed_ = true;
      commands.push_back(strategy::Fail{e->why});
    }
  }

 private:
  void Move(strategy::Movement movement, strategy::Content content,
            std::vector<Command>& commands) {
    commands.push_back(strategy::StartTransfer{.transfer = next_++,
                                               .movement = movement,
                                               .content = content,
                                               .first = 0,
                                               .last = info_.tensors - 1,
                                               .target = 0});
  }
  void Release(std::vector<Command>& commands) {
    if (waiting_) return;
    for (const int tensor : std::exchange(needed_, {}))
      commands.push_back(strategy::Proceed{tensor});
  }

  const WorkerInfo info_;
  int64_t iteration_ = 0, next_ = 0;
  std::set<int> needed_;
  bool waiting_ = false, pulling_ = false, draining_ = false, failed_ = false;
};

class Grants : public Service {
 public:
  std::vector<Answer> Ask(double now, int rank, const strategy::AskService& ask) override {
    return {{rank, now + 0.001 * rank, strategy::PermissionGranted{ask.ticket, 8}}};
  }
};

template <typename T>
StrategyFactory MakerOf(const TensorTable&, const cost::CommunicationCosts&) {
  return [](const WorkerInfo& worker) { return std::make_unique<T>(worker); };
}

INSTANTIATE_TEST_SUITE_P(
    Others, StrategyConformance,
    testing::Values(StrategyCase{.name = "group-average", .make = MakerOf<GroupAverage>},
                    StrategyCase{.name = "server",
                                 .make = MakerOf<Server>,
                                 .service = [](int) { return std::make_unique<Grants>(); }}),
    CaseName);

// Equal workers without jitter take what the timeline model says.
TEST(BspTest, TakesTheTimeOfTheTimelineModel) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    VirtualOptions options;
    options.workers = 3;
    options.iterations = 4;
    options.table = RandomTable(random, static_cast<int>(random.Between(1, 30)));
    options.costs = RandomCosts(random);
    for (const schedule::SchedulePlanner& planner : schedule::SchedulePlanners()) {
      const auto schedule = std::make_shared<Schedule>(
          *schedule::MakeSchedule(planner.name, options.table, options.costs));
      const absl::StatusOr<VirtualResult> result = RunVirtually(
          options, [&](const WorkerInfo& info) { return strategy::MakeBsp(info, schedule); });
      ASSERT_TRUE(result.ok()) << result.status();
      const absl::StatusOr<double> predicted = schedule::PredictIteration(
          options.table, options.costs, *schedule, {.overlap_forward = true});
      ASSERT_TRUE(predicted.ok()) << predicted.status();
      const auto& begun = result->begun[0];
      EXPECT_NEAR(begun[3] - begun[2], *predicted, 1e-6 * *predicted)
          << planner.name << ", seed " << seed;
    }
  }
}

TEST(BspTest, ChangesItsScheduleAtTheSameIterationEverywhere) {
  Random random(5);
  VirtualOptions options;
  options.workers = 4;
  options.iterations = 6;
  options.jitter = 2;
  options.table = RandomTable(random, 9);
  options.costs = RandomCosts(random);
  const auto make = [&](const char* planner) {
    return std::make_shared<Schedule>(
        *schedule::MakeSchedule(planner, options.table, options.costs));
  };
  options.schedules = {{make("wfbp"), 2}, {make("none"), 4}};
  const absl::StatusOr<VirtualResult> result = RunVirtually(
      options, [&](const WorkerInfo& info) { return strategy::MakeBsp(info, make("none")); });
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& told : result->told) {
    int64_t iteration = 0;
    std::map<int64_t, int> starts;
    for (const auto& step : told) {
      if (const auto* e = std::get_if<strategy::IterationBegan>(&step.event)) {
        iteration = e->iteration;
      }
      for (const Command& command : step.commands) {
        starts[iteration] += std::holds_alternative<strategy::StartTransfer>(command);
      }
    }
    // With one transfer beside none, the last ones of an iteration start within the next: count all
    // that were started by then.
    int total = 0;
    for (const auto& [at, count] : starts) total += count;
    EXPECT_EQ(total, 1 + 1 + 9 + 9 + 1 + 1);
  }
}

// A strategy that forgets somebody is found out.
TEST(VirtualClusterTest, ADeadlockNamesWhoWaitsForWhat) {
  class Forgetful : public Strategy {
   public:
    std::string name() const override { return "forgetful"; }
    void Step(double, const Event& event, std::vector<Command>& commands) override {
      if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event); e && e->tensor == 0) {
        commands.push_back(strategy::Proceed{0});
      }
    }
  };
  Random random(1);
  VirtualOptions options;
  options.table = RandomTable(random, 2);
  const absl::StatusOr<VirtualResult> result =
      RunVirtually(options, [](const WorkerInfo&) { return std::make_unique<Forgetful>(); });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(result.status().message()),
              testing::HasSubstr("worker 0 waits for tensor 1 in iteration 0"));
}

}  // namespace
}  // namespace syncopate::sim
