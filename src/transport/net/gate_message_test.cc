// Messages about gates come back from their bytes the same, and nothing shorter or longer is read.
#include "transport/net/gate_message.h"

#include <string>
#include <vector>

#include "base/limits.h"
#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

using Kind = GateMessage::Kind;

GateMessage FullMessage() {
  GateMessage message;
  message.kind = Kind::kDecision;
  message.gate = Gate::kFinish;
  message.all = true;
  message.round = 77;
  message.items.push_back({.sequence = 5,
                           .start = 1,
                           .finish = 2,
                           .opened = true,
                           .entered_start = true,
                           .entered_finish = false,
                           .mode = 2,
                           .provider = 3,
                           .digest = 11,
                           .digest_odd = 12,
                           .member_odd = 1,
                           .weight = 0.5,
                           .staged = true,
                           .not_opened = {1, 2},
                           .not_finished = {3}});
  message.hellos.push_back({.digest = 9, .weight = 2, .staged = true});
  message.ranks = {4, 5, 6};
  return message;
}

TEST(GateMessageTest, RoundTrips) {
  const GateMessage message = FullMessage();
  absl::StatusOr<GateMessage> again = DecodeGateMessage(Encode(message));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(*again == message);
}

TEST(GateMessageTest, EveryTruncationAndAnyExtraByteIsRefused) {
  const std::string bytes = Encode(FullMessage());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeGateMessage(bytes.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(DecodeGateMessage(bytes + "x").ok());
}

TEST(GateMessageTest, PartsKeepTheLimitsAndHaveAllItems) {
  for (const int members : {1, 1000, limits::kWorkersMax}) {
    GateMessage message = {.kind = GateMessage::Kind::kDecision, .all = true, .round = 7};
    for (uint64_t sequence = 0; sequence < 1500; ++sequence) {
      message.items.push_back(
          {.sequence = sequence,
           .not_opened = std::vector<int32_t>(static_cast<size_t>(members), 3)});
    }
    std::vector<GateMessage::Item> items;
    for (const GateMessage& part : Split(message)) {
      const std::string bytes = Encode(part);
      EXPECT_LE(bytes.size(), kGateMessageBytesMax);
      const auto decoded = DecodeGateMessage(bytes);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_TRUE(decoded->all && decoded->round == 7);
      items.insert(items.end(), decoded->items.begin(), decoded->items.end());
    }
    EXPECT_TRUE(items == message.items);
  }
  EXPECT_EQ(Split({.kind = GateMessage::Kind::kQuery}).size(), 1u);
}

}  // namespace
}  // namespace syncopate::transport::net
