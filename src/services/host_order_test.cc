#include "services/host_order.h"

#include <vector>

#include "absl/strings/string_view.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::services {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Change::Kind;

HostOrder New(int size, std::vector<int> candidates) {
  auto order = HostOrder::Make(size, std::move(candidates));
  EXPECT_TRUE(order.ok()) << order.status();
  return *std::move(order);
}

void Apply(HostOrder& order, Kind kind, int rank, bool may_host = false) {
  const absl::Status applied = order.Apply(
      {.kind = kind, .rank = rank, .order = order.changes().size() + 1, .may_host = may_host});
  EXPECT_TRUE(applied.ok()) << applied;
}

void ExpectIs(const HostOrder& order, int host, int standby, uint64_t incarnation) {
  EXPECT_EQ(order.host(), host);
  EXPECT_EQ(order.standby(), standby);
  EXPECT_EQ(order.incarnation(), incarnation);
}

TEST(HostOrderTest, TheFirstLiveCandidateHostsAndTheNextStandsBy) {
  HostOrder order = New(5, {0, 1, 2, 3});  // rank 4 is a server
  ExpectIs(order, 0, 1, 0);
  Apply(order, Kind::kLost, 2);
  ExpectIs(order, 0, 1, 0);
  Apply(order, Kind::kLost, 1);
  ExpectIs(order, 0, 3, 0);
  Apply(order, Kind::kLeft, 0);
  ExpectIs(order, 3, -1, 3);
  Apply(order, Kind::kLost, 3);
  ExpectIs(order, -1, -1, 4);
  EXPECT_THAT(order.LiveRanks(), ElementsAre(4));
}

TEST(HostOrderTest, AnOrderOfTheUsersCounts) {
  HostOrder order = New(4, {3, 1});
  ExpectIs(order, 3, 1, 0);
  Apply(order, Kind::kLost, 3);
  ExpectIs(order, 1, -1, 1);
}

TEST(HostOrderTest, OneThatJoinsStandsBehindAllOthers) {
  HostOrder order = New(3, {0, 1, 2});
  Apply(order, Kind::kLost, 0);
  Apply(order, Kind::kJoined, 0, true);  // a new worker with the rank of a lost one
  Apply(order, Kind::kJoined, 3, true);
  Apply(order, Kind::kJoined, 4, false);
  ExpectIs(order, 1, 2, 1);
  Apply(order, Kind::kLost, 1);
  ExpectIs(order, 2, 0, 5);
  Apply(order, Kind::kLost, 2);
  ExpectIs(order, 0, 3, 6);
}

TEST(HostOrderTest, OneThatIsNotThereYetHostsWhenItIsItsTurn) {
  auto made = HostOrder::Make(3, {0, 1, 2}, /*absent=*/{0});
  ASSERT_TRUE(made.ok()) << made.status();
  HostOrder order = *made;
  ExpectIs(order, 1, 2, 0);
  EXPECT_THAT(order.LiveRanks(), ElementsAre(1, 2));
  Apply(order, Kind::kJoined, 0, true);
  ExpectIs(order, 1, 2, 0);
  Apply(order, Kind::kLost, 1);
  ExpectIs(order, 2, 0, 2);
  ExpectIs(*made, 1, 2, 0);  // a copy keeps its own
  EXPECT_THAT(made->candidates(), ElementsAre(0, 1, 2));
  EXPECT_FALSE(HostOrder::Make(3, {0}, {3}).ok());
}

TEST(HostOrderTest, AWorkerHostsInOneIncarnationWhichGrows) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    HostOrder order = New(8, {0, 1, 2, 3, 4, 5, 6, 7});
    std::vector<int64_t> incarnation_of(8, -1);
    while (order.host() >= 0) {
      int64_t& mine = incarnation_of[static_cast<size_t>(order.host())];
      if (mine < 0) mine = static_cast<int64_t>(order.incarnation());
      ASSERT_EQ(mine, static_cast<int64_t>(order.incarnation()));
      const auto live = order.LiveRanks();
      const uint64_t before = order.incarnation();
      Apply(order, random.Below(2) == 0 ? Kind::kLost : Kind::kLeft,
            live[random.Below(live.size())]);
      ASSERT_GE(order.incarnation(), before);
    }
  }
}

TEST(HostOrderTest, WhatCannotBeIsRefused) {
  EXPECT_FALSE(HostOrder::Make(0, {0}).ok());
  EXPECT_FALSE(HostOrder::Make(2, {}).ok());
  EXPECT_THAT(HostOrder::Make(2, {0, 2}).status().message(), HasSubstr("rank 2"));
  EXPECT_THAT(HostOrder::Make(2, {1, 1}).status().message(), HasSubstr("twice"));
  HostOrder order = New(2, {0, 1});
  EXPECT_FALSE(order.Apply({.kind = Kind::kLost, .rank = 0, .order = 2}).ok());  // a gap
  EXPECT_FALSE(order.Apply({.kind = Kind::kLost, .rank = -1, .order = 1}).ok());
  EXPECT_FALSE(order.Apply({.kind = Kind::kLost, .rank = 7, .order = 1}).ok());    // never there
  EXPECT_FALSE(order.Apply({.kind = Kind::kJoined, .rank = 1, .order = 1}).ok());  // is there
  ExpectIs(order, 0, 1, 0);
}

}  // namespace
}  // namespace syncopate::services
