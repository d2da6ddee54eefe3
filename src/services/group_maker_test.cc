#include "services/group_maker.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/group_world_testing.h"

namespace syncopate::services {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// SYNCOPATE_TEST_SEEDS runs more of them.
uint64_t Seeds(uint64_t usual) {
  const char* const seeds = std::getenv("SYNCOPATE_TEST_SEEDS");
  return seeds == nullptr ? usual : std::strtoull(seeds, nullptr, 10);
}

GroupRules Smart() { return *GroupRules::ByName("prague-smart"); }

// Rules of any kind that are valid.
GroupRules RandomRules(Random& random) {
  GroupRules rules;
  rules.group_size = static_cast<int>(random.Between(2, 5));
  rules.head_group_size = static_cast<int>(random.Between(2, 4));
  rules.lag_max = std::vector<int64_t>{0, 1, 2, 4, 8}[random.Below(5)];
  rules.alone_max = static_cast<int>(random.Between(1, 5));
  rules.aware = random.Below(4) == 0;
  if (random.Below(4) == 0) rules.slowness_max = 1.5;
  switch (random.Below(5)) {
    case 0:
      rules.buffer = rules.division = rules.inter_intra = false;
      break;
    case 1:
      rules.division = rules.inter_intra = false;
      break;
    case 2:
      rules.inter_intra = false;
      break;
    case 3:
      rules.division = rules.inter_intra = false;
      rules.arrival = true;
      break;
    default:
      break;
  }
  return rules;
}

GroupJob RandomJob(Random& random) {
  GroupJob job = {.workers = static_cast<int>(random.Between(1, 12)), .seed = random.Next()};
  if (random.Below(3) > 0) {
    const int nodes = static_cast<int>(random.Between(1, 4));
    for (int rank = 0; rank < job.workers; ++rank)
      job.node.push_back(std::min(rank % nodes, job.workers - 1));
  }
  return job;
}

// Requests that are answered at once and begin with a group of one's own wait for nobody, so the asker is told.
std::vector<GivenGroup> WantAll(GroupMaker& maker, const std::vector<int>& ranks) {
  std::vector<GivenGroup> given;
  for (const int rank : ranks)
    EXPECT_TRUE(maker.Want({.now_ns = 0, .maker = 1}, rank, {}, given).ok());
  return given;
}

std::vector<int> AllRanks(int workers) {
  std::vector<int> ranks(static_cast<size_t>(workers));
  for (int rank = 0; rank < workers; ++rank) ranks[static_cast<size_t>(rank)] = rank;
  return ranks;
}

std::map<GroupKey, std::vector<int>> GroupsOf(const std::vector<GivenGroup>& given) {
  std::map<GroupKey, std::vector<int>> groups;
  for (const GivenGroup& each : given) groups[each.key] = each.members;
  return groups;
}

TEST(GroupMakerTest, AnyOrderOfRequestsAndDeathsGoesOnAndConnectsAll) {
  int windows = 0, deaths = 0;
  const uint64_t seeds = Seeds(1500);
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const GroupRules rules = RandomRules(random);
    const GroupJob job = RandomJob(random);
    ASSERT_TRUE(Validate(rules, job).ok()) << Validate(rules, job);
    GroupWorld world(rules, job, random.Next(), seed % 4 == 0);
    for (int step = 0; step < 400; ++step) {
      ASSERT_TRUE(world.Move()) << "all wait at step " << step;
      if (random.Below(150) == 0 && world.live().size() > 1) {
        auto victim = world.live().begin();
        std::advance(victim, random.Below(world.live().size()));
        world.Kill(*victim);
        ++deaths;
      }
      if (testing::Test::HasFailure()) return;
    }
    world.CheckCommonOrder();
    windows += world.windows_seen();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(windows, 0);
  EXPECT_GT(deaths, 0);
}

TEST(GroupMakerTest, TheEndIsOneAverageOfAllThatLive) {
  for (uint64_t seed = 0; seed < Seeds(400); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const GroupRules rules = RandomRules(random);
    GroupJob job = RandomJob(random);
    job.samples_end = 8 * random.Between(1, 100);  // each request brings 8
    GroupWorld world(rules, job, random.Next());
    for (int step = 0; world.stopped().size() < world.live().size(); ++step) {
      ASSERT_TRUE(world.Move()) << "all wait at step " << step;
      ASSERT_LT(step, 3000);
      if (random.Below(100) == 0 && world.live().size() > 1) world.Kill(*world.live().begin());
    }
    EXPECT_GE(world.maker().total_samples(), job.samples_end);
    const std::vector<GivenGroup>& last = world.told().at(*world.live().rbegin());
    EXPECT_EQ(last.back().phase, GroupPhase::kLast);
    for (const int rank : world.live()) {
      EXPECT_EQ(world.told().at(rank).back().key, last.back().key);
      EXPECT_TRUE(world.told().at(rank).back().stop);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(GroupMakerTest, ADivisionTakesAllThatAreInNoGroup) {
  GroupRules rules = Smart();
  rules.inter_intra = false;
  for (int workers = 2; workers < 20; ++workers) {
    GroupMaker maker(rules, {.workers = workers, .seed = static_cast<uint64_t>(workers)});
    const auto groups = GroupsOf(WantAll(maker, AllRanks(workers)));
    std::vector<int> all;
    for (const auto& [key, members] : groups) {
      all.insert(all.end(), members.begin(), members.end());
      // Their sizes differ by at most one.
      const int count = std::max(1, workers / 3);
      EXPECT_THAT(static_cast<int>(members.size()),
                  AnyOf(Eq(workers / count), Eq((workers + count - 1) / count)));
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, AllRanks(workers));
  }
}

TEST(GroupMakerTest, TwoPhasesGiveEveryWorkerTwoGroups) {
  const GroupJob job = {
      .workers = 16, .node = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, .seed = 5};
  GroupMaker maker(Smart(), job);
  std::map<int, std::vector<std::vector<int>>> told;
  for (int round = 0; round < 2; ++round) {
    for (const GivenGroup& each : WantAll(maker, AllRanks(16))) {
      told[each.rank].push_back(each.members);
      std::vector<GivenGroup> none;
      if (each.members.size() > 1) maker.Done({.maker = 1}, each.rank, each.key, none);
      EXPECT_THAT(none, IsEmpty());
    }
  }
  int heads = 0;
  for (const auto& [rank, groups] : told) {
    ASSERT_THAT(groups, SizeIs(2));
    const int node = rank / 4;
    std::set<int> nodes;
    for (const int member : groups[0]) nodes.insert(member / 4);
    // First one head a node among each other, while the other three are together.
    if (nodes.size() == 4) {
      ++heads;
      EXPECT_THAT(groups[0], SizeIs(4));
    } else {
      EXPECT_THAT(groups[0], SizeIs(3));
    }
    EXPECT_THAT(groups[1], ElementsAre(4 * node, 4 * node + 1, 4 * node + 2, 4 * node + 3));
  }
  EXPECT_EQ(heads, 4);
}

// Four workers in pairs, of whom rank 3 is slow: its partner waits for it, while the two others go on.
class SlowPair {
 public:
  explicit SlowPair(int alone_max) : maker_(Rules(alone_max), {.workers = 4, .seed = 9}) {
    std::set<int> quick;
    for (const GivenGroup& each : Ask({0, 1, 2})) quick.insert(each.rank);
    EXPECT_THAT(quick, SizeIs(2));
    first_ = *quick.begin();
    second_ = *quick.rbegin();
    partner_ = 0 + 1 + 2 - first_ - second_;
  }
  // All of them ask, in this order, and are done with what they are given.
  std::vector<GivenGroup> Ask(const std::vector<int>& ranks) {
    const std::vector<GivenGroup> given = WantAll(maker_, ranks);
    std::vector<GivenGroup> none;
    for (const GivenGroup& each : given) {
      if (each.members.size() > 1) maker_.Done({.maker = 1}, each.rank, each.key, none);
    }
    EXPECT_THAT(none, IsEmpty());
    return given;
  }
  GroupMaker& maker() { return maker_; }
  int first() const { return first_; }
  int second() const { return second_; }
  int partner() const { return partner_; }

 private:
  static GroupRules Rules(int alone_max) {
    GroupRules rules = Smart();
    rules.inter_intra = false;
    rules.group_size = 2;
    rules.lag_max = 2;
    rules.alone_max = alone_max;
    return rules;
  }

  GroupMaker maker_;
  int first_ = -1, second_ = -1, partner_ = -1;
};

TEST(GroupMakerTest, AWorkerThatLagsIsLeftOutByFastOnesAndTakesThemItself) {
  SlowPair pair(1000);
  for (int round = 0; round < 3; ++round) {
    EXPECT_THAT(pair.Ask({pair.first(), pair.second()}), SizeIs(2));
  }
  EXPECT_THAT(pair.Ask({3}), SizeIs(2));  // its partner has waited
  // All four are in no group now. The fast ones leave the others out.
  const std::vector<GivenGroup> fast = pair.Ask({pair.first(), pair.second()});
  ASSERT_THAT(fast, SizeIs(2));
  EXPECT_THAT(fast[0].members, ElementsAre(pair.first(), pair.second()));
  // The slow one takes all.
  std::set<int> told;
  for (const GivenGroup& each : pair.Ask({3, pair.partner(), pair.first(), pair.second()})) {
    told.insert(each.rank);
    EXPECT_THAT(each.members, SizeIs(2));
  }
  EXPECT_THAT(told, ElementsAre(0, 1, 2, 3));
}

TEST(GroupMakerTest, AWorkerThatFoundNobodyForLongTakesWhoLags) {
  for (const int alone_max : {3, 1000}) {
    SlowPair pair(alone_max);
    std::vector<GivenGroup> none;
    pair.maker().Gone({.maker = 1}, pair.second(), none);
    for (int round = 0; round < 4; ++round) {
      const std::vector<GivenGroup> alone = pair.Ask({pair.first()});
      ASSERT_THAT(alone, SizeIs(1));
      EXPECT_THAT(alone[0].members, ElementsAre(pair.first()));
    }
    EXPECT_EQ(pair.maker().counts().alone, 4u);
    EXPECT_THAT(pair.Ask({3}), SizeIs(2));
    EXPECT_THAT(pair.Ask({pair.first()}), SizeIs(alone_max == 3 ? 0 : 1));
  }
}

TEST(GroupMakerTest, WhatAWorkerDoesWrongIsRefusedAndChangesNothing) {
  GroupMaker maker(Smart(), {.workers = 3, .seed = 1});
  std::vector<GivenGroup> given;
  ASSERT_TRUE(maker.Want({.maker = 1}, 0, {}, given).ok());
  std::string before, after;
  maker.AppendState(before);
  EXPECT_THAT(maker.Want({.maker = 1}, 0, {}, given).message(),
              HasSubstr("waits for a group already"));
  EXPECT_THAT(maker.Want({.maker = 1}, 7, {}, given).message(), HasSubstr("does not take part"));
  EXPECT_TRUE(maker.Done({.maker = 1}, 1, {1, 99}, given));
  maker.AppendState(after);
  EXPECT_EQ(before, after);
  given = WantAll(maker, {1, 2});
  ASSERT_THAT(given, SizeIs(3));
  EXPECT_THAT(maker.Want({.maker = 1}, 1, {}, given).message(), HasSubstr("has not said"));
}

TEST(GroupMakerTest, AGroupThatHasBegunOutlivesAMemberAndOneThatHasNotIsSmaller) {
  GroupRules rules = Smart();
  rules.inter_intra = false;
  GroupMaker maker(rules, {.workers = 3, .seed = 1});
  std::vector<GivenGroup> given = WantAll(maker, {0, 1});
  EXPECT_THAT(given, IsEmpty());
  maker.Gone({.maker = 1}, 2, given);
  ASSERT_THAT(given, SizeIs(2));
  EXPECT_THAT(given[0].members, ElementsAre(0, 1));
  std::vector<GivenGroup> more;
  maker.Gone({.maker = 1}, 1, more);
  EXPECT_TRUE(maker.Done({.maker = 1}, 0, given[0].key, more));
  ASSERT_TRUE(maker.Want({.maker = 1}, 0, {}, more).ok());
  ASSERT_THAT(more, SizeIs(1));
  EXPECT_THAT(more[0].members, ElementsAre(0));
}

TEST(GroupMakerTest, OneThatComesCountsAsTheMiddleOne) {
  GroupRules rules = Smart();
  rules.inter_intra = false;
  GroupMaker maker(rules, {.workers = 2, .seed = 1});
  for (int round = 0; round < 20; ++round) {
    std::vector<GivenGroup> none;
    for (const GivenGroup& each : WantAll(maker, {0, 1}))
      maker.Done({.maker = 1}, each.rank, each.key, none);
  }
  maker.Came(2);
  // It does not lag, so the next division has it.
  const std::vector<GivenGroup> given = WantAll(maker, {0, 1, 2});
  ASSERT_THAT(given, SizeIs(3));
  EXPECT_THAT(given[0].members, ElementsAre(0, 1, 2));
}

// What averaging once leaves of the variance of random values.
double VarianceLeft(const GroupRules& rules, int workers, uint64_t draws) {
  Random random(17);
  double before = 0, after = 0;
  for (uint64_t draw = 0; draw < draws; ++draw) {
    GroupMaker maker(rules, {.workers = workers, .seed = random.Next()});
    std::vector<double> x(static_cast<size_t>(workers));
    double mean = 0;
    for (double& each : x) mean += each = random.Unit() + random.Unit() + random.Unit();
    for (double& each : x) before += std::pow(each - mean / workers, 2);
    std::vector<int> order = AllRanks(workers);
    std::swap(order[0], order[random.Below(order.size())]);
    for (const auto& [key, members] : GroupsOf(WantAll(maker, order))) {
      // Only groups of the first request.
      if (key.number >
          static_cast<uint64_t>(std::max(1, rules.division ? workers / rules.group_size : 1)))
        continue;
      double sum = 0;
      for (const int member : members) sum += x[static_cast<size_t>(member)];
      for (const int member : members)
        x[static_cast<size_t>(member)] = sum / static_cast<double>(members.size());
    }
    for (const double each : x) after += std::pow(each - mean / workers, 2);
  }
  return after / before;
}

TEST(GroupMakerTest, AnAverageLeavesTheVarianceThatTheorySays) {
  GroupRules one = Smart();
  one.division = one.inter_intra = false;
  for (const auto& [workers, size] : {std::pair(16, 3), {16, 2}, {7, 3}}) {
    one.group_size = size;
    const double expected = 1 - static_cast<double>(size - 1) / (workers - 1);
    EXPECT_NEAR(VarianceLeft(one, workers, 40'000) / expected, 1, 0.01) << workers << " " << size;
  }
  GroupRules division = Smart();
  division.inter_intra = false;
  for (const auto& [workers, size] : {std::pair(16, 4), {16, 2}}) {
    division.group_size = size;
    const double expected = static_cast<double>(workers - size) / ((workers - 1) * size);
    EXPECT_NEAR(VarianceLeft(division, workers, 20'000) / expected, 1, 0.01)
        << workers << " " << size;
  }
}

TEST(GroupMakerTest, AfterALossOfAllThatKnewStartedGroupsAreKept) {
  GroupRules rules = Smart();
  rules.inter_intra = false;
  GroupMaker maker(rules, {.workers = 6, .seed = 1});
  // Ranks 0 and 1 know of a group that rank 0 has started, with rank 2, which was not told; 3 and 4 of one that
  // nobody has started.
  ASSERT_TRUE(
      maker
          .Rebuild(
              {{.rank = 0,
                .requests = 9,
                .total_samples = 70,
                .key = {1, 8},
                .members = {0, 1, 2},
                .started = true},
               {.rank = 1, .requests = 8, .total_samples = 64, .key = {1, 8}, .members = {0, 1, 2}},
               {.rank = 2, .requests = 7},
               {.rank = 3, .requests = 8, .key = {1, 9}, .members = {3, 4}},
               {.rank = 4, .requests = 8, .key = {1, 9}, .members = {3, 4}},
               {.rank = 5, .requests = 8}})
          .ok());
  EXPECT_EQ(maker.total_samples(), 70u);
  std::vector<GivenGroup> given;
  ASSERT_TRUE(maker.Want({.maker = 2}, 2, {}, given).ok());
  ASSERT_THAT(given, SizeIs(1));
  EXPECT_EQ(given[0].key, (GroupKey{1, 8}));
  EXPECT_THAT(given[0].members, ElementsAre(0, 1, 2));
  given.clear();
  EXPECT_TRUE(maker.Done({.maker = 2}, 3, {1, 9}, given));
  for (const int rank : {3, 4, 5}) ASSERT_TRUE(maker.Want({.maker = 2}, rank, {}, given).ok());
  ASSERT_THAT(given, SizeIs(3));
  EXPECT_THAT(given[0].members, ElementsAre(3, 4, 5));
  // Keys go on, so none is used twice.
  EXPECT_GT(given[0].key.number, 9u);
  EXPECT_THAT(GroupMaker(rules, {.workers = 2})
                  .Rebuild({{.rank = 0, .key = {1, 8}, .members = {0, 1}, .started = true},
                            {.rank = 1, .key = {1, 8}, .members = {1}}})
                  .message(),
              HasSubstr("different members"));
}

TEST(GroupMakerTest, AJobThatGoesOnKeepsItsCounts) {
  GroupWorld world(Smart(), {.workers = 4, .seed = 3}, 3);
  for (int step = 0; step < 100; ++step) ASSERT_TRUE(world.Move());
  std::string state;
  world.maker().AppendState(state);
  GroupMaker next(Smart(), {.workers = 3, .seed = 3});
  ASSERT_TRUE(next.Resume(state, {3, 0, 1}).ok());
  EXPECT_EQ(next.total_samples(), world.maker().total_samples());
  EXPECT_EQ(next.counts(), world.maker().counts());
  EXPECT_THAT(WantAll(next, {0, 1, 2}), SizeIs(3));
  EXPECT_FALSE(GroupMaker(Smart(), {.workers = 3}).Resume(state.substr(1), {0, 1, 2}).ok());
}

TEST(GroupRulesTest, WhatIsWrongIsRefused) {
  const auto why = [](void (*change)(GroupRules&, GroupJob&)) {
    GroupRules rules;
    GroupJob job = {.workers = 4};
    change(rules, job);
    return std::string(Validate(rules, job).message());
  };
  EXPECT_EQ(why([](GroupRules&, GroupJob&) {}), "");
  EXPECT_THAT(why([](GroupRules& r, GroupJob&) { r.group_size = 1; }), HasSubstr("2 or more"));
  EXPECT_THAT(why([](GroupRules& r, GroupJob&) { r.head_group_size = 0; }), HasSubstr("heads"));
  EXPECT_THAT(why([](GroupRules& r, GroupJob&) { r.lag_max = -1; }), HasSubstr("lag"));
  EXPECT_THAT(why([](GroupRules& r, GroupJob&) { r.slowness_max = 0.5; }), HasSubstr("slowness"));
  EXPECT_THAT(why([](GroupRules& r, GroupJob&) { r.alone_max = 0; }), HasSubstr("alone_max"));
  EXPECT_THAT(why([](GroupRules& r, GroupJob&) { r.buffer = false; }), HasSubstr("group buffer"));
  EXPECT_THAT(why([](GroupRules& r, GroupJob&) { r.division = false; }), HasSubstr("two phases"));
  EXPECT_THAT(why([](GroupRules& r, GroupJob&) { r.arrival = true; }), HasSubstr("ask first"));
  EXPECT_THAT(why([](GroupRules&, GroupJob& j) { j.workers = 0; }), HasSubstr("workers"));
  EXPECT_THAT(why([](GroupRules&, GroupJob& j) { j.node = {0}; }), HasSubstr("nodes are given"));
  EXPECT_THAT(why([](GroupRules&, GroupJob& j) {
                j.node = {0, 0, 0, 9};
              }),
              HasSubstr("a node is 9"));
  for (const char* name : {"prague-smart", "prague-random", "arrival"}) {
    const auto rules = GroupRules::ByName(name);
    ASSERT_TRUE(rules.ok());
    EXPECT_TRUE(Validate(*rules, {.workers = 4}).ok()) << Validate(*rules, {.workers = 4});
  }
  EXPECT_FALSE(GroupRules::ByName("prague").ok());
}

}  // namespace
}  // namespace syncopate::services
