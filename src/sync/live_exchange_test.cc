// Exchanges with neighbours live, on real collectives among threads: the results are those of plain
// arithmetic.
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "model/tensor_layout.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/synchronizer_testing.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using strategy::Content;
using strategy::Movement;
using strategy::StartTransfer;

// Half of the own parameters and half of those of the worker before, after a step with half the rate.
std::vector<std::vector<double>> RingByHand(int tensors, int workers, int iterations) {
  const size_t size = static_cast<size_t>(workers);
  std::vector<std::vector<double>> values(size);
  for (auto& own : values) {
    for (int t = 0; t < tensors; ++t) own.push_back(sim::FirstParameter(kSeed, t));
  }
  for (int i = 0; i < iterations; ++i) {
    for (size_t rank = 0; rank < size; ++rank) {
      for (int t = 0; t < tensors; ++t) {
        values[rank][static_cast<size_t>(t)] -=
            0.5 * kLearningRate * sim::GradientOf(kSeed, static_cast<int>(rank), i, t);
      }
    }
    if (workers == 1) continue;
    const auto before = values;
    for (size_t rank = 0; rank < size; ++rank) {
      for (size_t t = 0; t < values[rank].size(); ++t) {
        values[rank][t] = 0.5 * before[rank][t] + 0.5 * before[(rank + size - 1) % size][t];
      }
    }
  }
  return values;
}

TEST(LiveExchangeTest, ARingGivesWhatPlainArithmeticGivesAndDecidesAsInVirtualTime) {
  const TensorTable table = Table();
  const TensorLayout layout(table);
  const int iterations = 6;
  for (const int workers : {1, 2, 3, 5}) {
    const auto expected = RingByHand(table.size(), workers, iterations);
    worker::RunWorkers(workers, [&](Worker& worker) {
      NumberReplica replica(table, worker.rank());
      Memory memory;
      const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
      {
        auto synchronizer = Synchronizer::Make(
            worker, table, replica, std::make_unique<strategy::RingExchange>(info, layout.bytes()),
            ParametersOnly(&memory));
        ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
        const absl::Status status = Train(**synchronizer, replica, table.size(), iterations, 1, 0,
                                          static_cast<uint64_t>(worker.rank()) + 1);
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_TRUE(worker.world().Barrier().ok());
        EXPECT_EQ((*synchronizer)->bytes_sent() > 0, workers > 1);
      }
      for (int t = 0; t < table.size(); ++t) {
        EXPECT_NEAR(replica.parameters[static_cast<size_t>(t)],
                    expected[static_cast<size_t>(worker.rank())][static_cast<size_t>(t)], 1e-5)
            << "worker " << worker.rank() << " of " << workers << ", tensor " << t;
      }
      strategy::RingExchange machine(info, layout.bytes());
      ExpectSameDecisions(machine, memory.decisions());
    });
  }
}

// Workers 0 and 1 exchange with each other, and worker 0 sends to worker 2 as well, which is gone. It
// needs nothing of it, so its exchange goes well.
TEST(LiveExchangeTest, AReceiverThatIsGoneCostsNothing) {
  const TensorTable table = Table();
  worker::RunWorkers(3, [&](Worker& worker) {
    ASSERT_TRUE(worker.world().Barrier().ok());  // all have come
    if (worker.rank() == 2) return;
    NumberReplica replica(table, worker.rank());
    for (double& parameter : replica.parameters) parameter += worker.rank() + 1;
    Memory memory;
    const int other = 1 - worker.rank();
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        std::make_unique<Scripted>(
            [&](double, const Event& event, std::vector<Command>& commands) {
              if (std::holds_alternative<strategy::BackwardEnded>(event)) {
                commands.push_back(StartTransfer{
                    .movement = Movement::kExchange,
                    .content = Content::kParameters,
                    .last = table.size() - 1,
                    .weight = 0.75,
                    .to = worker.rank() == 0 ? std::vector<int>{1, 2} : std::vector<int>{0},
                    .from = {{other, 0.25}}});
              }
              if (std::holds_alternative<strategy::TransferDone>(event)) {
                commands.push_back(strategy::ApplyUpdate{
                    .update = strategy::Update::kAdopt, .last = table.size() - 1, .transfer = 0});
                commands.push_back(strategy::Drained{});
              }
            },
            /*holds=*/true),
        ParametersOnly(&memory));
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    ASSERT_TRUE((*synchronizer)->Begin(1, 0).ok());
    ASSERT_TRUE((*synchronizer)->BackwardBegins().ok());
    ASSERT_TRUE((*synchronizer)->EndBackward().ok());
    const absl::Status status = (*synchronizer)->Finish();
    ASSERT_TRUE(status.ok()) << status;
    for (int t = 0; t < table.size(); ++t) {
      EXPECT_NEAR(replica.parameters[static_cast<size_t>(t)],
                  sim::FirstParameter(kSeed, t) + 0.75 * (worker.rank() + 1) + 0.25 * (other + 1),
                  1e-6);
    }
  });
}

}  // namespace
}  // namespace syncopate::sync
