#include "strategy/record.h"

#include <memory>
#include <set>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::strategy {
namespace {

using ::testing::HasSubstr;

absl::Status Loss() {
  return WithBlast(absl::UnavailableError("worker 3 died \"here\""), BlastRadius::kGroup, 3);
}

std::vector<Event> Events() {
  Schedule schedule{.planner = "wfbp", .transfers = {{1, 1, 0}, {0, 0, 1}}};
  return {IterationBegan{.iteration = 7, .samples = 32, .all_samples = 256},
          ForwardNeeds{3},
          GradientReady{0},
          BackwardEnded{},
          TransferDone{.transfer = 9, .first_byte = 1.25, .last_byte = 2.5, .bytes = 1 << 20},
          TransferFailed{.transfer = 4, .why = Loss()},
          WorkerLost{.rank = 3, .why = Loss()},
          WorkerLeft{2},
          WorkerJoined{5},
          Answered{"groups", 11,
                   GroupGiven{.key = {1, 2}, .members = {0, 3}, .version = 6, .total_samples = 5}},
          MessageArrived{2, Distance{.iteration = 1, .squared = 0.1}},
          NewValue{std::make_shared<const Schedule>(schedule), 12},
          Updated{.transfer = 9, .squared_distance = 0.3},
          TimePassed{},
          Drain{}};
}

std::vector<Command> Commands() {
  return {StartTransfer{},
          StartTransfer{.transfer = 8,
                        .movement = Movement::kExchange,
                        .content = Content::kParameters,
                        .begin = 64,
                        .end = 128,
                        .members = {0, 1},
                        .key = {3, 4},
                        .version = uint64_t{1} << 63,
                        .weight = 0.5,
                        .target = 2,
                        .to = {1},
                        .from = {{2, 0.25}, {3, 0.25}},
                        .keep_sent = true,
                        .priority = 6},
          ApplyUpdate{.update = Update::kAddChange,
                      .first = 1,
                      .last = 4,
                      .transfer = 8,
                      .rate_factor = 0.1,
                      .measure = true},
          ApplyUpdate{.update = Update::kStepLocal},
          Proceed{2},
          AskService{"groups", 2, WantGroup{.iteration = 3, .version = 5}},
          AskService{"turns", 3, WantTurn{.iteration = 3, .samples = 8, .busy_seconds = 0.2}},
          SendMessage{1, Noted{}},
          SetBatch{901},
          SetProgress{.total_samples = 1000, .stop = true},
          WakeAt{2.25},
          Drained{},
          Fail{Loss()}};
}

TEST(RecordTest, EveryEventAndEveryCommandComesBackFromItsLine) {
  std::set<size_t> events, commands;
  for (const Event& event : Events()) {
    events.insert(event.index());
    const Decision decision{.now = 12345.678901234, .event = event, .commands = Commands()};
    const std::string line = ToJson(decision);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const absl::StatusOr<Decision> read = ParseDecision(line);
    ASSERT_TRUE(read.ok()) << read.status() << " in " << line;
    EXPECT_EQ(read->now, decision.now);
    EXPECT_EQ(ToText(read->event), ToText(event));
    EXPECT_TRUE(read->commands == decision.commands) << line;
    EXPECT_EQ(ToJson(*read), line);
  }
  for (const Command& command : Commands()) commands.insert(command.index());
  EXPECT_EQ(events.size(), std::variant_size_v<Event>);
  EXPECT_EQ(commands.size(), std::variant_size_v<Command>);
}

// Lines of earlier versions of the program have none.
TEST(RecordTest, WithoutAVersionOfTheNetworkItIsTheFirst) {
  const auto read = ParseDecision(
      R"({"time":1,"event":{"kind":"answered","service":"groups","ticket":1,)"
      R"("message":{"kind":"group-given","key":[1,2],"members":[0,1],"total_samples":4,"stop":false}},)"
      R"("commands":[{"kind":"start-transfer","transfer":2,"movement":"average",)"
      R"("content":"parameters","first":0,"last":1,"weight":1.0}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(std::get<GroupGiven>(std::get<Answered>(read->event).message).version, 0u);
  EXPECT_EQ(std::get<StartTransfer>(read->commands.at(0)).version, 0u);
}

TEST(RecordTest, AStatusKeepsWhoIsToBlame) {
  const auto read =
      ParseDecision(ToJson({.now = 1, .event = WorkerLost{3, Loss()}, .commands = {}}));
  ASSERT_TRUE(read.ok()) << read.status();
  const absl::Status& why = std::get<WorkerLost>(read->event).why;
  EXPECT_TRUE(absl::IsUnavailable(why));
  EXPECT_EQ(GetSuspect(why), 3);
  EXPECT_EQ(GetBlast(why), BlastRadius::kGroup);
}

TEST(RecordTest, TextNamesTheFieldsThatMatter) {
  EXPECT_EQ(ToText(Event(GradientReady{3})), "gradient-ready tensor 3");
  EXPECT_EQ(
      ToText(Command(StartTransfer{.transfer = 7, .first = 2, .last = 5, .weight = 32})),
      "start-transfer transfer 7 movement average content gradients first 2 last 5 weight 32.0");
}

TEST(RecordTest, WhatIsWrongIsNamed) {
  const auto why = [](absl::string_view line) {
    const absl::Status status = ParseDecision(line).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    return std::string(status.message());
  };
  why("");
  why("[]");
  EXPECT_THAT(why(R"({"time":1,"commands":[]})"), HasSubstr("event"));
  EXPECT_THAT(why(R"({"time":1,"event":{"kind":"party"},"commands":[]})"),
              HasSubstr("there is no party"));
  EXPECT_THAT(why(R"({"time":1,"event":{"kind":"gradient-ready"},"commands":[]})"),
              HasSubstr("tensor"));
  EXPECT_THAT(why(R"({"time":1,"event":{"kind":"drain"},"commands":[{"kind":"proceed"}]})"),
              HasSubstr("tensor"));
  EXPECT_THAT(
      why(R"({"time":1,"event":{"kind":"new-value","from":1,"value":{"schedule":"x"}},"commands":[]})"),
      HasSubstr("line 1"));
}

}  // namespace
}  // namespace syncopate::strategy
