#include "sync/long_work.h"

#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sync/range_pieces.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

TEST(LongWorkTest, OneJobIsDoneAfterTheOther) {
  worker::RunWorkers(1, [](Worker& worker) {
    ControlTasks tasks(worker::MailboxOf(worker));
    LongWork work(tasks, MonotonicClock());
    std::vector<int> pieces;
    std::atomic<bool> done{false};
    for (int job = 0; job < 3; ++job) {
      work.Add([&, job, left = 4]() mutable {
        pieces.push_back(job);
        done = job == 2 && left == 1;
        return --left == 0;
      });
    }
    while (!done) std::this_thread::yield();
    tasks.Stop();
    EXPECT_THAT(pieces, ::testing::ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2));
  });
}

// The job goes on until mail has been taken, which the same thread does.
TEST(LongWorkTest, MailIsTakenBetweenThePiecesOfAJob) {
  worker::RunWorkers(1, [](Worker& worker) {
    ControlTasks tasks(worker::MailboxOf(worker));
    LongWork work(tasks, MonotonicClock());
    std::atomic<bool> begun{false}, heard{false}, done{false};
    ASSERT_TRUE(worker.Receive("news", [&](const Mail&) { heard = true; }).ok());
    work.Add([&] {
      begun = true;
      done = heard.load();
      return done.load();
    });
    while (!begun) std::this_thread::yield();
    ASSERT_TRUE(worker.Send(0, "news", "x").ok());
    while (!done) std::this_thread::yield();
    tasks.Stop();
  });
}

TEST(RangePiecesTest, PiecesAreBoundedAndCoverTheRanges) {
  const std::vector<TensorLayout::Range> ranges = {{DataType::kFloat32, 64, 200'000},
                                                   {DataType::kFloat32, 900'000, 0},
                                                   {DataType::kFloat64, 1'000'064, 3}};
  RangePieces pieces(ranges);
  std::vector<uint64_t> elements(ranges.size(), 0);
  while (!pieces.done()) {
    const RangePieces::Piece next = pieces.Next();
    const TensorLayout::Range& range = ranges[next.range];
    EXPECT_EQ(next.part.type, range.type);
    EXPECT_EQ(next.at, elements[next.range] * SizeOf(range.type));
    EXPECT_EQ(next.part.offset, range.offset + next.at);
    EXPECT_LE(next.part.elements * SizeOf(range.type), kPieceBytes);
    EXPECT_GT(next.part.elements, 0u);
    elements[next.range] += next.part.elements;
  }
  EXPECT_THAT(elements, ::testing::ElementsAre(200'000, 0, 3));
  EXPECT_TRUE(RangePieces({}).done());
}

}  // namespace
}  // namespace syncopate::sync
