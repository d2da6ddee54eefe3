#include "sync/resumed_state.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/counter.h"
#include "services/service_state.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/exchange.h"
#include "sync/synchronizer_testing.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using services::Counter;
using ::testing::AllOf;
using ::testing::HasSubstr;

uint64_t TotalIn(const std::string& counter_state) {
  Counter counter(false);
  EXPECT_TRUE(counter.Load(counter_state).ok());
  return ByteReader(counter.State()).Read<uint64_t>();
}

// Each asks at its own moment, while the others go on: the newest has all that any of them had heard.
TEST(ResumedStateTest, TheNewestStateOfAServiceIsBehindAllThatAnybodyHadHeard) {
  constexpr int kWorkers = 4;
  std::mutex mutex;
  uint64_t heard = 0;  // before a worker asked for the state
  std::set<std::string> newest;
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    ASSERT_TRUE(worker.AddService(std::make_unique<Counter>(false)).ok());
    std::string own;
    for (int i = 0; i < 40; ++i) {
      const auto answer = worker.Ask("counter", Counter::Add(1));
      ASSERT_TRUE(answer.ok()) << answer.status();
      if (i != 10 * worker.rank()) continue;
      const auto state = ServiceStateOf(worker, "counter");
      ASSERT_TRUE(state.ok()) << state.status();
      own = *state;
      const std::lock_guard<std::mutex> lock(mutex);
      heard = std::max(heard, Counter::Read(*answer)->total);
    }
    const auto chosen = NewestServiceState(ExchangeOf(worker), own);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_GE(TotalIn(*chosen), TotalIn(services::DecodeServiceState(own)->state));
    const std::lock_guard<std::mutex> lock(mutex);
    newest.insert(*chosen);
  });
  ASSERT_EQ(newest.size(), 1u) << "all workers have the same";
  EXPECT_GE(TotalIn(*newest.begin()), heard);
}

TEST(ResumedStateTest, APartWithoutTheStateOfTheServiceIsNamed) {
  worker::RunWorkers(3, [](Worker& worker) {
    const std::string good = services::EncodeServiceState({.moment = {1, 2}, .state = "s"});
    const absl::Status status =
        NewestServiceState(ExchangeOf(worker), worker.rank() == 1 ? "bad" : good).status();
    if (worker.rank() == 1) {
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    } else {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("worker 1"));
    }
    EXPECT_TRUE(absl::IsNotFound(ServiceStateOf(worker, "none").status()));
  });
}

// Its state is what the test says.
class Keeps : public Scripted {
 public:
  Keeps() : Scripted([](double, const Event&, std::vector<Command>&) {}) {}
  std::string name() const override { return "keeps"; }
  std::string State() const override { return state; }
  absl::Status Resume(absl::string_view bytes, const std::vector<int>& ranks) override {
    if (bytes.size() != 4) return absl::DataLossError("not four letters");
    state = absl::StrCat(bytes, ranks.size());
    return absl::OkStatus();
  }
  std::string state = {};
};

TEST(ResumedStateTest, AStrategyGoesOnFromItsState) {
  worker::RunWorkers(1, [](Worker& worker) {
    const TensorTable table = Table();
    NumberReplica replica(table, 0);
    SynchronizerOptions options = kParametersOnly;
    options.resumed = {.strategy = "four", .ranks = {0, 2, 3}};
    auto resumed = Synchronizer::Make(worker, table, replica, std::make_unique<Keeps>(), options);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(*(*resumed)->StrategyState(), "four3");
    auto anew = Synchronizer::Make(worker, table, replica, std::make_unique<Keeps>(), {});
    ASSERT_TRUE(anew.ok()) << anew.status();
    EXPECT_EQ(*(*anew)->StrategyState(), "");
  });
}

TEST(ResumedStateTest, StatesThatCannotBeReadOrKeptAreRefused) {
  worker::RunWorkers(1, [](Worker& worker) {
    const TensorTable table = Table();
    NumberReplica replica(table, 0);
    SynchronizerOptions options = kParametersOnly;
    options.resumed = {.strategy = "three", .ranks = {0}};
    const absl::Status unread =
        Synchronizer::Make(worker, table, replica, std::make_unique<Keeps>(), options).status();
    EXPECT_TRUE(absl::IsDataLoss(unread)) << unread;
    EXPECT_THAT(std::string(unread.message()),
                AllOf(HasSubstr("the state of strategy keeps"), HasSubstr("not four letters")));
    // One that keeps nothing was not of this name when the checkpoint was written.
    const absl::Status unknown =
        Synchronizer::Make(
            worker, table, replica,
            std::make_unique<strategy::GroupAverage>(strategy::WorkerInfo{0, 1, table.size()}),
            options)
            .status();
    EXPECT_THAT(std::string(unknown.message()), HasSubstr("group-average keeps no state"));

    auto strategy = std::make_unique<Keeps>();
    strategy->state = std::string(limits::kStrategyStateBytesMax + 1, 's');
    auto large = Synchronizer::Make(worker, table, replica, std::move(strategy), {});
    ASSERT_TRUE(large.ok()) << large.status();
    const absl::Status refused = (*large)->StrategyState().status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("strategy keeps"));
  });
}

TEST(ResumedStateTest, GroupsThatAreAskedForComeBackFromTheirBytes) {
  const strategy::WorkerInfo info{1, 3, 2};
  strategy::AskedGroups before(info);
  std::vector<Command> commands;
  const GroupGiven given = {.key = {.maker = 1, .number = 41}, .members = {1, 2}};
  before.Step(0, strategy::Answered{.service = "groups", .ticket = 0, .message = given}, commands);
  before.Step(0, strategy::TransferDone{.transfer = 41}, commands);
  before.Step(0, strategy::MessageArrived{.from = 0, .message = Distance{.squared = 2.5}},
              commands);
  const std::string state = before.State();
  strategy::AskedGroups after(info);
  ASSERT_TRUE(after.Resume(state, {0, 1, 2}).ok());
  EXPECT_EQ(after.averages(), 1);
  EXPECT_EQ(after.last_group(), 41u);
  EXPECT_EQ(after.farthest(), 2.5);
  EXPECT_EQ(after.State(), state);
  for (size_t bytes = 0; bytes < state.size(); ++bytes) {
    EXPECT_TRUE(absl::IsDataLoss(after.Resume(state.substr(0, bytes), {}))) << bytes;
  }
  EXPECT_TRUE(absl::IsDataLoss(after.Resume(state + "x", {})));
}

}  // namespace
}  // namespace syncopate::sync
