#include "observe/trace_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "observe/breakdown.h"
#include "observe/sample_run_testing.h"

namespace syncopate::observe {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two workers' traces of `count` iterations from `first` on, each of one forward pass of 10 ms, on
// clocks that begin anywhere.
std::vector<WorkerTrace> Part(int first, int count, int64_t begin_ns) {
  std::vector<WorkerTrace> traces(2);
  for (int rank = 0; rank < 2; ++rank) {
    WorkerTrace& trace = traces[static_cast<size_t>(rank)];
    trace.rank = rank;
    trace.host = "h";
    trace.clock_offset_ns = -rank * (begin_ns / 2);
    trace.clock_error_ns = rank * begin_ns / 1000;
    for (int i = 0; i < count; ++i) {
      const int64_t begin = begin_ns + i * 10'000'000 - trace.clock_offset_ns;
      trace.spans.push_back({SpanKind::kForward, first + i, -1, begin, begin + 10'000'000, 0});
    }
  }
  return traces;
}

TEST(TracePartsTest, OnePartStaysAsItIs) {
  const std::vector<WorkerTrace> traces = testing::SampleTraces();
  std::vector<WorkerTrace> joined = JoinParts({traces});
  ASSERT_THAT(joined, SizeIs(4));
  EXPECT_EQ(BreakDown(joined)->seconds.mean, BreakDown(traces)->seconds.mean);
  EXPECT_THAT(JoinParts({}), IsEmpty());
}

TEST(TracePartsTest, TheLaterOfWhatWasDoneTwiceCountsAndNothingLiesBetween) {
  // Iterations 0 to 9, again from 7 to 11 an hour later, and from 10 on after a reboot.
  const auto joined = JoinParts(
      {Part(0, 10, 1'000'000'000), Part(7, 5, 3'600'000'000'000), Part(10, 3, 2'000'000)});
  ASSERT_THAT(joined, SizeIs(2));
  for (const WorkerTrace& trace : joined) {
    EXPECT_TRUE(Validate(trace).ok()) << Validate(trace);
    ASSERT_THAT(trace.spans, SizeIs(13));
    for (int i = 0; i < 13; ++i) {
      const Span& span = trace.spans[static_cast<size_t>(i)];
      EXPECT_EQ(span.iteration, i);
      EXPECT_EQ(span.begin_ns + trace.clock_offset_ns, 1'000'000'000 + i * 10'000'000) << i;
    }
  }
  EXPECT_EQ(joined[1].clock_error_ns, 3'600'000'000);
  const auto breakdown = BreakDown(joined);
  ASSERT_TRUE(breakdown.ok());
  EXPECT_THAT(breakdown->iterations, SizeIs(26));
  EXPECT_NEAR(breakdown->seconds.mean, 0.010, 1e-9);
  EXPECT_NEAR(breakdown->seconds.p99, 0.010, 1e-9);
}

TEST(TracePartsTest, WhatWasDroppedIsKnownAsFarAsItCounts) {
  std::vector<WorkerTrace> first = Part(0, 4, 1'000'000'000);
  first[0].dropped = 7;
  first[0].dropped_bytes = 70;
  first[0].dropped_first = 4;
  first[0].dropped_last = 20;
  first[1].dropped = 5;
  first[1].dropped_first = 12;
  first[1].dropped_last = 20;
  std::vector<WorkerTrace> second = Part(10, 2, 1'000'000'000);
  second[1].dropped = 2;
  second[1].dropped_first = 12;
  second[1].dropped_last = 14;
  const auto joined = JoinParts({first, second});
  ASSERT_THAT(joined, SizeIs(2));
  EXPECT_EQ(joined[0].dropped, 7u);
  EXPECT_EQ(joined[0].dropped_first, 4);
  EXPECT_EQ(joined[0].dropped_last, 9);
  EXPECT_EQ(joined[1].dropped, 2u);
  EXPECT_EQ(joined[1].dropped_first, 12);
  EXPECT_EQ(joined[1].dropped_last, 14);
}

TEST(TracePartsTest, EvaluationsDoNotBeginAPart) {
  std::vector<WorkerTrace> second = Part(5, 2, 1'000'000'000);
  second[0].spans.push_back({SpanKind::kEvaluate, 4, -1, 900'000'000, 950'000'000, 0});
  const auto joined = JoinParts({Part(0, 5, 1'000'000'000), second});
  EXPECT_THAT(joined[0].spans, SizeIs(8));
  EXPECT_THAT(joined[1].spans, SizeIs(7));
}

}  // namespace
}  // namespace syncopate::observe
