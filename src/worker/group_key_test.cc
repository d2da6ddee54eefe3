// Groups by key: members meet whatever they had made before, a key is used once, and closing is each
// member's own affair.
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "syncopate/syncopate.h"
#include "worker/used_keys.h"
#include "worker/worker_testing.h"

namespace syncopate::worker {
namespace {

using ::testing::HasSubstr;

absl::Status SumOfOnes(Group& group, int expected) {
  float one = 1;
  const absl::Status status = group.AllReduce(Array::Of(&one, 1), ReduceOp::kSum);
  if (status.ok()) {
    EXPECT_EQ(one, static_cast<float>(expected));
  }
  return status;
}

TEST(GroupKeyTest, MembersMeetWhateverTheyHaveMadeBefore) {
  RunWorkers(3, [](Worker& worker) {
    // Each has made another number of groups, of these members and of others.
    std::vector<Group> before;
    for (int i = 0; i < worker.rank(); ++i) before.push_back(*worker.NewGroup({0, 1, 2}));
    for (int i = 0; i < 2 * worker.rank(); ++i) {
      before.push_back(*worker.NewGroup({worker.rank()}, {7, static_cast<uint64_t>(i)}));
    }
    absl::StatusOr<Group> group = worker.NewGroup({2, 0, 1}, {.maker = 1, .number = 5});
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_EQ(group->members(), (std::vector<int>{2, 0, 1}));
    EXPECT_EQ(group->rank(), (worker.rank() + 1) % 3);
    EXPECT_TRUE(SumOfOnes(*group, 3).ok());
    // Groups without a key do not clash with it.
    EXPECT_TRUE(SumOfOnes(worker.world(), 3).ok());
  });
}

// A worker that is ahead has closed the group before the last one makes its part.
TEST(GroupKeyTest, MembersThatAreAheadDoNotWaitForThoseThatClose) {
  RunWorkers(2, [](Worker& worker) {
    for (uint64_t round = 1; round <= 500; ++round) {
      absl::StatusOr<Group> group = worker.NewGroup({0, 1}, {.maker = 2, .number = round});
      ASSERT_TRUE(group.ok()) << round << ": " << group.status();
      ASSERT_TRUE(SumOfOnes(*group, 2).ok());
      if (round % 2 == 0) group->Close();
    }
  });
}

TEST(GroupKeyTest, AKeyIsUsedOnce) {
  RunWorkers(2, [](Worker& worker) {
    const GroupKey key = {.maker = 3, .number = 9};
    {
      absl::StatusOr<Group> group = worker.NewGroup({0, 1}, key);
      ASSERT_TRUE(group.ok()) << group.status();
      const absl::Status again = worker.NewGroup({0, 1}, key).status();
      EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
      EXPECT_THAT(again.message(), HasSubstr("group {0,1} by key (3, 9)"));
      EXPECT_THAT(again.message(), HasSubstr("used once"));
      EXPECT_TRUE(SumOfOnes(*group, 2).ok());
    }
    // Also when the group is gone, and with other members.
    EXPECT_EQ(worker.NewGroup({worker.rank()}, key).status().code(),
              absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(worker.NewGroup({0, 1}, GroupKey{}).status().code(),
              absl::StatusCode::kInvalidArgument);
    // A key that was refused for another reason is not used up.
    const GroupKey other = {.maker = 3, .number = 10};
    EXPECT_FALSE(worker.NewGroup({0, 2}, other).ok());
    EXPECT_FALSE(worker.NewGroup({0, 1}, other, /*version=*/4).ok());
    EXPECT_TRUE(worker.NewGroup({0, 1}, other).ok());
    EXPECT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(GroupKeyTest, CallsOnAClosedGroupAreRefused) {
  RunWorkers(2, [](Worker& worker) {
    Group group = *worker.NewGroup({0, 1}, {.maker = 4, .number = 1});
    const Group copy = group;
    std::vector<float> data(1 << 20, 1);
    Handle handle = group.Start(
        {.collective = Collective::kAllReduce, .data = Array::Of(data.data(), data.size())});
    group.Close();
    EXPECT_EQ(group.size(), 2);
    EXPECT_EQ(copy.members().size(), 2u);
    const absl::Status refused = SumOfOnes(group, 2);
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(refused.message(), HasSubstr("closed the group"));
    // What was under way goes on.
    EXPECT_TRUE(handle.Wait().ok());
    EXPECT_EQ(data.back(), 2);
    group.Close();  // twice is once
    EXPECT_TRUE(worker.world().Barrier().ok());
  });
}

// There were 256 entries for the groups of a worker.
TEST(GroupKeyTest, AllGroupsOfThreeOutOfSixteenAreAliveAtOnce) {
  RunWorkers(16, [](Worker& worker) {
    std::vector<Group> mine;
    uint64_t number = 0;
    for (int a = 0; a < 16; ++a) {
      for (int b = a + 1; b < 16; ++b) {
        for (int c = b + 1; c < 16; ++c) {
          ++number;
          const int rank = worker.rank();
          if (rank != a && rank != b && rank != c) continue;
          absl::StatusOr<Group> group = worker.NewGroup({a, b, c}, {.maker = 5, .number = number});
          ASSERT_TRUE(group.ok()) << group.status();
          mine.push_back(*std::move(group));
        }
      }
    }
    EXPECT_EQ(number, 560u);
    for (Group& group : mine) ASSERT_TRUE(SumOfOnes(group, 3).ok());
  });
}

TEST(GroupKeyTest, AThousandGroupsAreAliveAtOnceAndTooManyAreRefused) {
  RunWorkers(2, [](Worker& worker) {
    std::vector<Group> groups;
    absl::Status refused;
    for (uint64_t number = 1; refused.ok() && number < 10'000; ++number) {
      absl::StatusOr<Group> group = worker.NewGroup({0, 1}, {.maker = 6, .number = number});
      refused = group.status();
      if (group.ok()) groups.push_back(*std::move(group));
    }
    EXPECT_GT(groups.size(), 1000u);
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    for (size_t i = 0; i < groups.size(); i += 100) ASSERT_TRUE(SumOfOnes(groups[i], 2).ok());
    ASSERT_TRUE(worker.world().Barrier().ok());
    groups.clear();
    Group after = *worker.NewGroup({0, 1}, {.maker = 7, .number = 1});
    EXPECT_TRUE(SumOfOnes(after, 2).ok());
  });
}

// Groups are made and let go by some threads while others run calls.
TEST(GroupKeyTest, SeveralThreadsMakeGroups) {
  RunWorkers(2, [](Worker& worker) {
    std::vector<std::thread> threads;
    for (uint64_t thread = 1; thread <= 4; ++thread) {
      threads.emplace_back([&worker, thread] {
        for (uint64_t round = 1; round <= 100; ++round) {
          absl::StatusOr<Group> group = worker.NewGroup({0, 1}, {.maker = thread, .number = round});
          ASSERT_TRUE(group.ok()) << group.status();
          ASSERT_TRUE(SumOfOnes(*group, 2).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(UsedKeysTest, TheOldestAreForgottenFirst) {
  UsedKeys keys(3);
  for (uint64_t number = 0; number < 200; number += 3) keys.Add({.maker = 1, .number = number});
  EXPECT_FALSE(keys.Contains({.maker = 1, .number = 63})) << "it was among the first 64";
  for (uint64_t number = 64; number < 200; ++number) {
    EXPECT_EQ(keys.Contains({.maker = 1, .number = number}), number % 3 == 0) << number;
  }
  EXPECT_FALSE(keys.Contains({.maker = 2, .number = 66}));
  keys.Add({.maker = 2, .number = UINT64_MAX});
  EXPECT_TRUE(keys.Contains({.maker = 2, .number = UINT64_MAX}));
  EXPECT_TRUE(keys.Contains({.maker = 1, .number = 129}));
}

}  // namespace
}  // namespace syncopate::worker
