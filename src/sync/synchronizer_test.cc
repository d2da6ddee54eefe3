// BSP live, and what single commands do: the same mathematics and the same decisions as in virtual
// time, on real collectives among threads.
#include "sync/synchronizer.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/planners.h"
#include "strategy/bsp.h"
#include "sync/synchronizer_testing.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

class LiveBspTest : public testing::TestWithParam<std::tuple<std::string, int, bool>> {};

TEST_P(LiveBspTest, GivesTheParametersOfOneWorkerWithAllBatches) {
  const auto& [planner, workers, known] = GetParam();
  const TensorTable table = Table();
  const auto schedule = std::make_shared<Schedule>(*schedule::MakeSchedule(
      planner, table, Costs(), {.bucket_bytes = 20'000, .first_bucket_bytes = 5'000}));
  std::vector<uint64_t> samples;
  uint64_t all = 0;
  for (int rank = 0; rank < workers; ++rank) {
    samples.push_back(static_cast<uint64_t>(3 + 5 * rank % 7));
    all += samples.back();
  }
  const int iterations = 5;
  const std::vector<double> expected = OneWorkerParameters(table.size(), iterations, samples);
  worker::RunWorkers(workers, [&, known = known](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    Memory memory;
    const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
    {
      auto synchronizer = Synchronizer::Make(
          worker, table, replica, strategy::MakeBsp(info, schedule), {.witness = &memory});
      ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
      const absl::Status status = Train(**synchronizer, replica, table.size(), iterations,
                                        samples[static_cast<size_t>(worker.rank())],
                                        known ? all : 0, static_cast<uint64_t>(worker.rank()) + 1);
      ASSERT_TRUE(status.ok()) << status;
    }
    for (int t = 0; t < table.size(); ++t) {
      EXPECT_NEAR(replica.parameters[static_cast<size_t>(t)], expected[static_cast<size_t>(t)],
                  1e-6);
    }
    ExpectSameDecisions(*strategy::MakeBsp(info, schedule), memory.decisions());
    EXPECT_EQ(replica.gradients_packed, workers > 1 ? iterations * table.size() : 0);
  });
}

INSTANTIATE_TEST_SUITE_P(All, LiveBspTest,
                         testing::Combine(testing::Values("none", "wfbp", "mg-wfbp", "bucket",
                                                          "asc-wfbp", "search"),
                                          testing::Values(1, 2, 4, 8), testing::Bool()),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param);
                           std::erase(name, '-');
                           return name + std::to_string(std::get<1>(test.param)) +
                                  (std::get<2>(test.param) ? "Known" : "Unknown");
                         });

TEST(SynchronizerTest, AWorkerThatGoesEndsItForAllAndIsNamed) {
  const TensorTable table = Table();
  const auto schedule = std::make_shared<Schedule>(*schedule::MakeSchedule("wfbp", table, Costs()));
  Options options;
  options.timeout = absl::Seconds(20);
  worker::RunWorkers(
      3,
      [&](Worker& worker) {
        NumberReplica replica(table, worker.rank());
        auto synchronizer = Synchronizer::Make(
            worker, table, replica,
            strategy::MakeBsp({worker.rank(), worker.size(), table.size()}, schedule), {});
        ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
        const int iterations = worker.rank() == 1 ? 2 : 1000;  // it leaves early
        const absl::Status status = Train(**synchronizer, replica, table.size(), iterations, 1, 3);
        if (worker.rank() == 1) {
          EXPECT_TRUE(status.ok()) << status;
        } else {
          EXPECT_FALSE(status.ok());
          EXPECT_EQ(GetSuspect(status), 1) << status;
          EXPECT_EQ((*synchronizer)->Begin(1, 3), status);  // and so it stays
        }
      },
      options);
}

TEST(SynchronizerTest, TensorsWithoutAGradientCountAsZero) {
  const TensorTable table = Table();
  const auto schedule = std::make_shared<Schedule>(*schedule::MakeSchedule("none", table, Costs()));
  worker::RunWorkers(2, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        strategy::MakeBsp({worker.rank(), worker.size(), table.size()}, schedule), {});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    ASSERT_TRUE((*synchronizer)->Begin(1, 2).ok());
    for (int t = 0; t < table.size(); ++t) ASSERT_TRUE((*synchronizer)->Need(t).ok());
    ASSERT_TRUE((*synchronizer)->BackwardBegins().ok());
    if (worker.rank() == 0) {
      replica.Compute(0, 5);
      ASSERT_TRUE((*synchronizer)->Gradient(5).ok());
    }
    ASSERT_TRUE((*synchronizer)->EndBackward().ok());
    ASSERT_TRUE((*synchronizer)->Finish().ok());
    for (int t = 0; t < table.size(); ++t) {
      const double mean = t == 5 ? sim::GradientOf(kSeed, 0, 0, 5) / 2 : 0;
      EXPECT_NEAR(replica.parameters[static_cast<size_t>(t)],
                  sim::FirstParameter(kSeed, t) - kLearningRate * mean, 1e-6);
    }
  });
}

// ---- what single commands do

absl::Status FirstIteration(Command command) {
  const TensorTable table = Table();
  absl::Status status;
  worker::RunWorkers(1, [&](Worker& worker) {
    // The interface's own answers to what a loop cannot follow.
    class Plain : public Replica {
     public:
      void Pack(strategy::Content, int, double, std::byte*) override {}
      double Apply(const strategy::ApplyUpdate&, const Brought&) override { return 0; }
    } replica;
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        std::make_unique<Scripted>([&](double, const Event& event, std::vector<Command>& commands) {
          if (std::holds_alternative<strategy::BackwardEnded>(event)) commands.push_back(command);
        }),
        {});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    ASSERT_TRUE((*synchronizer)->Begin(1, 1).ok());
    ASSERT_TRUE((*synchronizer)->BackwardBegins().ok());
    (*synchronizer)->EndBackward().IgnoreError();
    status = (*synchronizer)->Finish();
    EXPECT_EQ((*synchronizer)->Begin(1, 1), status);
  });
  return status;
}

TEST(SynchronizerTest, WhatItCannotDoYetIsOneClearErrorAndNoSilence) {
  const std::vector<std::pair<Command, std::string>> cases = {
      {strategy::AskService{"groups", 1, WantGroup{}}, "it asks the service groups"},
      {strategy::SendMessage{3, Distance{}}, "it sends a message to worker 3"},
      {strategy::SetBatch{12}, "batches of 12 samples"},
      {strategy::SetProgress{}, "counts the samples of all workers"}};
  for (const auto& [command, text] : cases) {
    const absl::Status status = FirstIteration(command);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << ToText(command) << ": " << status;
    EXPECT_THAT(
        std::string(status.message()),
        testing::AllOf(testing::HasSubstr("strategy scripted: "), testing::HasSubstr(text)));
  }
}

TEST(SynchronizerTest, CommandsThatMakeNoSenseEndIt) {
  using strategy::StartTransfer;
  for (const Command& command : std::vector<Command>{
           StartTransfer{.last = 99}, StartTransfer{.begin = 1, .end = 5},
           StartTransfer{.movement = strategy::Movement::kPush, .target = 1},
           StartTransfer{.movement = strategy::Movement::kPush, .target = 0},  // it has no store
           StartTransfer{.movement = strategy::Movement::kPull, .target = -1},
           StartTransfer{.movement = strategy::Movement::kExchange, .to = {0}},
           StartTransfer{.movement = strategy::Movement::kExchange, .from = {{3, 1}}},
           strategy::ApplyUpdate{.transfer = 5},
           strategy::ApplyUpdate{.update = strategy::Update::kAddChange, .transfer = 5}}) {
    EXPECT_FALSE(FirstIteration(command).ok()) << ToText(command);
  }
}

// An update that comes while a pass uses a tensor waits for that tensor's gradient; the rest of it is
// applied before the forward pass goes on.
TEST(SynchronizerTest, UpdatesKeepOffTensorsThatAPassUses) {
  const TensorTable table = Table();
  worker::RunWorkers(1, [&](Worker& worker) {
    NumberReplica replica(table, 0);
    Memory memory;
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        std::make_unique<Scripted>([&](double, const Event& event, std::vector<Command>& commands) {
          const auto* e = std::get_if<strategy::ForwardNeeds>(&event);
          if (e == nullptr || e->tensor != 5) return;
          commands.push_back(strategy::ApplyUpdate{.update = strategy::Update::kStepLocal,
                                                   .first = 0,
                                                   .last = table.size() - 1,
                                                   .transfer = 7,
                                                   .measure = true});
        }),
        {.witness = &memory});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    for (int t = 0; t < table.size(); ++t) replica.gradients[static_cast<size_t>(t)] = 1;
    const std::vector<double> before = replica.parameters;
    ASSERT_TRUE((*synchronizer)->Begin(1, 1).ok());
    for (int t = 0; t < table.size(); ++t) {
      ASSERT_TRUE((*synchronizer)->Need(t).ok());
      replica.in_use.insert(t);
      const size_t last = static_cast<size_t>(table.size() - 1);
      EXPECT_EQ(replica.parameters[last] == before[last], t < 5);
      EXPECT_EQ(replica.parameters[0], before[0]);
    }
    ASSERT_TRUE((*synchronizer)->BackwardBegins().ok());
    for (int t = table.size() - 1; t >= 0; --t) {
      replica.in_use.erase(t);
      ASSERT_TRUE((*synchronizer)->Gradient(t).ok());
    }
    ASSERT_TRUE((*synchronizer)->EndBackward().ok());
    ASSERT_TRUE((*synchronizer)->Finish().ok());
    double moved = 0;
    for (int t = 0; t < table.size(); ++t) {
      const double step =
          replica.parameters[static_cast<size_t>(t)] - before[static_cast<size_t>(t)];
      EXPECT_NEAR(step, -kLearningRate, 1e-12) << t;  // once
      moved += step * step;
    }
    int told = 0;
    for (const strategy::Decision& step : memory.decisions()) {
      const auto* updated = std::get_if<strategy::Updated>(&step.event);
      if (updated == nullptr) continue;
      ++told;
      EXPECT_EQ(updated->transfer, 7);
      EXPECT_NEAR(updated->squared_distance, moved, 1e-12);
    }
    EXPECT_EQ(told, 1);
  });
}

// Averages all parameters in byte ranges of the packed layout, which cut tensors in two.
TEST(SynchronizerTest, AveragesByteRangesOfThePackedLayout) {
  const TensorTable table = Table();
  const TensorLayout layout(table);
  const int parts = 3, workers = 3;
  std::vector<uint64_t> cuts;
  for (int i = 0; i <= parts; ++i) {
    cuts.push_back(i == parts ? layout.bytes()
                              : layout.bytes() * static_cast<uint64_t>(i) / parts / 64 * 64);
  }
  worker::RunWorkers(workers, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    int left = parts;
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        std::make_unique<Scripted>(
            [&](double, const Event& event, std::vector<Command>& commands) {
              if (std::holds_alternative<strategy::BackwardEnded>(event)) {
                commands.push_back(strategy::ApplyUpdate{.update = strategy::Update::kStepLocal,
                                                         .last = table.size() - 1});
                for (int i = 0; i < parts; ++i) {
                  commands.push_back(
                      strategy::StartTransfer{.transfer = i,
                                              .content = strategy::Content::kParameters,
                                              .begin = cuts[static_cast<size_t>(i)],
                                              .end = cuts[static_cast<size_t>(i) + 1],
                                              .keep_sent = true});
                }
              }
              const auto* done = std::get_if<strategy::TransferDone>(&event);
              if (done == nullptr || --left > 0) return;
              commands.push_back(strategy::ApplyUpdate{.update = strategy::Update::kAddChange,
                                                       .last = table.size() - 1,
                                                       .transfer = done->transfer});
              commands.push_back(strategy::Drained{});
            },
            /*holds=*/true),
        kParametersOnly);
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    ASSERT_TRUE((*synchronizer)->Begin(1, 0).ok());
    ASSERT_TRUE((*synchronizer)->BackwardBegins().ok());
    for (int t = table.size() - 1; t >= 0; --t) replica.Compute(0, t);
    ASSERT_TRUE((*synchronizer)->EndBackward().ok());
    ASSERT_TRUE((*synchronizer)->Finish().ok());
    const std::vector<double> expected = MeanOfLocalSteps(table.size(), workers, 1);
    for (int t = 0; t < table.size(); ++t) {
      EXPECT_NEAR(replica.parameters[static_cast<size_t>(t)], expected[static_cast<size_t>(t)],
                  1e-6);
    }
  });
}

// A training thread that computes is not needed for a transfer of parameters that waits for no
// update.
TEST(SynchronizerTest, ParametersLeaveWhileTheTrainingThreadComputes) {
  const TensorTable table = Table();
  worker::RunWorkers(2, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    Memory memory;
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        std::make_unique<Scripted>([&](double now, const Event& event,
                                       std::vector<Command>& commands) {
          if (std::holds_alternative<strategy::IterationBegan>(event)) {
            commands.push_back(strategy::WakeAt{now + 0.001});
          }
          if (std::holds_alternative<strategy::TimePassed>(event)) {
            commands.push_back(strategy::StartTransfer{.content = strategy::Content::kParameters});
          }
        }),
        ParametersOnly(&memory));
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    ASSERT_TRUE((*synchronizer)->Begin(1, 0).ok());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (memory.transfers().empty() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it computes
    }
    ASSERT_EQ(memory.transfers().size(), 1u);
    EXPECT_TRUE(memory.transfers()[0].status.ok());
  });
}

// Behind an update a transfer of parameters needs the training thread, which is woken for it; else
// the synchronizer's own thread starts it. Nobody sleeps out a poll of 100 ms.
class ParameterTransferTest : public testing::TestWithParam<bool> {};

TEST_P(ParameterTransferTest, StartsAtOnceWhileTheTrainingThreadWaits) {
  const TensorTable table = Table();
  worker::RunWorkers(1, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    Memory memory;
    const auto script = [next = int64_t{0}](double now, const Event& event,
                                            std::vector<Command>& commands) mutable {
      if (std::holds_alternative<strategy::ForwardNeeds>(event)) {
        commands.push_back(strategy::WakeAt{now + 0.002});
      }
      if (std::holds_alternative<strategy::TimePassed>(event)) {
        if (GetParam()) {
          commands.push_back(strategy::ApplyUpdate{.update = strategy::Update::kStepLocal});
        }
        commands.push_back(
            strategy::StartTransfer{.transfer = next++, .content = strategy::Content::kParameters});
      }
      if (std::holds_alternative<strategy::TransferDone>(event)) {
        commands.push_back(strategy::Proceed{0});
      }
    };
    auto synchronizer = Synchronizer::Make(worker, table, replica,
                                           std::make_unique<Scripted>(script, /*holds=*/true),
                                           ParametersOnly(&memory));
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    for (int i = 0; i < 15; ++i) {
      ASSERT_TRUE((*synchronizer)->Begin(1, 0).ok());
      const absl::Status status = (*synchronizer)->Need(0);
      ASSERT_TRUE(status.ok()) << status;
    }
    std::vector<double> waits;
    const std::vector<Witness::Transfer> transfers = memory.transfers();
    for (const strategy::Decision& step : memory.decisions()) {
      if (!std::holds_alternative<strategy::TimePassed>(step.event)) continue;
      waits.push_back(transfers.at(waits.size()).begin - step.now);
    }
    ASSERT_EQ(waits.size(), 15u);
    std::sort(waits.begin(), waits.end());
    EXPECT_LT(waits[7], 0.05) << "the median, of a poll of 0.1 s";
  });
}

INSTANTIATE_TEST_SUITE_P(BehindAnUpdate, ParameterTransferTest, testing::Bool());

}  // namespace
}  // namespace syncopate::sync
