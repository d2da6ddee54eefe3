#include <string>
#include <vector>

#include "base/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/pattern.h"
#include "model/topology_makers.h"
#include "nlohmann/json.hpp"
#include "tools/plan_command_testing.h"

namespace syncopate::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// S / B is 40 ms here.
constexpr double kNic = 25e6;

// Two racks of four, `uplink` times the rate of a NIC between them.
class GroupsOfTwoRacks : public ::testing::Test {
 protected:
  PlanArguments Arguments() const {
    PlanArguments arguments;
    arguments.topology = file_.path();
    arguments.algorithm = "ds-sync";
    arguments.bytes = "1000000";
    return arguments;
  }

 private:
  const TemporaryFile file_{ToJson(TwoRackTopology(4, kNic, kNic, 1e-6)), "_groups"};
};

TEST_F(GroupsOfTwoRacks, SummaryHasRoundsMixingAndWhatAnAllReduceTakes) {
  const Result result = RunIt(Arguments());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("racks       rack0 (4), rack1 (4)\n"),
                    HasSubstr("period      4 rounds\n"), HasSubstr("0,4 | 1-3 | 5-7\n"),
                    HasSubstr("sigma2 0.2963 a period, lambda 0.6667 a round, V 0.418\n"),
                    HasSubstr("all-reduce  ring"), HasSubstr("forest"),
                    HasSubstr("times as long as a round\n")));
  EXPECT_THAT(result.out, Not(HasSubstr("why:")));
}

TEST_F(GroupsOfTwoRacks, JsonHasAll) {
  PlanArguments arguments = Arguments();
  arguments.json = true;
  const nlohmann::json json = nlohmann::json::parse(RunIt(arguments).out);
  EXPECT_EQ(json["period"], 4);
  ASSERT_EQ(json["rounds"].size(), 4u);
  EXPECT_EQ(json["rounds"][0], nlohmann::json({{0, 4}, {1, 2, 3}, {5, 6, 7}}));
  EXPECT_NEAR(json["lambda"], 2. / 3, 1e-3);
  EXPECT_NEAR(json["sigma2"], 0.2963, 1e-4);
  EXPECT_NEAR(json["variance"], 0.418, 1e-3);
  ASSERT_EQ(json["round_seconds"].size(), 4u);
  EXPECT_NEAR(json["round_seconds"][0], 4. / 3 * 0.04, 0.003);
  EXPECT_NEAR(json["uplink_bytes"]["rack0"][0], 1e6, 16);
  EXPECT_EQ(json["has_racks"], true);
  // What the published model has: 1.75 / 1.33.
  EXPECT_NEAR(
      json["all_reduce"][0]["seconds"].get<double>() / json["mean_round_seconds"].get<double>(),
      1.31, 0.03);
}

TEST_F(GroupsOfTwoRacks, ASlowHostIsKeptApart) {
  PlanArguments arguments = Arguments();
  arguments.groups.slow = {"device3"};
  arguments.explain = true;
  const Result result = RunIt(arguments);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("slow        device3 at 0.5\n"), HasSubstr("device3 in pairs"),
                    HasSubstr("period      12 rounds\n"), HasSubstr("0,4 | 1,3 | 2 | 5-7"),
                    HasSubstr("  not taken: "), HasSubstr("why: keeping it apart"),
                    HasSubstr("bytes on each uplink"), HasSubstr("collectives of the groups")));
  arguments.groups.slow = {"3=0.5"};
  EXPECT_EQ(RunIt(arguments).out, result.out);
}

// Halved links between racks: every all-reduce that knows racks is as quick.
TEST_F(GroupsOfTwoRacks, SaysWhenItIsNotWorthIt) {
  PlanArguments arguments = Arguments();
  arguments.groups.slow = {"rack0=0.5"};
  const Result result = RunIt(arguments);
  EXPECT_THAT(result.out, HasSubstr("leaves no differences: prefer it"));
  // The way between two racks is one, whichever of them is said to be slow.
  arguments.json = true;
  const nlohmann::json one = nlohmann::json::parse(RunIt(arguments).out);
  arguments.groups.slow = {"rack0=0.5", "rack1"};
  const nlohmann::json both = nlohmann::json::parse(RunIt(arguments).out);
  EXPECT_EQ(one["round_seconds"], both["round_seconds"]);
  EXPECT_GT(one["candidates"][0]["played_seconds"], 0);
}

TEST_F(GroupsOfTwoRacks, OptimizeIsNeverWorse) {
  PlanArguments arguments = Arguments();
  arguments.json = true;
  const nlohmann::json rules = nlohmann::json::parse(RunIt(arguments).out);
  arguments.groups.optimize = true;
  const nlohmann::json found = nlohmann::json::parse(RunIt(arguments).out);
  EXPECT_GT(found["candidates"].size(), rules["candidates"].size());
  EXPECT_LE(found["variance"].get<double>(), rules["variance"].get<double>() * (1 + 1e-6));
  EXPECT_LE(found["mean_round_seconds"].get<double>(),
            rules["mean_round_seconds"].get<double>() * (1 + 1e-9));
}

TEST_F(GroupsOfTwoRacks, ExportsThePatternAndDrawsIt) {
  PlanArguments arguments = Arguments();
  const TemporaryFile svg("", "_groups.svg");
  arguments.svg = svg.path();
  arguments.export_form = "text";
  const absl::StatusOr<Pattern> pattern = ParsePattern(RunIt(arguments).out);
  ASSERT_EQ(std::string(pattern.status().message()), "");
  EXPECT_EQ(pattern->period(), 4);
  arguments.export_form = "";
  EXPECT_EQ(RunIt(arguments).exit_code, 0);
  EXPECT_THAT(*ReadFile(svg.path(), 1 << 20),
              AllOf(HasSubstr("<svg"), HasSubstr("round 3: 3,7"), HasSubstr("device7")));
}

TEST_F(GroupsOfTwoRacks, Gossip) {
  PlanArguments arguments = Arguments();
  arguments.algorithm = "gossip";
  EXPECT_THAT(RunIt(arguments).out, AllOf(HasSubstr("V 0.571"), HasSubstr("period      3 rounds")));
  arguments.workers = 6;
  EXPECT_THAT(RunIt(arguments).err, HasSubstr("needs a power of two"));
}

TEST(PlanGroupsTest, ANetworkWithoutRacksIsSaidToBeOne) {
  const TemporaryFile file(ToJson(StarTopology(4, kNic, 1e-6)), "_star");
  PlanArguments arguments;
  arguments.topology = file.path();
  arguments.algorithm = "ds-sync";
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("this is a network without racks"),
                                HasSubstr("period      1 round\n")));
}

TEST(PlanGroupsTest, ManyWorkersGoByFormula) {
  const int fanout[] = {12, 6};
  const double rates[] = {kNic, kNic};
  const TemporaryFile file(ToJson(SwitchTreeTopology(fanout, rates, 1e-6, 0, 1)), "_tree");
  PlanArguments arguments;
  arguments.topology = file.path();
  arguments.algorithm = "ds-sync";
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("by formula, since there are many workers"),
                                HasSubstr("forest not played for more than 64")));
}

TEST_F(GroupsOfTwoRacks, RefusesWhatItCannotDo) {
  const auto error = [](const PlanArguments& arguments) {
    const Result result = RunIt(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  PlanArguments arguments = Arguments();
  arguments.topology.clear();
  EXPECT_THAT(error(arguments),
              AllOf(HasSubstr("syncopate probe -H node1,node2 --topology-out net.json"),
                    HasSubstr("--topology net.json")));
  arguments = Arguments();
  arguments.groups.slow = {"rack7"};
  EXPECT_THAT(error(arguments), HasSubstr("--slow: \"rack7\" is no rack, host or rank here; there "
                                          "are rack0, device0"));
  arguments.groups.slow = {"rack0=2"};
  EXPECT_THAT(error(arguments), HasSubstr("--slow: \"2\""));
  arguments = Arguments();
  arguments.active = "0-3";
  EXPECT_THAT(error(arguments), HasSubstr("leave out --collective, --active"));
  arguments = Arguments();
  arguments.export_form = "msccl";
  EXPECT_THAT(error(arguments), HasSubstr("not a form of a pattern; choose text"));
  arguments = Arguments();
  arguments.workers = 20;
  EXPECT_THAT(error(arguments), HasSubstr("device"));
  arguments = Arguments();
  arguments.algorithm = "ring";
  arguments.groups.optimize = true;
  EXPECT_THAT(error(arguments), HasSubstr("use them with --strategy ds-sync"));
}

}  // namespace
}  // namespace syncopate::tools
