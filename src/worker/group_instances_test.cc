#include "worker/group_instances.h"

#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace syncopate::worker {
namespace {

TEST(GroupInstancesTest, EachListCountsForItself) {
  GroupInstances instances(8);
  EXPECT_EQ(instances.Of({0, 1}), 0u);
  instances.Add({0, 1});
  instances.Add({0, 1});
  instances.Add({1, 0});  // another order is another group
  EXPECT_EQ(instances.Of({0, 1}), 2u);
  EXPECT_EQ(instances.Of({1, 0}), 1u);
  EXPECT_EQ(instances.Of({0, 1, 2}), 0u);
  EXPECT_EQ(instances.Of({1}), 0u);
}

// What is counted took memory without a bound.
TEST(GroupInstancesTest, ThereIsALimitOnListsAndNoneOnTheirGroups) {
  constexpr int kLists = 100;
  GroupInstances instances(kLists);
  for (int list = 0; list < kLists; ++list) {
    ASSERT_TRUE(instances.CheckRoom({0, list + 1}).ok());
    instances.Add({0, list + 1});
  }
  const absl::Status refused = instances.CheckRoom({0, kLists + 1});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(instances.CheckRoom({0, 1}).ok());
    instances.Add({0, 1});
  }
  EXPECT_EQ(instances.Of({0, 1}), 1001u);
  EXPECT_EQ(instances.lists(), static_cast<size_t>(kLists));
}

}  // namespace
}  // namespace syncopate::worker
