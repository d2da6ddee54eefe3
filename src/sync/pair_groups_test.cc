#include "sync/pair_groups.h"

#include "gtest/gtest.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

absl::Status Move(Group& group, double& value) {
  return group.SendReceive(Array::Of(&value, 1), 0, 1);
}

TEST(PairGroupsTest, BothMeetWhateverOtherGroupsTheyHaveMade) {
  worker::RunWorkers(2, [](Worker& worker) {
    PairGroups groups(worker);
    const Pair there{Pair::Purpose::kExchange, 0, 1}, back{Pair::Purpose::kExchange, 1, 0};
    const Pair served{Pair::Purpose::kServing, 0, 1};
    // In different orders.
    for (const Pair& pair : worker.rank() == 0 ? std::vector<Pair>{there, back, served}
                                               : std::vector<Pair>{served, back, there}) {
      ASSERT_TRUE(groups.Get(pair, 0).ok());
    }
    for (const Pair& pair : {there, back, served}) {
      double value = worker.rank() == pair.from ? 7 : 0;
      absl::StatusOr<Group> group = groups.Get(pair, 0);
      ASSERT_TRUE(group.ok()) << group.status();
      const absl::Status status = Move(*group, value);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(value, 7);
    }
    EXPECT_TRUE(worker.world().Barrier().ok());
  });
}

TEST(PairGroupsTest, ABrokenGroupIsReplacedOnceByTheNext) {
  worker::RunWorkers(2, [](Worker& worker) {
    const Pair pair{Pair::Purpose::kServing, 0, 1};
    for (const uint64_t first : {uint64_t{0}, uint64_t{2}}) {  // a second one goes on after it
      PairGroups groups(worker);
      ASSERT_TRUE(groups.Get(pair, 0).ok());
      EXPECT_EQ(groups.NumberOf(pair), first);
      groups.Drop(pair, first);
      groups.Drop(pair, first);  // two calls may find it broken
      EXPECT_EQ(groups.NumberOf(pair), first + 1);
      // The other one may have been told the number.
      absl::StatusOr<Group> group =
          worker.rank() == 0 ? groups.Get(pair, 0) : groups.Get(pair, 0, first + 1);
      ASSERT_TRUE(group.ok()) << group.status();
      double value = worker.rank() == 0 ? 3 : 0;
      const absl::Status status = Move(*group, value);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(value, 3);
    }
    EXPECT_TRUE(worker.world().Barrier().ok());
  });
}

}  // namespace
}  // namespace syncopate::sync
