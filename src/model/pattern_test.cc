#include "model/pattern.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::HasSubstr;

Pattern SamplePattern() {
  return {"ds-sync",
          8,
          {{{0, 4}, {1, 2, 3}, {5, 6, 7}},
           {{0, 2, 3}, {1, 5}, {4, 6, 7}},
           {{0}, {1, 2, 3, 4, 5, 6, 7}}}};
}

Pattern RandomPattern(uint64_t seed) {
  Random random(seed);
  Pattern pattern{"random", static_cast<int>(random.Between(1, 40)), {}};
  pattern.rounds.resize(random.Below(6) + 1);
  for (Pattern::Round& round : pattern.rounds) {
    round.resize(random.Below(static_cast<uint64_t>(pattern.workers)) + 1);
    for (int rank = 0; rank < pattern.workers; ++rank) {
      round[random.Below(round.size())].push_back(rank);
    }
    Sort(round);
  }
  return pattern;
}

TEST(PatternTest, TextRoundTrips) {
  EXPECT_EQ(ToText(SamplePattern()),
            "syncopate pattern 1\nplanner ds-sync\nworkers 8\nround 0,4 1-3 5-7\n"
            "round 0,2-3 1,5 4,6-7\nround 0 1-7\nend\n");
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Pattern pattern = RandomPattern(seed);
    ASSERT_EQ(std::string(Validate(pattern).message()), "") << "seed " << seed;
    const absl::StatusOr<Pattern> back = ParsePattern(ToText(pattern));
    ASSERT_EQ(std::string(back.status().message()), "") << "seed " << seed;
    ASSERT_EQ(*back, pattern) << "seed " << seed;
  }
}

TEST(PatternTest, ATextMayBeInAnyOrder) {
  const absl::StatusOr<Pattern> pattern = ParsePattern(
      "syncopate pattern 1\nplanner ds-sync # ours\n\nworkers 8\nround 7,5,6 4,0 3,1-2\n"
      "round 1,5  0,2-3\t4,6,7\nround 7-7,1-6 0\r\nend\n");
  ASSERT_EQ(std::string(pattern.status().message()), "");
  EXPECT_EQ(*pattern, SamplePattern());
}

TEST(PatternTest, TheDigestIsOfTheGroupsAndNotOfWhoPlannedThem) {
  Pattern other = SamplePattern();
  other.planner = "another";
  EXPECT_EQ(DigestOf(other), DigestOf(SamplePattern()));
  std::swap(other.rounds[0], other.rounds[1]);
  EXPECT_FALSE(DigestOf(other) == DigestOf(SamplePattern()));
}

TEST(PatternTest, IterationsGoRoundThePeriod) {
  const Pattern pattern = SamplePattern();
  EXPECT_EQ(pattern.period(), 3);
  EXPECT_EQ(&pattern.RoundOf(0), &pattern.rounds[0]);
  EXPECT_EQ(&pattern.RoundOf(3'000'000'000'001), &pattern.rounds[1]);
}

TEST(PatternTest, RefusesWhatIsNoPartition) {
  const auto fault = [](const Pattern::Round& round) {
    return std::string(Validate(Pattern{"p", 4, {{{0, 1}, {2, 3}}, round}}).message());
  };
  EXPECT_EQ(fault({{0}, {1}, {2}, {3}}), "");
  EXPECT_EQ(fault({{0, 1}, {2}}), "rounds[1]: worker 3 is in no group");
  EXPECT_EQ(fault({{0, 1}, {1, 2, 3}}), "rounds[1]: worker 1 is in two groups");
  EXPECT_EQ(fault({{0, 1, 1}, {2, 3}}), "rounds[1]: worker 1 is in its group twice");
  EXPECT_EQ(fault({{0, 1}, {}, {2, 3}}), "rounds[1]: group 1 has no members");
  EXPECT_THAT(fault({{0, 1}, {2, 3, 4}}), HasSubstr("worker 4 is not one of the 4 (0-3)"));
  EXPECT_THAT(fault({{-1, 0, 1}, {2, 3}}), HasSubstr("worker -1 is not one"));
  EXPECT_THAT(fault({{1, 0}, {2, 3}}), HasSubstr("group 0 is not sorted: 0 after 1"));
  EXPECT_THAT(fault({{2, 3}, {0, 1}}), HasSubstr("groups are sorted by their first ranks"));
  EXPECT_THAT(fault({}), HasSubstr("worker 0 is in no group"));
}

TEST(PatternTest, RefusesSizesOutsideOfTheLimits) {
  const auto fault = [](const Pattern& pattern) {
    return std::string(Validate(pattern).message());
  };
  EXPECT_THAT(fault({"p", 0, {{}}}), HasSubstr("workers: 0 is not a number from 1"));
  EXPECT_THAT(fault({"p", limits::kWorkersMax + 1, {{}}}), HasSubstr("workers: "));
  EXPECT_THAT(fault({"p", 1, {}}), HasSubstr("rounds: there are 0"));
  EXPECT_THAT(fault({"p", 1, std::vector<Pattern::Round>(limits::kPatternRoundsMax + 1, {{0}})}),
              HasSubstr("rounds: there are 4097"));
  EXPECT_THAT(fault({"", 1, {{{0}}}}), HasSubstr("planner"));
  EXPECT_THAT(fault({"a b", 1, {{{0}}}}), HasSubstr("planner"));
}

TEST(PatternTest, NamesTheLineAtFault) {
  const auto fault = [](absl::string_view body) {
    return std::string(
        ParsePattern(absl::StrCat("syncopate pattern 1\nplanner p\n", body)).status().message());
  };
  EXPECT_EQ(fault("workers 4\nround 0-3\nend\n"), "");
  EXPECT_THAT(fault("round 0-3\nend\n"), HasSubstr("line 3: \"workers N\" comes before"));
  EXPECT_THAT(fault("workers 4\nround 0-2\nend\n"), HasSubstr("line 4: worker 3 is in no group"));
  EXPECT_THAT(fault("workers 4\nround 0-2,1 3\nend\n"), HasSubstr("line 4: a worker is in two"));
  EXPECT_THAT(fault("workers 4\nround 0,0,2 1\nend\n"), HasSubstr("is in its group twice"));
  EXPECT_THAT(fault("workers 4\nround 0,1 1,2\nend\n"), HasSubstr("is in two groups"));
  EXPECT_THAT(fault("workers 4\nround 0-4\nend\n"), HasSubstr("line 4: \"4\""));
  EXPECT_THAT(fault("workers 4\nround 2-0 1 3\nend\n"), HasSubstr("line 4: \"0\""));
  EXPECT_THAT(fault("workers 4\nround 0-3,\nend\n"), HasSubstr("line 4: \"\""));
  EXPECT_THAT(fault("workers 4\nworkers 4\nend\n"), HasSubstr("line 4: the number of workers"));
  EXPECT_THAT(fault("workers 4 5\n"), HasSubstr("line 3: write \"workers N\""));
  EXPECT_THAT(fault("workers 1000000000\n"), HasSubstr("line 3: \"1000000000\""));
  EXPECT_THAT(fault("workers 4\nend\n"), HasSubstr("rounds: there are 0"));
  EXPECT_THAT(fault("end\n"), HasSubstr("workers: 0"));
  EXPECT_THAT(fault("workers 4\nround 0-3\n"), HasSubstr("line 4: the text stops before"));
  EXPECT_THAT(fault("workers 4\nround 0-3\nend\nround 0-3\n"), HasSubstr("nothing may follow"));
  EXPECT_THAT(fault("\nrounds 0-3\n"), HasSubstr("line 4: unknown line"));
  EXPECT_THAT(fault("planner q\n"), HasSubstr("line 3: there are two planners"));
  EXPECT_THAT(std::string(ParsePattern("").status().message()), HasSubstr("stops before"));
  EXPECT_THAT(std::string(ParsePattern("hello\n").status().message()),
              HasSubstr("line 1: a pattern starts with"));
}

TEST(PatternTest, ATextHasALimit) {
  const std::string large(limits::kPatternTextBytesMax + 1, '\n');
  EXPECT_THAT(std::string(ParsePattern(large).status().message()), HasSubstr("128 MiB"));
}

}  // namespace
}  // namespace syncopate
