#include "plan/collective/algorithm_rules.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::plan {
namespace {

using ::testing::HasSubstr;

AlgorithmRules Rules(absl::string_view text) {
  absl::StatusOr<AlgorithmRules> rules = AlgorithmRules::Parse(text);
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.ok() ? *std::move(rules) : AlgorithmRules();
}

TEST(AlgorithmRulesTest, RangesAreHalfOpen) {
  const AlgorithmRules rules =
      Rules("allreduce:0-64K:recursive-doubling, all-reduce:1M-:ring,broadcast:chain");
  const auto all_reduce = [&](uint64_t bytes) { return rules.For(Collective::kAllReduce, bytes); };
  EXPECT_EQ(all_reduce(0), "recursive-doubling");
  EXPECT_EQ(all_reduce((64 << 10) - 1), "recursive-doubling");
  EXPECT_EQ(all_reduce(64 << 10), "");
  EXPECT_EQ(all_reduce((1 << 20) - 1), "");
  EXPECT_EQ(all_reduce(1 << 20), "ring");
  EXPECT_EQ(all_reduce(UINT64_MAX - 1), "ring");
  EXPECT_EQ(rules.For(Collective::kBroadcast, 7), "chain");
  EXPECT_EQ(rules.For(Collective::kReduce, 7), "");
}

TEST(AlgorithmRulesTest, TheFirstThatFitsWins) {
  const AlgorithmRules rules = Rules("allreduce:4-8:ring,allreduce:direct");
  EXPECT_EQ(rules.For(Collective::kAllReduce, 3), "direct");
  EXPECT_EQ(rules.For(Collective::kAllReduce, 4), "ring");
  EXPECT_EQ(rules.For(Collective::kAllReduce, 8), "direct");
}

TEST(AlgorithmRulesTest, TheTextReadsBack) {
  EXPECT_EQ(Rules("").ToText(), "");
  EXPECT_EQ(Rules(" ").ToText(), "");
  const std::string text = Rules(
                               "allreduce:0-64K:ring,allreduce:0-:ring,barrier:dissemination,"
                               "allgather:1M-:direct")
                               .ToText();
  EXPECT_EQ(text,
            "all-reduce:0-65536:ring,all-reduce:ring,barrier:dissemination,"
            "all-gather:1048576-:direct");
  EXPECT_EQ(Rules(text).ToText(), text);
}

TEST(AlgorithmRulesTest, MistakesAreNamedWithTheRemedy) {
  const std::pair<const char*, const char*> cases[] = {
      {"ring", "rule 1, \"ring\": it has 1 part; write COLLECTIVE:ALGORITHM"},
      {"a:b:c:d", "it has 4 parts"},
      {"sum:ring", "\"sum\""},
      {"allreduce:rng", "\"rng\" is not an algorithm for all-reduce; choose ring, direct"},
      {"broadcast:ring", "\"ring\" is not an algorithm for broadcast; choose binomial"},
      {"allreduce:ring,allreduce:", "rule 2, \"allreduce:\": \"\" is not an algorithm"},
      {"allreduce:ring,", "rule 2, \"\""},
      {"allreduce:64K:ring", "\"64K\" is not a range of bytes; write 0-64K"},
      {"allreduce:-64K:ring", "\"\""},
      {"allreduce:x-64K:ring", "\"x\""},
      {"allreduce:8-8:ring", "\"8-8\" holds no size"},
      {"allreduce:9-8:ring", "\"9-8\" holds no size"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = AlgorithmRules::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
  EXPECT_THAT(std::string(AlgorithmRules::Parse(std::string(5000, ',')).status().message()),
              HasSubstr("at most 4096"));
}

}  // namespace
}  // namespace syncopate::plan
