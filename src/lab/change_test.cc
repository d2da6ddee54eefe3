// Changes: how they are written, and what a lab is like with several of them.
#include "lab/change.h"

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/lab_testing.h"
#include "lab/plan.h"
#include "lab/scenario.h"
#include "lab/state.h"
#include "lab/wiring.h"

namespace syncopate::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

Spec TwoRacks() { return ParseLab(TwoRacksToml("two", 2, "200mbit", "100mbit"), "x").value(); }

absl::StatusOr<Change> Parse(const std::string& text) {
  return ParseChange(TwoRacks(), absl::StrSplit(text, ' ', absl::SkipEmpty()));
}

TEST(ChangeTest, WordsReadBack) {
  const Spec spec = TwoRacks();
  for (const char* text : {"link rack1 rack0 rate 50mbit", "link rack0 rack1 rate none --one-way",
                           "cut h0", "cut h0 rack0 --one-way in", "cut h0 h3 --one-way out",
                           "flow add h0 h3 --rate 10mbit --seconds 5",
                           "flow add h0 h3 --udp --rate 10mbit --seconds 5", "slow h1 2.5x",
                           "slow h1 5x --cores 0.5"}) {
    const absl::StatusOr<Change> change = Parse(text);
    ASSERT_TRUE(change.ok()) << change.status();
    EXPECT_EQ(ToWords(spec, *change), text);
  }
}

TEST(ChangeTest, FaultsSayWhatToWrite) {
  const auto error = [](const char* text) {
    const absl::StatusOr<Change> change = Parse(text);
    EXPECT_TRUE(absl::IsInvalidArgument(change.status())) << text;
    return std::string(change.status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("possible are link A B"));
  EXPECT_THAT(error("link h0 rack0"), HasSubstr("write it as link A B rate"));
  EXPECT_THAT(error("link h0 h1 rate 5mbit"),
              HasSubstr("no link between h0 and h1; h0 is joined to rack0"));
  EXPECT_THAT(error("link h9 rack0 rate 5mbit"), HasSubstr("it has rack0, rack1, h0, h1, h2, h3"));
  EXPECT_THAT(error("cut h0 rack1"), HasSubstr("no link between"));
  EXPECT_THAT(error("cut h0 --one-way up"), HasSubstr("neither in"));
  EXPECT_THAT(error("cut h0 --one-way"), HasSubstr("value is missing"));
  EXPECT_THAT(error("flow add h0 rack0"), HasSubstr("not a host"));
  EXPECT_THAT(error("flow add h0 h1 --seconds 100000"), HasSubstr("--seconds"));
  EXPECT_THAT(error("flow add h0 h3 --udp"), HasSubstr("a flow of UDP needs a rate"));
  EXPECT_THAT(error("flow add h0 h3 --udp --rate none"), HasSubstr("needs a rate"));
  EXPECT_THAT(error("slow h0 0.5x"), HasSubstr("factor"));
  EXPECT_THAT(error("slow h0 5"), HasSubstr("write it as slow HOST 5x"));
}

TEST(ChangeTest, TheLastRateHoldsAndUndoingOneLeavesTheOthers) {
  const Spec spec = TwoRacks();
  const Change first = Parse("link rack0 rack1 rate 50mbit").value();
  const Change second = Parse("link rack0 rack1 rate 20mbit --one-way").value();
  const int uplink = FindLink(spec, 0, 1);
  ASSERT_EQ(spec.links[uplink].a, 1) << "rack1 is the end that names its parent";
  Settings both = Effective(spec, {first, second});
  EXPECT_EQ(both.links[uplink][1].rate, 20'000'000) << "rack0 to rack1";
  EXPECT_EQ(both.links[uplink][0].rate, 50'000'000);
  EXPECT_EQ(Effective(spec, {second}).links[uplink][0].rate, 100'000'000);
  EXPECT_EQ(Effective(spec, {first}).links[uplink][1].rate, 50'000'000);
  EXPECT_EQ(Effective(spec, {}).links[uplink][1].rate, 100'000'000);
}

TEST(ChangeTest, CutsAreOfALinkOfAllLinksOrBetweenTwoHosts) {
  const Spec spec = TwoRacks();
  const int nic = FindLink(spec, 2, 0);
  const Settings out = Effective(spec, {Parse("cut h0 --one-way out").value()});
  EXPECT_TRUE(out.links[nic][0].cut);
  EXPECT_FALSE(out.links[nic][1].cut);
  const Settings rack = Effective(spec, {Parse("cut rack0").value()});
  int cut = 0;
  for (const auto& link : rack.links) cut += link[0].cut && link[1].cut ? 1 : 0;
  EXPECT_EQ(cut, 3) << "two hosts and the uplink";
  EXPECT_THAT(Effective(spec, {Parse("cut h0 h3").value()}).blocked,
              UnorderedElementsAre(::testing::Pair(2, 5), ::testing::Pair(5, 2)));
  EXPECT_THAT(Effective(spec, {Parse("cut h0 h3 --one-way in").value()}).blocked,
              UnorderedElementsAre(::testing::Pair(5, 2)));
}

TEST(StateTest, ReadsBack) {
  State state;
  state.spec = TwoRacks();
  state.complete = true;
  state.changes_made = 3;
  Change flow = Parse("flow add h0 h3 --seconds 5").value();
  flow.name = "flow1";
  flow.processes = {{123, 456}};
  Change cut = Parse("cut h0 --one-way in").value();
  cut.name = "cut3";
  state.changes = {flow, cut};
  const absl::StatusOr<State> again = ParseState(ToJson(state));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToJson(*again), ToJson(state));
  EXPECT_EQ(again->changes[0].processes[0].start, 456u);
  EXPECT_FALSE(ParseState("{}").ok());
  EXPECT_FALSE(ParseState("not json").ok());
}

TEST(WiringTest, AChangeTouchesOnlyItsInterfaces) {
  const Spec spec = TwoRacks();
  const Plan plan = MakePlan(spec);
  const Settings before = Effective(spec, {});
  EXPECT_TRUE(ChangeScripts(plan, before, before).empty());
  const Settings after = Effective(spec, {Parse("link h0 rack0 rate 50mbit --one-way").value()});
  const std::vector<Script> scripts = ChangeScripts(plan, before, after);
  ASSERT_EQ(scripts.size(), 1u);
  EXPECT_EQ(scripts[0].tool, "tc");
  EXPECT_EQ(scripts[0].netns, "sy.two.h0");
  EXPECT_EQ(scripts[0].text,
            "qdisc replace dev eth0 root handle 1: tbf rate 50000000bit burst 140000 limit "
            "131072\n");
  const std::vector<Script> back = ChangeScripts(plan, after, before);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_THAT(back[0].text, HasSubstr("rate 200000000bit"));
}

TEST(WiringTest, EveryPathOfForwardingIsWritten) {
  const Plan plan = MakePlan(TwoRacks());
  std::string fdb;
  std::string first_host;
  for (const Script& script : WiringScripts(plan, Effective(plan.spec, {}))) {
    if (script.tool == "bridge") fdb += script.text;
    if (script.tool == "ip" && script.netns == "sy.two.h0") first_host += script.text;
  }
  EXPECT_EQ(std::count(fdb.begin(), fdb.end(), '\n'), 2 * 4) << "two switches know four hosts";
  EXPECT_THAT(first_host, HasSubstr("addr add 10.250.0.1/16 dev eth0"));
  EXPECT_THAT(first_host, HasSubstr("neigh replace 10.250.0.4 lladdr 02:5a:00:00:00:03"));
  EXPECT_THAT(first_host, HasSubstr("route add 10.250.0.0/16 dev eth0 scope link"));
  EXPECT_THAT(first_host, Not(HasSubstr("/32"))) << "one way leads to all";
}

TEST(WiringTest, BucketsHoldTwoLargePacketsAndAMillisecond) {
  EXPECT_EQ(BurstBytes(200'000'000), 140'000);
  EXPECT_EQ(BurstBytes(10'000'000'000), 1'250'000);
  EXPECT_NEAR(static_cast<double>(QueueBytes(200'000'000)), 256 * 1024, 1024);
  EXPECT_EQ(QueueBytes(1'000'000), 128 << 10);
}

TEST(PlanTest, NamesOfLabsCannotClash) {
  EXPECT_EQ(LabOfNamespace("sy.two.h0"), "two");
  EXPECT_EQ(LabOfNamespace("sy.two"), "two");
  EXPECT_EQ(LabOfNamespace("two.h0"), "");
  EXPECT_EQ(LabOfNamespace("sy."), "");
  EXPECT_TRUE(IsNamespaceOf("two", "sy.two.h0"));
  EXPECT_FALSE(IsNamespaceOf("two", "sy.two-b.h0"));
  EXPECT_FALSE(IsNamespaceOf("", "sy."));
}

TEST(PlanTest, HostsHaveOneAddressOnAllInterfaces) {
  const Plan plan = MakePlan(ParseLab(R"(
[lab]
name = "pairs"
[[host]]
name = "h"
count = 3
[[mesh]]
nodes = ["h0", "h1", "h2"]
)",
                                      "x")
                                 .value());
  EXPECT_EQ(plan.address[2], "10.250.0.3");
  EXPECT_EQ(plan.ports[1][0].interface, "eth1") << "h0 to h2";
  EXPECT_EQ(plan.ports[1][1].interface, "eth0");
  EXPECT_THAT(HostsFile(plan), HasSubstr("10.250.0.2 h1\n"));
}

TEST(ScenarioTest, SortsUndoesAndChecks) {
  const Spec spec = TwoRacks();
  const absl::StatusOr<std::vector<Event>> events = ParseScenario(spec, R"(
[[event]]
at = "5s"
do = "undo squeeze"
[[event]]
at = "1s"
do = "link rack0 rack1 rate 20mbit"
name = "squeeze"
[[event]]
at = "2s"
do = "cut h0"
for = "500ms"
)",
                                                                  "s.toml");
  ASSERT_TRUE(events.ok()) << events.status();
  std::vector<std::string> texts;
  for (const Event& event : *events) texts.push_back(event.text);
  EXPECT_THAT(texts, ::testing::ElementsAre("link rack0 rack1 rate 20mbit", "cut h0", "undo event3",
                                            "undo squeeze"));
  EXPECT_EQ((*events)[2].at_ns, 2'500'000'000);
  const auto error = [&](const char* text) {
    return std::string(ParseScenario(spec, text, "s.toml").status().message());
  };
  EXPECT_THAT(error("[[event]]\nat = \"1s\"\ndo = \"cut h9\"\n"), HasSubstr("s.toml:1:1"));
  EXPECT_THAT(error("[[event]]\nat = \"1s\"\ndo = \"undo x\"\n"), HasSubstr("no change of that"));
  EXPECT_THAT(error("[[event]]\ndo = \"cut h0\"\n"), HasSubstr("at says when"));
  EXPECT_THAT(error(""), HasSubstr("1 to 1000"));
}

}  // namespace
}  // namespace syncopate::lab
