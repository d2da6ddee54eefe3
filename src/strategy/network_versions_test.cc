#include "strategy/network_versions.h"

#include "gtest/gtest.h"
#include "model/schedule.h"

namespace syncopate::strategy {
namespace {

NewValue NetworkOf(uint64_t version, int64_t from) {
  Topology topology;
  topology.version = version;
  return {std::make_shared<const Topology>(topology), from};
}

TEST(NetworkVersionsTest, AVersionCountsForWhatBelongsToItsIterations) {
  NetworkVersions versions;
  EXPECT_EQ(versions.At(5), 0u);
  EXPECT_EQ(versions.newest(), 0u);
  versions.Add(NetworkOf(2, 4));
  versions.Add({std::make_shared<const Schedule>(), 6});
  versions.Add(NetworkOf(3, 9));
  EXPECT_EQ(versions.At(3), 0u);
  EXPECT_EQ(versions.At(4), 2u);
  EXPECT_EQ(versions.At(8), 2u);
  EXPECT_EQ(versions.At(9), 3u);
  EXPECT_EQ(versions.newest(), 3u);
}

TEST(NetworkVersionsTest, OfVeryManyTheNewestAreKept) {
  NetworkVersions versions;
  for (uint64_t version = 2; version <= 1000; ++version) {
    versions.Add(NetworkOf(version, static_cast<int64_t>(10 * version)));
  }
  EXPECT_EQ(versions.At(9999), 999u);
  EXPECT_EQ(versions.At(10'000), 1000u);
  EXPECT_EQ(versions.At(9500), 950u);
  EXPECT_EQ(versions.At(20), 0u) << "what is forgotten is as good as the first";
}

}  // namespace
}  // namespace syncopate::strategy
