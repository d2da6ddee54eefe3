// What a synchronizer is assembled with, in a running job: the store of the worker that serves the others, and the
// service that the strategy asks, anew for each synchronizer.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/strategy_message.h"
#include "strategy/registry.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/assemble.h"
#include "sync/synchronizer_testing.h"
#include "syncopate/service.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using ::testing::HasSubstr;

// Counts turns, which begin with 1.
class CountedTurns : public Service {
 public:
  absl::string_view name() const override { return strategy::PermittedServer::kService; }
  ServiceStep Step(const ServiceContext&, const ServiceEvent& event) override {
    const auto* asked = std::get_if<ServiceAsked>(&event);
    if (asked == nullptr) return {};
    const TurnGiven given{.turn = ++turns_, .samples = 1};
    return {.answers = {{.to = asked->from,
                         .ticket = asked->ticket,
                         .bytes = Encode(StrategyMessage(given))}},
            .reason = ""};
  }
  std::string State() const override { return std::to_string(turns_); }
  absl::Status Load(absl::string_view state) override {
    turns_ = std::stoull(std::string(state));
    return absl::OkStatus();
  }

 private:
  uint64_t turns_ = 0;
};

// Rank 0 serves.
constexpr char kServed[] = "assemble-served";

void AddServed() {
  static const absl::Status added = strategy::AddStrategy(
      {.name = kServed,
       .about = "for a test",
       .lockstep = false,
       .survives = true,
       .moves = strategy::Moves::kBoth,
       .service = strategy::PermittedServer::kService,
       .make_service =
           [](const strategy::StrategyOptions&) { return std::make_unique<CountedTurns>(); },
       .server = 0,
       .make = [](const strategy::StrategyOptions& options)
           -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
         return std::make_unique<strategy::PermittedServer>(
             strategy::WorkerInfo{options.rank, options.size, options.table.size()});
       }});  // once, however many tests want it
  ASSERT_TRUE(added.ok()) << added;
}

// The turns that a worker's strategy was given.
std::vector<uint64_t> TurnsOf(const Memory& memory) {
  std::vector<uint64_t> turns;
  for (const strategy::Decision& step : memory.decisions()) {
    const auto* answered = std::get_if<strategy::Answered>(&step.event);
    if (answered != nullptr) turns.push_back(std::get<TurnGiven>(answered->message).turn);
  }
  return turns;
}

// Of all workers, by synchronizer.
class AllTurns {
 public:
  void Add(int synchronizer, const std::vector<uint64_t>& turns) {
    const std::lock_guard lock(mutex_);
    auto& all = turns_[synchronizer];
    all.insert(all.end(), turns.begin(), turns.end());
  }
  void ExpectEachFromOneOn(int synchronizer, uint64_t count) {
    std::vector<uint64_t>& all = turns_[synchronizer];
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), count);
    for (uint64_t i = 0; i < count; ++i) EXPECT_EQ(all[i], i + 1) << "of " << synchronizer;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<uint64_t>> turns_;
};

// What the server holds when these workers have pushed all of their gradients.
double ServedValue(int tensor, int workers, int iterations, double rate) {
  double value = sim::FirstParameter(kSeed, tensor);
  for (int rank = 0; rank < workers; ++rank) {
    for (int i = 0; i < iterations; ++i) value -= rate * sim::GradientOf(kSeed, rank, i, tensor);
  }
  return value;
}

// Jobs whose rank 0 hosts no services, because it serves.
void RunServed(int workers, const std::function<void(Worker&)>& body) {
  Options options;
  options.server_ranks = {0};
  worker::RunWorkers(workers, body, options);
}

TEST(AssembleStoreTest, TheServersStoreAndTheServiceAreMadeAnewForEachSynchronizer) {
  AddServed();
  constexpr int kWorkers = 3, kSynchronizers = 3, kIterations = 4;
  const TensorTable table = Table();
  AllTurns turns;
  RunServed(kWorkers, [&](Worker& worker) {
    for (int number = 0; number < kSynchronizers; ++number) {
      const double rate = 0.05 * (number + 1);
      NumberReplica replica(table, worker.rank());
      Memory memory;
      SynchronizerOptions options;
      options.witness = &memory;
      options.store_rate = rate;
      {
        auto synchronizer = MakeSynchronizer(worker, table, replica, kServed, {}, options);
        ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
        for (int64_t iteration = 0; iteration < kIterations; ++iteration) {
          // What all have pushed before is in what each pulls in the last one.
          if (iteration == kIterations - 1) {
            ASSERT_TRUE((*synchronizer)->Finish().ok());
            ASSERT_TRUE(worker.world().Barrier().ok());
          }
          const absl::Status status = TrainOnce(**synchronizer, replica, table.size(), iteration);
          ASSERT_TRUE(status.ok()) << status;
        }
        const absl::Status finished = (*synchronizer)->Finish();
        ASSERT_TRUE(finished.ok()) << finished;
        // A later one is slower: the others still need it to host and to serve.
        ASSERT_TRUE(worker.world().Barrier().ok());
      }
      turns.Add(number, TurnsOf(memory));
      // Between the steps of this worker with the others' before the last and those of all.
      for (int t = 0; t < table.size(); ++t) {
        double least = ServedValue(t, kWorkers, kIterations - 1, rate);
        double most = least;
        for (int rank = 0; rank < kWorkers; ++rank) {
          const double step = -rate * sim::GradientOf(kSeed, rank, kIterations - 1, t);
          least += std::min(step, 0.0);
          most += std::max(step, 0.0);
        }
        const double value = replica.parameters[static_cast<size_t>(t)];
        EXPECT_GE(value, least - 1e-5) << number;
        EXPECT_LE(value, most + 1e-5) << number;
      }
    }
  });
  for (int number = 0; number < kSynchronizers; ++number) {
    turns.ExpectEachFromOneOn(number, kWorkers * kIterations);
  }
}

// Two models that train in turns. A worker that has ended one of them still hosts it for the others.
TEST(AssembleStoreTest, SynchronizersOfAStrategyAtATimeHaveServicesAndStoresOfTheirOwn) {
  AddServed();
  constexpr int kWorkers = 2, kIterations = 5;
  const TensorTable table = Table();
  AllTurns turns;
  RunServed(kWorkers, [&](Worker& worker) {
    NumberReplica first_replica(table, worker.rank()), second_replica(table, worker.rank());
    Memory first_memory, second_memory;
    SynchronizerOptions first_options, second_options;
    first_options.witness = &first_memory;
    second_options.witness = &second_memory;
    second_options.store_rate = 0;
    auto first = MakeSynchronizer(worker, table, first_replica, kServed, {}, first_options);
    ASSERT_TRUE(first.ok()) << first.status();
    auto second = MakeSynchronizer(worker, table, second_replica, kServed, {}, second_options);
    ASSERT_TRUE(second.ok()) << second.status();
    for (int64_t iteration = 0; iteration < kIterations; ++iteration) {
      const absl::Status one = TrainOnce(**first, first_replica, table.size(), iteration);
      ASSERT_TRUE(one.ok()) << one;
      if (iteration == 0) continue;
      const absl::Status two = TrainOnce(**second, second_replica, table.size(), iteration);
      ASSERT_TRUE(two.ok()) << two;
    }
    ASSERT_TRUE((*first)->Finish().ok());
    ASSERT_TRUE((*second)->Finish().ok());
    ASSERT_TRUE(worker.world().Barrier().ok());
    // The store of the second takes no steps, that of the first does.
    bool moved = false;
    for (int t = 0; t < table.size(); ++t) {
      EXPECT_NEAR(second_replica.parameters[static_cast<size_t>(t)], sim::FirstParameter(kSeed, t),
                  1e-6);
      moved |= std::abs(first_replica.parameters[static_cast<size_t>(t)] -
                        sim::FirstParameter(kSeed, t)) > 1e-4;
    }
    EXPECT_TRUE(moved);
    turns.Add(0, TurnsOf(first_memory));
    turns.Add(1, TurnsOf(second_memory));
  });
  turns.ExpectEachFromOneOn(0, kWorkers * kIterations);
  turns.ExpectEachFromOneOn(1, kWorkers * (kIterations - 1));
}

TEST(AssembleStoreTest, AStoreOfTheCallersIsUsed) {
  AddServed();
  class Zeros : public ParameterStore {
   public:
    absl::Status Apply(const TensorLayout::Range&, const std::byte*, double) override {
      ++pushes;
      return absl::OkStatus();
    }
    absl::Status Read(const TensorLayout::Range& range, std::byte* to) override {
      std::memset(to, 0, range.elements * SizeOf(range.type));
      return absl::OkStatus();
    }
    std::atomic<int> pushes{0};
  };
  const TensorTable table = Table();
  Zeros zeros;
  RunServed(2, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    SynchronizerOptions options;
    if (worker.rank() == 0) options.store = &zeros;
    auto synchronizer = MakeSynchronizer(worker, table, replica, kServed, {}, options);
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    const absl::Status status = Train(**synchronizer, replica, table.size(), 2, 1, 0);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(replica.parameters, ::testing::Each(0.0));
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
  EXPECT_GT(zeros.pushes, 0);
}

TEST(AssembleStoreTest, AServerOfNumbersThatItCannotStepIsRefused) {
  AddServed();
  TensorTable table = Table();
  table.tensors[2].type = DataType::kInt32;
  worker::RunWorkers(1, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    const auto refused = MakeSynchronizer(worker, table, replica, kServed, {}, {});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr(absl::StrCat("strategy ", kServed, ": a server holds no parameters of")));
  });
}

}  // namespace
}  // namespace syncopate::sync
