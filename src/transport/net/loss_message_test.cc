#include "transport/net/loss_message.h"

#include <string>

#include "base/limits.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

using ::testing::HasSubstr;

LossMessage Largest() {
  LossMessage message;
  message.kind = LossMessage::Kind::kExpelled;
  message.known = 4000;
  message.first = 3000;
  message.verdicts.assign(LossMessage::kVerdictsMax,
                          {.rank = 4095, .cause = Cause::kLeft, .by = 17});
  message.proposals.assign(LossMessage::kProposalsMax,
                           {.rank = 7, .cause = Cause::kSilent, .by = 4094});
  message.opinions.assign(LossMessage::kOpinionsMax, {.rank = 9, .opinion = Opinion::kStuck});
  return message;
}

std::string ErrorOf(const std::string& bytes, int size = limits::kWorkersMax) {
  return std::string(DecodeLossMessage(bytes, size).status().message());
}

TEST(LossMessageTest, RoundTrips) {
  const LossMessage empty;
  EXPECT_EQ(*DecodeLossMessage(Encode(empty), 2), empty);
  const std::string bytes = Encode(Largest());
  EXPECT_EQ(bytes.size(), kLossMessageBytesMax);
  EXPECT_EQ(*DecodeLossMessage(bytes, limits::kWorkersMax), Largest());
}

TEST(LossMessageTest, EveryCutIsRefused) {
  const std::string bytes = Encode(Largest());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeLossMessage(bytes.substr(0, length), limits::kWorkersMax).ok());
  }
}

TEST(LossMessageTest, TooLong) {
  EXPECT_THAT(ErrorOf(Encode(Largest()) + "x"), HasSubstr("more than"));
}

TEST(LossMessageTest, BytesAfterTheEnd) {
  EXPECT_THAT(ErrorOf(Encode(LossMessage{}) + "x"), HasSubstr("follow"));
}

TEST(LossMessageTest, UnknownKind) {
  std::string bytes = Encode(LossMessage{});
  bytes[0] = 9;
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("kind 9"));
}

TEST(LossMessageTest, RankOutsideTheJob) {
  LossMessage message;
  message.proposals = {{.rank = 2, .cause = Cause::kDied, .by = 0}};
  EXPECT_TRUE(DecodeLossMessage(Encode(message), 3).ok());
  EXPECT_THAT(ErrorOf(Encode(message), 2), HasSubstr("a proposal is wrong"));
  message.proposals = {{.rank = 0, .cause = Cause::kDied, .by = 2}};
  EXPECT_THAT(ErrorOf(Encode(message), 2), HasSubstr("a proposal is wrong"));
  message.proposals.clear();
  message.opinions = {{.rank = 2}};
  EXPECT_THAT(ErrorOf(Encode(message), 2), HasSubstr("an opinion is wrong"));
}

TEST(LossMessageTest, UnknownCause) {
  LossMessage message;
  message.proposals = {{.rank = 1, .cause = static_cast<Cause>(6), .by = 0}};
  EXPECT_THAT(ErrorOf(Encode(message)), HasSubstr("a proposal is wrong"));
}

TEST(LossMessageTest, MoreVerdictsThanStand) {
  LossMessage message;
  message.verdicts = {{.rank = 1, .cause = Cause::kDied, .by = 0}};
  EXPECT_THAT(ErrorOf(Encode(message)), HasSubstr("more than it says"));
}

TEST(LossMessageTest, CountsBeyondTheLimits) {
  std::string bytes = Encode(LossMessage{});
  bytes[2] = static_cast<char>(LossMessage::kProposalsMax + 1);
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("more entries"));
}

TEST(LossMessageTest, WhatDecodesEncodesToTheSameBytes) {
  Random random(1);
  int decoded = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string bytes = Encode(i % 2 == 0 ? LossMessage{} : Largest());
    for (uint64_t changes = random.Below(3); changes > 0; --changes) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
    }
    const auto message = DecodeLossMessage(bytes, limits::kWorkersMax);
    if (!message.ok()) continue;
    ++decoded;
    ASSERT_EQ(Encode(*message), bytes);
  }
  EXPECT_GT(decoded, 1000);
}

}  // namespace
}  // namespace syncopate::transport::net
