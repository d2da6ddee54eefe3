#include "adapt/job_exchange.h"

#include <string>
#include <vector>

#include "adapt/job_exchange_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::adapt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JobExchangeTest, NumbersAreCombinedAlikeOnAllWorkers) {
  RunRanks(3, [](JobExchange& exchange) {
    const double rank = exchange.rank();
    std::vector<double> numbers = {rank, -rank, 0.1};
    ASSERT_TRUE(Largest(exchange, "numbers", numbers).ok());
    EXPECT_THAT(numbers, ElementsAre(2, 0, 0.1));
    numbers = {rank, -rank, 0.1};
    ASSERT_TRUE(Smallest(exchange, "numbers", numbers).ok());
    EXPECT_THAT(numbers, ElementsAre(0, -2, 0.1));
    numbers = {rank, -rank, 0.1};
    ASSERT_TRUE(Sum(exchange, "numbers", numbers).ok());
    EXPECT_THAT(numbers, ElementsAre(3, -3, (0.1 + 0.1) + 0.1));
  });
}

TEST(JobExchangeTest, AnotherNumberOfNumbersNamesTheWorker) {
  RunRanks(3, [](JobExchange& exchange) {
    std::vector<double> numbers(exchange.rank() == 1 ? 3 : 2);
    const absl::Status status = Sum(exchange, "losses", numbers);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("losses, worker"));
  });
}

TEST(JobExchangeTest, TheRootHasTheTextsOfAllAndAllHaveTheRoots) {
  RunRanks(3, [](JobExchange& exchange) {
    const std::string mine(static_cast<size_t>(exchange.rank()) + 1, 'x');
    const auto gathered = TextsAtRoot(exchange, "traces", mine, 1);
    ASSERT_TRUE(gathered.ok()) << gathered.status();
    if (exchange.rank() == 1) {
      EXPECT_THAT(*gathered, ElementsAre("x", "xx", "xxx"));
    } else {
      EXPECT_TRUE(gathered->empty());
    }
    const auto roots = TextOfRoot(exchange, "plan", mine, 2);
    ASSERT_TRUE(roots.ok()) << roots.status();
    EXPECT_EQ(*roots, "xxx");
  });
}

TEST(JobExchangeTest, DigestsThatDifferAreShownToAll) {
  RunRanks(3, [](JobExchange& exchange) {
    EXPECT_TRUE(CompareDigests(exchange, "schedule", "same").ok());
    const absl::Status status =
        CompareDigests(exchange, "schedule", exchange.rank() == 2 ? "other" : "same");
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("rank 0 has same, rank 2 has other"));
  });
}

TEST(JobExchangeTest, NumbersOfAnotherLengthAreRefused) {
  const std::string text = EncodeNumbers(std::vector<int64_t>{1, -2});
  EXPECT_THAT(*DecodeIntegers(text, 2), ElementsAre(1, -2));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeIntegers(text, 3).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeIntegers(text.substr(1), 2).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeDoubles("", 1).status()));
  EXPECT_TRUE(DecodeDoubles("", 0)->empty());
}

}  // namespace
}  // namespace syncopate::adapt
