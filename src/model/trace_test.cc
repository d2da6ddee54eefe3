#include "model/trace.h"

#include <random>

#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::HasSubstr;

WorkerTrace SampleTrace() {
  WorkerTrace trace;
  trace.rank = 3;
  trace.host = "node-7";
  trace.clock_offset_ns = -123'456'789;
  trace.clock_error_ns = 4'000;
  trace.spans = {{SpanKind::kForward, 0, -1, 1'000, 2'000, 0},
                 {SpanKind::kBackward, 0, 5, 2'000, 900'000'000'000, 0},
                 {SpanKind::kTransfer, 0, 0, 2'500, 7'000, uint64_t{1} << 40},
                 {SpanKind::kWait, 1, -1, 0, 0, 0},
                 {SpanKind::kCheckpoint, 2'000'000'000, 2'000'000'000, 5, 6, 0}};
  trace.dropped = 12;
  trace.dropped_bytes = 99;
  trace.dropped_first = 2;
  trace.dropped_last = 7;
  return trace;
}

TEST(TraceTest, KindsHaveNames) {
  for (int kind = 0; kind < kSpanKinds; ++kind) {
    const auto value = static_cast<SpanKind>(kind);
    ASSERT_TRUE(ParseSpanKind(Name(value)).ok());
    EXPECT_EQ(*ParseSpanKind(Name(value)), value);
  }
  EXPECT_FALSE(ParseSpanKind("sleep").ok());
}

TEST(TraceTest, BothFormsRoundTrip) {
  const WorkerTrace trace = SampleTrace();
  ASSERT_TRUE(Validate(trace).ok()) << Validate(trace);
  const auto decoded = DecodeTrace(Encode(trace));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, trace);
  const auto parsed = ParseTrace(ToText(trace));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, trace);
}

TEST(TraceTest, TheCompactFormIsCompact) {
  WorkerTrace trace = SampleTrace();
  trace.spans.clear();
  for (int i = 0; i < 1'000; ++i) {
    trace.spans.push_back({SpanKind::kBackward, i / 100, i % 100, i * 50'000, i * 50'000 + 40'000});
  }
  EXPECT_LT(Encode(trace).size(), 12'000u);
}

TEST(TraceTest, ADigestTellsTracesApart) {
  WorkerTrace other = SampleTrace();
  EXPECT_EQ(DigestOf(other), DigestOf(SampleTrace()));
  other.spans[1].end_ns += 1;
  EXPECT_NE(DigestOf(other), DigestOf(SampleTrace()));
}

TEST(TraceTest, WhatIsOutOfRangeIsNamed) {
  const auto fault = [](auto change) {
    WorkerTrace trace = SampleTrace();
    change(trace);
    return std::string(Validate(trace).message());
  };
  EXPECT_THAT(fault([](auto& t) { t.rank = -1; }), HasSubstr("rank -1"));
  EXPECT_THAT(fault([](auto& t) { t.rank = limits::kWorkersMax; }), HasSubstr("rank"));
  EXPECT_THAT(fault([](auto& t) { t.host = ""; }), HasSubstr("host"));
  EXPECT_THAT(fault([](auto& t) { t.host = "two words"; }), HasSubstr("host"));
  EXPECT_THAT(fault([](auto& t) { t.clock_error_ns = -1; }), HasSubstr("clock"));
  EXPECT_THAT(fault([](auto& t) { t.dropped = 0; }), HasSubstr("dropped"));
  EXPECT_THAT(fault([](auto& t) { t.dropped_last = 1; }), HasSubstr("dropped"));
  EXPECT_THAT(fault([](auto& t) { t.spans[2].id = -1; }), HasSubstr("span 2: trace: a transfer"));
  EXPECT_THAT(fault([](auto& t) { t.spans[0].iteration = -1; }), HasSubstr("span 0"));
  EXPECT_THAT(fault([](auto& t) { t.spans[1].end_ns = 3; }), HasSubstr("span 1"));
  EXPECT_THAT(fault([](auto& t) { t.spans[1].kind = static_cast<SpanKind>(99); }),
              HasSubstr("kind 99"));
  EXPECT_THAT(fault([](auto& t) { t.spans.resize(limits::kTraceSpansMax + 1); }),
              HasSubstr("limit"));
}

TEST(TraceTest, EveryCutIsRefused) {
  const std::string bytes = Encode(SampleTrace());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeTrace(absl::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeTrace(bytes + "x").ok());
}

TEST(TraceTest, AHugeCountAllocatesNothing) {
  WorkerTrace empty = SampleTrace();
  empty.spans.clear();
  std::string bytes = Encode(empty);
  bytes.pop_back();                          // the count, which is 0
  bytes += std::string("\xff\xff\xff\x7f");  // becomes 2^28 - 1
  EXPECT_THAT(std::string(DecodeTrace(bytes).status().message()), HasSubstr("announced"));
}

TEST(TraceTest, RandomBytesNeverCrash) {
  const std::string good = Encode(SampleTrace());
  const std::string text = ToText(SampleTrace());
  std::mt19937_64 random(20250101);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = i % 2 == 0 ? good : text;
    for (uint64_t flips = random() % 4 + 1; flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (i % 3 == 0) bytes.resize(random() % (bytes.size() + 1));
    const auto trace = i % 2 == 0 ? DecodeTrace(bytes) : ParseTrace(bytes);
    if (!trace.ok()) continue;
    ++accepted;
    EXPECT_TRUE(Validate(*trace).ok());
  }
  EXPECT_GT(accepted, 100);  // some changes are harmless; else this would test only the first check
}

TEST(TraceTest, TextFaultsNameTheLine) {
  const auto fault = [](const char* text) {
    return std::string(ParseTrace(text).status().message());
  };
  EXPECT_THAT(fault("something\n"), HasSubstr("line 1"));
  EXPECT_THAT(fault("syncopate trace 1\nworker 0 a\nspan wait 0 0 1\n"), HasSubstr("line 3"));
  EXPECT_THAT(fault("syncopate trace 1\nworker 0 a\nspan wait 0 x 1 2 0\n"), HasSubstr("line 3"));
  EXPECT_THAT(fault("syncopate trace 1\ncolour red\n"), HasSubstr("colour"));
  EXPECT_THAT(fault("syncopate trace 1\n"), HasSubstr("host"));
}

}  // namespace
}  // namespace syncopate
