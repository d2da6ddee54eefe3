#include "cost/communication_costs.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::cost {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CommunicationCostsTest, GammaGrowsWithTransfersBeyondTheMeasuredOnes) {
  const CommunicationCosts costs{1e-3, 1e-9, {1, 1.5}, ""};
  EXPECT_EQ(costs.Gamma(1), 1);
  EXPECT_EQ(costs.Gamma(2), 1.5);
  EXPECT_DOUBLE_EQ(costs.Gamma(4), 3);
  EXPECT_DOUBLE_EQ((CommunicationCosts{0, 1, {1}, ""}.Gamma(3)), 3);
  EXPECT_DOUBLE_EQ(costs.Seconds(1000), 1e-3 + 1e-6);
}

TEST(CommunicationCostsTest, JsonRoundTrips) {
  const CommunicationCosts costs{0.0014, 1.7e-9, {1, 1.5, 2.1}, "published"};
  const absl::StatusOr<CommunicationCosts> back = ParseCommunicationCosts(ToJson(costs));
  ASSERT_EQ(std::string(back.status().message()), "");
  EXPECT_EQ(*back, costs);
  CommunicationCosts other = costs;
  other.source = "measured";
  EXPECT_EQ(DigestOf(other), DigestOf(costs));
  other.gamma[2] = 2.2;
  EXPECT_FALSE(DigestOf(other) == DigestOf(costs));
}

TEST(CommunicationCostsTest, ReadsUnitsAndDoesWithoutGamma) {
  const absl::StatusOr<CommunicationCosts> costs =
      ParseCommunicationCosts(R"({"a": "1.4ms", "b": "1.7ns"})");
  ASSERT_EQ(std::string(costs.status().message()), "");
  EXPECT_DOUBLE_EQ(costs->a, 1.4e-3);
  EXPECT_DOUBLE_EQ(costs->b, 1.7e-9);
  EXPECT_THAT(costs->gamma, ElementsAre(1));
}

TEST(CommunicationCostsTest, RefusesWhatIsWrongWithItsPlace) {
  const auto fault = [](absl::string_view json) {
    return std::string(ParseCommunicationCosts(json).status().message());
  };
  EXPECT_THAT(fault(R"({"a": -1, "b": 0})"), HasSubstr("a: -1 is not a number of seconds"));
  EXPECT_THAT(fault(R"({"a": 0, "b": "fast"})"), HasSubstr("b: \"fast\" is not a time"));
  EXPECT_THAT(fault(R"({"a": 0, "b": 0, "gamma": [2]})"), HasSubstr("gamma[0]: 2"));
  EXPECT_THAT(fault(R"({"a": 0, "b": 0, "gamma": [1, 1.5, 1.4]})"), HasSubstr("gamma[2]: 1.4"));
  EXPECT_THAT(fault(R"({"a": 0, "b": 0, "gamma": []})"), HasSubstr("gamma: 0 entries"));
  EXPECT_THAT(fault(R"({"a": 0})"), HasSubstr("\"b\" is missing"));
}

TEST(CommunicationCostsTest, NoiseInGammaIsRaisedToWhatComesBefore) {
  EXPECT_THAT(WithRisingGamma({0, 0, {0.9, 0.8, 1.3, 1.2}, ""}).gamma, ElementsAre(1, 1, 1.3, 1.3));
  EXPECT_THAT(WithRisingGamma({0, 0, {}, ""}).gamma, ElementsAre(1));
}

}  // namespace
}  // namespace syncopate::cost
