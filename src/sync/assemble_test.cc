// What a strategy's registry entry says of its server holds in a running job: the server hosts no
// services, and averages of all training ranks are without it.
#include "sync/assemble.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/strategy.h"
#include "sync/service_order.h"
#include "sync/synchronizer_testing.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using strategy::Content;
using strategy::Role;
using strategy::StrategyEntry;
using strategy::StrategyOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kServer = 1;

// After each backward pass the training ranks average gradients and step, then average parameters. The
// server does nothing.
class AveragesBesideAServer : public strategy::Strategy {
 public:
  explicit AveragesBesideAServer(const StrategyOptions& options)
      : last_(options.table.size() - 1),
        serves_(options.roles.at(static_cast<size_t>(options.rank)) == Role::kServes) {}
  std::string name() const override { return "averages-beside-a-server"; }

  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) needed_.push_back(e->tensor);
    if (std::holds_alternative<strategy::BackwardEnded>(event) && !serves_) {
      out_ = true;
      commands.push_back(strategy::StartTransfer{.transfer = ++number_, .last = last_});
    }
    if (const auto* e = std::get_if<strategy::TransferDone>(&event)) {
      const bool gradients = number_ % 2 == 1;
      out_ = gradients;
      commands.push_back(strategy::ApplyUpdate{
          .update = gradients ? strategy::Update::kStepAveraged : strategy::Update::kAdopt,
          .last = last_,
          .transfer = e->transfer});
      if (gradients) {
        commands.push_back(strategy::StartTransfer{
            .transfer = ++number_, .content = Content::kParameters, .last = last_});
      }
    }
    draining_ |= std::holds_alternative<strategy::Drain>(event);
    if (out_) return;
    for (const int tensor : std::exchange(needed_, {})) {
      commands.push_back(strategy::Proceed{tensor});
    }
    if (std::exchange(draining_, false)) commands.push_back(strategy::Drained{});
  }

 private:
  const int last_;
  const bool serves_;
  int64_t number_ = 0;
  std::vector<int> needed_;
  bool out_ = false, draining_ = false;
};

std::string ServedStrategy() {
  static const absl::Status added = [] {
    StrategyEntry entry;
    entry.name = "averages-beside-a-server";
    entry.about = "for a test";
    entry.moves = strategy::Moves::kBoth;
    entry.server = kServer;
    entry.make =
        [](const StrategyOptions& options) -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
      return std::make_unique<AveragesBesideAServer>(options);
    };
    return strategy::AddStrategy(std::move(entry));
  }();
  EXPECT_TRUE(added.ok()) << added;
  return "averages-beside-a-server";
}

TEST(AssembleTest, AveragesOfAllTrainingRanksAreWithoutTheServer) {
  const TensorTable table = Table();
  const int workers = 4, iterations = 5;
  Options options;
  options.server_ranks = {kServer};
  std::vector<std::vector<double>> ends(static_cast<size_t>(workers));
  worker::RunWorkers(
      workers,
      [&](Worker& worker) {
        EXPECT_THAT(ServiceOrder(worker), ElementsAre(0, 2, 3));
        NumberReplica replica(table, worker.rank());
        Memory memory;
        auto synchronizer =
            MakeSynchronizer(worker, table, replica, ServedStrategy(), {}, {.witness = &memory});
        ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
        const absl::Status status = Train(**synchronizer, replica, table.size(), iterations, 1, 3);
        EXPECT_TRUE(status.ok()) << status;
        ASSERT_TRUE(worker.world().Barrier().ok());
        ends[static_cast<size_t>(worker.rank())] = replica.parameters;
        EXPECT_EQ(memory.transfers().size(), worker.rank() == kServer ? 0u : 2u * iterations);
      },
      options);
  for (int t = 0; t < table.size(); ++t) {
    double expected = sim::FirstParameter(kSeed, t);
    EXPECT_EQ(ends[kServer][static_cast<size_t>(t)], expected);
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
      double sum = 0;
      for (const int rank : {0, 2, 3}) sum += sim::GradientOf(kSeed, rank, iteration, t);
      expected -= kLearningRate * sum / 3;
    }
    for (const int rank : {0, 2, 3}) {
      EXPECT_NEAR(ends[static_cast<size_t>(rank)][static_cast<size_t>(t)], expected, 1e-5);
    }
  }
}

TEST(AssembleTest, AServerThatMayHostServicesIsRefused) {
  const TensorTable table = Table();
  worker::RunWorkers(2, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    const absl::Status status =
        MakeSynchronizer(worker, table, replica, ServedStrategy(), {}, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("rank ", kServer,
                                       " is its server, which hosts no services; "
                                       "start the workers with Options::server_ranks = {",
                                       kServer, "}")));
  });
}

}  // namespace
}  // namespace syncopate::sync
