// Messages about gates come back from their bytes the same, and nothing shorter or longer is read.
#include "transport/net/gate_message.h"

#include <string>

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

}  // namespace
}  // namespace syncopate::transport::net
