#include "sync/group_cache.h"

#include <thread>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using strategy::Content;
using strategy::StartTransfer;

absl::Status AddOnes(Group& group) {
  float one = 1;
  const absl::Status status = group.AllReduce(Array::Of(&one, 1), ReduceOp::kSum);
  if (status.ok()) {
    EXPECT_EQ(one, static_cast<float>(group.size()));
  }
  return status;
}

TEST(GroupCacheTest, AGroupIsMadeOnceForItsMembersAndOnceForItsKey) {
  worker::RunWorkers(2, [](Worker& worker) {
    GroupCache cache(worker);
    for (int i = 0; i < 3; ++i) {
      for (const StartTransfer& start :
           std::vector<StartTransfer>{{.content = Content::kParameters},
                                      {.members = {0, 1}, .key = {.maker = 1, .number = 1}},
                                      {.members = {0, 1}, .key = {.maker = 1, .number = 2}},
                                      {.members = {worker.rank()}}}) {
        auto group = cache.Get(start, /*both=*/true);
        ASSERT_TRUE(group.ok()) << group.status();
        EXPECT_TRUE(AddOnes(*group).ok());
      }
      EXPECT_EQ(cache.size(), 4u);
    }
    // Everybody's gradients move in the world group.
    auto world = cache.Get({}, /*both=*/true);
    ASSERT_TRUE(world.ok());
    EXPECT_EQ(&world->members(), &worker.world().members());
    EXPECT_EQ(cache.size(), 4u);
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(GroupCacheTest, GroupsOfALostWorkerAreLetGoOf) {
  worker::RunWorkers(3, [](Worker& worker) {
    GroupCache cache(worker);
    const std::vector<int> two = {0, 1};
    const std::vector<StartTransfer> theirs = {
        {.content = Content::kParameters},
        {.members = {0, 1, 2}, .key = {.maker = 1, .number = 1}},
        {.members = {worker.rank() % 2, 2}}};
    for (const StartTransfer& start : theirs) {
      // Rank 2 is in the groups of both others.
      if (start.members.size() == 2 && worker.rank() == 2) continue;
      ASSERT_TRUE(cache.Get(start, /*both=*/true).ok());
    }
    if (worker.rank() < 2) {
      ASSERT_TRUE(cache.Get({.members = two}, true).ok());
      ASSERT_TRUE(cache.Get({.members = two, .key = {.maker = 1, .number = 2}}, true).ok());
    }
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (worker.rank() == 2) return;
    while (worker.Lost().empty()) std::this_thread::yield();
    EXPECT_EQ(cache.size(), 5u);
    cache.Lose(2);
    EXPECT_TRUE(cache.IsGone(2));
    EXPECT_EQ(cache.size(), 2u);
    // Those of the others are there as before.
    for (const StartTransfer& start : std::vector<StartTransfer>{
             {.members = two}, {.members = two, .key = {.maker = 1, .number = 2}}}) {
      auto group = cache.Get(start, true);
      ASSERT_TRUE(group.ok()) << group.status();
      EXPECT_TRUE(AddOnes(*group).ok());
    }
    EXPECT_EQ(cache.size(), 2u);
    // All that live are these two now.
    auto everybody = cache.Get({.content = Content::kParameters}, true);
    ASSERT_TRUE(everybody.ok()) << everybody.status();
    EXPECT_EQ(everybody->members(), two);
    EXPECT_TRUE(AddOnes(*everybody).ok());
    // A strategy that still wants the lost one is told who that is.
    const absl::Status refused =
        cache.Get({.content = Content::kParameters, .members = {0, 1, 2}}, true).status();
    EXPECT_EQ(GetSuspect(refused), 2) << refused;
    EXPECT_EQ(cache.size(), 3u);
  });
}

}  // namespace
}  // namespace syncopate::sync
