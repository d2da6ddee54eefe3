// The detector on generated traffic: jobs in random networks that change.
#include "adapt/network_detector.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "adapt/network_traffic_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::adapt {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Program = TrafficJob::Program;

constexpr double kMatters = 1.2;  // a change that calls take so much longer for
constexpr double kTolerance = 0.15;
constexpr double kBefore = 10, kAfter = 15;  // seconds
constexpr Program kPrograms[] = {Program::kRing, Program::kAllPairs, Program::kLeaders};

// SYNCOPATE_TEST_SEEDS: how many; SYNCOPATE_TEST_SEED: only this one.
std::vector<uint64_t> Seeds() {
  if (const char* one = std::getenv("SYNCOPATE_TEST_SEED"))
    return {std::strtoull(one, nullptr, 10)};
  const char* many = std::getenv("SYNCOPATE_TEST_SEEDS");
  const uint64_t count = many == nullptr ? 10 : std::strtoull(many, nullptr, 10);
  std::vector<uint64_t> seeds;
  for (uint64_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
  return seeds;
}

std::string ProgramName(Program program) {
  return program == Program::kRing       ? "ring"
         : program == Program::kAllPairs ? "all pairs"
                                         : "leaders";
}

// One job in one network.
class Play {
 public:
  Play(uint64_t seed, Program program)
      : network(seed), detector(network.topology(), network.placement(), true), program_(program) {}

  // What was found in this time.
  std::vector<NetworkFindings> For(double seconds, const TrafficJob::Others& others = {}) {
    std::vector<NetworkFindings> found;
    job_.Play(program_, seconds, others, detector, found);
    return found;
  }

  double Known(const std::string& id) const {
    for (const Topology::Capacity& capacity : detector.topology().capacities) {
      if (capacity.id == id) return capacity.bandwidth;
    }
    return 0;
  }
  // All that the detector holds for true is near to what is so, but for these.
  void ExpectRight(const std::set<std::string>& others = {}) {
    for (const Topology::Capacity& capacity : network.topology().capacities) {
      if (others.count(capacity.id) > 0) continue;
      const double is = network.rate(capacity.id);
      EXPECT_NEAR(Known(capacity.id) / is, 1, kTolerance) << capacity.id;
    }
  }
  double call_seconds() const { return job_.call_seconds(); }
  int64_t now_ns() const { return static_cast<int64_t>(job_.now() * 1e9); }

  TrafficNetwork network;
  NetworkDetector detector;

 private:
  const Program program_;
  TrafficJob job_{network};
};

std::string Text(const std::vector<NetworkFindings>& found) {
  std::string text;
  for (const NetworkFindings& one : found) text += one.Reason() + "\n";
  return text;
}

bool Names(const std::vector<NetworkFindings>& found) {
  for (const NetworkFindings& one : found) {
    if (!one.changes.empty()) return true;
  }
  return false;
}

// Whether something was noticed, and these were among the suspects where nothing was named.
bool Noticed(const std::vector<NetworkFindings>& found, const std::set<std::string>& ids) {
  for (const NetworkFindings& one : found) {
    for (const auto& change : one.changes) {
      if (ids.count(change.id) > 0) return true;
    }
    for (const std::string& suspect : one.suspects) {
      if (ids.count(suspect) > 0) return true;
    }
  }
  return false;
}

struct Tally {
  int all = 0, noticed = 0, named = 0;
};

// Changes the rates of `ids` by `factor` and back. Whatever is named must be right, within the tolerance.
void ChangeAndBack(Play& play, const std::set<std::string>& ids, double factor, Tally& tally) {
  EXPECT_THAT(Text(play.For(kBefore)), IsEmpty());
  const double before = play.call_seconds();
  for (const std::string& id : ids) play.network.rate(id) *= factor;
  const std::vector<NetworkFindings> found = play.For(kAfter);
  // What holds up nothing is not missed, and need not be seen.
  if (play.call_seconds() < kMatters * before) return;
  ++tally.all;
  tally.noticed += Noticed(found, ids) ? 1 : 0;
  tally.named += Names(found) ? 1 : 0;
  SCOPED_TRACE(Text(found));
  // What traffic did not show stays as it was.
  std::set<std::string> unseen;
  for (const std::string& id : ids) {
    bool named = false;
    for (const NetworkFindings& one : found) {
      for (const auto& change : one.changes) named = named || change.id == id;
    }
    if (!named) unseen.insert(id);
  }
  play.ExpectRight(unseen);
  for (const std::string& id : ids) play.network.rate(id) /= factor;
  const std::vector<NetworkFindings> back = play.For(kAfter);
  SCOPED_TRACE(Text(back));
  play.ExpectRight();
}

TEST(NetworkDetectorTest, AnUplinkFallsAndComesBack) {
  Tally tally;
  for (const uint64_t seed : Seeds()) {
    for (const Program program : kPrograms) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + ProgramName(program));
      Play play(seed, program);
      const std::string rack =
          "rack" + std::to_string(seed % static_cast<uint64_t>(play.network.racks()));
      ChangeAndBack(play, {rack + ".up", rack + ".down"}, 0.25, tally);
    }
  }
  std::printf("uplinks: %d changes, %d noticed, %d named\n", tally.all, tally.noticed, tally.named);
  EXPECT_GE(tally.noticed, 0.9 * tally.all);
  EXPECT_GE(tally.named, 0.4 * tally.all);
}

TEST(NetworkDetectorTest, ANicHalvesAndComesBack) {
  Tally tally;
  for (const uint64_t seed : Seeds()) {
    for (const Program program : kPrograms) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + ProgramName(program));
      Play play(seed, program);
      const std::string host =
          "h" + std::to_string(seed % static_cast<uint64_t>(play.network.hosts()));
      ChangeAndBack(play, {host + ".out", host + ".in"}, 0.5, tally);
    }
  }
  std::printf("NICs: %d changes, %d noticed, %d named\n", tally.all, tally.noticed, tally.named);
  EXPECT_GE(tally.noticed, 0.9 * tally.all);
  EXPECT_GE(tally.named, 0.7 * tally.all);
}

// Flows of UDP take the same whatever others want.
TEST(NetworkDetectorTest, AFlowOfUdpOnAnUplink) {
  Tally tally;
  for (const uint64_t seed : Seeds()) {
    for (const Program program : kPrograms) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + ProgramName(program));
      Play play(seed, program);
      const std::string rack =
          "rack" + std::to_string(seed % static_cast<uint64_t>(play.network.racks()));
      ChangeAndBack(play, {rack + ".down"}, 0.3, tally);
    }
  }
  std::printf("UDP: %d changes, %d noticed, %d named\n", tally.all, tally.noticed, tally.named);
  EXPECT_GE(tally.noticed, 0.9 * tally.all);
}

// Flows of TCP take what they get, which is never the same for long. That is no rate of a link.
TEST(NetworkDetectorTest, FlowsOfTcpNameNothing) {
  for (const uint64_t seed : Seeds()) {
    for (const Program program : kPrograms) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + ProgramName(program));
      Play play(seed, program);
      EXPECT_THAT(Text(play.For(kBefore)), IsEmpty());
      const int up = play.network.Index("rack0.up"), down = play.network.Index("rack1.down");
      const std::vector<NetworkFindings> found = play.For(kAfter, {{up, down}, 4});
      EXPECT_FALSE(Names(found)) << Text(found);
      play.For(kAfter);
      play.ExpectRight();
    }
  }
}

// A host that computes slowly sends and takes by fits and starts.
TEST(NetworkDetectorTest, ASlowHostNamesNothing) {
  for (const uint64_t seed : Seeds()) {
    for (const Program program : kPrograms) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + ProgramName(program));
      Play play(seed, program);
      EXPECT_THAT(Text(play.For(kBefore)), IsEmpty());
      const int out = play.network.Index("h1.out"), in = play.network.Index("h1.in");
      const std::vector<NetworkFindings> found = play.For(kAfter, {{out, in}, 12});
      EXPECT_FALSE(Names(found)) << Text(found);
      play.For(kAfter);
      play.ExpectRight();
    }
  }
}

TEST(NetworkDetectorTest, AnAssumedRateIsNoBaselineAndNothingIsNamed) {
  for (const uint64_t seed : Seeds()) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TrafficNetwork network(seed);
    Topology assumed = network.topology();
    for (Topology::Capacity& capacity : assumed.capacities) capacity.bandwidth = 1.25e9;
    for (Topology::Link& link : assumed.links) link.bandwidth = 1.25e9;
    NetworkDetector detector(assumed, network.placement(), /*measured=*/false);
    for (const CapacityKnown& known : detector.Known(0)) EXPECT_EQ(known.rate, 0);
    TrafficJob job(network);
    std::vector<NetworkFindings> found;
    job.Play(Program::kRing, kBefore, {}, detector, found);
    EXPECT_THAT(Text(found), IsEmpty());
    for (const CapacityKnown& known : detector.Known(0)) {
      EXPECT_LE(known.rate, 1.05 * network.rate(known.id)) << known.id;
    }
    network.rate("rack0.up") *= 0.2;
    network.rate("rack0.down") *= 0.2;
    job.Play(Program::kRing, kAfter, {}, detector, found);
    EXPECT_FALSE(Names(found)) << Text(found);
    EXPECT_TRUE(Noticed(found, {"rack0.up", "rack0.down"})) << Text(found);
  }
}

TEST(NetworkDetectorTest, WhatTrafficCannotShowHasAnAge) {
  Play play(1, Program::kRing);
  for (const CapacityKnown& known : play.detector.Known(play.now_ns())) {
    EXPECT_LT(known.age_seconds, 0) << known.id;  // it was measured, but no traffic has shown it
  }
  play.For(kBefore);
  double youngest = 1e9;
  int never = 0;
  for (const CapacityKnown& known : play.detector.Known(play.now_ns())) {
    if (known.age_seconds >= 0) youngest = std::min(youngest, known.age_seconds);
    never += known.age_seconds < 0 ? 1 : 0;
  }
  EXPECT_LT(youngest, 3);
  EXPECT_GT(never, 0);  // what is wider than what holds the ring up
}

TEST(NetworkDetectorTest, RecordsOfNobodyAreNotTaken) {
  TrafficNetwork network(1);
  NetworkDetector detector(network.topology(), network.placement(), true);
  const TrafficRecord::Slot slot = {.bytes = 1 << 20, .busy_ns = NetworkDetector::kSlotNs};
  detector.Take({.to = -1, .begin_ns = 0, .flows = {{.from = 0, .slots = {slot}}}});
  detector.Take({.to = 0, .begin_ns = 0, .flows = {{.from = 999, .slots = {slot}}}});
  detector.Take({.to = 0, .begin_ns = -5, .flows = {{.from = 1, .slots = {slot}}}});
  EXPECT_THAT(detector.Judge(10 * NetworkDetector::kSlotNs).Reason(), IsEmpty());
}

}  // namespace
}  // namespace syncopate::adapt
