// Strategies live that average in groups that change: the same mathematics and the same decisions as
// in virtual time, on real collectives among threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "model/strategy_message.h"
#include "strategy/registry.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/assemble.h"
#include "sync/synchronizer_testing.h"
#include "syncopate/service.h"
#include "syncopate/status.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

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

// Gives each worker its neighbours of the iteration that it asks for, and counts the samples of all.
class GivesNeighbours : public Service {
 public:
  explicit GivesNeighbours(int workers) : workers_(workers) {}
  absl::string_view name() const override { return strategy::AskedGroups::kService; }
  ServiceStep Step(const ServiceContext&, const ServiceEvent& event) override {
    const auto* asked = std::get_if<ServiceAsked>(&event);
    if (asked == nullptr) return {};
    const auto message = DecodeStrategyMessage(asked->request, workers_);
    if (!message.ok() || !std::holds_alternative<WantGroup>(*message)) return {};
    const auto& want = std::get<WantGroup>(*message);
    GroupGiven given{.members = strategy::NeighboursOf(asked->from, workers_, want.iteration, {})};
    given.key = {1, static_cast<uint64_t>(want.iteration * workers_ + given.members[0])};
    given.total_samples = total_ += want.samples;
    return {.answers = {{.to = asked->from,
                         .ticket = asked->ticket,
                         .bytes = Encode(StrategyMessage(given))}},
            .reason = ""};
  }
  std::string State() const override { return std::to_string(total_); }
  absl::Status Load(absl::string_view state) override {
    return absl::SimpleAtoi(state, &total_) ? absl::OkStatus()
                                            : absl::DataLossError("no number of samples");
  }

 private:
  const int workers_;
  uint64_t total_ = 0;
};

std::string AskedStrategy() {
  static const absl::Status added = [] {
    strategy::StrategyEntry entry;
    entry.name = "asks-for-neighbours";
    entry.about = "for a test";
    entry.lockstep = false;
    entry.survives = true;
    entry.moves = strategy::Moves::kParameters;
    entry.service = strategy::AskedGroups::kService;
    entry.make_service = [](const strategy::StrategyOptions& options) {
      return std::make_unique<GivesNeighbours>(options.size);
    };
    entry.sends = true;
    entry.make = [](const strategy::StrategyOptions& options)
        -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
      return std::make_unique<strategy::AskedGroups>(
          strategy::WorkerInfo{options.rank, options.size, options.table.size()});
    };
    return strategy::AddStrategy(std::move(entry));
  }();
  EXPECT_TRUE(added.ok()) << added;
  return "asks-for-neighbours";
}

// The same as it is assembled in a job: requests go to the service's host, messages by the mailbox.
TEST(LiveGroupsTest, AskedGroupsComeFromTheServiceOfTheJob) {
  const TensorTable table = Table();
  const int workers = 4, iterations = 8;
  Ends ends(workers);
  std::atomic<uint64_t> total{0};
  worker::RunWorkers(workers, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    Memory memory;
    {
      auto synchronizer =
          MakeSynchronizer(worker, table, replica, AskedStrategy(), {}, {.witness = &memory});
      ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
      const absl::Status status = Train(**synchronizer, replica, table.size(), iterations, 8, 0,
                                        static_cast<uint64_t>(worker.rank()) + 1);
      EXPECT_TRUE(status.ok()) << status;
      // Each has told its successor how far an average moved it.
      const auto heard = [&] {
        const std::vector<strategy::Decision> decisions = memory.decisions();
        return std::any_of(decisions.begin(), decisions.end(), [](const auto& step) {
          return std::holds_alternative<strategy::MessageArrived>(step.event);
        });
      };
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (!heard() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      EXPECT_TRUE(heard());
      ASSERT_TRUE(worker.world().Barrier().ok());
    }
    ends.Set(worker.rank(), replica.parameters);
    for (uint64_t seen = total; seen < replica.total_samples;) {
      if (total.compare_exchange_weak(seen, replica.total_samples)) break;
    }
    EXPECT_EQ(replica.gradients_packed, 0);
    strategy::AskedGroups machine({worker.rank(), worker.size(), table.size()});
    ExpectSameDecisions(machine, memory.decisions());
    for (const Witness::Transfer& transfer : memory.transfers()) {
      EXPECT_TRUE(transfer.status.ok()) << transfer.status;
      EXPECT_EQ(transfer.start.members.size(), 2u);
    }
  });
  // Whoever was answered last heard of the samples of all, each counted once.
  EXPECT_EQ(total, 8u * workers * iterations);
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

// Averages all parameters of both workers after each iteration, worker 1 not in the first one. The loop waits
// for the end of an average, however it comes.
class TwoThatAverage : public strategy::Strategy {
 public:
  explicit TwoThatAverage(const strategy::WorkerInfo& info) : info_(info) {}
  std::string name() const override { return "two"; }
  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) iteration_ = e->iteration;
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.push_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event) &&
        (info_.rank == 0 || iteration_ > 0)) {
      under_way_ = true;
      commands.push_back(strategy::StartTransfer{
          .transfer = iteration_,
          .content = strategy::Content::kParameters,
          .last = info_.tensors - 1,
          .members = {0, 1},
          .key = {.maker = 1, .number = static_cast<uint64_t>(iteration_)}});
    }
    under_way_ = under_way_ && !std::holds_alternative<strategy::TransferDone>(event) &&
                 !std::holds_alternative<strategy::TransferFailed>(event);
    drains_ = drains_ || std::holds_alternative<strategy::Drain>(event);
    if (!drains_ || under_way_) return;
    drains_ = false;
    commands.push_back(strategy::Drained{});
  }

 private:
  const strategy::WorkerInfo info_;
  int64_t iteration_ = 0;
  bool under_way_ = false;
  bool drains_ = false;
};

// A member that does not come before an average's time is up costs that average. It is not told to be lost, and
// the next average with it succeeds.
TEST(LiveGroupsTest, AMemberThatIsOnlyLateIsNotLost) {
  const TensorTable table = Table();
  std::atomic<bool> was_late{false};
  Options options;
  options.timeout = absl::Seconds(2);
  worker::RunWorkers(
      2,
      [&](Worker& worker) {
        NumberReplica replica(table, worker.rank());
        Memory memory;
        auto synchronizer =
            Synchronizer::Make(worker, table, replica,
                               std::make_unique<TwoThatAverage>(strategy::WorkerInfo{
                                   worker.rank(), worker.size(), table.size()}),
                               ParametersOnly(&memory));
        ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
        for (int64_t iteration = 0; iteration < 2; ++iteration) {
          ASSERT_TRUE(TrainOnce(**synchronizer, replica, table.size(), iteration).ok());
          ASSERT_TRUE((*synchronizer)->Finish().ok());
          if (worker.rank() == 0) was_late = true;
          while (!was_late) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        int failed = 0, done = 0;
        for (const strategy::Decision& decision : memory.decisions()) {
          EXPECT_FALSE(std::holds_alternative<strategy::WorkerLost>(decision.event))
              << ToText(decision.event);
          EXPECT_FALSE(std::holds_alternative<strategy::WorkerLeft>(decision.event));
          done += std::holds_alternative<strategy::TransferDone>(decision.event) ? 1 : 0;
          const auto* e = std::get_if<strategy::TransferFailed>(&decision.event);
          if (e == nullptr) continue;
          ++failed;
          EXPECT_TRUE(absl::IsDeadlineExceeded(e->why)) << e->why;
          EXPECT_EQ(GetSuspect(e->why), 1) << e->why;
        }
        EXPECT_EQ(failed, worker.rank() == 0 ? 1 : 0);
        EXPECT_EQ(done, 1);
        ASSERT_TRUE(worker.world().Barrier().ok());
      },
      options);
}

}  // namespace
}  // namespace syncopate::sync
