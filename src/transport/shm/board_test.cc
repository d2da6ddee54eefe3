// The board of verdicts, written by several workers at once.
#include "transport/shm/board.h"

#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace syncopate::transport::shm {
namespace {

// Two died at once, and two workers gave the verdicts. One drew the first place and was held up: until
// it had written its verdict, others read the second one only, and named that worker first. Now a place
// is taken by the verdict itself.
TEST(BoardTest, ReadersOfVerdictsGivenAtOnceNameTheSameFirstOne) {
  auto board = std::make_unique<Board>();
  ASSERT_TRUE(Pronounce(*board, 2, Cause::kDied, 0));
  const int first = ReadVerdicts(*board, 3).front().rank;
  ASSERT_TRUE(Pronounce(*board, 1, Cause::kDied, 0));  // by a worker that was held up
  EXPECT_EQ(ReadVerdicts(*board, 3).front().rank, first);
}

// Whatever a reader has seen stays the beginning of what it sees later.
TEST(BoardTest, VerdictsGivenByManyAtOnceStandInOneOrder) {
  constexpr int kWriters = 8;
  for (int round = 0; round < 20; ++round) {
    auto board = std::make_unique<Board>();
    std::vector<std::thread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&board, writer] {
        for (const int rank : {writer, (writer + 1) % kWriters}) {
          Pronounce(*board, rank, Cause::kDied, writer);
        }
      });
    }
    std::vector<int> seen;
    while (seen.size() < kWriters) {
      const std::vector<Loss> losses = ReadVerdicts(*board, kWriters);
      ASSERT_GE(losses.size(), seen.size());
      for (size_t i = 0; i < losses.size(); ++i) {
        if (i < seen.size()) {
          ASSERT_EQ(losses[i].rank, seen[i]);
        } else {
          seen.push_back(losses[i].rank);
        }
      }
      std::this_thread::yield();
    }
    for (std::thread& thread : writers) thread.join();
    EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), seen.size()) << "one is lost twice";
    EXPECT_EQ(CountVerdicts(*board), static_cast<uint64_t>(kWriters));
  }
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
