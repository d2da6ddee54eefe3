#include "sync/exchange.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ExchangeTest, TextsOfAnyLengthArriveWhole) {
  worker::RunWorkers(3, [](Worker& worker) {
    for (const size_t length : {size_t{0}, size_t{1}, size_t{5}, size_t{100'003}}) {
      const std::string mine(length, static_cast<char>('a' + worker.rank()));
      const auto roots = BroadcastText(worker.world(), mine, 2);
      ASSERT_TRUE(roots.ok()) << roots.status();
      EXPECT_EQ(*roots, std::string(length, 'c'));
      const auto all = AllGatherTexts(worker.world(), mine.substr(0, length / 2 + 1));
      ASSERT_TRUE(all.ok()) << all.status();
      ASSERT_EQ(all->size(), 3u);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ((*all)[i],
                  std::string(std::min(length, length / 2 + 1), static_cast<char>('a' + i)));
      }
    }
  });
}

TEST(ExchangeTest, TextsMayHaveDifferentLengths) {
  worker::RunWorkers(3, [](Worker& worker) {
    const auto all =
        AllGatherTexts(worker.world(), std::string(static_cast<size_t>(worker.rank()) * 7, 'x'));
    ASSERT_TRUE(all.ok()) << all.status();
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ((*all)[i], std::string(i * 7, 'x'));
  });
}

TEST(ExchangeTest, OnlyTheRootGathersTexts) {
  worker::RunWorkers(3, [](Worker& worker) {
    for (const size_t length : {size_t{0}, size_t{7}}) {
      const auto all = GatherTexts(
          worker.world(), std::string(static_cast<size_t>(worker.rank()) * length, 'x'), 1);
      ASSERT_TRUE(all.ok()) << all.status();
      ASSERT_EQ(all->size(), worker.rank() == 1 ? 3u : 0u);
      for (size_t i = 0; i < all->size(); ++i) EXPECT_EQ((*all)[i], std::string(i * length, 'x'));
    }
  });
}

TEST(ExchangeTest, DifferentDigestsAreAnErrorThatShowsBoth) {
  worker::RunWorkers(3, [](Worker& worker) {
    EXPECT_TRUE(CompareDigests(worker.world(), "schedule", "same").ok());
    const absl::Status status =
        CompareDigests(worker.world(), "schedule", worker.rank() == 2 ? "other" : "same");
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("schedule"), HasSubstr("rank 0 has same"), HasSubstr("rank 2 has other")));
  });
}

}  // namespace
}  // namespace syncopate::sync
