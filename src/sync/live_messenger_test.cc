// What strategies ask and say in a running job: workers that are threads of this process, in shared
// memory, with a service of the test.
#include "sync/live_messenger.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/strategy_message.h"
#include "strategy/registry.h"
#include "strategy/strategy.h"
#include "sync/assemble.h"
#include "sync/replica.h"
#include "syncopate/service.h"
#include "syncopate/syncopate.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using ::testing::HasSubstr;

// Gives turns, one after the other.
class Turns : public Service {
 public:
  // `given`: turns before the first.
  explicit Turns(uint64_t given = 0) : turns_(given) {}
  absl::string_view name() const override { return "turns"; }
  ServiceStep Step(const ServiceContext&, const ServiceEvent& event) override {
    const auto* asked = std::get_if<ServiceAsked>(&event);
    if (asked == nullptr) return {};
    const auto message = DecodeStrategyMessage(asked->request, 4096);
    if (!message.ok()) {
      return {.answers = {Refusal(asked->from, asked->ticket, message.status())}, .reason = ""};
    }
    if (!std::holds_alternative<WantTurn>(*message)) {
      return {.answers = {Refusal(asked->from, asked->ticket,
                                  absl::InvalidArgumentError("only turns are given here"))},
              .reason = ""};
    }
    return {.answers = {{.to = asked->from,
                         .ticket = asked->ticket,
                         .bytes = Encode(StrategyMessage(TurnGiven{.turn = ++turns_}))}},
            .reason = ""};
  }
  std::string State() const override { return std::to_string(turns_); }
  absl::Status Load(absl::string_view state) override {
    turns_ = std::stoull(std::string(state));
    return absl::OkStatus();
  }

 private:
  uint64_t turns_;
};

// The events that a messenger delivers, for a thread that waits for them.
class Events {
 public:
  void Add(strategy::Event event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  // The first `count`; fewer if they do not come in a minute.
  std::vector<strategy::Event> WaitFor(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1), [&] { return events_.size() >= count; });
    return events_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<strategy::Event> events_;
};

absl::Status BeginFor(LiveMessenger& messenger, Events& events) {
  return messenger.Begin(
      [&](strategy::Event event) { events.Add(std::move(event)); },
      [](const absl::Status& why) { ADD_FAILURE() << "the job is lost: " << why; });
}

TEST(LiveMessengerTest, AnswersAndMessagesComeBackAsEvents) {
  constexpr int kWorkers = 3, kRounds = 20;
  std::mutex mutex;
  std::vector<uint64_t> turns;
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    ASSERT_TRUE(worker.AddService(std::make_unique<Turns>()).ok());
    Events events;
    LiveMessenger messenger(worker);
    ASSERT_TRUE(BeginFor(messenger, events).ok());
    for (int64_t i = 0; i < kRounds; ++i) {
      ASSERT_TRUE(messenger.Ask({"turns", i, WantTurn{.iteration = i}}).ok());
      ASSERT_TRUE(messenger.Send({(worker.rank() + 1) % kWorkers, Distance{.iteration = i}}).ok());
    }
    int64_t answers = 0, messages = 0;
    for (const strategy::Event& event : events.WaitFor(2 * kRounds)) {
      if (const auto* answered = std::get_if<strategy::Answered>(&event)) {
        EXPECT_EQ(answered->service, "turns");
        EXPECT_EQ(answered->ticket, answers++);
        const std::lock_guard<std::mutex> lock(mutex);
        turns.push_back(std::get<TurnGiven>(answered->message).turn);
      } else {
        const auto& arrived = std::get<strategy::MessageArrived>(event);
        EXPECT_EQ(arrived.from, (worker.rank() + kWorkers - 1) % kWorkers);
        EXPECT_EQ(std::get<Distance>(arrived.message).iteration, messages++);
      }
    }
    EXPECT_EQ(answers, kRounds);
    EXPECT_EQ(messages, kRounds);
    ASSERT_TRUE(worker.world().Barrier().ok());
    messenger.Stop();
  });
  std::sort(turns.begin(), turns.end());
  ASSERT_EQ(turns.size(), kWorkers * kRounds + 0u);
  for (size_t i = 0; i < turns.size(); ++i) EXPECT_EQ(turns[i], i + 1) << "given once each";
}

// What an earlier messenger of the same worker was sent does not come to a later one.
TEST(LiveMessengerTest, MessagesComeToTheMessengerOfTheSameNumber) {
  worker::RunWorkers(2, [](Worker& worker) {
    const int other = 1 - worker.rank();
    {
      LiveMessenger first(worker);
      ASSERT_TRUE(first.Send({other, Distance{.iteration = 1}}).ok());
    }
    Events events;
    LiveMessenger second(worker);
    ASSERT_TRUE(second.Send({other, Distance{.iteration = 2}}).ok());
    ASSERT_TRUE(BeginFor(second, events).ok());
    const std::vector<strategy::Event> came = events.WaitFor(1);
    ASSERT_EQ(came.size(), 1u);
    EXPECT_EQ(std::get<Distance>(std::get<strategy::MessageArrived>(came[0]).message).iteration, 2);
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(LiveMessengerTest, WhatCannotBeCarriedIsAnError) {
  worker::RunWorkers(1, [](Worker& worker) {
    Events events;
    LiveMessenger messenger(worker);
    ASSERT_TRUE(BeginFor(messenger, events).ok());
    const absl::Status unknown = messenger.Ask({"turns", 1, WantTurn{}});
    EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(unknown.message(), HasSubstr("\"turns\""));
    EXPECT_FALSE(messenger.Send({7, Distance{}}).ok()) << "there is no rank 7";
    EXPECT_FALSE(messenger.Send({0, Distance{.squared = -1}}).ok()) << "not a distance";
    ASSERT_TRUE(worker.AddService(std::make_unique<Turns>()).ok());
    ASSERT_TRUE(messenger.Ask({"turns", 1, WantGroup{}}).ok());
    const std::vector<strategy::Event> came = events.WaitFor(1);
    ASSERT_EQ(came.size(), 1u);
    EXPECT_THAT(std::get<Refused>(std::get<strategy::Answered>(came[0]).message).why,
                HasSubstr("only turns are given here"));
  });
}

TEST(LiveMessengerTest, ATicketThatDoesNotGrowIsRefused) {
  worker::RunWorkers(1, [](Worker& worker) {
    ASSERT_TRUE(worker.AddService(std::make_unique<Turns>()).ok());
    Events events;
    LiveMessenger messenger(worker);
    ASSERT_TRUE(BeginFor(messenger, events).ok());
    ASSERT_TRUE(messenger.Ask({"turns", 5, WantTurn{}}).ok());
    for (const int64_t ticket : {5, 4, 0, -1}) {
      const absl::Status refused = messenger.Ask({"turns", ticket, WantTurn{}});
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
      EXPECT_THAT(std::string(refused.message()),
                  HasSubstr("with ticket " + std::to_string(ticket) + " after ticket 5"));
    }
    // What was refused for another reason may be asked again with its ticket.
    EXPECT_EQ(messenger.Ask({"none", 6, WantTurn{}}).code(), absl::StatusCode::kNotFound);
    ASSERT_TRUE(messenger.Ask({"turns", 6, WantTurn{}}).ok());
    const std::vector<strategy::Event> came = events.WaitFor(2);
    ASSERT_EQ(came.size(), 2u);
    EXPECT_EQ(std::get<strategy::Answered>(came[0]).ticket, 5);
    EXPECT_EQ(std::get<strategy::Answered>(came[1]).ticket, 6);
    EXPECT_EQ(std::get<TurnGiven>(std::get<strategy::Answered>(came[1]).message).turn, 2u);
  });
}

// Asks for a turn in every iteration and tells its neighbour when it has one; the next iteration waits
// for it, and the end for all that the neighbour tells.
class TakesTurns : public strategy::Strategy {
 public:
  explicit TakesTurns(const strategy::StrategyOptions& options) : options_(options) {}
  std::string name() const override { return "takes-turns"; }
  void Step(double, const strategy::Event& event,
            std::vector<strategy::Command>& commands) override {
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) {
      ++asked_;
      commands.push_back(
          strategy::AskService{"turns", e->iteration, WantTurn{.iteration = e->iteration}});
    }
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) needed_.push_back(e->tensor);
    if (const auto* e = std::get_if<strategy::Answered>(&event)) {
      EXPECT_EQ(e->ticket, ++answered_ - 1);
      EXPECT_TRUE(std::holds_alternative<TurnGiven>(e->message));
      commands.push_back(
          strategy::SendMessage{(options_.rank + 1) % options_.size, Distance{.iteration = 1}});
    }
    told_ += std::holds_alternative<strategy::MessageArrived>(event) ? 1 : 0;
    if (answered_ == asked_) {
      for (const int tensor : std::exchange(needed_, {})) {
        commands.push_back(strategy::Proceed{tensor});
      }
    }
    draining_ |= std::holds_alternative<strategy::Drain>(event);
    if (draining_ && told_ == asked_) {
      draining_ = false;
      commands.push_back(strategy::Drained{});
    }
  }

 private:
  const strategy::StrategyOptions options_;
  std::vector<int> needed_;
  int asked_ = 0, answered_ = 0, told_ = 0;
  bool draining_ = false;
};

void AddTakesTurns() {
  static const absl::Status added =
      strategy::AddStrategy({.name = "takes-turns",
                             .about = "for a test",
                             .lockstep = false,
                             .service = "turns",
                             .sends = true,
                             .make = [](const strategy::StrategyOptions& options)
                                 -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
                               return std::make_unique<TakesTurns>(options);
                             }});  // once, however many tests want it
  ASSERT_TRUE(added.ok()) << added;
}

class NoValues : public Replica {
 public:
  void Pack(strategy::Content, int, double, std::byte*) override {}
  double Apply(const strategy::ApplyUpdate&, const Brought&) override { return 0; }
};

const TensorTable& OneSmallTensor() {
  static const auto& table =
      *new TensorTable{.model = "test", .tensors = {{.name = "t", .elements = 1}}};
  return table;
}

// How the training loop sees an iteration.
absl::Status Iterate(Synchronizer& synchronizer) {
  if (absl::Status s = synchronizer.Begin(1, 0); !s.ok()) return s;
  if (absl::Status s = synchronizer.Need(0); !s.ok()) return s;
  if (absl::Status s = synchronizer.BackwardBegins(); !s.ok()) return s;
  if (absl::Status s = synchronizer.Gradient(0); !s.ok()) return s;
  return synchronizer.EndBackward();
}

// A strategy whose entry names a service has a messenger as soon as it is assembled.
TEST(LiveMessengerTest, AnAssembledStrategyAsksAndSends) {
  AddTakesTurns();
  worker::RunWorkers(3, [](Worker& worker) {
    ASSERT_TRUE(worker.AddService(std::make_unique<Turns>()).ok());
    NoValues replica;
    auto synchronizer = MakeSynchronizer(worker, OneSmallTensor(), replica, "takes-turns", {}, {});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    for (int iteration = 0; iteration < 30; ++iteration) {
      const absl::Status status = Iterate(**synchronizer);
      ASSERT_TRUE(status.ok()) << status;
    }
    const absl::Status finished = (*synchronizer)->Finish();
    EXPECT_TRUE(finished.ok()) << finished;
  });
}

// Begins anew with its tickets after the third iteration.
class Repeats : public strategy::Strategy {
 public:
  std::string name() const override { return "repeats-tickets"; }
  void Step(double, const strategy::Event& event,
            std::vector<strategy::Command>& commands) override {
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) {
      commands.push_back(strategy::AskService{"turns", e->iteration % 3, WantTurn{}});
    }
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.push_back(strategy::Proceed{e->tensor});
    }
  }
};

TEST(LiveMessengerTest, AStrategyThatRepeatsATicketEndsWithAnErrorThatSaysSo) {
  static const absl::Status added =
      strategy::AddStrategy({.name = "repeats-tickets",
                             .about = "for a test",
                             .service = "turns",
                             .make = [](const strategy::StrategyOptions&)
                                 -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
                               return std::make_unique<Repeats>();
                             }});
  ASSERT_TRUE(added.ok()) << added;
  worker::RunWorkers(1, [](Worker& worker) {
    ASSERT_TRUE(worker.AddService(std::make_unique<Turns>()).ok());
    NoValues replica;
    auto synchronizer =
        MakeSynchronizer(worker, OneSmallTensor(), replica, "repeats-tickets", {}, {});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    for (int iteration = 0; iteration < 3; ++iteration) {
      const absl::Status status = Iterate(**synchronizer);
      ASSERT_TRUE(status.ok()) << status;
    }
    const absl::Status status = (*synchronizer)->Begin(1, 0);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("strategy repeats-tickets: it asks the service turns with ticket 0 after "
                          "ticket 2; tickets of a worker only grow"));
  });
}

// Its host and its standby have different states, so they decide differently, and nobody knows who is right. That
// ended the service alone, and strategies were refused what they asked for.
TEST(LiveMessengerTest, AServiceThatIsLostEndsTheSynchronizersOfAllWithItsError) {
  AddTakesTurns();
  worker::RunWorkers(3, [](Worker& worker) {
    ASSERT_TRUE(
        worker.AddService(std::make_unique<Turns>(static_cast<uint64_t>(worker.rank()))).ok());
    NoValues replica;
    auto synchronizer = MakeSynchronizer(worker, OneSmallTensor(), replica, "takes-turns", {}, {});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    absl::Status status;
    for (int iteration = 0; iteration < 1000 && status.ok(); ++iteration) {
      status = Iterate(**synchronizer);
    }
    EXPECT_EQ(GetBlast(status), BlastRadius::kJob) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("strategy takes-turns: service turns: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("decide differently"));
    // Every later call gets it.
    EXPECT_EQ((*synchronizer)->Begin(1, 0), status);
    EXPECT_EQ((*synchronizer)->Need(0), status);
    EXPECT_EQ((*synchronizer)->Finish(), status);
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

// Which would hold the parameters and do nothing else.
TEST(LiveMessengerTest, AServerThatDoesNotTrainIsRefused) {
  static const absl::Status added =
      strategy::AddStrategy({.name = "only-serves",
                             .about = "for a test",
                             .server = 0,
                             .server_role = strategy::Role::kServes,
                             .make = [](const strategy::StrategyOptions& options)
                                 -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
                               return std::make_unique<TakesTurns>(options);
                             }});
  ASSERT_TRUE(added.ok()) << added;
  class Untouched : public Replica {
   public:
    void Pack(strategy::Content, int, double, std::byte*) override {}
    double Apply(const strategy::ApplyUpdate&, const Brought&) override { return 0; }
  };
  worker::RunWorkers(1, [](Worker& worker) {
    Untouched replica;
    const TensorTable table = {.model = "test", .tensors = {{.name = "t", .elements = 1}}};
    const absl::Status refused =
        MakeSynchronizer(worker, table, replica, "only-serves", {}, {}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("only simulated so far"));
  });
}

}  // namespace
}  // namespace syncopate::sync
