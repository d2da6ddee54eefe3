#include "model/strategy_message.h"

#include <limits>
#include <numeric>

#include "base/limits.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::HasSubstr;

constexpr int kWorkers = 4096;

std::vector<StrategyMessage> Examples() {
  return {
      WantGroup{.iteration = 7, .samples = 32, .busy_seconds = 0.25, .version = 3},
      GroupDone{.key = {3, 9}},
      WantTurn{.iteration = 1, .samples = 64, .busy_seconds = 1.5},
      GroupGiven{.key = {1, 2},
                 .members = {0, 5, 4095},
                 .version = 2,
                 .total_samples = 9000,
                 .stop = true},
      TurnGiven{.turn = 5, .samples = 901, .first_sample = 3, .total_samples = 11, .stop = true},
      Noted{},
      Refused{.why = "there is no group for a worker that has left"},
      Distance{.iteration = 4, .squared = 1e-9}};
}

TEST(StrategyMessageTest, EveryKindComesBackFromItsBytes) {
  ASSERT_EQ(Examples().size(), std::variant_size_v<StrategyMessage>);
  for (const StrategyMessage& message : Examples()) {
    const absl::StatusOr<StrategyMessage> read = DecodeStrategyMessage(Encode(message), kWorkers);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == message) << message.index();
  }
}

TEST(StrategyMessageTest, TheLargestFitsTheMailbox) {
  GroupGiven group;
  group.members.resize(limits::kMessageRanksMax);
  std::iota(group.members.begin(), group.members.end(), 0);
  EXPECT_TRUE(Validate(group, kWorkers).ok());
  EXPECT_LE(Encode(group).size(), limits::kMailBytesMax);
  EXPECT_LE(Encode(Refused{std::string(limits::kMessageTextBytesMax, 'x')}).size(),
            limits::kMailBytesMax);
  group.members.push_back(static_cast<int>(group.members.size()));
  EXPECT_THAT(std::string(Validate(group, kWorkers).message()), HasSubstr("too many ranks"));
  EXPECT_FALSE(DecodeStrategyMessage(Encode(group), kWorkers).ok());
}

TEST(StrategyMessageTest, EveryPrefixAndEveryLongerTextIsRefused) {
  for (const StrategyMessage& message : Examples()) {
    const std::string bytes = Encode(message);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(DecodeStrategyMessage(bytes.substr(0, size), kWorkers).ok());
    }
    EXPECT_FALSE(DecodeStrategyMessage(bytes + '\0', kWorkers).ok());
  }
}

TEST(StrategyMessageTest, WhatMakesNoSenseIsRefusedByName) {
  const auto why = [](const StrategyMessage& message, int workers = 4) {
    const absl::Status status = DecodeStrategyMessage(Encode(message), workers).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(why(WantGroup{.iteration = -1}), HasSubstr("want-group: iteration is negative"));
  EXPECT_THAT(why(Distance{.squared = -1}), HasSubstr("distance: squared"));
  EXPECT_THAT(why(Distance{.squared = std::numeric_limits<double>::quiet_NaN()}),
              HasSubstr("is no number from 0 on"));
  EXPECT_THAT(why(GroupGiven{.members = {0, 4}}), HasSubstr("names a rank that is not there"));
  EXPECT_THAT(why(GroupGiven{.members = {2, 1}}), HasSubstr("do not ascend"));
  EXPECT_THAT(why(GroupGiven{.members = {1, 1}}), HasSubstr("do not ascend"));
  const absl::StatusOr<StrategyMessage> unknown = DecodeStrategyMessage("\x7f", 4);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("no known kind"));
}

TEST(StrategyMessageTest, AnAnswerThatIsNoneIsARefusal) {
  const StrategyMessage given = TurnGiven{.turn = 3};
  EXPECT_EQ(MessageOfAnswer(Encode(given), 4), given);
  EXPECT_EQ(MessageOfAnswer(absl::UnavailableError("it has ended"), 4),
            StrategyMessage(Refused{"it has ended"}));
  EXPECT_TRUE(std::holds_alternative<Refused>(MessageOfAnswer(std::string("\x7f"), 4)));
  const auto much = MessageOfAnswer(absl::UnavailableError(std::string(10'000, 'x')), 4);
  EXPECT_TRUE(Validate(much, 4).ok());
}

TEST(StrategyMessageTest, ChangedBytesAreReadOrRefused) {
  Random random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = Encode(Examples()[random.Below(Examples().size())]);
    for (int change = 0; change < 3; ++change) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    }
    const absl::StatusOr<StrategyMessage> read = DecodeStrategyMessage(bytes, 8);
    if (!read.ok()) continue;
    EXPECT_TRUE(Validate(*read, 8).ok());
    EXPECT_EQ(Encode(*read), bytes);
  }
}

}  // namespace
}  // namespace syncopate
