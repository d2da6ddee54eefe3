#include "tools/bench/network_bound.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lab/lab.h"
#include "tools/bench/loaded_topology.h"

namespace syncopate::tools::bench {
namespace {

constexpr uint64_t kBytes = 10'000'000;
constexpr double kNic = 200e6 / 8 * lab::kPayloadShare;  // bytes/s

lab::Spec Read(const std::string& text) {
  absl::StatusOr<lab::Spec> spec = lab::ParseLab(text, "test");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : lab::Spec();
}

// Racks of four hosts on one another in a row.
std::string Racks(int racks, const std::string& uplink) {
  std::string text =
      absl::StrCat("[lab]\nname = \"l\"\nnic = \"200mbit\"\nuplink = \"", uplink, "\"\n");
  for (int r = 0; r < racks; ++r) {
    absl::StrAppend(&text, "[[switch]]\nname = \"r", r, "\"\n");
    if (r > 0) absl::StrAppend(&text, "parent = \"r0\"\n");
  }
  for (int r = 0; r < racks; ++r) {
    absl::StrAppend(&text, "[[host]]\nname = \"h\"\ncount = 4\nswitch = \"r", r, "\"\n");
  }
  return text;
}

double Seconds(const std::string& text, const std::vector<int>& slots,
               Collective collective = Collective::kAllReduce) {
  return NetworkBound(Read(text), slots).Seconds(collective, kBytes).value_or(-1);
}

TEST(NetworkBoundTest, EqualNicsGiveTheRingBound) {
  const double ring = 2.0 * 7 / 8 * kBytes / kNic;
  EXPECT_NEAR(Seconds(Racks(2, "200mbit"), std::vector<int>(8, 1)), ring, 1e-9);
  EXPECT_NEAR(ring, 0.732, 0.001);
  // Workers of one host exchange for free: the hosts count.
  EXPECT_NEAR(Seconds(Racks(2, "200mbit"), std::vector<int>(8, 2)), ring, 1e-9);
  // A host without workers does not take part.
  EXPECT_NEAR(Seconds(Racks(2, "200mbit"), {1, 1, 1, 1, 0, 0, 0, 0}), 2.0 * 3 / 4 * kBytes / kNic,
              1e-9);
}

TEST(NetworkBoundTest, WhoIsNotActiveMayRelay) {
  const auto seconds = [](const std::string& text, const std::vector<int>& slots,
                          const std::vector<int>& active) {
    return NetworkBound(Read(text), slots, active)
        .Seconds(Collective::kAllReduce, kBytes)
        .value_or(-1);
  };
  const std::vector<int> ones(8, 1);
  // Each of three hosts sends at least once, and four messages have eight NICs.
  EXPECT_NEAR(seconds(Racks(2, "200mbit"), ones, {0, 1, 2}), kBytes / kNic, 1e-9);
  // Seven hosts: twelve messages, eight NICs.
  EXPECT_NEAR(seconds(Racks(2, "200mbit"), ones, {0, 1, 2, 3, 4, 5, 7}), 12.0 / 8 * kBytes / kNic,
              1e-9);
  // The thin uplink counts only if there are active ones on both sides; ranks fill the hosts.
  EXPECT_NEAR(seconds(Racks(2, "50mbit"), ones, {0, 1, 3}), kBytes / kNic, 1e-9);
  EXPECT_NEAR(seconds(Racks(2, "50mbit"), ones, {0, 1, 4}), kBytes / (kNic / 4), 1e-9);
  EXPECT_NEAR(seconds(Racks(2, "50mbit"), std::vector<int>(8, 2), {0, 1, 7}), kBytes / kNic, 1e-9);
  EXPECT_EQ(seconds(Racks(2, "50mbit"), ones, {5}), -1) << "one has nothing to send";
  EXPECT_EQ(seconds(Racks(2, "200mbit"), ones, {0, 1, 2, 3, 4, 5, 6, 7}),
            Seconds(Racks(2, "200mbit"), ones));
}

TEST(NetworkBoundTest, AThinUplinkIsCrossedOnceEachWay) {
  EXPECT_NEAR(Seconds(Racks(2, "50mbit"), std::vector<int>(8, 1)), kBytes / (kNic / 4), 1e-9);
}

TEST(NetworkBoundTest, AllUplinksTogetherCarryWhatRacksMustExchange) {
  // r0 in the middle of three: it reaches each of the others by a link of its own.
  const double all_out = 4 * kNic / 4;  // r0 has two uplinks, the others one each
  EXPECT_NEAR(Seconds(Racks(3, "50mbit"), std::vector<int>(12, 1)),
              std::max(kBytes / (kNic / 4), 2.0 * 2 * kBytes / all_out), 1e-9);
}

TEST(NetworkBoundTest, ASlowNicLetsItsHostSendAndReceiveTheResultOnce) {
  const std::string text =
      Racks(1, "200mbit") + "[[host]]\nname = \"slow\"\nswitch = \"r0\"\nnic = \"20mbit\"\n";
  EXPECT_NEAR(Seconds(text, std::vector<int>(5, 1)), kBytes / (kNic / 10), 1e-9);
}

TEST(NetworkBoundTest, EachCollectiveMovesWhatItMust) {
  const std::string text = Racks(2, "50mbit");
  const std::vector<int> slots(8, 1);
  const double uplink = kNic / 4;
  EXPECT_NEAR(Seconds(text, slots, Collective::kBroadcast), kBytes / uplink, 1e-9);
  EXPECT_NEAR(Seconds(text, slots, Collective::kReduce), kBytes / uplink, 1e-9);
  EXPECT_NEAR(Seconds(text, slots, Collective::kSendReceive), kBytes / uplink, 1e-9);
  EXPECT_NEAR(Seconds(text, slots, Collective::kAllGather), kBytes / 2.0 / uplink, 1e-9);
  EXPECT_NEAR(Seconds(text, slots, Collective::kReduceScatter), kBytes / 2.0 / uplink, 1e-9);
  EXPECT_NEAR(Seconds(text, slots, Collective::kGather), kBytes / 2.0 / uplink, 1e-9);
  EXPECT_NEAR(Seconds(text, slots, Collective::kScatter), kBytes / 2.0 / uplink, 1e-9);
  // 4 x 4 pairs cross it, each with an eighth of a buffer.
  EXPECT_NEAR(Seconds(text, slots, Collective::kAllToAll), 16 * kBytes / 8.0 / uplink, 1e-9);
  EXPECT_EQ(Seconds(text, slots, Collective::kBarrier), -1);
}

TEST(NetworkBoundTest, ThereIsNoneWhereNothingIsShaped) {
  EXPECT_EQ(Seconds(Racks(2, "none") + "", std::vector<int>(8, 1)), 2.0 * 7 / 8 * kBytes / kNic);
  const std::string plain =
      "[lab]\nname = \"l\"\n[[switch]]\nname = \"s\"\n"
      "[[host]]\nname = \"h\"\ncount = 3\nswitch = \"s\"\n";
  EXPECT_EQ(Seconds(plain, {1, 1, 1}), -1);
}

TEST(LoadedTopologyTest, AFlowTakesItsShareOfTheLinksThatItCrosses) {
  const std::string text = Racks(2, "200mbit") +
                           "[[host]]\nname = \"b0\"\nswitch = \"r0\"\nbystander = true\n"
                           "[[host]]\nname = \"b1\"\nswitch = \"r1\"\nbystander = true\n";
  const auto rate = [](const Topology& topology, const std::string& link) {
    for (const Topology::Link& each : topology.links) {
      if (each.id == link) return each.bandwidth;
    }
    ADD_FAILURE() << "no link " << link;
    return 0.0;
  };
  const Topology quiet = LoadedTopology(Read(text), 8);
  EXPECT_EQ(quiet.links, lab::DeclaredTopology(Read(text)).links);
  const Topology busy = LoadedTopology(Read(text + "[[flow]]\nfrom = \"b0\"\nto = \"b1\"\n"), 8);
  EXPECT_TRUE(Validate(busy).ok()) << Validate(busy);
  EXPECT_NEAR(rate(busy, "r0>r1"), kNic / 2, 1);
  EXPECT_NEAR(rate(busy, "r1>r0"), kNic, 1);
  EXPECT_NEAR(rate(busy, "h0>r0"), kNic, 1);
  const Topology limited =
      LoadedTopology(Read(text + "[[flow]]\nfrom = \"b1\"\nto = \"b0\"\nrate = \"50mbit\"\n"), 8);
  EXPECT_NEAR(rate(limited, "r1>r0"), kNic * 3 / 4, 1);
}

TEST(LoadedTopologyTest, HostsWaitForTheCoresThatTheyShare) {
  const Topology topology = LoadedTopology(Read(Racks(2, "200mbit")), 2);
  EXPECT_EQ(topology.shared_cores, 2);
  EXPECT_GT(topology.nodes[Devices(topology).front()].message_overhead, 0);
  EXPECT_EQ(std::string(Validate(topology).message()), "");
}

}  // namespace
}  // namespace syncopate::tools::bench
