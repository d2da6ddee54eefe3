#include "transport/net/closed_groups.h"

#include <cstdint>
#include <optional>

#include "gtest/gtest.h"

namespace syncopate::transport::net {
namespace {

TEST(ClosedGroupsTest, TellsHowManyOperationsThereWere) {
  ClosedGroups groups(8);
  groups.Add(5, 3);
  groups.Add(6, 0);
  groups.Add(5, 9);  // it was closed already
  EXPECT_EQ(groups.Find(5), std::optional<uint64_t>(3));
  EXPECT_EQ(groups.Find(6), std::optional<uint64_t>(0));
  groups.Add(8, 1);
  groups.Add(8, 2);
  groups.Add(5, 1);
  EXPECT_EQ(groups.Find(5), std::optional<uint64_t>(3));
  EXPECT_EQ(groups.Find(8), std::optional<uint64_t>(1));
  EXPECT_EQ(groups.Find(7), std::nullopt);
  EXPECT_EQ(groups.size(), 3u);
}

TEST(ClosedGroupsTest, TheLastAreKnownAndThereAreNeverTooMany) {
  constexpr uint64_t kMax = 64;
  ClosedGroups groups(kMax);
  for (uint64_t key = 1; key <= 10 * kMax; ++key) {
    groups.Add(key, key % 3);
    ASSERT_LE(groups.size(), kMax);
    for (uint64_t ago = 0; ago < kMax / 2 && ago < key; ++ago) {
      ASSERT_EQ(groups.Find(key - ago), std::optional<uint64_t>((key - ago) % 3));
    }
  }
  EXPECT_EQ(groups.Find(1), std::nullopt);
}

}  // namespace
}  // namespace syncopate::transport::net
