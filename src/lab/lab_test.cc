// The parts of the laboratory that need no root: what is declared, expected and shown.
#include "lab/lab.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/check.h"
#include "lab/cpu_share.h"
#include "lab/lab_testing.h"
#include "lab/load.h"
#include "lab/picture.h"
#include "lab/requirements.h"

namespace syncopate::lab {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Spec Read(const std::string& rest) {
  const absl::StatusOr<Spec> spec = ParseLab("[lab]\nname = \"l\"\n" + rest, "x");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

Spec TwoRacksAndBystander() {
  const std::string bystander = "[[host]]\nname = \"b\"\nswitch = \"rack1\"\nbystander = true\n";
  return ParseLab(TwoRacksToml("l", 2, "200mbit", "100mbit") + bystander, "x").value();
}

Spec Pairs() {
  return Read(R"(
[[host]]
name = "h"
count = 3
[[mesh]]
nodes = ["h0", "h1", "h2"]
rate = "100mbit"
)");
}

TEST(DeclaredTopologyTest, HasDevicesSwitchesAndPayloadRates) {
  const Topology topology = DeclaredTopology(TwoRacksAndBystander());
  ASSERT_TRUE(Validate(topology).ok()) << Validate(topology);
  EXPECT_EQ(Devices(topology).size(), 4u) << "a bystander runs no worker";
  EXPECT_EQ(topology.nodes[FindNode(topology, "h3").value()].group, "rack1");
  for (const Topology::Capacity& capacity : topology.capacities) {
    const double bits = capacity.id.find("rack") == std::string::npos ? 200e6 : 100e6;
    EXPECT_DOUBLE_EQ(capacity.bandwidth, bits / 8 * kPayloadShare) << capacity.id;
  }
  EXPECT_EQ(topology.capacities[2].id, "h0.up");
  EXPECT_TRUE(topology.routes.empty());
}

TEST(DeclaredTopologyTest, NamesTheRoutesWhereThereAreSeveralWays) {
  const Topology topology = DeclaredTopology(Pairs());
  ASSERT_TRUE(Validate(topology).ok()) << Validate(topology);
  EXPECT_EQ(topology.links.size(), 6u);
  EXPECT_EQ(topology.routes.size(), 6u);
}

TEST(DeclaredTopologyTest, TellsWhatShapersLetThroughAfterAPause) {
  Spec spec = TwoRacksAndBystander();
  const Topology topology = DeclaredTopology(spec);
  const std::vector<DeclaredBurst> bursts = DeclaredBursts(spec);
  ASSERT_EQ(bursts.size(), topology.links.size());
  for (size_t i = 0; i < bursts.size(); ++i) {
    EXPECT_DOUBLE_EQ(bursts[i].bytes, 140'000 * kPayloadShare);
    EXPECT_DOUBLE_EQ(bursts[i].bandwidth, 1.25 * topology.links[i].bandwidth);
  }
  spec.congestion = "cubic";  // does not pace
  const std::vector<DeclaredBurst> unpaced = DeclaredBursts(spec);
  for (size_t i = 0; i < unpaced.size(); ++i) {
    EXPECT_GT(unpaced[i].bandwidth, 10 * topology.links[i].bandwidth);
  }
  const Spec open = Read(R"(
[[switch]]
name = "s"
[[host]]
name = "h"
count = 2
switch = "s"
)");
  for (const DeclaredBurst& burst : DeclaredBursts(open)) EXPECT_EQ(burst.bytes, 0);
}

TEST(SlotsTest, AreSpreadEvenly) {
  EXPECT_THAT(SpreadSlots(3, 0, 2), ElementsAre(2, 2, 2));
  EXPECT_THAT(SpreadSlots(3, 5, 1), ElementsAre(2, 2, 1));
  EXPECT_THAT(SpreadSlots(3, 2, 1), ElementsAre(1, 1, 0));
}

TEST(CheckTest, FairRatesFillTheTightestLinkFirst) {
  const Plan plan = MakePlan(TwoRacksAndBystander());
  const Settings settings = Effective(plan.spec, {});
  const double payload = 1e6 * kPayloadShare;
  // Two flows over the uplink of 100, and one inside a rack from a host that also sends over it.
  const std::vector<double> rates = FairRates(plan, settings, {{2, 4}, {3, 5}, {2, 3}});
  EXPECT_THAT(rates, ElementsAre(DoubleNear(50 * payload, 1), DoubleNear(50 * payload, 1),
                                 DoubleNear(150 * payload, 1)));
  EXPECT_THAT(FairRates(MakePlan(Read("[[switch]]\nname = \"s\"\n[[host]]\nname = \"h\"\ncount = "
                                      "2\nswitch = \"s\"\n")),
                        Settings{{{}, {}}, {}}, {{1, 2}}),
              ElementsAre(0));
}

TEST(CheckTest, ARingUsesEachLinkOfATreeOnceInEachDirection) {
  const Plan plan = MakePlan(TwoRacksAndBystander());
  const std::vector<Trial> trials = PlanTrials(plan, Effective(plan.spec, {}));
  const Trial& all = trials.back();
  ASSERT_EQ(all.kind, Trial::Kind::kAll);
  ASSERT_EQ(all.pairs.size(), 5u);
  std::map<std::pair<int, int>, int> uses;
  for (const Pair& pair : all.pairs) {
    int here = pair.from;
    for (const int link : Path(plan.spec, plan.forwarding, pair.from, pair.to)) {
      ++uses[{link, here}];
      here = OtherEnd(plan.spec.links[link], here);
    }
  }
  EXPECT_EQ(uses.size(), 2 * plan.spec.links.size());
  for (const auto& [where, times] : uses) EXPECT_EQ(times, 1);
}

TEST(CheckTest, SaysWhatTheLimitIs) {
  TrialResult single{{Trial::Kind::kSingle, "", {{0, 1}}, {100}}, {99}};
  TrialResult shared{{Trial::Kind::kShared, "", {{0, 1}, {2, 1}}, {50, 50}}, {55, 45}};
  TrialResult all{{Trial::Kind::kAll, "", {{0, 1}, {1, 0}}, {100, 100}}, {98, 97}};
  EXPECT_EQ(Verdict({single, shared, all}), "All rates hold.");
  all.got = {80, 70};
  EXPECT_THAT(Verdict({single, shared, all}), StartsWith("CPU limit of this machine"));
  EXPECT_THAT(Verdict({single, shared, all}), HasSubstr("75 %"));
  shared.got = {95, 5};
  EXPECT_FALSE(Holds(shared)) << "in all enough, but not fair";
  single.got = {90};
  EXPECT_THAT(Verdict({single}), StartsWith("Single flows do not"));
}

TEST(RequirementsTest, WarnsWhenMoreIsAskedThanCoresCarry) {
  const Spec spec = TwoRacksAndBystander();
  EXPECT_DOUBLE_EQ(TrafficBitsMax(spec), 5 * 200e6);
  EXPECT_EQ(CpuLimitWarning(spec, 2), "");
  Spec fast = spec;
  for (Link& link : fast.links) link.rate_forward = link.rate_back = 10'000'000'000;
  EXPECT_THAT(CpuLimitWarning(fast, 2), HasSubstr("50.0 Gbit/s in all"));
}

TEST(CpuShareTest, SmallSharesComeInLongerPeriods) {
  EXPECT_DOUBLE_EQ(FairCores(2, 8), 0.25);
  EXPECT_DOUBLE_EQ(FairCores(64, 8), 1);
  for (const double cores : {1.0, 0.25, 0.05, 0.02, 0.004}) {
    const CpuQuota quota = QuotaFor(cores);
    EXPECT_GE(quota.quota_us, 1000) << cores;
    EXPECT_LE(quota.period_us, 1'000'000) << cores;
    EXPECT_NEAR(static_cast<double>(quota.quota_us) / quota.period_us, cores, cores * 0.01);
  }
}

TEST(LoadTest, ReadsWhatInterfacesSent) {
  const std::map<std::string, uint64_t> sent = ParseSentBytes(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
      "    lo:       1       2    0    0    0     0          0         0        7       2    0    "
      "0    0     0       0          0\n"
      "  eth0: 1000 20 0 0 0 0 0 0 123456789012 30 0 0 0 0 0 0\n");
  EXPECT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent.at("lo"), 7u);
  EXPECT_EQ(sent.at("eth0"), 123456789012u);
  EXPECT_TRUE(ParseSentBytes("nothing: of use").empty());
}

TEST(PictureTest, ShowsATreeWithRatesAndLoad) {
  const Plan plan = MakePlan(TwoRacksAndBystander());
  Settings settings = Effective(plan.spec, {});
  settings.links[1][0].cut = true;
  std::vector<std::array<double, 2>> load(plan.spec.links.size(), {0, 0});
  load[2] = {95.6e6, 1.25e5};
  EXPECT_EQ(
      Picture(plan, settings, load),
      "                        address              rate            out now            in now\n"
      "rack0\n"
      "├─ h0                10.250.0.1  cut / 200 Mbit/s                  0                 0\n"
      "├─ h1                10.250.0.2        200 Mbit/s  95.6 Mbit/s  48 %  125 kbit/s   0 %\n"
      "└─ rack1                               100 Mbit/s                  0                 0\n"
      "   ├─ h2             10.250.0.3        200 Mbit/s                  0                 0\n"
      "   ├─ h3             10.250.0.4        200 Mbit/s                  0                 0\n"
      "   └─ b (bystander)  10.250.0.5        200 Mbit/s                  0                 0\n");
}

TEST(PictureTest, ListsLinksThatAreNoTree) {
  const Plan plan = MakePlan(Pairs());
  EXPECT_THAT(Picture(plan, Effective(plan.spec, {}), {}), HasSubstr("h0 ── h2  100 Mbit/s\n"));
}

}  // namespace
}  // namespace syncopate::lab
