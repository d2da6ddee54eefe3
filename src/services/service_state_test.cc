#include "services/service_state.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/counter.h"
#include "services/service_machine.h"

namespace syncopate::services {
namespace {

EventMessage Request(uint64_t sequence, uint16_t service, std::string bytes) {
  return {.sequence = sequence,
          .now_ns = 0,
          .event = LoggedRequest{.from = 1,
                                 .request = {.ticket = sequence,
                                             .open = {sequence},
                                             .service = service,
                                             .bytes = std::move(bytes)}}};
}

ServiceMachine Machine(std::unique_ptr<Service> service) {
  Services services;
  services.push_back(std::move(service));
  return ServiceMachine(std::move(services));
}

// A service that begins anew with every job.
class Forgetful : public Counter {
 public:
  Forgetful() : Counter(false) {}
  bool CanResume() const override { return false; }
};

TEST(ServiceStateTest, ComesBackFromItsBytes) {
  const ServiceState state = {.moment = {.incarnation = 3, .sequence = 77}, .state = "what it is"};
  const auto read = DecodeServiceState(EncodeServiceState(state));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->moment, state.moment);
  EXPECT_EQ(read->state, state.state);
  EXPECT_LT((StateMoment{.incarnation = 1, .sequence = 900}),
            (StateMoment{.incarnation = 2, .sequence = 1}))
      << "of a service that was rebuilt";
}

TEST(ServiceStateTest, BytesThatAreMissingOrLeftOverAreRefused) {
  const std::string good = EncodeServiceState({.moment = {1, 2}, .state = "state"});
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeServiceState(good.substr(0, bytes)).status())) << bytes;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeServiceState(good + "x").status()));
  std::string much = good;
  much[18] = '\x7f';  // of the length: more than an answer may have
  EXPECT_TRUE(absl::IsDataLoss(DecodeServiceState(much).status()));
}

TEST(ServiceStateTest, IsAskedForLikeAnAnswerAndChangesNothing) {
  ServiceMachine machine = Machine(std::make_unique<Counter>(false));
  (void)machine.Apply(4, Request(1, 0, Counter::Add(5)));
  const std::string before = machine.service(0).State();
  const ServiceMachine::Step step = machine.Apply(4, Request(2, kStateOfService, ""));
  ASSERT_EQ(step.answers.size(), 1u);
  EXPECT_EQ(step.answers[0].to, 1);
  EXPECT_EQ(step.answers[0].ticket, 2u);
  EXPECT_FALSE(step.answers[0].kept);
  const auto state = DecodeServiceState(step.answers[0].bytes);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->moment, (StateMoment{.incarnation = 4, .sequence = 2}));
  EXPECT_EQ(state->state, before);
  EXPECT_EQ(machine.service(0).State(), before);

  Counter resumed(false);
  ASSERT_TRUE(resumed.Resume(state->state, {0, 1}).ok());
  EXPECT_EQ(resumed.State(), before);
  EXPECT_TRUE(absl::IsDataLoss(resumed.Resume("short", {0, 1})));
}

TEST(ServiceStateTest, AServiceThatBeginsAnewHasNone) {
  ServiceMachine machine = Machine(std::make_unique<Forgetful>());
  (void)machine.Apply(0, Request(1, 0, Counter::Add(5)));
  const ServiceMachine::Step step = machine.Apply(0, Request(2, kStateOfService, ""));
  ASSERT_EQ(step.answers.size(), 1u);
  const auto state = DecodeServiceState(step.answers[0].bytes);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->state, "");
}

TEST(ServiceStateTest, OfAServiceThatThereIsNotThereIsNone) {
  ServiceMachine machine = Machine(std::make_unique<Counter>(false));
  for (const int number : {1, 64, kStateOfService + 1, 0xffff}) {
    const ServiceMachine::Step step =
        machine.Apply(0, Request(static_cast<uint64_t>(number), static_cast<uint16_t>(number), ""));
    ASSERT_EQ(step.answers.size(), 1u) << number;
    EXPECT_EQ(step.answers[0].code, absl::StatusCode::kNotFound) << number;
  }
}

// Of a job that goes on, everybody has the state that it goes on from when host and standby are lost.
TEST(ServiceStateTest, IsWhatARebuiltServiceBeginsWith) {
  Counter before(false);
  (void)before.Step({}, Asked{.from = 0, .ticket = 1, .request = Counter::Add(9)});
  auto resumed = std::make_unique<Counter>(true);
  ASSERT_TRUE(resumed->Resume(before.State(), {0, 2}).ok());
  ServiceMachine machine = Machine(std::move(resumed));
  ASSERT_TRUE(machine.Rebuild(1, 2, 0, {}).ok());
  EXPECT_EQ(machine.service(0).State(), before.State());
}

}  // namespace
}  // namespace syncopate::services
