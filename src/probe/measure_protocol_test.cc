// Instructions and answers as bytes, and rates from arrivals: what is sent comes back the same, and
// whatever is out of its limits is refused.
#include "probe/measure_protocol.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace syncopate::probe {
namespace {

TEST(MeasureProtocolTest, InstructionsRoundTripAndAreChecked) {
  Instruction instruction;
  instruction.kind = Instruction::Kind::kFlows;
  instruction.seconds = 0.25;
  instruction.pieces = 100;
  instruction.flows = {{0, 3, 65536}, {2, 1, 8192}};
  const auto decode = [](const Instruction& sent, uint32_t ranks) -> absl::StatusOr<Instruction> {
    absl::StatusOr<Instruction> got = DecodeHead(EncodeHead(sent));
    if (!got.ok()) return got;
    const absl::Status flows = DecodeFlows(EncodeFlows(sent), ranks, *got);
    if (!flows.ok()) return flows;
    return got;
  };
  EXPECT_EQ(EncodeHead(instruction).size(), kHeadBytes);
  EXPECT_EQ(*decode(instruction, 4), instruction);
  EXPECT_FALSE(decode(instruction, 3).ok()) << "there is no rank 3";
  EXPECT_FALSE(DecodeHead(EncodeHead(instruction).substr(1)).ok());
  Instruction other = *DecodeHead(EncodeHead(instruction));
  EXPECT_FALSE(DecodeFlows(EncodeFlows(instruction).substr(1), 4, other).ok());
  const auto broken = [&](auto change) {
    Instruction bad = instruction;
    change(bad);
    return !decode(bad, 4).ok();
  };
  EXPECT_TRUE(broken([](Instruction& c) { c.kind = static_cast<Instruction::Kind>(9); }));
  EXPECT_TRUE(broken([](Instruction& c) { c.seconds = -1; }));
  EXPECT_TRUE(broken([](Instruction& c) { c.seconds = 1e9; }));
  EXPECT_TRUE(broken([](Instruction& c) { c.pieces = kPiecesMax + 1; }));
  EXPECT_TRUE(broken([](Instruction& c) { c.flows[0].piece_bytes = 1; }));
  EXPECT_TRUE(broken([](Instruction& c) { c.flows[0].piece_bytes = kPieceBytesMax + 1; }));
  EXPECT_TRUE(broken([](Instruction& c) { c.flows[0].to = 0; }));
  EXPECT_TRUE(broken([](Instruction& c) { c.kind = Instruction::Kind::kPing; }));
}

TEST(MeasureProtocolTest, AnswersRoundTripAndAreChecked) {
  const FlowsAnswer answer = {.stolen = 0.25, .flows = {{1e6, 0.5}, {0, 0.125}}};
  const std::string bytes = EncodeAnswer(answer);
  EXPECT_EQ(bytes.size(), kAnswerHeadBytes + 2 * kAnswerFlowBytes);
  EXPECT_EQ(*DecodeAnswer(bytes, 2), answer);
  EXPECT_EQ(*DecodeAnswer(EncodeAnswer({}), 0), FlowsAnswer());
  EXPECT_FALSE(DecodeAnswer(bytes, 1).ok());
  EXPECT_FALSE(DecodeAnswer(bytes.substr(1), 2).ok());
  EXPECT_FALSE(DecodeAnswer("", 0).ok());
  EXPECT_FALSE(DecodeAnswer(bytes, std::numeric_limits<uint64_t>::max() / kAnswerFlowBytes).ok());
  std::string other_count = bytes;
  other_count[8] = 1;
  EXPECT_FALSE(DecodeAnswer(other_count, 2).ok());
  const auto broken = [&](auto change) {
    FlowsAnswer bad = answer;
    change(bad);
    return !DecodeAnswer(EncodeAnswer(bad), 2).ok();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(broken([&](FlowsAnswer& a) { a.stolen = nan; }));
  EXPECT_TRUE(broken([&](FlowsAnswer& a) { a.stolen = -0.1; }));
  EXPECT_TRUE(broken([&](FlowsAnswer& a) { a.stolen = 1.1; }));
  EXPECT_TRUE(broken([&](FlowsAnswer& a) { a.flows[0].rate = nan; }));
  EXPECT_TRUE(broken([&](FlowsAnswer& a) { a.flows[1].rate = -1; }));
  EXPECT_TRUE(broken([&](FlowsAnswer& a) { a.flows[1].rate = infinite; }));
  EXPECT_TRUE(broken([&](FlowsAnswer& a) { a.flows[0].ended_seconds = nan; }));
}

TEST(MeasureProtocolTest, RatesCountWhatCameBetween) {
  std::vector<Arrival> even;
  for (int i = 1; i <= 10; ++i) even.push_back({0.1 * i, 1000});
  EXPECT_NEAR(RateBetween(even, 0.25, 0.85, false), 10000, 1e-6);
  // Slow at first: the ramp does not count.
  std::vector<Arrival> ramp = {{0.5, 1000}, {0.6, 1000}, {0.7, 1000}, {0.8, 1000}};
  EXPECT_NEAR(RateBetween(ramp, 0.5, 0.8, false), 10000, 1e-6);
  // Nothing came any more: that counts, unless all had been sent.
  EXPECT_NEAR(RateBetween(even, 0.5, 1.5, false), 5000, 1e-6);
  EXPECT_NEAR(RateBetween(even, 0.5, 1.5, true), 10000, 1e-6);
  EXPECT_NEAR(RateBetween(even, 2, 4, true), 10000, 1e-6);
  EXPECT_EQ(RateBetween({}, 0, 1, false), 0);
  // Several found at once.
  std::vector<Arrival> heaps;
  for (int i = 1; i <= 10; ++i) heaps.insert(heaps.end(), 4, {0.1 * i, 1000});
  EXPECT_NEAR(RateBetween(heaps, 0.25, 0.85, false), 40000, 1e-6);
}

}  // namespace
}  // namespace syncopate::probe
