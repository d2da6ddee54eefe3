// The breakdown on traces made by hand whose answer is known. Times are in units of a millisecond.
#include "observe/breakdown.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kMs = 1e-3;
constexpr double kBreakdownNear = 1e-12;

Span Ms(SpanKind kind, int iteration, int id, double begin, double end, uint64_t bytes = 0) {
  return {kind, iteration, id, static_cast<int64_t>(begin * 1e6), static_cast<int64_t>(end * 1e6),
          bytes};
}

WorkerTrace Worker(int rank, std::vector<Span> spans) {
  WorkerTrace trace;
  trace.rank = rank;
  trace.host = rank == 0 ? "a" : "b";
  trace.spans = std::move(spans);
  return trace;
}

const IterationCost& Cost(const Breakdown& breakdown, int iteration, int rank) {
  for (const IterationCost& cost : breakdown.iterations) {
    if (cost.iteration == iteration && cost.rank == rank) return cost;
  }
  ADD_FAILURE() << "no iteration " << iteration << " of rank " << rank;
  static const IterationCost none;
  return none;
}

Breakdown Of(const std::vector<WorkerTrace>& traces, const BreakdownOptions& options = {}) {
  auto breakdown = BreakDown(traces, options);
  EXPECT_TRUE(breakdown.ok()) << breakdown.status();
  return breakdown.ok() ? *std::move(breakdown) : Breakdown();
}

// Rank 0 has its gradients at 6, rank 1 at 9; the transfer takes 2 from then on.
std::vector<WorkerTrace> OneLateWorker() {
  std::vector<Span> early, late;
  for (int i = 0; i < 3; ++i) {
    const double t = i * 20;
    early.insert(
        early.end(),
        {Ms(SpanKind::kLoad, i, -1, t, t + 1), Ms(SpanKind::kForward, i, -1, t + 1, t + 3),
         Ms(SpanKind::kBackward, i, -1, t + 3, t + 6), Ms(SpanKind::kPack, i, 0, t + 5, t + 6),
         Ms(SpanKind::kTransfer, i, 0, t + 6, t + 11, 100),
         Ms(SpanKind::kWait, i, 0, t + 6, t + 11), Ms(SpanKind::kUpdate, i, -1, t + 11, t + 12)});
    late.insert(
        late.end(),
        {Ms(SpanKind::kForward, i, -1, t, t + 4), Ms(SpanKind::kBackward, i, -1, t + 4, t + 9),
         Ms(SpanKind::kTransfer, i, 0, t + 9, t + 11, 100),
         Ms(SpanKind::kWait, i, 0, t + 9, t + 11), Ms(SpanKind::kUpdate, i, -1, t + 11, t + 12)});
  }
  return {Worker(0, early), Worker(1, late)};
}

TEST(BreakdownTest, ALateWorkerIsBlamed) {
  const Breakdown breakdown = Of(OneLateWorker());
  const IterationCost& early = Cost(breakdown, 0, 0);
  EXPECT_NEAR(early.seconds, 20 * kMs, kBreakdownNear);
  EXPECT_NEAR(early.compute, 6 * kMs, kBreakdownNear);  // 1 + 2 + 3 - 1 of packing + 1
  EXPECT_NEAR(early.pack, 1 * kMs, kBreakdownNear);
  EXPECT_NEAR(early.exposed, 5 * kMs, kBreakdownNear);
  EXPECT_NEAR(early.waiting, 3 * kMs, kBreakdownNear);
  EXPECT_NEAR(early.other, 8 * kMs, kBreakdownNear);
  EXPECT_EQ(early.bytes, 100u);
  ASSERT_THAT(early.late, SizeIs(1));
  EXPECT_EQ(early.late[0].first, 1);
  const IterationCost& late = Cost(breakdown, 0, 1);
  EXPECT_NEAR(late.exposed, 2 * kMs, kBreakdownNear);
  EXPECT_NEAR(late.waiting, 0, kBreakdownNear);
  EXPECT_THAT(late.late, IsEmpty());
  EXPECT_NEAR(Cost(breakdown, 2, 0).seconds, 12 * kMs,
              kBreakdownNear);  // to its own end: none follows
  ASSERT_THAT(breakdown.late, SizeIs(1));
  EXPECT_EQ(breakdown.late[0].rank, 1);
  EXPECT_EQ(breakdown.late[0].host, "b");
  EXPECT_NEAR(breakdown.late[0].share, 1, kBreakdownNear);
  EXPECT_NEAR(breakdown.late[0].p50, 3 * kMs, kBreakdownNear);
  EXPECT_NEAR(breakdown.late[0].total, 9 * kMs, kBreakdownNear);
  EXPECT_EQ(breakdown.bytes, 600u);
  ASSERT_THAT(breakdown.workers, SizeIs(2));
  EXPECT_NEAR(breakdown.workers[0].waiting.p50, 3 * kMs, kBreakdownNear);
  EXPECT_NEAR(breakdown.workers[1].waiting.p50, 0, kBreakdownNear);
  EXPECT_THAT(breakdown.notes, IsEmpty());
}

TEST(BreakdownTest, ClocksThatDifferChangeNothing) {
  std::vector<WorkerTrace> traces = OneLateWorker();
  for (Span& span : traces[1].spans) {
    span.begin_ns += 5'000'000'000;
    span.end_ns += 5'000'000'000;
  }
  EXPECT_NEAR(Of(traces).late[0].total, 15 * kMs,
              kBreakdownNear);  // nonsense, as long as nobody says so
  traces[1].clock_offset_ns = -5'000'000'000;
  const Breakdown breakdown = Of(traces);
  EXPECT_NEAR(Cost(breakdown, 1, 0).waiting, 3 * kMs, kBreakdownNear);
  EXPECT_NEAR(Cost(breakdown, 1, 1).waiting, 0, kBreakdownNear);
  EXPECT_NEAR(breakdown.late[0].total, 9 * kMs, kBreakdownNear);
}

TEST(BreakdownTest, AnUncertainClockIsNoted) {
  std::vector<WorkerTrace> traces = OneLateWorker();
  traces[1].clock_error_ns = 1'000'000;
  EXPECT_THAT(Of(traces).notes, ElementsAre(HasSubstr("1000 us")));
}

TEST(BreakdownTest, HiddenTransfersCostNothing) {
  const std::vector<Span> spans = {
      Ms(SpanKind::kForward, 0, -1, 0, 3), Ms(SpanKind::kBackward, 0, -1, 3, 9),
      Ms(SpanKind::kTransfer, 0, 0, 4, 8, 7), Ms(SpanKind::kUpdate, 0, -1, 9, 10)};
  const Breakdown breakdown = Of({Worker(0, spans), Worker(1, spans)});
  EXPECT_NEAR(breakdown.exposed.p50, 0, kBreakdownNear);
  EXPECT_NEAR(breakdown.compute.p50, 10 * kMs, kBreakdownNear);
  EXPECT_EQ(breakdown.bytes, 14u);
}

// Transfer 0 moves from 2 to 8 while transfer 1, which rank 1 starts at 6 only, is under way beside
// it. A wait for all is for the network as long as something moves; a wait for 1 is for rank 1.
std::vector<WorkerTrace> OverlappingTransfers(int waited_for) {
  return {
      Worker(0, {Ms(SpanKind::kBackward, 0, -1, 0, 4), Ms(SpanKind::kTransfer, 0, 0, 2, 8),
                 Ms(SpanKind::kTransfer, 0, 1, 3, 10), Ms(SpanKind::kWait, 0, waited_for, 4, 10)}),
      Worker(1, {Ms(SpanKind::kBackward, 0, -1, 0, 6), Ms(SpanKind::kTransfer, 0, 0, 2, 8),
                 Ms(SpanKind::kTransfer, 0, 1, 6, 10), Ms(SpanKind::kWait, 0, -1, 6, 10)})};
}

TEST(BreakdownTest, WhileAnyTransferMovesAWaitForAllIsForTheNetwork) {
  const Breakdown breakdown = Of(OverlappingTransfers(-1));
  EXPECT_NEAR(Cost(breakdown, 0, 0).exposed, 6 * kMs, kBreakdownNear);
  EXPECT_NEAR(Cost(breakdown, 0, 0).waiting, 0, kBreakdownNear);
  EXPECT_THAT(breakdown.late, IsEmpty());
}

TEST(BreakdownTest, AWaitForOneTransferLooksAtThatOne) {
  const Breakdown breakdown = Of(OverlappingTransfers(1));
  EXPECT_NEAR(Cost(breakdown, 0, 0).exposed, 6 * kMs, kBreakdownNear);
  EXPECT_NEAR(Cost(breakdown, 0, 0).waiting, 2 * kMs, kBreakdownNear);
}

// Transfer 1 waits for transfer 0, which waits for rank 2: rank 2 is blamed for the first part of a
// wait for 1, and rank 1, which comes last to transfer 1, for the second.
TEST(BreakdownTest, WhatIsInTheWayOfATransferIsBlamed) {
  const auto worker = [](int rank, double begin0, double begin1) {
    return Worker(rank,
                  {Ms(SpanKind::kBackward, 0, -1, 0, 1), Ms(SpanKind::kTransfer, 0, 0, begin0, 10),
                   Ms(SpanKind::kTransfer, 0, 1, begin1, 15), Ms(SpanKind::kWait, 0, 1, 1, 15)});
  };
  const Breakdown breakdown = Of({worker(0, 1, 10), worker(1, 1, 13), worker(2, 6, 10)});
  const IterationCost& cost = Cost(breakdown, 0, 0);
  EXPECT_NEAR(cost.exposed, 14 * kMs, kBreakdownNear);
  EXPECT_NEAR(cost.waiting, 8 * kMs, kBreakdownNear);
  ASSERT_THAT(cost.late, SizeIs(2));
  EXPECT_EQ(cost.late[0].first, 1);
  EXPECT_NEAR(cost.late[0].second, 3 * kMs, kBreakdownNear);
  EXPECT_EQ(cost.late[1].first, 2);
  EXPECT_NEAR(cost.late[1].second, 5 * kMs, kBreakdownNear);
  ASSERT_THAT(breakdown.late, SizeIs(2));
  EXPECT_EQ(breakdown.late[0].rank, 2);
}

TEST(BreakdownTest, EvaluationAndCheckpointsAreNoPartOfAnIteration) {
  const Breakdown breakdown = Of({Worker(
      0, {Ms(SpanKind::kForward, 0, -1, 0, 4), Ms(SpanKind::kEvaluate, 0, -1, 4, 50),
          Ms(SpanKind::kCheckpoint, 0, -1, 50, 60), Ms(SpanKind::kForward, 1, -1, 61, 65)})});
  EXPECT_NEAR(Cost(breakdown, 0, 0).seconds, 5 * kMs, kBreakdownNear);
  EXPECT_NEAR(Cost(breakdown, 0, 0).other, 1 * kMs, kBreakdownNear);
}

TEST(BreakdownTest, WhatLiesInAnEvaluationIsNoPartOfAnIteration) {
  const Breakdown breakdown = Of(
      {Worker(0, {Ms(SpanKind::kForward, 0, -1, 0, 4), Ms(SpanKind::kEvaluate, 0, -1, 4, 50),
                  Ms(SpanKind::kWait, 0, -1, 10, 20), Ms(SpanKind::kPack, 0, -1, 45, 52),
                  Ms(SpanKind::kMeasure, 0, -1, 48, 53), Ms(SpanKind::kForward, 1, -1, 60, 65)})});
  const IterationCost& cost = Cost(breakdown, 0, 0);
  EXPECT_NEAR(cost.seconds, 11 * kMs, kBreakdownNear);
  EXPECT_NEAR(cost.exposed, 0, kBreakdownNear);
  EXPECT_NEAR(cost.pack, 0, kBreakdownNear);
  EXPECT_NEAR(cost.compute, 4 * kMs, kBreakdownNear);
  EXPECT_NEAR(cost.other, 7 * kMs, kBreakdownNear);
}

TEST(BreakdownTest, MeasuringIsNoPartOfAnIteration) {
  const Breakdown breakdown =
      Of({Worker(0, {Ms(SpanKind::kMeasure, 0, -1, 0, 20), Ms(SpanKind::kForward, 0, -1, 21, 25),
                     Ms(SpanKind::kForward, 1, -1, 26, 30), Ms(SpanKind::kMeasure, 1, -1, 31, 41),
                     Ms(SpanKind::kForward, 2, -1, 42, 46)})});
  EXPECT_NEAR(Cost(breakdown, 0, 0).seconds, 5 * kMs, kBreakdownNear);
  EXPECT_NEAR(Cost(breakdown, 1, 0).seconds, 6 * kMs, kBreakdownNear);
  EXPECT_NEAR(Cost(breakdown, 1, 0).other, 2 * kMs, kBreakdownNear);
  EXPECT_NEAR(Cost(breakdown, 2, 0).seconds, 4 * kMs, kBreakdownNear);
}

TEST(BreakdownTest, AWaitInsideForwardOwnsItsTime) {
  const Breakdown breakdown =
      Of({Worker(0, {Ms(SpanKind::kForward, 1, -1, 0, 10), Ms(SpanKind::kTransfer, 0, 3, 0, 5),
                     Ms(SpanKind::kWait, 1, 3, 2, 5)})});
  EXPECT_NEAR(Cost(breakdown, 1, 0).compute, 7 * kMs, kBreakdownNear);
  EXPECT_NEAR(Cost(breakdown, 1, 0).exposed, 3 * kMs, kBreakdownNear);
}

TEST(BreakdownTest, AnIterationThatWasCutOffDoesNotCount) {
  std::vector<WorkerTrace> traces = OneLateWorker();
  traces[0].spans.resize(traces[0].spans.size() - 3);  // no wait, no update in iteration 2
  const Breakdown breakdown = Of(traces);
  EXPECT_EQ(breakdown.workers[0].iterations, 2);
  EXPECT_EQ(breakdown.workers[1].iterations, 3);
}

TEST(BreakdownTest, MissingWorkersAndIterationsAreNoted) {
  std::vector<WorkerTrace> traces = OneLateWorker();
  std::erase_if(traces[0].spans, [](const Span& span) { return span.iteration == 1; });
  traces[0].rank = 3;
  traces[0].dropped = 7;
  traces[0].dropped_bytes = 100;
  traces[0].dropped_first = traces[0].dropped_last = 1;
  std::erase_if(traces[1].spans, [](const Span& span) { return span.iteration == 1; });
  const Breakdown breakdown = Of(traces);
  EXPECT_THAT(breakdown.notes, ElementsAre(HasSubstr("rank 0,2"), HasSubstr("iterations 1 to 1")));
  EXPECT_EQ(breakdown.workers[1].bytes, 300u);
}

TEST(BreakdownTest, IterationsThatOneWorkerDroppedCountForNobody) {
  std::vector<WorkerTrace> traces = OneLateWorker();
  std::erase_if(traces[1].spans, [](const Span& span) { return span.iteration == 1; });
  traces[1].dropped = 5;
  traces[1].dropped_first = traces[1].dropped_last = 1;
  const Breakdown breakdown = Of(traces);
  EXPECT_THAT(breakdown.iterations, SizeIs(4));
  EXPECT_NEAR(breakdown.late[0].share, 1, kBreakdownNear);
}

TEST(BreakdownTest, NothingIsNoError) {
  EXPECT_THAT(Of({}).notes, ElementsAre(HasSubstr("no whole iteration")));
  EXPECT_THAT(Of({Worker(0, {})}).notes, SizeIs(1));
  EXPECT_THAT(Of({Worker(0, {Ms(SpanKind::kWait, 0, 4, 1, 2)})}).iterations, SizeIs(1));
}

TEST(BreakdownTest, EarlyIterationsCanBeLeftOut) {
  BreakdownOptions options;
  options.first_iteration = 2;
  EXPECT_THAT(Of(OneLateWorker(), options).iterations, SizeIs(2));
}

TEST(BreakdownTest, BadTracesAreRefused) {
  EXPECT_FALSE(BreakDown({Worker(0, {}), Worker(0, {})}).ok());
  EXPECT_FALSE(BreakDown({Worker(-1, {})}).ok());
}

TEST(BreakdownTest, SpreadsInterpolate) {
  const Spread spread = SpreadOf({4, 1, 3, 2});
  EXPECT_NEAR(spread.p50, 2.5, kBreakdownNear);
  EXPECT_NEAR(spread.p99, 3.97, kBreakdownNear);
  EXPECT_NEAR(spread.mean, 2.5, kBreakdownNear);
  EXPECT_EQ(SpreadOf({}).p50, 0);
}

// Whatever the spans are, the parts add up and none is negative.
TEST(BreakdownTest, PartsOfRandomTracesAddUp) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<WorkerTrace> traces;
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<Span> spans;
      for (int i = 0; i < 40; ++i) {
        const double begin = static_cast<double>(random() % 100);
        spans.push_back(Ms(static_cast<SpanKind>(random() % kSpanKinds),
                           static_cast<int>(random() % 3), static_cast<int>(random() % 4), begin,
                           begin + static_cast<double>(random() % 20)));
      }
      traces.push_back(Worker(rank, spans));
      traces.back().clock_offset_ns = static_cast<int64_t>(random() % 10'000'000);
    }
    for (const IterationCost& cost : Of(traces).iterations) {
      ASSERT_GE(cost.seconds, 0) << round;
      for (const double part : {cost.compute, cost.pack, cost.exposed, cost.other}) {
        ASSERT_GE(part, 0) << round;
      }
      ASSERT_NEAR(cost.compute + cost.pack + cost.exposed + cost.other, cost.seconds,
                  kBreakdownNear)
          << round;
      ASSERT_LE(cost.waiting, cost.exposed + kBreakdownNear) << round;
      double late = 0;
      for (const auto& [rank, seconds] : cost.late) {
        ASSERT_NE(rank, cost.rank) << round;
        ASSERT_GT(seconds, 0) << round;
        late += seconds;
      }
      // Waits that overlap each other, which no thread makes, may be explained twice.
      ASSERT_GE(late, cost.waiting - kBreakdownNear) << round;
    }
  }
}

}  // namespace
}  // namespace syncopate::observe
