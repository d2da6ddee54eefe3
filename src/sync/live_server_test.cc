// Strategies live that push to a worker and pull from it, on real collectives among threads: what the
// server holds is what plain arithmetic gives, and it serves whatever its training thread does.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/tensor_layout.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/parameter_store.h"
#include "sync/synchronizer_testing.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using strategy::Content;
using strategy::Movement;
using strategy::StartTransfer;

// Holds the parameters that all workers begin with.
class NumberStore {
 public:
  explicit NumberStore(const TensorTable& table) : layout_(table), table_(table) {
    NumberReplica replica(table, 0);
    std::vector<std::byte> packed(layout_.bytes());
    for (int t = 0; t < table.size(); ++t) {
      replica.Pack(Content::kParameters, t, 1, packed.data() + layout_.Offset(t));
    }
    store_ = std::make_unique<SgdStore>(std::move(packed), kLearningRate);
  }
  SgdStore* get() { return store_.get(); }
  // The first element of a tensor.
  double Value(int tensor) {
    const DataType type = layout_.type(tensor);
    double wide = 0;
    float small = 0;
    auto* const to = type == DataType::kFloat64 ? reinterpret_cast<std::byte*>(&wide)
                                                : reinterpret_cast<std::byte*>(&small);
    EXPECT_TRUE(store_->Read({type, layout_.Offset(tensor), 1}, to).ok());
    return type == DataType::kFloat64 ? wide : small;
  }

 private:
  const TensorLayout layout_;
  const TensorTable& table_;
  std::unique_ptr<SgdStore> store_;
};

// Answers at once, with a batch of 8.
class ServerTurns : public Messenger {
 public:
  absl::Status Ask(const strategy::AskService& ask) override {
    synchronizer->Deliver(strategy::Answered{ask.service, ask.ticket, TurnGiven{.samples = 8}});
    return absl::OkStatus();
  }
  absl::Status Send(const strategy::SendMessage&) override {
    return absl::InternalError("nobody sends");
  }
  Synchronizer* synchronizer = nullptr;
};

SynchronizerOptions ServerOptions(Witness* witness, Messenger* messenger, ParameterStore* store) {
  return {.watches_losses = true, .messenger = messenger, .store = store, .witness = witness};
}

class PermittedServerTest : public ::testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(PermittedServerTest, HoldsTheStepsOfAllAndDecidesAsInVirtualTime) {
  const auto [workers, known] = GetParam();
  const TensorTable table = Table();
  const int iterations = 5;
  NumberStore store(table);
  worker::RunWorkers(workers, [&, workers = workers, known = known](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    Memory memory;
    ServerTurns turns;
    const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
    {
      auto synchronizer = Synchronizer::Make(
          worker, table, replica, std::make_unique<strategy::PermittedServer>(info),
          ServerOptions(&memory, &turns, worker.rank() == 0 ? store.get() : nullptr));
      ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
      turns.synchronizer = synchronizer->get();
      // Shares that are multiplied in on the way must not be seen in the end.
      const absl::Status status = Train(**synchronizer, replica, table.size(), iterations, 3,
                                        known ? 3 * static_cast<uint64_t>(workers) : 0,
                                        static_cast<uint64_t>(worker.rank()) + 1);
      EXPECT_TRUE(status.ok()) << status;
      ASSERT_TRUE(worker.world().Barrier().ok());
    }
    EXPECT_EQ(replica.batch, 8u);
    strategy::PermittedServer machine(info);
    ExpectSameDecisions(machine, memory.decisions());
    EXPECT_EQ(memory.transfers().size(), 2u * iterations);
    for (const Witness::Transfer& transfer : memory.transfers()) {
      EXPECT_TRUE(transfer.status.ok()) << transfer.status;
    }
  });
  for (int t = 0; t < table.size(); ++t) {
    double expected = sim::FirstParameter(kSeed, t);
    for (int rank = 0; rank < workers; ++rank) {
      for (int i = 0; i < iterations; ++i) {
        expected -= kLearningRate * sim::GradientOf(kSeed, rank, i, t);
      }
    }
    EXPECT_NEAR(store.Value(t), expected, 1e-5) << t;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PermittedServerTest,
                         ::testing::Combine(::testing::Values(1, 2, 4), ::testing::Bool()),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) ? "Known" : "Unknown");
                         });

// Without the server nobody goes on, and it is named.
TEST(LiveServerTest, AServerThatGoesEndsItForAllAndIsNamed) {
  const TensorTable table = Table();
  NumberStore store(table);
  Options options;
  options.timeout = absl::Seconds(60);
  worker::RunWorkers(
      3,
      [&](Worker& worker) {
        NumberReplica replica(table, worker.rank());
        ServerTurns turns;
        auto synchronizer = Synchronizer::Make(
            worker, table, replica,
            std::make_unique<strategy::PermittedServer>(
                strategy::WorkerInfo{worker.rank(), worker.size(), table.size()}),
            ServerOptions(nullptr, &turns, worker.rank() == 0 ? store.get() : nullptr));
        ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
        turns.synchronizer = synchronizer->get();
        const int iterations = worker.rank() == 0 ? 2 : 1000;
        const absl::Status status = Train(**synchronizer, replica, table.size(), iterations, 1, 0);
        if (worker.rank() == 0) {
          EXPECT_TRUE(status.ok()) << status;
        } else {
          EXPECT_FALSE(status.ok());
          EXPECT_EQ(GetSuspect(status), 0) << status;
        }
      },
      options);
}

// Worker 1 pushes and pulls byte ranges again and again, each pull right behind its push, while the
// training thread of the server makes no call at all. Each pull must see the push before it.
TEST(LiveServerTest, ServesWhateverItsTrainingThreadDoesAndAPullSeesThePushBefore) {
  const TensorTable table = Table();
  const TensorLayout layout(table);
  const uint64_t cut = layout.bytes() / 2 / 64 * 64;
  constexpr int kRounds = 40;
  NumberStore store(table);
  std::atomic<bool> served{false};
  worker::RunWorkers(2, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    int left = 0;
    int64_t next = 0;
    const auto move = [&](Movement movement, std::vector<Command>& commands) {
      const bool push = movement == Movement::kPush;
      for (const bool second : {false, true}) {
        commands.push_back(
            StartTransfer{.transfer = next++,
                          .movement = movement,
                          .content = push ? Content::kGradients : Content::kParameters,
                          .begin = second ? cut : 0,
                          .end = second ? layout.bytes() : cut,
                          .weight = push ? 2.0 : 1.0,
                          .target = 0});
      }
    };
    const auto script = [&](double, const Event& event, std::vector<Command>& commands) {
      if (std::holds_alternative<strategy::BackwardEnded>(event)) {
        left = 4;
        move(Movement::kPush, commands);
        commands.push_back(strategy::WakeAt{0});
      }
      // The pulls do not wait for the pushes' ends.
      if (std::holds_alternative<strategy::TimePassed>(event)) move(Movement::kPull, commands);
      if (!std::holds_alternative<strategy::TransferDone>(event) || --left > 0) return;
      commands.push_back(strategy::ApplyUpdate{
          .update = strategy::Update::kAdopt, .last = table.size() - 1, .transfer = next - 1});
      commands.push_back(strategy::Drained{});
    };
    auto synchronizer = Synchronizer::Make(
        worker, table, replica, std::make_unique<Scripted>(script, /*holds=*/true),
        ServerOptions(nullptr, nullptr, worker.rank() == 0 ? store.get() : nullptr));
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    if (worker.rank() == 0) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(50);
      while (!served && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it computes
      }
      EXPECT_TRUE(served);
      return;
    }
    for (int t = 0; t < table.size(); ++t) replica.Compute(0, t);
    for (int round = 1; round <= kRounds; ++round) {
      ASSERT_TRUE((*synchronizer)->Begin(1, 0).ok());
      ASSERT_TRUE((*synchronizer)->BackwardBegins().ok());
      ASSERT_TRUE((*synchronizer)->EndBackward().ok());
      const absl::Status status = (*synchronizer)->Finish();
      ASSERT_TRUE(status.ok()) << status;
      for (int t = 0; t < table.size(); ++t) {
        ASSERT_NEAR(replica.parameters[static_cast<size_t>(t)],
                    sim::FirstParameter(kSeed, t) -
                        round * 2 * kLearningRate * sim::GradientOf(kSeed, 1, 0, t),
                    1e-4)
            << "round " << round;
      }
    }
    served = true;
  });
}

TEST(LiveServerTest, AWorkerThatServesNobodyAndIsAskedToSaysSo) {
  const TensorTable table = Table();
  worker::RunWorkers(2, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        std::make_unique<Scripted>(
            [&](double, const Event& event, std::vector<Command>& commands) {
              if (worker.rank() == 1 && std::holds_alternative<strategy::BackwardEnded>(event)) {
                commands.push_back(StartTransfer{.movement = Movement::kPush, .target = 0});
              }
              if (const auto* failed = std::get_if<strategy::TransferFailed>(&event)) {
                commands.push_back(strategy::Fail{failed->why});
              }
            },
            /*holds=*/true),
        {});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    // Worker 1 may have asked before worker 0 has come so far, which then fails from there on.
    (*synchronizer)->Begin(1, 0).IgnoreError();
    (*synchronizer)->BackwardBegins().IgnoreError();
    (*synchronizer)->EndBackward().IgnoreError();
    const absl::Status status = (*synchronizer)->Finish();
    EXPECT_FALSE(status.ok());
    if (worker.rank() == 1) {
      EXPECT_EQ(GetSuspect(status), 0) << status;
    } else {
      EXPECT_THAT(
          std::string(status.message()),
          ::testing::HasSubstr("worker 1 pushes to worker 0 or pulls from it, which holds no"));
    }
  });
}

}  // namespace
}  // namespace syncopate::sync
