// BSP live, and what single commands do: the same mathematics and the same decisions as in virtual
// time, on real collectives among threads.
#include "sync/synchronizer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/planners.h"
#include "strategy/bsp.h"
#include "sync/agreed_values.h"
#include "sync/synchronizer_testing.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

class LiveBspTest : public ::testing::TestWithParam<std::tuple<std::string, int, bool>> {};

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
                         ::testing::Combine(::testing::Values("none", "wfbp", "mg-wfbp", "bucket",
                                                              "asc-wfbp", "search"),
                                            ::testing::Values(1, 2, 4, 8), ::testing::Bool()),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param);
                           std::erase(name, '-');
                           return name + std::to_string(std::get<1>(test.param)) +
                                  (std::get<2>(test.param) ? "Known" : "Unknown");
                         });

// The iteration from which on each schedule counted that this worker's strategy was told.
std::vector<int64_t> NewSchedules(const Memory& memory) {
  std::vector<int64_t> from;
  for (const strategy::Decision& step : memory.decisions()) {
    if (const auto* value = std::get_if<strategy::NewValue>(&step.event))
      from.push_back(value->from);
  }
  return from;
}

TEST(SynchronizerTest, AScheduleThatOneProposesCountsFromTheSameIterationForAll) {
  constexpr int kWorkers = 4, kIterations = 30, kProposedAfter = 5;
  const TensorTable table = Table();
  const auto first = std::make_shared<Schedule>(*schedule::MakeSchedule("none", table, {}));
  const auto second = std::make_shared<Schedule>(*schedule::MakeSchedule("wfbp", table, {}));
  TensorTable other = table;
  other.tensors.resize(3);
  const auto of_another_model =
      std::make_shared<Schedule>(*schedule::MakeSchedule("none", other, {}));
  const std::vector<double> expected = OneWorkerParameters(
      table.size(), kIterations, std::vector<uint64_t>(static_cast<size_t>(kWorkers), 1));
  std::mutex mutex;
  std::set<std::vector<int64_t>> all;  // what each worker was told
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    Memory memory;
    const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
    auto synchronizer = Synchronizer::Make(worker, table, replica, strategy::MakeBsp(info, first),
                                           {.witness = &memory});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    EXPECT_FALSE((*synchronizer)->Propose(of_another_model).ok());
    int64_t used_from = -1;
    for (int64_t iteration = 0; iteration < kIterations; ++iteration) {
      // Each takes part at a time of its own.
      if (iteration == kProposedAfter - worker.rank()) (*synchronizer)->AgreeOnSchedules();
      if (iteration == kProposedAfter && worker.rank() == 0) {
        ASSERT_TRUE((*synchronizer)->Propose(second).ok());
      }
      ASSERT_TRUE(TrainOnce(**synchronizer, replica, table.size(), iteration).ok());
      if ((*synchronizer)->schedule() != nullptr && used_from < 0) {
        used_from = iteration;
        EXPECT_EQ(*(*synchronizer)->schedule(), *second);
      }
    }
    ASSERT_TRUE((*synchronizer)->Finish().ok());
    const std::vector<int64_t> told = NewSchedules(memory);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0], used_from);
    std::map<int64_t, size_t> transfers;  // by iteration
    for (const Witness::Transfer& transfer : memory.transfers()) ++transfers[transfer.iteration];
    for (const auto& [iteration, count] : transfers) {
      EXPECT_EQ(count, (iteration < told[0] ? first : second)->transfers.size()) << iteration;
    }
    for (int t = 0; t < table.size(); ++t) {
      EXPECT_NEAR(replica.parameters[static_cast<size_t>(t)], expected[static_cast<size_t>(t)],
                  1e-6);
    }
    const std::lock_guard lock(mutex);
    all.insert(told);
  });
  ASSERT_EQ(all.size(), 1u);
  // Nobody has begun more than one iteration further than the slowest, and two may be begun without an
  // outcome.
  EXPECT_LE(all.begin()->at(0), kProposedAfter + 2 + AgreedValues::kIterationsFurther + 1);
}

// Two workers want other batches at about the same time, of samples that are dealt out in step.
TEST(SynchronizerTest, BatchesInStepChangeAtTheSameIterationForAll) {
  constexpr int kWorkers = 3, kIterations = 60;
  const TensorTable table = Table();
  std::mutex mutex;
  std::map<int64_t, std::set<std::vector<std::map<int, uint64_t>>>> known;  // after each iteration
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    const uint64_t wanted = 10 + static_cast<uint64_t>(worker.rank());
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        std::make_unique<Scripted>([&](double, const Event& event, std::vector<Command>& commands) {
          const auto* began = std::get_if<strategy::IterationBegan>(&event);
          if (began != nullptr && began->iteration == 5 && worker.rank() > 0) {
            commands.push_back(strategy::SetBatch{wanted});
          }
        }),
        {.agrees_on_batches = true});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    for (int64_t iteration = 0; iteration < kIterations; ++iteration) {
      ASSERT_TRUE(TrainOnce(**synchronizer, replica, table.size(), iteration).ok());
      // The script sends nothing, so nothing else keeps the workers together.
      ASSERT_TRUE(worker.world().Barrier().ok());
      const std::lock_guard lock(mutex);
      known[iteration].insert(replica.batches);
    }
    ASSERT_TRUE((*synchronizer)->Finish().ok());
    ASSERT_TRUE(worker.world().Barrier().ok());
    EXPECT_EQ(replica.batch, 0u) << "nobody changes it alone";
    ASSERT_FALSE(replica.batches.empty());
    EXPECT_EQ(replica.batches.back(), (std::map<int, uint64_t>{{1, 11}, {2, 12}}));
  });
  for (const auto& [iteration, workers] : known) EXPECT_EQ(workers.size(), 1u) << iteration;
}

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
        ::testing::AllOf(::testing::HasSubstr("strategy scripted: "), ::testing::HasSubstr(text)));
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

// Behind an update a transfer of parameters needs the training thread, which is woken for it; else the
// control thread starts it. Either way its end wakes the training thread. That one has no time of its
// own at which it would look again: a wake-up that was missing would end in an error, at the
// synchronizer's timeout.
class ParameterTransferTest : public ::testing::TestWithParam<bool> {};

TEST_P(ParameterTransferTest, WakesTheTrainingThreadThatWaits) {
  const TensorTable table = Table();
  constexpr int kRounds = 50;
  worker::RunWorkers(2, [&](Worker& worker) {
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
      if (const auto* done = std::get_if<strategy::TransferDone>(&event)) {
        commands.push_back(
            strategy::ApplyUpdate{.update = strategy::Update::kAdopt, .transfer = done->transfer});
        commands.push_back(strategy::Proceed{0});
      }
    };
    SynchronizerOptions options = ParametersOnly(&memory);
    options.timeout = absl::Seconds(30);
    auto synchronizer = Synchronizer::Make(
        worker, table, replica, std::make_unique<Scripted>(script, /*holds=*/true), options);
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    for (int i = 0; i < kRounds; ++i) {
      ASSERT_TRUE((*synchronizer)->Begin(1, 0).ok());
      const absl::Status status = (*synchronizer)->Need(0);
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(memory.transfers().size(), static_cast<size_t>(kRounds));
  });
}

INSTANTIATE_TEST_SUITE_P(BehindAnUpdate, ParameterTransferTest, ::testing::Bool());

// Notes on which thread the strategy hears of ends.
class ThreadsOfEnds : public Witness {
 public:
  void Decided(const strategy::Decision& decision) override {
    const std::lock_guard lock(mutex_);
    if (std::holds_alternative<strategy::TransferDone>(decision.event)) {
      threads_.push_back(std::this_thread::get_id());
    }
  }
  std::vector<std::thread::id> threads() const {
    const std::lock_guard lock(mutex_);
    return threads_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::thread::id> threads_;
};

// The strategy's steps for a training thread that computes run on the thread that takes the mail.
TEST(SynchronizerTest, EndsAreToldByTheControlThreadWhileTheTrainingThreadComputes) {
  const TensorTable table = Table();
  const auto schedule = std::make_shared<Schedule>(*schedule::MakeSchedule("wfbp", table, Costs()));
  worker::RunWorkers(2, [&](Worker& worker) {
    std::atomic<bool> known{false};
    std::thread::id control;
    ASSERT_TRUE(worker
                    .Receive("hello",
                             [&](const Mail& mail) {
                               if (mail.kind != Mail::Kind::kMessage) return;
                               control = std::this_thread::get_id();
                               known = true;
                             })
                    .ok());
    ASSERT_TRUE(worker.Send(worker.rank(), "hello", "x").ok());
    while (!known) std::this_thread::yield();
    NumberReplica replica(table, worker.rank());
    ThreadsOfEnds witness;
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        strategy::MakeBsp({worker.rank(), worker.size(), table.size()}, schedule),
        {.witness = &witness});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    ASSERT_TRUE((*synchronizer)->Begin(1, 2).ok());
    for (int t = 0; t < table.size(); ++t) ASSERT_TRUE((*synchronizer)->Need(t).ok());
    ASSERT_TRUE((*synchronizer)->BackwardBegins().ok());
    for (int t = table.size() - 1; t >= 0; --t) {
      replica.Compute(0, t);
      ASSERT_TRUE((*synchronizer)->Gradient(t).ok());
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (witness.threads().size() < static_cast<size_t>(table.size()) &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it computes
    }
    const std::vector<std::thread::id> threads = witness.threads();
    EXPECT_EQ(threads.size(), static_cast<size_t>(table.size()));
    for (const std::thread::id thread : threads) EXPECT_EQ(thread, control);
    ASSERT_TRUE((*synchronizer)->EndBackward().ok());
    ASSERT_TRUE((*synchronizer)->Finish().ok());
  });
}

// A tensor that is packed only when mail has come: packing on the control thread leaves it time for
// its mail between the tensors.
class PatientReplica : public NumberReplica {
 public:
  using NumberReplica::NumberReplica;
  void Pack(strategy::Content content, int tensor, double factor, std::byte* to) override {
    NumberReplica::Pack(content, tensor, factor, to);
    if (content != strategy::Content::kParameters) return;
    // So long that the control thread takes a turn after each of them.
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    while (std::chrono::steady_clock::now() < until) {
    }
    mail_before_end = mail;
    if (packed++ == 0 && begun) begun();
  }

  std::function<void()> begun;
  std::atomic<bool> mail{false};
  bool mail_before_end = false;  // some had come when the last one was packed
  int packed = 0;
};

TEST(SynchronizerTest, MailIsTakenWhileParametersArePackedOnTheControlThread) {
  const TensorTable table = Table();
  worker::RunWorkers(1, [&](Worker& worker) {
    PatientReplica replica(table, worker.rank());
    ASSERT_TRUE(
        worker
            .Receive("hello",
                     [&](const Mail& mail) { replica.mail = mail.kind == Mail::Kind::kMessage; })
            .ok());
    replica.begun = [&] { EXPECT_TRUE(worker.Send(0, "hello", "x").ok()); };
    Memory memory;
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        std::make_unique<Scripted>(
            [&](double now, const Event& event, std::vector<Command>& commands) {
              if (std::holds_alternative<strategy::IterationBegan>(event)) {
                commands.push_back(strategy::WakeAt{now + 0.001});
              }
              if (std::holds_alternative<strategy::TimePassed>(event)) {
                commands.push_back(strategy::StartTransfer{
                    .content = strategy::Content::kParameters, .last = table.size() - 1});
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
    EXPECT_EQ(replica.packed, table.size());
    EXPECT_TRUE(replica.mail_before_end);
  });
}

}  // namespace
}  // namespace syncopate::sync
