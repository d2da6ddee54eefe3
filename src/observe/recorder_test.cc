#include "observe/recorder.h"

#include <thread>

#include "gtest/gtest.h"

namespace syncopate::observe {
namespace {

Span Of(int iteration, int64_t begin_ns, SpanKind kind = SpanKind::kForward, uint64_t bytes = 0) {
  return {kind, iteration, 0, begin_ns, begin_ns + 5, bytes};
}

TEST(RecorderTest, TakesTimesFromTheClock) {
  ManualClock clock;
  Recorder recorder(clock, 2, "here", 16);
  clock.AdvanceNs(100);
  {
    ScopedSpan outer(&recorder, SpanKind::kBackward, 4);
    clock.AdvanceNs(10);
    ScopedSpan inner(&recorder, SpanKind::kPack, 4, 1);
    clock.AdvanceNs(1);
  }
  ScopedSpan nothing(nullptr, SpanKind::kPack, 4, 1);
  recorder.SetClockOffset(-7, 3);
  const WorkerTrace trace = recorder.Trace();
  EXPECT_TRUE(Validate(trace).ok());
  EXPECT_EQ(trace.rank, 2);
  EXPECT_EQ(trace.host, "here");
  EXPECT_EQ(trace.clock_offset_ns, -7);
  EXPECT_EQ(trace.clock_error_ns, 3);
  ASSERT_EQ(trace.spans.size(), 2u);
  EXPECT_EQ(trace.spans[0], (Span{SpanKind::kBackward, 4, -1, 100, 111, 0}));
  EXPECT_EQ(trace.spans[1], (Span{SpanKind::kPack, 4, 1, 110, 111, 0}));
}

TEST(RecorderTest, KeepsTheFirstAndTheLastWholeIterations) {
  ManualClock clock;
  Recorder recorder(clock, 0, "here", 20);  // 10 slots at the head, 10 at the tail
  for (int i = 0; i < 30; ++i) {            // 90 spans of three an iteration
    for (int j = 0; j < 3; ++j) recorder.Record(Of(i, i * 100 + j, SpanKind::kTransfer, 1));
  }
  const WorkerTrace trace = recorder.Trace();
  ASSERT_TRUE(Validate(trace).ok()) << Validate(trace);
  ASSERT_EQ(trace.spans.size(), 18u);
  EXPECT_EQ(trace.spans[8].iteration, 2);
  // Iteration 3 is cut by the head's end, 26 by the tail's beginning.
  EXPECT_EQ(trace.spans[9].iteration, 27);
  EXPECT_EQ(trace.dropped, 72u);
  EXPECT_EQ(trace.dropped_bytes, 72u);
  EXPECT_EQ(trace.dropped_first, 3);
  EXPECT_EQ(trace.dropped_last, 26);
  EXPECT_EQ(recorder.BytesSent(), 90u);
  EXPECT_EQ(recorder.TotalNs(SpanKind::kTransfer), 90 * 5);
  EXPECT_EQ(recorder.TotalNs(SpanKind::kEvaluate), 0);
}

TEST(RecorderTest, NewSpansAreTakenOnce) {
  ManualClock clock;
  Recorder recorder(clock, 0, "here", 8);
  recorder.Record(Of(0, 0));
  EXPECT_EQ(recorder.TakeNew().size(), 1u);
  EXPECT_TRUE(recorder.TakeNew().empty());
  for (int i = 1; i < 6; ++i) recorder.Record(Of(i, i));
  const std::vector<Span> some = recorder.TakeNew();
  ASSERT_EQ(some.size(), 5u);
  EXPECT_EQ(some.front().iteration, 1);
  for (int i = 6; i < 40; ++i) recorder.Record(Of(i, i));
  const std::vector<Span> last = recorder.TakeNew();
  ASSERT_EQ(last.size(), 4u);  // those between were overwritten
  EXPECT_EQ(last.front().iteration, 36);
  EXPECT_EQ(last.back().iteration, 39);
}

TEST(RecorderTest, ALateFirstTakeGivesHeadAndTail) {
  ManualClock clock;
  Recorder recorder(clock, 0, "here", 8);
  for (int i = 0; i < 20; ++i) recorder.Record(Of(i, i));
  const std::vector<Span> spans = recorder.TakeNew();
  ASSERT_EQ(spans.size(), 8u);
  EXPECT_EQ(spans[3].iteration, 3);
  EXPECT_EQ(spans[4].iteration, 16);
}

TEST(RecorderTest, ThreadsRecordAtOnce) {
  Recorder recorder(MonotonicClock(), 0, "here", 1 << 12);
  constexpr int kEach = 20'000;
  const auto work = [&] {
    for (int i = 0; i < kEach; ++i) {
      recorder.RecordUntilNow(SpanKind::kTransfer, i, 0, recorder.NowNs(), 2);
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(recorder.BytesSent(), uint64_t{4} * kEach);
  const WorkerTrace trace = recorder.Trace();
  EXPECT_TRUE(Validate(trace).ok());
  EXPECT_EQ(trace.dropped + trace.spans.size(), uint64_t{2} * kEach);
}

// Generous, for loaded machines: a span takes some 100 ns.
TEST(RecorderTest, ASpanIsCheap) {
  Recorder recorder(MonotonicClock(), 0, "here", 1 << 12);
  int64_t best_ns = 1'000'000'000;
  for (int round = 0; round < 20; ++round) {
    const int64_t begin_ns = recorder.NowNs();
    for (int i = 0; i < 1'000; ++i) ScopedSpan span(&recorder, SpanKind::kForward, i);
    best_ns = std::min(best_ns, recorder.NowNs() - begin_ns);
  }
  RecordProperty("ns_per_span", static_cast<int>(best_ns / 1'000));
  EXPECT_LT(best_ns / 1'000, 2'000);
}

}  // namespace
}  // namespace syncopate::observe
