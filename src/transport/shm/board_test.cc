// The board of verdicts, written by several workers at once.
#include "transport/shm/board.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace syncopate::transport::shm {
namespace {

// Two died at once, and two workers gave the verdicts. One drew the first place and was held up: until
// it had written its verdict, others read the second one only, and named that worker first.
TEST(BoardTest, ReadersOfVerdictsGivenAtOnceNameTheSameFirstOne) {
  auto board = std::make_unique<Board>();
  const uint64_t drawn = board->count.fetch_add(1) + 1;  // by a worker that is held up
  ASSERT_TRUE(Pronounce(*board, 2, Cause::kDied, 0));
  const int first = ReadVerdicts(*board, 3).front().rank;
  board->verdicts[1].store(drawn << 16 | static_cast<uint64_t>(Cause::kDied) << 8);
  EXPECT_EQ(ReadVerdicts(*board, 3).front().rank, first);
}

TEST(BoardTest, OfTwoVerdictsOnAWorkerTheFirstStays) {
  auto board = std::make_unique<Board>();
  EXPECT_FALSE(IsLost(*board, 2));
  EXPECT_TRUE(Pronounce(*board, 2, Cause::kStuck, 0));
  EXPECT_FALSE(Pronounce(*board, 2, Cause::kDied, 1));
  EXPECT_TRUE(Pronounce(*board, 0, Cause::kDied, 1));
  EXPECT_TRUE(IsLost(*board, 2));
  EXPECT_FALSE(IsLost(*board, 1));
  const std::vector<Loss> losses = ReadVerdicts(*board, 3);
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].rank, 2);
  EXPECT_EQ(losses[0].cause, Describe(Cause::kStuck));
  EXPECT_EQ(losses[1].rank, 0);
}

}  // namespace
}  // namespace syncopate::transport::shm
