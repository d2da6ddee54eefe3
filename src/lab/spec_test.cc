// Labs as values: the TOML form, what is refused and how, rates, ways through the network.
#include "lab/spec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/forwarding.h"

namespace syncopate::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTwoRacks[] = R"(
[lab]
name = "two"
nic = "200mbit"
[[switch]]
name = "rack0"
[[switch]]
name = "rack1"
parent = "rack0"
uplink = "100mbit"
uplink_in = "50mbit"
[[host]]
name = "h"
count = 2
switch = "rack0"
[[host]]
name = "h"
count = 2
switch = "rack1"
nic = "1gbit"
[[host]]
name = "b"
switch = "rack1"
bystander = true
[[flow]]
from = "b"
to = "h0"
rate = "10mbit"
[[flow]]
from = "h0"
to = "b"
rate = "5mbit"
udp = true
)";

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<Spec> spec = ParseLab(text, "x.toml");
  EXPECT_FALSE(spec.ok()) << text;
  EXPECT_TRUE(absl::IsInvalidArgument(spec.status())) << spec.status();
  return std::string(spec.status().message());
}

TEST(SpecTest, ReadsATreeOfSwitches) {
  const absl::StatusOr<Spec> spec = ParseLab(kTwoRacks, "x.toml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "two");
  EXPECT_THAT(Hosts(*spec), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(WorkerHosts(*spec), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(spec->nodes[4].name, "h2") << "numbers go on where the name is the same";
  ASSERT_EQ(spec->links.size(), 6u);
  EXPECT_EQ(spec->links[0].rate_forward, 100'000'000) << "rack1 to its parent";
  EXPECT_EQ(spec->links[0].rate_back, 50'000'000);
  EXPECT_EQ(spec->links[1].rate_forward, 200'000'000);
  EXPECT_EQ(spec->links[3].rate_back, 1'000'000'000);
  ASSERT_EQ(spec->flows.size(), 2u);
  EXPECT_EQ(spec->flows[0].seconds, kFlowSecondsDefault);
  EXPECT_FALSE(spec->flows[0].udp);
  EXPECT_TRUE(spec->flows[1].udp);
}

TEST(SpecTest, TextReadsBack) {
  const Spec spec = ParseLab(kTwoRacks, "x.toml").value();
  const absl::StatusOr<Spec> again = ParseLab(ToToml(spec), "again");
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << ToToml(spec);
  EXPECT_EQ(*again, spec);
  EXPECT_FALSE(spec.fixed_cores);
  Spec fixed = spec;
  fixed.fixed_cores = true;
  EXPECT_EQ(ParseLab(ToToml(fixed), "again").value(), fixed);
}

TEST(SpecTest, HostsMayHaveAPartOfTheCores) {
  const std::string head = "[lab]\nname = \"l\"\n[[host]]\nname = \"h\"\ncount = 2\n";
  const absl::StatusOr<Spec> spec =
      ParseLab(head +
                   "cores = 0.3\n[[host]]\nname = \"big\"\ncores = 2\n[[host]]\nname = \"all\"\n"
                   "[[mesh]]\nnodes = [\"h0\", \"h1\", \"big\", \"all\"]\n",
               "x.toml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  std::vector<double> cores;
  for (const Node& node : spec->nodes) cores.push_back(node.cores);
  EXPECT_THAT(cores, ElementsAre(0.3, 0.3, 2, 0));
  EXPECT_EQ(ParseLab(ToToml(*spec), "again").value(), *spec);
  for (const char* wrong : {"cores = 0\n", "cores = -1\n", "cores = 5000\n", "cores = \"1\"\n"}) {
    EXPECT_THAT(ErrorOf(head + wrong),
                HasSubstr("x.toml:6:9: [[host]] cores: this is not a number"))
        << wrong;
  }
  Spec of_a_switch = *spec;
  of_a_switch.nodes.insert(of_a_switch.nodes.begin(), {"s", false, false, 1});
  EXPECT_THAT(Validate(of_a_switch).message(), HasSubstr("cores of s"));
}

TEST(SpecTest, RandomLabsReadBack) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Spec spec;
    spec.name = absl::StrCat("lab", seed);
    const int switches = static_cast<int>(random.Between(1, 5));
    for (int i = 0; i < switches; ++i) spec.nodes.push_back({absl::StrCat("s", i), false, false});
    const int hosts = static_cast<int>(random.Between(1, 12));
    for (int i = 0; i < hosts; ++i) spec.nodes.push_back({absl::StrCat("h", i), true, i > 8});
    for (int i = 1; i < switches + hosts; ++i) {
      Link link;
      link.a = i;
      link.b = static_cast<int>(random.Below(static_cast<uint64_t>(std::min(i, switches))));
      link.rate_forward = random.Below(4) == 0 ? 0 : random.Between(kRateBitsMin, 10'000'000'000);
      link.rate_back = random.Below(2) == 0 ? link.rate_forward : 0;
      link.delay = random.Below(3) == 0 ? random.Unit() : 0;
      link.queue_bytes = random.Below(3) == 0 ? random.Between(kQueueBytesLeast, 1 << 20) : 0;
      spec.links.push_back(link);
    }
    ASSERT_TRUE(Validate(spec).ok()) << "seed " << seed << ": " << Validate(spec);
    const absl::StatusOr<Spec> again = ParseLab(ToToml(spec), "again");
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.status();
    EXPECT_EQ(*again, spec) << "seed " << seed << "\n" << ToToml(spec);
  }
}

TEST(SpecTest, FaultsHavePlaceAndRemedy) {
  EXPECT_THAT(ErrorOf("[lab\n"), HasSubstr("x.toml:1:5: this is not TOML"));
  EXPECT_THAT(ErrorOf("[%]\n"), HasSubstr("x.toml:1:2: this is not TOML"));
  EXPECT_THAT(ErrorOf("[[host]]\nname = \"h\"\n"), HasSubstr("begin with [lab]"));
  const std::string head = "[lab]\nname = \"l\"\n";
  EXPECT_THAT(ErrorOf(head), HasSubstr("add [[host]]"));
  EXPECT_THAT(
      ErrorOf(head + "nik = \"1gbit\"\n[[host]]\nname = \"h\"\n"),
      HasSubstr(
          "x.toml:3:1: [lab] has no key \"nik\"; possible are congestion, delay, fixed_cores, "
          "name"));
  EXPECT_THAT(ErrorOf(head + "nic = \"fast\"\n[[host]]\nname = \"h\"\n"),
              HasSubstr("x.toml:3:7: [lab] nic: \"fast\" is not a rate"));
  EXPECT_THAT(ErrorOf(head + "nic = 200\n[[host]]\nname = \"h\"\n"), HasSubstr("between quotes"));
  EXPECT_THAT(ErrorOf(head + "[host]\nname = \"h\"\n"), HasSubstr("write [[host]]"));
  EXPECT_THAT(ErrorOf(head + "[[host]]\ncount = 2\n"), HasSubstr("there is no name"));
  EXPECT_THAT(ErrorOf(head + "[[host]]\nname = \"h\"\ncount = 0\n"),
              HasSubstr("x.toml:5:9: [[host]] count: this is not a whole number from 1"));
  EXPECT_THAT(ErrorOf(head + "[[host]]\nname = \"h\"\nswitch = \"rak\"\n"),
              HasSubstr("x.toml:3:1: [[host]]: there is no host or switch \"rak\""));
  EXPECT_THAT(ErrorOf(head + "[[host]]\nname = \"a.b\"\n"), HasSubstr("cannot be a name"));
  EXPECT_THAT(ErrorOf(head + "[[host]]\nname = \"h\"\n[[host]]\nname = \"h\"\n"),
              HasSubstr("x.toml:5:1: [[host]]: the name h is taken"));
  EXPECT_THAT(ErrorOf(head + "[[host]]\nname = \"h\"\ncount = 2\n"),
              HasSubstr("there is no way from h1 to h0"));
  EXPECT_THAT(ErrorOf(head + "[[host]]\nname = \"h\"\ncount = 2\n[[link]]\nbetween = [\"h0\"]\n"),
              HasSubstr("two different"));
  EXPECT_THAT(ErrorOf(head + "[[host]]\nname = \"h\"\ncount = 2\n[[mesh]]\nnodes = [\"h0\", "
                             "\"h1\"]\n[[flow]]\nfrom = \"h0\"\nto = \"h0\"\n"),
              HasSubstr("from one host to another"));
  EXPECT_THAT(ErrorOf("[lab]\nname = \"a b\"\n[[host]]\nname = \"h\"\n"),
              HasSubstr("name of the lab: \"a b\" cannot be a name"));
}

TEST(SpecTest, RefusesWhatWouldNeedTooMuch) {
  std::string text = "[lab]\nname = \"l\"\n[[switch]]\nname = \"s\"\n";
  for (int i = 0; i < 2; ++i) {
    absl::StrAppend(&text, "[[host]]\nname = \"h\"\ncount = 100\nswitch = \"s\"\n");
  }
  EXPECT_THAT(ErrorOf(text), HasSubstr("at most 128"));
}

TEST(LinkRateTest, ReadsAndWrites) {
  EXPECT_EQ(ParseLinkRate("200mbit").value(), 200'000'000);
  EXPECT_EQ(ParseLinkRate("200Mbit/s").value(), 200'000'000);
  EXPECT_EQ(ParseLinkRate("1.5gbit").value(), 1'500'000'000);
  EXPECT_EQ(ParseLinkRate("25MB/s").value(), 200'000'000);
  EXPECT_EQ(ParseLinkRate("none").value(), 0);
  for (const char* bad :
       {"", "mbit", "0mbit", "-5mbit", "1bit", "9999gbit", "5", "nan", "200 Mb"}) {
    EXPECT_FALSE(ParseLinkRate(bad).ok()) << bad;
  }
  EXPECT_EQ(FormatLinkRate(200'000'000), "200mbit");
  EXPECT_EQ(FormatLinkRate(1'500'000'000), "1.5gbit");
  EXPECT_EQ(FormatLinkRate(1'234'567'891), "1234567.891kbit");
  EXPECT_EQ(FormatLinkRate(0), "none");
}

TEST(ForwardingTest, TakesTheShortestWayThroughSwitchesOnly) {
  // Three switches in a ring, a host at each, and a cable between h0 and h1.
  const Spec spec = ParseLab(R"(
[lab]
name = "ring"
[[switch]]
name = "a"
[[switch]]
name = "b"
[[switch]]
name = "c"
[[host]]
name = "h0"
switch = "a"
[[host]]
name = "h1"
switch = "b"
[[host]]
name = "h2"
switch = "c"
[[mesh]]
nodes = ["a", "b", "c"]
[[link]]
between = ["h0", "h1"]
)",
                             "x")
                        .value();
  const Forwarding forwarding = ComputeForwarding(spec).value();
  const auto way = [&](const char* from, const char* to) {
    return Path(spec, forwarding, FindNode(spec, from).value(), FindNode(spec, to).value());
  };
  EXPECT_THAT(way("h0", "h1"), ElementsAre(3)) << "its own cable";
  EXPECT_THAT(way("h0", "h2"), ElementsAre(0, 5, 2)) << "not through h1";
  EXPECT_THAT(way("h2", "h0"), ElementsAre(2, 5, 0));
}

}  // namespace
}  // namespace syncopate::lab
