#include "tools/plan_forest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "nlohmann/json.hpp"
#include "tools/plan_command_testing.h"

namespace syncopate::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Four devices around a switch, one of them with a slow NIC, and ids that XML must not see as they
// are.
Topology UnequalStar() {
  Topology topology = StarTopology(4, 1e9, 1e-5);
  const int slow = Devices(topology)[0];
  for (Topology::Link& link : topology.links) {
    if (link.from == slow || link.to == slow) link.bandwidth = 0.4e9;
  }
  topology.links[0].id = "a<b>&'c\"";
  return topology;
}

PlanArguments Forest(const TemporaryFile& topology, const std::string& bytes = "8M") {
  PlanArguments arguments;
  arguments.topology = topology.path();
  arguments.algorithm = "forest";
  arguments.bytes = bytes;
  return arguments;
}

nlohmann::json JsonOf(PlanArguments arguments) {
  arguments.json = true;
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out, nullptr, false);
}

TEST(PlanForestTest, ExplainShowsCertificateTreesAndLoads) {
  const TemporaryFile file(ToJson(UnequalStar()));
  PlanArguments arguments = Forest(file);
  arguments.explain = true;
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("algorithm   forest"), HasSubstr("\nrate        "),
                                HasSubstr("\nbound       "), HasSubstr("\ngap         0."),
                                HasSubstr("\nchecked     yes"), HasSubstr("at a loss of"),
                                HasSubstr("\ndepth       "), HasSubstr("\nplanning    "),
                                HasSubstr("\nLP (4)      "), HasSubstr("\nLP (8)      ")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("\n   share "), HasSubstr("\nkind "),
                                HasSubstr("####################  100 %")));
}

TEST(PlanForestTest, JsonHasThePlanAndItsProof) {
  const Topology topology = UnequalStar();
  const TemporaryFile file(ToJson(topology));
  const nlohmann::json json = JsonOf(Forest(file));
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["algorithm"], "forest");
  const double rate = json["rate"], bound = json["bound"], gap = json["gap"];
  EXPECT_GT(rate, 0);
  EXPECT_LE(rate, bound * (1 + 1e-9));
  EXPECT_NEAR(gap, 1 - rate / bound, 1e-9);
  EXPECT_LE(gap, 0.02);
  EXPECT_EQ(json["checked"], true);
  // Every byte has to leave the slow worker.
  EXPECT_NEAR(bound, 0.4e9, 0.01e9);
  EXPECT_EQ(json["trees"], json["pairs"].size());
  EXPECT_GT(json["depth"], 0);
  EXPECT_GE(json["plan_seconds"], 0);
  ASSERT_EQ(json["stage_seconds"].size(), 2u);
  EXPECT_NEAR(json["stage_seconds"][0].get<double>() * rate, 8 << 20, 1);
  EXPECT_EQ(json["stage_seconds"][1], 0);
  EXPECT_GE(json["predicted_seconds"].get<double>(), json["stage_seconds"][0].get<double>());
  EXPECT_GT(json["chunk_bytes"], 0);
  EXPECT_FALSE(json.contains("lp4_seconds"));

  double most = 0;
  for (const nlohmann::json& load : json["loads"]) {
    EXPECT_TRUE(load["kind"] == "link" || load["kind"] == "capacity");
    EXPECT_NEAR(load["bytes"].get<double>() / (8 << 20) / load["rate"].get<double>() * rate,
                load["utilisation"].get<double>(), 1e-6);
    most = std::max(most, load["utilisation"].get<double>());
  }
  EXPECT_NEAR(most, 1, 1e-6);

  std::map<std::string, double> rates;
  for (const Topology::Link& link : topology.links) rates["link " + link.id] = link.bandwidth;
  for (const Topology::Capacity& each : topology.capacities) {
    rates["capacity " + each.id] = each.bandwidth;
  }
  double second = 0;
  for (const nlohmann::json& price : json["certificate"]["prices"]) {
    const std::string name =
        price["kind"].get<std::string>() + " " + price["id"].get<std::string>();
    ASSERT_TRUE(rates.contains(name)) << name;
    second += price["price"].get<double>() * rates[name];
  }
  EXPECT_NEAR(second, 1, 1e-6);

  double shares = 0;
  for (const nlohmann::json& pair : json["pairs"]) {
    shares += pair["share"].get<double>();
    ASSERT_EQ(pair["reduce_parents"].size(), 4u);
    ASSERT_EQ(pair["broadcast_parents"].size(), 4u);
    EXPECT_EQ(pair["reduce_parents"][pair["root"].get<size_t>()], pair["root"]);
  }
  EXPECT_NEAR(shares, 1, 1e-6);
}

TEST(PlanForestTest, OptionsReachThePlanner) {
  const TemporaryFile file(ToJson(MeshTopology(6, 1e9, 1e-5)));
  PlanArguments arguments = Forest(file);
  EXPECT_GT(JsonOf(arguments)["trees"], 1);
  arguments.forest.trees = 1;
  EXPECT_EQ(JsonOf(arguments)["trees"], 1);
  arguments.forest.trees = 0;
  arguments.forest.depth = 1;
  EXPECT_EQ(JsonOf(arguments)["depth"], 1);
}

TEST(PlanForestTest, RelaysCanBeRefused) {
  // Slow links among the active workers, quick ones to the fourth.
  Topology topology = MeshTopology(4, 1e9, 1e-5);
  for (Topology::Link& link : topology.links) {
    if (link.from != 3 && link.to != 3) link.bandwidth = 0.1e9;
  }
  const TemporaryFile file(ToJson(topology));
  PlanArguments arguments = Forest(file);
  arguments.active = "0-2";
  const nlohmann::json with = JsonOf(arguments);
  arguments.forest.no_relays = true;
  const nlohmann::json without = JsonOf(arguments);
  EXPECT_GT(with["rate"].get<double>(), 3 * without["rate"].get<double>());
  EXPECT_EQ(with["checked"], true);
  EXPECT_EQ(without["checked"], true);
  for (const nlohmann::json& pair : without["pairs"]) EXPECT_EQ(pair["reduce_parents"][3], -1);
}

TEST(PlanForestTest, PublishedProgramsAreNoBetter) {
  const TemporaryFile file(ToJson(UnequalStar()));
  PlanArguments arguments = Forest(file);
  arguments.explain = true;
  const nlohmann::json one = JsonOf(arguments);
  for (const auto& [stages, key] :
       {std::pair("separate", "lp4_seconds"), {"paper", "lp8_seconds"}}) {
    arguments.forest.stages = stages;
    const nlohmann::json staged = JsonOf(arguments);
    EXPECT_EQ(staged["stages"], stages);
    EXPECT_EQ(staged["checked"], false);
    EXPECT_LE(staged["rate"].get<double>(), one["bound"].get<double>() * (1 + 1e-6)) << stages;
    EXPECT_NEAR((8 << 20) / staged["rate"].get<double>(), one[key].get<double>(),
                1e-3 * one[key].get<double>());
    EXPECT_GT(staged["stage_seconds"][1], 0);
  }
  EXPECT_THAT(RunIt(arguments).out, HasSubstr("checked     no: --stages paper is for comparison"));
}

TEST(PlanForestTest, OneWorkerNeedsNoNetwork) {
  const TemporaryFile file(ToJson(UnequalStar()));
  PlanArguments arguments = Forest(file);
  arguments.active = "2";
  EXPECT_TRUE(JsonOf(arguments)["rate"].is_null());
  arguments.explain = true;
  const Result result = RunIt(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("nothing crosses the network"));
}

// Then the certificate is still worth having.
TEST(PlanForestTest, ProgramTooLargeToBePlayed) {
  const TemporaryFile file(ToJson(MeshTopology(6, 1e9, 1e-5)));
  PlanArguments arguments = Forest(file);
  arguments.steps_max = 10;
  const nlohmann::json json = JsonOf(arguments);
  EXPECT_GT(json["rate"], 0);
  EXPECT_TRUE(json["predicted_seconds"].is_null());
  EXPECT_THAT(json["candidates"][0]["skipped"].get<std::string>(), HasSubstr("more than the 10"));
  EXPECT_THAT(RunIt(arguments).out, HasSubstr("program     none: its program has "));
  arguments.export_form = "text";
  const Result exported = RunIt(arguments);
  EXPECT_EQ(exported.exit_code, 1);
  EXPECT_THAT(exported.err, HasSubstr("there is no program: its program has"));
}

TEST(PlanForestTest, ExportsEqualChunksToMsccl) {
  const TemporaryFile file(ToJson(MeshTopology(5, 1e9, 1e-5)));
  const TemporaryFile xml("", ".xml");
  PlanArguments arguments = Forest(file);
  arguments.export_form = "msccl";
  arguments.output = xml.path();
  const nlohmann::json json = JsonOf(arguments);
  EXPECT_THAT(*ReadFile(xml.path(), 1 << 24), StartsWith("<algo name=\"forest\""));
  EXPECT_GT(json["equal_chunks"], 1);
  EXPECT_LE(json["equal_chunks_loss"], 0.1);

  arguments.active = "0-3";
  const Result refused = RunIt(arguments);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("some workers are inactive"),
                                 HasSubstr("--export text can express every program")));
}

TEST(PlanForestTest, DrawsNetworkAndTrees) {
  const TemporaryFile file(ToJson(UnequalStar()));
  const TemporaryFile picture("", ".svg");
  PlanArguments arguments = Forest(file);
  arguments.svg = picture.path();
  ASSERT_EQ(RunIt(arguments).exit_code, 0);
  const std::string svg = *ReadFile(picture.path(), 1 << 24);
  EXPECT_THAT(svg,
              AllOf(StartsWith("<svg xmlns='http://www.w3.org/2000/svg'"), HasSubstr("Trees ("),
                    HasSubstr("a&lt;b&gt;&amp;&apos;c&quot; 100 %"), Not(HasSubstr("a<b"))));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  ASSERT_EQ(RunIt(arguments).exit_code, 0);
  EXPECT_EQ(*ReadFile(picture.path(), 1 << 24), svg);

  arguments.algorithm = "ring";
  ASSERT_EQ(RunIt(arguments).exit_code, 0);
  EXPECT_THAT(*ReadFile(picture.path(), 1 << 24),
              AllOf(HasSubstr(">ring: all-reduce of 8 MiB"), HasSubstr("Busiest parts"),
                    Not(HasSubstr("Trees ("))));
}

TEST(PlanForestTest, DrawsEveryKindOfNetwork) {
  const TemporaryFile picture("", ".svg");
  std::vector<Topology> topologies = {StarTopology(1, 1e9, 1e-5), StarTopology(40, 1e9, 1e-5)};
  for (int seed = 0; seed < 12; ++seed) topologies.push_back(RandomTopology(2 + seed, seed));
  for (const Topology& topology : topologies) {
    const TemporaryFile file(ToJson(topology));
    PlanArguments arguments = Forest(file, "1M");
    arguments.svg = picture.path();
    const Result result = RunIt(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string svg = *ReadFile(picture.path(), 1 << 26);
    for (const char* wrong : {"nan", "inf"}) EXPECT_EQ(svg.find(wrong), std::string::npos);
    // A line for each link, a circle for each device, whatever else.
    const auto count = [&](const std::string& text) {
      size_t found = 0;
      for (size_t at = svg.find(text); at != svg.npos; at = svg.find(text, at + 1)) ++found;
      return found;
    };
    EXPECT_GE(count("<line "), topology.links.size());
    EXPECT_EQ(count("<title>device "), Devices(topology).size());
    EXPECT_GE(count(" of the bytes, root "), 1u);
  }
}

// A plan whose proof does not hold is never shown.
TEST(PlanForestTest, CertificateIsChecked) {
  const Topology topology = UnequalStar();
  const std::vector<int> placement = *PlaceInOrder(topology, 4);
  ForestReport report;
  report.plan = *plan::PlanForest(topology, placement, {0, 1, 2, 3}, report.options);
  EXPECT_TRUE(CheckForest(topology, placement, report).ok());
  EXPECT_TRUE(report.checked);
  report.checked = false;
  report.plan.certificate.bound *= 1.01;
  const absl::Status status = CheckForest(topology, placement, report);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), StartsWith("the plan's certificate does not hold: "));
  EXPECT_FALSE(report.checked);
}

TEST(PlanForestTest, LossInBothForms) {
  ForestArguments arguments;
  EXPECT_DOUBLE_EQ(ParseForestOptions(arguments)->loss, 0.01);
  arguments.loss = "2.5%";
  EXPECT_DOUBLE_EQ(ParseForestOptions(arguments)->loss, 0.025);
  arguments.loss = "0.025";
  EXPECT_DOUBLE_EQ(ParseForestOptions(arguments)->loss, 0.025);
  arguments.loss = "0";
  EXPECT_DOUBLE_EQ(ParseForestOptions(arguments)->loss, 0);
  for (const char* bad : {"-1%", "51%", "0.6", "%", "1%%", "inf"}) {
    arguments.loss = bad;
    EXPECT_FALSE(ParseForestOptions(arguments).ok()) << bad;
  }
}

TEST(TreeTextTest, RootThenWhatHangsOnIt) {
  EXPECT_EQ(TreeText({0, {0}}), "0");
  EXPECT_EQ(TreeText({1, {1, 1, 1, -1, 1}}), "1(0,2,4)");
  EXPECT_EQ(TreeText({4, {4, -1, 4, 2, 4, 4, 4, 4}}), "4(0,5-7 2(3))");
  EXPECT_EQ(TreeText({0, {0, 0, 1, 2}}), "0(1(2(3)))");
}

}  // namespace
}  // namespace syncopate::tools
