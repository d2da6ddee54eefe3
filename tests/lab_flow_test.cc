// Flows in the background of a lab on the real machine: they keep what they promise, and end when
// they shall. Needs root and a kernel with veth, bridge and tbf; skipped elsewhere.
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/change.h"
#include "lab/child_process.h"
#include "lab/lab.h"
#include "lab/load.h"
#include "lab/netns.h"
#include "lab/spec.h"
#include "lab_command_testing.h"
#include "subprocess.h"

namespace syncopate::lab {
namespace {

using syncopate::testing::Subprocess;
using ::testing::HasSubstr;

// What a flow of UDP is on a link: packets of 1,448 bytes with headers of UDP, IP and Ethernet.
constexpr double kUdpWireShare = (1448 + 8 + 20 + 14) / 1448.0;

class LabFlowTest : public LabTest {
 protected:
  void AddFlow(std::vector<std::string> words) const {
    words.insert(words.begin(), {"flow", "add"});
    words.insert(words.end(), {"--lab", Name("a")});
    const Outcome flow = Syncopate(words);
    ASSERT_EQ(flow.code, 0) << flow.err;
  }

  static Lab Open() { return Lab::Open(Name("a"), MonotonicClock()).value(); }
  static std::vector<ProcessId> ProcessesOf(const std::string& change) {
    const std::vector<Change> changes = Open().Changes().value();
    for (const Change& each : changes) {
      if (each.name == change) return each.processes;
    }
    return {};
  }

  // What the host sends, and what it gets, in Mbit/s with headers: the nearest to `expected` of up
  // to four measurements, since other work on the machine may hold up any of them.
  struct Rates {
    double out = 0;
    double in = 0;
  };
  static Rates RatesOf(const std::string& host, double expected) {
    const Lab lab = Open();
    const Spec& spec = lab.plan().spec;
    const int node = FindHost(spec, host).value();
    Rates nearest;
    const auto off = [&](const Rates& rates) {
      return std::min(std::abs(rates.out - expected), std::abs(rates.in - expected));
    };
    for (int attempt = 0; attempt < 4 && off(nearest) > 0.03 * expected; ++attempt) {
      const auto load = MeasureLoad(lab.plan(), 1, MonotonicClock()).value();
      for (size_t i = 0; i < spec.links.size(); ++i) {
        const Link& link = spec.links[i];
        if (link.a != node && link.b != node) continue;
        const size_t out = link.a == node ? 0 : 1;
        const Rates rates = {load[i][out] / 1e6, load[i][1 - out] / 1e6};
        if (off(rates) < off(nearest)) nearest = rates;
      }
    }
    return nearest;
  }
};

// A flow of TCP would give way to others, and differently every time.
TEST_F(LabFlowTest, AFlowOfUdpKeepsItsRate) {
  ASSERT_EQ(Up("a").code, 0);
  const Lab lab = Lab::Open(Name("a"), MonotonicClock()).value();
  const double uplink = 50 * kPayloadShare;
  EXPECT_NEAR(Measure(lab, "h0", "h2", uplink), uplink, 0.15 * uplink);
  const Outcome flow = Syncopate({"flow", "add", "h1", "h3", "--udp", "--rate", "25mbit",
                                  "--seconds", "120", "--lab", Name("a")});
  ASSERT_EQ(flow.code, 0) << flow.err;
  EXPECT_THAT(Syncopate({"status", Name("a")}).out, HasSubstr("--udp --rate 25mbit"));
  EXPECT_NEAR(Measure(lab, "h0", "h2", uplink / 2), uplink / 2, 0.25 * uplink);
  EXPECT_EQ(Syncopate({"flow", "add", "h1", "h3", "--udp", "--lab", Name("a")}).code, 2);
}

TEST_F(LabFlowTest, AFlowOfUdpTakesItsRateHoweverCrowdedItsWayIs) {
  ASSERT_EQ(Up("a").code, 0);
  AddFlow({"h1", "h3", "--udp", "--rate", "20mbit"});
  const double expected = 20 * kUdpWireShare;
  EXPECT_NEAR(RatesOf("h1", expected).out, expected, 0.03 * expected);
  EXPECT_NEAR(RatesOf("h3", expected).in, expected, 0.03 * expected);
  // Of 50 Mbit/s between the racks two flows of TCP alone would take all.
  AddFlow({"h0", "h2"});
  AddFlow({"h0", "h2"});
  const double crowd = 50 - expected;
  EXPECT_NEAR(RatesOf("h0", crowd).out, crowd, 0.15 * crowd) << "they give way";
  EXPECT_NEAR(RatesOf("h1", expected).out, expected, 0.03 * expected);
  EXPECT_GT(RatesOf("h3", expected).in, 0.85 * expected) << "what is dropped is little";
  // More of UDP than the link carries: nobody slows down, and packets are lost.
  AddFlow({"h0", "h3", "--udp", "--rate", "60mbit"});
  EXPECT_NEAR(RatesOf("h1", expected).out, expected, 0.03 * expected);
  EXPECT_NEAR(RatesOf("h3", 50).in, 50, 0.05 * 50);
}

TEST_F(LabFlowTest, AScenarioAddsAFlowOfUdpAndTakesItAway) {
  ASSERT_EQ(Up("a").code, 0);
  const std::string file = Write("s.toml",
                                 "[[event]]\nat = \"0s\"\nname = \"other\"\n"
                                 "do = \"flow add h1 h3 --udp --rate 20mbit\"\n"
                                 "[[event]]\nat = \"1000s\"\ndo = \"undo other\"\n");
  Subprocess scenario({SYNCOPATE_BINARY, "lab", "scenario", file, "--lab", Name("a")});
  const int64_t deadline_ns = MonotonicClock().NowNs() + syncopate::testing::kDeadlineNs;
  while (ProcessesOf("other").size() != 2 && MonotonicClock().NowNs() < deadline_ns) {
  }
  const std::vector<ProcessId> ends = ProcessesOf("other");
  ASSERT_EQ(ends.size(), 2u);
  const double expected = 20 * kUdpWireShare;
  EXPECT_NEAR(RatesOf("h3", expected).in, expected, 0.03 * expected);
  kill(scenario.pid(), SIGINT);
  EXPECT_EQ(scenario.Wait(), 128 + SIGINT);
  for (const ProcessId& end : ends) EXPECT_FALSE(IsAlive(end));
  EXPECT_TRUE(Open().Changes().value().empty());
}

TEST_F(LabFlowTest, AFlowOfUdpEndsByItselfWhenUndoneAndWithTheLab) {
  const Machine before;
  ASSERT_EQ(Up("a").code, 0);
  AddFlow({"h1", "h3", "--udp", "--rate", "5mbit", "--as", "undone"});
  AddFlow({"h0", "h2", "--udp", "--rate", "5mbit", "--as", "left"});
  AddFlow({"h0", "h3", "--udp", "--rate", "5mbit", "--seconds", "1", "--as", "short"});
  const std::vector<ProcessId> undone = ProcessesOf("undone"), left = ProcessesOf("left"),
                               ended = ProcessesOf("short");
  ASSERT_EQ(undone.size(), 2u);
  ASSERT_EQ(left.size(), 2u);
  ASSERT_EQ(Syncopate({"undo", "undone", "--lab", Name("a")}).code, 0);
  for (const ProcessId& end : undone) EXPECT_FALSE(IsAlive(end));
  for (const ProcessId& end : left) EXPECT_TRUE(IsAlive(end));
  const int64_t deadline_ns = MonotonicClock().NowNs() + syncopate::testing::kDeadlineNs;
  const auto short_lives = [&] { return std::any_of(ended.begin(), ended.end(), IsAlive); };
  while (short_lives() && MonotonicClock().NowNs() < deadline_ns) {
  }
  EXPECT_FALSE(short_lives());
  EXPECT_THAT(Syncopate({"status", Name("a")}).out,
              HasSubstr("short  flow add h0 h3 --udp --rate 5mbit --seconds 1  (has ended)"));
  ASSERT_EQ(Syncopate({"down", Name("a")}).code, 0);
  for (const ProcessId& end : left) EXPECT_FALSE(IsAlive(end));
  EXPECT_EQ(Machine(), before);
}

// Whichever end is killed, the other one does not go on sending, or waiting.
TEST_F(LabFlowTest, AFlowOfUdpEndsWhenOneOfItsEndsIsKilled) {
  ASSERT_EQ(Up("a").code, 0);
  for (const size_t killed : {size_t{0}, size_t{1}}) {
    const std::string name = killed == 0 ? "sender" : "receiver";
    AddFlow({"h1", "h3", "--udp", "--rate", "20mbit", "--as", name});
    const std::vector<ProcessId> ends = ProcessesOf(name);
    ASSERT_EQ(ends.size(), 2u);
    const double expected = 20 * kUdpWireShare;
    EXPECT_NEAR(RatesOf("h3", expected).in, expected, 0.1 * expected) << "it is under way";
    kill(ends[killed].pid, SIGKILL);
    const int64_t deadline_ns = MonotonicClock().NowNs() + syncopate::testing::kDeadlineNs;
    while (IsAlive(ends[1 - killed]) && MonotonicClock().NowNs() < deadline_ns) {
    }
    EXPECT_FALSE(IsAlive(ends[1 - killed])) << name;
    // It stands as a change that has ended, and can be undone as any other.
    EXPECT_THAT(Syncopate({"status", Name("a")}).out, HasSubstr("(has ended)"));
    EXPECT_EQ(Syncopate({"undo", name, "--lab", Name("a")}).code, 0);
  }
}

TEST_F(LabFlowTest, AFlowOfUdpWithoutARateIsRefused) {
  ASSERT_EQ(Up("a").code, 0);
  for (const std::vector<std::string>& without :
       std::vector<std::vector<std::string>>{{}, {"--rate", "none"}}) {
    std::vector<std::string> words = {"flow", "add", "h1", "h3", "--udp"};
    words.insert(words.end(), without.begin(), without.end());
    words.insert(words.end(), {"--lab", Name("a")});
    const Outcome refused = Syncopate(words);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("a flow of UDP needs a rate"));
  }
  EXPECT_TRUE(Open().Changes().value().empty());
}

}  // namespace
}  // namespace syncopate::lab
