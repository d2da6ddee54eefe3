#include "tools/bench/protocol.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::tools::bench {
namespace {

using ::testing::ElementsAre;

TEST(BenchProtocolTest, HelloRoundTripsAndRefusesTheImpossible) {
  const auto hello = ParseHello(Format(Hello{3, 4, 1234}));
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(hello->rank, 3);
  EXPECT_EQ(hello->size, 4);
  EXPECT_EQ(hello->pid, 1234);
  for (const char* bad : {"", "hello", "hello 4 4 1234", "hello -1 4 1234", "hello 0 100000 1234",
                          "hello 0 4 0", "hello 0 4 12 34", "goodbye 3 4 1234"}) {
    EXPECT_FALSE(ParseHello(bad).ok()) << bad;
  }
}

TEST(BenchProtocolTest, RequestsRoundTripAndRefuseTheImpossible) {
  const RunRequest request = {.collective = Collective::kReduceScatter,
                              .bytes = 4096,
                              .type = DataType::kFloat64,
                              .op = ReduceOp::kMax,
                              .warmup = 2,
                              .iterations = 10,
                              .check = 1,
                              .active = {0, 1, 2, 5}};
  const auto parsed = ParseRunRequest(Format(request));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Format(*parsed), Format(request));
  EXPECT_EQ(parsed->collective, Collective::kReduceScatter);
  EXPECT_THAT(parsed->active, ElementsAre(0, 1, 2, 5));
  EXPECT_FALSE(parsed->IsActive(3));
  EXPECT_TRUE(ParseRunRequest("run all-reduce 4096 float32 sum 0 1 0 all")->IsActive(3));
  for (const char* bad :
       {"run", "run all-reduce 4096 float32 sum 0 1 0", "run all-reduce 4097 float32 sum 0 1 0 all",
        "run all-reduce 4096 float32 sum 0 0 0 all", "run all-reduce 4096 float32 sum 0 1 0 some",
        "run all-reduce 4096 float32 sum 0 99999999 0 all", "run jump 4096 float32 sum 0 1 0 all",
        "run all-reduce 4096 float33 sum 0 1 0 all",
        "run all-reduce 9999999G float32 sum 0 1 0 all"}) {
    EXPECT_FALSE(ParseRunRequest(bad).ok()) << bad;
  }
}

TEST(BenchProtocolTest, ResultsRoundTrip) {
  const auto reply = ParseReply(Format(RankResult{7, {10, 20, 30}}));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->wrong, 7u);
  EXPECT_THAT(reply->samples_ns, ElementsAre(10, 20, 30));
  EXPECT_TRUE(ParseReply(Format(RankResult{}))->samples_ns.empty());
}

TEST(BenchProtocolTest, ErrorsKeepTheirKindAndStayOnOneLine) {
  const auto unsupported = ParseReply(FormatError(absl::UnimplementedError("no float16"))).status();
  EXPECT_TRUE(absl::IsUnimplemented(unsupported));
  EXPECT_EQ(unsupported.message(), "no float16");
  const auto refused = ParseReply(FormatError(absl::InvalidArgumentError("not with ucx"))).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_EQ(refused.message(), "not with ucx");
  EXPECT_TRUE(EndsAll(FormatError(refused)));
  EXPECT_FALSE(EndsAll(FormatError(unsupported)));
  const auto error = ParseReply(FormatError(absl::DataLossError("a\nb"))).status();
  EXPECT_TRUE(absl::IsInternal(error));
  EXPECT_EQ(error.message(), "a b");
}

TEST(BenchProtocolTest, MalformedRepliesAreErrors) {
  for (const char* bad : {"", "result", "result 0", "result 0 2 5", "result 0 1 5 6",
                          "result x 1 5", "result 0 1 -5", "result 0 99999999999 5"}) {
    EXPECT_TRUE(absl::IsInternal(ParseReply(bad).status())) << bad;
  }
}

}  // namespace
}  // namespace syncopate::tools::bench
