#include "transport/net/membership_message.h"

#include <string>

#include "base/limits.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::net {
namespace {

using ::testing::HasSubstr;

MembershipMessage Largest() {
  MembershipMessage message;
  message.kind = MembershipMessage::Kind::kExpelled;
  message.known = 4000;
  message.first = 3000;
  message.verdicts.assign(MembershipMessage::kVerdictsMax,
                          {.rank = 4095, .cause = Cause::kLeft, .by = 17});
  message.proposals.assign(MembershipMessage::kProposalsMax,
                           {.rank = 7, .cause = Cause::kSilent, .by = 4094});
  message.opinions.assign(MembershipMessage::kOpinionsMax, {.rank = 9, .opinion = Opinion::kStuck});
  return message;
}

std::string ErrorOf(const std::string& bytes, int size = limits::kWorkersMax) {
  return std::string(DecodeMembershipMessage(bytes, size).status().message());
}

TEST(MembershipMessageTest, RoundTrips) {
  const MembershipMessage empty;
  EXPECT_EQ(*DecodeMembershipMessage(Encode(empty), 2), empty);
  const std::string bytes = Encode(Largest());
  EXPECT_EQ(bytes.size(), kMembershipMessageBytesMax);
  EXPECT_EQ(*DecodeMembershipMessage(bytes, limits::kWorkersMax), Largest());
}

TEST(MembershipMessageTest, EveryCutIsRefused) {
  const std::string bytes = Encode(Largest());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeMembershipMessage(bytes.substr(0, length), limits::kWorkersMax).ok());
  }
}

TEST(MembershipMessageTest, TooLong) {
  EXPECT_THAT(ErrorOf(Encode(Largest()) + "x"), HasSubstr("more than"));
}

TEST(MembershipMessageTest, BytesAfterTheEnd) {
  EXPECT_THAT(ErrorOf(Encode(MembershipMessage{}) + "x"), HasSubstr("follow"));
}

TEST(MembershipMessageTest, UnknownKind) {
  std::string bytes = Encode(MembershipMessage{});
  bytes[0] = 9;
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("kind 9"));
}

TEST(MembershipMessageTest, RankOutsideTheJob) {
  MembershipMessage message;
  message.proposals = {{.rank = 2, .cause = Cause::kDied, .by = 0}};
  EXPECT_TRUE(DecodeMembershipMessage(Encode(message), 3).ok());
  EXPECT_THAT(ErrorOf(Encode(message), 2), HasSubstr("a proposal is wrong"));
  message.proposals = {{.rank = 0, .cause = Cause::kDied, .by = 2}};
  EXPECT_THAT(ErrorOf(Encode(message), 2), HasSubstr("a proposal is wrong"));
  message.proposals.clear();
  message.opinions = {{.rank = 2}};
  EXPECT_THAT(ErrorOf(Encode(message), 2), HasSubstr("an opinion is wrong"));
}

TEST(MembershipMessageTest, UnknownCause) {
  MembershipMessage message;
  message.proposals = {{.rank = 1, .cause = static_cast<Cause>(6), .by = 0}};
  EXPECT_THAT(ErrorOf(Encode(message)), HasSubstr("a proposal is wrong"));
}

TEST(MembershipMessageTest, MoreVerdictsThanStand) {
  MembershipMessage message;
  message.verdicts = {{.rank = 1, .cause = Cause::kDied, .by = 0}};
  EXPECT_THAT(ErrorOf(Encode(message)), HasSubstr("more than it says"));
}

TEST(MembershipMessageTest, CountsBeyondTheLimits) {
  std::string bytes = Encode(MembershipMessage{});
  bytes[2] = static_cast<char>(MembershipMessage::kProposalsMax + 1);
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("more entries"));
}

TEST(MembershipMessageTest, WhatDecodesEncodesToTheSameBytes) {
  Random random(1);
  int decoded = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string bytes = Encode(i % 2 == 0 ? MembershipMessage{} : Largest());
    for (uint64_t changes = random.Below(3); changes > 0; --changes) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
    }
    const auto message = DecodeMembershipMessage(bytes, limits::kWorkersMax);
    if (!message.ok()) continue;
    ++decoded;
    ASSERT_EQ(Encode(*message), bytes);
  }
  EXPECT_GT(decoded, 1000);
}

}  // namespace
}  // namespace syncopate::net
