// Strategies live: the same mathematics and the same decisions as in virtual time, on real
// collectives among threads.
#include "sync/synchronizer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/planners.h"
#include "sim/virtual_cluster.h"
#include "strategy/bsp.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/assemble.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using strategy::Command;
using strategy::Event;

constexpr uint64_t kSeed = 77;
constexpr double kLearningRate = 0.1;

TensorTable Table() {
  TensorTable table{.model = "test", .tensors = {}};
  Random random(3);
  for (int i = 0; i < 14; ++i) {
    table.tensors.push_back({.name = "t" + std::to_string(i),
                             .elements = 1 + random.Below(3000),
                             .type = i % 5 == 3 ? DataType::kFloat64 : DataType::kFloat32,
                             .forward_seconds = 1e-5,
                             .backward_seconds = 1e-5});
  }
  return table;
}

// All elements of a tensor have the same value, that of the virtual cluster.
class NumberReplica : public Replica {
 public:
  NumberReplica(const TensorTable& table, int rank) : table_(table), rank_(rank) {
    for (int t = 0; t < table.size(); ++t) {
      parameters.push_back(sim::FirstParameter(kSeed, t));
      gradients.push_back(0);
    }
  }
  void Pack(strategy::Content content, int tensor, double factor, std::byte* to) override {
    const auto& values = content == strategy::Content::kGradients ? gradients : parameters;
    const double value = values[static_cast<size_t>(tensor)] * factor;
    gradients_packed += content == strategy::Content::kGradients ? 1 : 0;
    for (uint64_t i = 0; i < Info(tensor).elements; ++i) {
      if (Info(tensor).type == DataType::kFloat64) {
        std::memcpy(to + i * 8, &value, 8);
      } else {
        const float small = static_cast<float>(value);
        std::memcpy(to + i * 4, &small, 4);
      }
    }
  }
  double Apply(const strategy::ApplyUpdate& update, const Brought& brought) override {
    double squared = 0;
    for (int t = update.first; t <= update.last; ++t) {
      EXPECT_FALSE(in_use.contains(t)) << "an update of tensor " << t << ", which a pass uses";
      double& parameter = parameters[static_cast<size_t>(t)];
      const double before = parameter;
      switch (update.update) {
        case strategy::Update::kStepAveraged:
          parameter -= kLearningRate * update.rate_factor * Read(brought.Result(t), t);
          break;
        case strategy::Update::kStepLocal:
          parameter -= kLearningRate * update.rate_factor * gradients[static_cast<size_t>(t)];
          break;
        case strategy::Update::kAdopt:
          parameter = Read(brought.Result(t), t);
          break;
        case strategy::Update::kAddChange:
          parameter += Read(brought.Result(t), t) - Read(brought.Sent(t), t);
          break;
      }
      squared += (parameter - before) * (parameter - before);
    }
    return squared;
  }
  absl::Status SetProgress(const strategy::SetProgress& progress) override {
    total_samples = progress.total_samples;
    return absl::OkStatus();
  }
  void Compute(int64_t iteration, int tensor) {
    gradients[static_cast<size_t>(tensor)] = sim::GradientOf(kSeed, rank_, iteration, tensor);
  }

  std::vector<double> parameters, gradients;
  std::set<int> in_use;  // by the passes of the test
  int gradients_packed = 0;
  uint64_t total_samples = 0;

 private:
  // All elements of a tensor have moved.
  double Read(const std::byte* from, int tensor) const {
    const auto at = [&](uint64_t i) -> double {
      if (Info(tensor).type == DataType::kFloat64) {
        double value;
        std::memcpy(&value, from + i * 8, 8);
        return value;
      }
      float small;
      std::memcpy(&small, from + i * 4, 4);
      return small;
    };
    const uint64_t last = Info(tensor).elements - 1;
    // Parts of it may have been added up in another order.
    EXPECT_NEAR(at(0), at(last), 1e-6);
    EXPECT_NEAR(at(last / 2), at(last), 1e-6);
    return at(last);
  }
  const TensorInfo& Info(int tensor) const { return table_.tensors[static_cast<size_t>(tensor)]; }
  const TensorTable& table_;
  const int rank_;
};

// Remembers what a synchronizer did.
class Memory : public Witness {
 public:
  void Decided(const strategy::Decision& decision) override {
    const std::lock_guard lock(mutex_);
    decisions_.push_back(decision);
  }
  void Transferred(const Transfer& transfer) override {
    const std::lock_guard lock(mutex_);
    transfers_.push_back(transfer);
  }
  void Applied(const Update& update) override {
    const std::lock_guard lock(mutex_);
    updates_.push_back(update);
  }

  std::vector<strategy::Decision> decisions() const { return Copy(decisions_); }
  std::vector<Transfer> transfers() const { return Copy(transfers_); }
  std::vector<Update> updates() const { return Copy(updates_); }

 private:
  template <typename T>
  T Copy(const T& list) const {
    const std::lock_guard lock(mutex_);
    return list;
  }

  mutable std::mutex mutex_;
  std::vector<strategy::Decision> decisions_;
  std::vector<Transfer> transfers_;
  std::vector<Update> updates_;
};

// A fresh machine decides the same when it is told the same.
void ExpectSameDecisions(strategy::Strategy& machine,
                         const std::vector<strategy::Decision>& decisions) {
  EXPECT_FALSE(decisions.empty());
  for (const strategy::Decision& step : decisions) {
    std::vector<Command> commands;
    machine.Step(step.now, step.event, commands);
    ASSERT_TRUE(commands == step.commands) << ToText(step.event);
  }
}

cost::CommunicationCosts Costs() {
  return {.a = 1e-5, .b = 1e-9, .gamma = {1, 1.3, 1.6}, .source = ""};
}

absl::Status Train(Synchronizer& synchronizer, NumberReplica& replica, int tensors, int iterations,
                   uint64_t samples, uint64_t all_samples, uint64_t pauses = 0) {
  Random random(pauses);
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    if (absl::Status s = synchronizer.Begin(samples, all_samples); !s.ok()) return s;
    for (int t = 0; t < tensors; ++t) {
      if (absl::Status s = synchronizer.Need(t); !s.ok()) return s;
      replica.in_use.insert(t);
    }
    if (absl::Status s = synchronizer.BackwardBegins(); !s.ok()) return s;
    for (int t = tensors - 1; t >= 0; --t) {
      if (pauses != 0) std::this_thread::sleep_for(std::chrono::microseconds(random.Below(400)));
      replica.Compute(iteration, t);
      replica.in_use.erase(t);
      if (absl::Status s = synchronizer.Gradient(t); !s.ok()) return s;
    }
    if (absl::Status s = synchronizer.EndBackward(); !s.ok()) return s;
  }
  return synchronizer.Finish();
}

std::vector<double> OneWorkerParameters(int tensors, int iterations,
                                        const std::vector<uint64_t>& samples) {
  std::vector<double> parameters;
  for (int t = 0; t < tensors; ++t) {
    double parameter = sim::FirstParameter(kSeed, t);
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
      double sum = 0, weights = 0;
      for (size_t rank = 0; rank < samples.size(); ++rank) {
        const double weight = static_cast<double>(samples[rank]);
        sum += weight * sim::GradientOf(kSeed, static_cast<int>(rank), iteration, t);
        weights += weight;
      }
      parameter -= kLearningRate * sum / weights;
    }
    parameters.push_back(parameter);
  }
  return parameters;
}

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

// ---- strategies that move parameters

// What all workers have in the mean when each steps with its own gradient and averages keep the
// mean.
std::vector<double> MeanOfLocalSteps(int tensors, int workers, int iterations) {
  return OneWorkerParameters(tensors, iterations,
                             std::vector<uint64_t>(static_cast<size_t>(workers), 1));
}

constexpr SynchronizerOptions kParametersOnly = {.moves_gradients = false, .watches_losses = true};

SynchronizerOptions ParametersOnly(Witness* witness, Messenger* messenger = nullptr) {
  SynchronizerOptions options = kParametersOnly;
  options.witness = witness;
  options.messenger = messenger;
  return options;
}

// The end states of all workers of a test, which run as threads.
class Ends {
 public:
  explicit Ends(int workers) : parameters_(static_cast<size_t>(workers)) {}
  void Set(int rank, const std::vector<double>& parameters) {
    const std::lock_guard lock(mutex_);
    parameters_[static_cast<size_t>(rank)] = parameters;
  }
  double Mean(int tensor) const {
    double sum = 0;
    for (const auto& own : parameters_) sum += own.at(static_cast<size_t>(tensor));
    return sum / static_cast<double>(parameters_.size());
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<double>> parameters_;
};

TEST(LiveGroupsTest, GroupsThatChangeKeepTheMeanAndDecideAsInVirtualTime) {
  const TensorTable table = Table();
  for (const int workers : {1, 2, 5}) {
    const int iterations = 6;
    Ends ends(workers);
    worker::RunWorkers(workers, [&](Worker& worker) {
      NumberReplica replica(table, worker.rank());
      Memory memory;
      const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
      {
        auto synchronizer = Synchronizer::Make(worker, table, replica,
                                               std::make_unique<strategy::GroupAverage>(info),
                                               ParametersOnly(&memory));
        ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
        const absl::Status status = Train(**synchronizer, replica, table.size(), iterations, 1, 0,
                                          static_cast<uint64_t>(worker.rank()) + 1);
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_TRUE(worker.world().Barrier().ok());
      }
      ends.Set(worker.rank(), replica.parameters);
      EXPECT_EQ(replica.gradients_packed, 0);
      strategy::GroupAverage machine(info);
      ExpectSameDecisions(machine, memory.decisions());
      for (const Witness::Transfer& transfer : memory.transfers()) {
        EXPECT_TRUE(transfer.status.ok()) << transfer.status;
        EXPECT_LE(transfer.begin, transfer.end);
      }
    });
    const std::vector<double> expected = MeanOfLocalSteps(table.size(), workers, iterations);
    for (int t = 0; t < table.size(); ++t) {
      EXPECT_NEAR(ends.Mean(t), expected[static_cast<size_t>(t)], 1e-5);
    }
  }
}

// Answers and messages among the workers of a test, which run as threads: a mailbox and a service of
// groups.
class Office {
 public:
  explicit Office(int workers) : seats_(static_cast<size_t>(workers)), workers_(workers) {}

  class Counter : public Messenger {
   public:
    Counter(Office& office, int rank) : office_(office), rank_(rank) {}
    absl::Status Ask(const strategy::AskService& ask) override {
      const auto& want = std::get<WantGroup>(ask.message);
      GroupGiven given{.members =
                           strategy::NeighboursOf(rank_, office_.workers_, want.iteration, {})};
      given.key = {1, static_cast<uint64_t>(want.iteration * office_.workers_ + given.members[0])};
      const std::lock_guard lock(office_.mutex_);
      given.total_samples = office_.total_ += want.samples;
      Deliver(rank_, strategy::Answered{ask.service, ask.ticket, given});
      return absl::OkStatus();
    }
    absl::Status Send(const strategy::SendMessage& send) override {
      // As bytes, as it would travel.
      auto message = DecodeStrategyMessage(Encode(send.message), office_.workers_);
      if (!message.ok()) return message.status();
      const std::lock_guard lock(office_.mutex_);
      ++office_.messages_;
      Deliver(send.to, strategy::MessageArrived{rank_, *std::move(message)});
      return absl::OkStatus();
    }

   private:
    void Deliver(int to, Event event) {
      Synchronizer* seat = office_.seats_[static_cast<size_t>(to)];
      if (seat != nullptr) seat->Deliver(std::move(event));
    }
    Office& office_;
    const int rank_;
  };

  void Sit(int rank, Synchronizer* synchronizer) {
    const std::lock_guard lock(mutex_);
    seats_[static_cast<size_t>(rank)] = synchronizer;
  }
  int messages() const { return messages_; }
  uint64_t total() const { return total_; }

 private:
  std::mutex mutex_;
  std::vector<Synchronizer*> seats_;
  const int workers_;
  uint64_t total_ = 0;
  int messages_ = 0;
};

TEST(LiveGroupsTest, AveragesOfAskedGroupsOverlapTheNextIteration) {
  const TensorTable table = Table();
  const int workers = 4, iterations = 8;
  Office office(workers);
  Ends ends(workers);
  worker::RunWorkers(workers, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    Memory memory;
    Office::Counter counter(office, worker.rank());
    const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
    {
      auto synchronizer =
          Synchronizer::Make(worker, table, replica, std::make_unique<strategy::AskedGroups>(info),
                             ParametersOnly(&memory, &counter));
      ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
      office.Sit(worker.rank(), synchronizer->get());
      ASSERT_TRUE(worker.world().Barrier().ok());
      const absl::Status status = Train(**synchronizer, replica, table.size(), iterations, 8, 0,
                                        static_cast<uint64_t>(worker.rank()) + 1);
      EXPECT_TRUE(status.ok()) << status;
      ASSERT_TRUE(worker.world().Barrier().ok());
      office.Sit(worker.rank(), nullptr);
    }
    ends.Set(worker.rank(), replica.parameters);
    EXPECT_GT(replica.total_samples, 0u);
    strategy::AskedGroups machine(info);
    ExpectSameDecisions(machine, memory.decisions());
  });
  EXPECT_GT(office.messages(), 0);
  EXPECT_EQ(office.total(), 8u * workers * iterations);
  const std::vector<double> expected = MeanOfLocalSteps(table.size(), workers, iterations);
  for (int t = 0; t < table.size(); ++t) {
    EXPECT_NEAR(ends.Mean(t), expected[static_cast<size_t>(t)], 1e-5);
  }
}

// A worker goes in the middle; the others are told once, before the transfers that this breaks, and
// go on to their end.
TEST(LiveGroupsTest, TheOthersGoOnWithoutAWorkerThatGoes) {
  const TensorTable table = Table();
  Options options;
  options.timeout = absl::Seconds(60);
  worker::RunWorkers(
      4,
      [&](Worker& worker) {
        NumberReplica replica(table, worker.rank());
        Memory memory;
        const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
        {
          auto synchronizer = Synchronizer::Make(worker, table, replica,
                                                 std::make_unique<strategy::GroupAverage>(info),
                                                 ParametersOnly(&memory));
          ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
          const int iterations = worker.rank() == 2 ? 3 : 12;
          const absl::Status status = Train(**synchronizer, replica, table.size(), iterations, 1, 0,
                                            static_cast<uint64_t>(worker.rank()) + 1);
          EXPECT_TRUE(status.ok()) << status;
          if (worker.rank() == 2) return;
          // Also a worker that waits for nothing is told.
          const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
          const auto told = [&] {
            int count = 0;
            for (const strategy::Decision& step : memory.decisions()) {
              const auto* left = std::get_if<strategy::WorkerLeft>(&step.event);
              count += left != nullptr && left->rank == 2 ? 1 : 0;
            }
            return count;
          };
          while (told() == 0 && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
          EXPECT_EQ(told(), 1);
        }
        bool gone = false;
        for (const strategy::Decision& step : memory.decisions()) {
          gone |= std::holds_alternative<strategy::WorkerLeft>(step.event);
          EXPECT_FALSE(std::holds_alternative<strategy::WorkerLost>(step.event)) << "it has left";
          if (const auto* failed = std::get_if<strategy::TransferFailed>(&step.event)) {
            EXPECT_TRUE(gone) << failed->why;
            EXPECT_EQ(GetSuspect(failed->why), 2) << failed->why;
          }
        }
        strategy::GroupAverage machine(info);
        ExpectSameDecisions(machine, memory.decisions());
      },
      options);
}

// ---- what single commands do

// Does what it is told for each event, and lets the training thread go on unless the script does.
class Scripted : public strategy::Strategy {
 public:
  using Script = std::function<void(double now, const Event&, std::vector<Command>&)>;
  explicit Scripted(Script script, bool holds = false)
      : script_(std::move(script)), holds_(holds) {}
  std::string name() const override { return "scripted"; }
  void Step(double now, const Event& event, std::vector<Command>& commands) override {
    script_(now, event, commands);
    if (holds_) return;
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.push_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::Drain>(event)) commands.push_back(strategy::Drained{});
  }

 private:
  const Script script_;
  const bool holds_;
};

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
  using strategy::StartTransfer;
  const std::vector<std::pair<Command, std::string>> cases = {
      {strategy::AskService{"groups", 1, WantGroup{}}, "it asks the service groups"},
      {strategy::SendMessage{3, Distance{}}, "it sends a message to worker 3"},
      {StartTransfer{.movement = strategy::Movement::kPush, .target = 0}, "it has no server"},
      {StartTransfer{.movement = strategy::Movement::kPull, .target = 0}, "it has no server"},
      {StartTransfer{.movement = strategy::Movement::kExchange, .to = {0}}, "no exchange"},
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
