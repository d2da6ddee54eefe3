// Upkeep in simulation: changes are noticed in time and in the right place; nothing is made of the
// noise of a busy machine.
#include "probe/upkeep.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "probe/simulated_oracle.h"

namespace syncopate::probe {
namespace {

constexpr uint64_t kBytes = 256 << 10;  // of a flow in an iteration

// A job that runs the same flows in every iteration, on a machine that is busy with other things.
class Job {
 public:
  Job(const Topology& topology, std::vector<Oracle::Flow> flows, uint64_t seed)
      : topology_(topology), flows_(std::move(flows)), random_(seed) {
    Recompute();
  }

  void Scale(const std::string& capacity, double factor) {
    for (size_t c = 0; c < topology_.capacities.size(); ++c) {
      if (topology_.capacities[c].id != capacity) continue;
      topology_.capacities[c].bandwidth *= factor;
      for (Topology::Link& link : topology_.links) {
        if (link.capacities == std::vector<int>{static_cast<int>(c)}) link.bandwidth *= factor;
      }
    }
    Recompute();
  }

  std::vector<TrafficSample> Iterate() {
    // Now and then the whole machine is busy for two or three iterations.
    if (burst_ == 0 && random_.Unit() < 1.0 / 60) burst_ = static_cast<int>(random_.Between(2, 3));
    double all = 1;
    if (burst_ > 0) {
      --burst_;
      all = 0.3 + 0.4 * random_.Unit();
    }
    std::vector<TrafficSample> samples;
    for (size_t i = 0; i < flows_.size(); ++i) {
      double rate = rates_[i] * all * (0.92 + 0.08 * random_.Unit());
      if (random_.Unit() < 0.03) rate *= 0.3 + 0.4 * random_.Unit();
      samples.push_back({flows_[i].from, flows_[i].to, kBytes, static_cast<double>(kBytes) / rate});
    }
    return samples;
  }

  std::optional<TopologyChange> Watch(Upkeep& upkeep, uint64_t iteration) {
    const std::vector<TrafficSample> samples = Iterate();
    double seconds = 0;
    for (const TrafficSample& sample : samples) seconds = std::max(seconds, sample.busy_seconds);
    return upkeep.Observe(iteration, 0, 0.002 + seconds, samples);
  }

 private:
  void Recompute() {
    SimulatedNoise none;
    none.spread = 0;
    none.unfairness = 1;
    none.outliers = 0;
    rates_ = *SimulatedOracle(topology_, none, 1).Rates(flows_, 1);
  }

  Topology topology_;
  const std::vector<Oracle::Flow> flows_;
  Random random_;
  std::vector<double> rates_;
  int burst_ = 0;
};

std::vector<Oracle::Flow> Ring(int workers) {
  std::vector<Oracle::Flow> flows;
  for (int i = 0; i < workers; ++i) flows.push_back({i, (i + 1) % workers});
  return flows;
}

// Pairs in the racks and across, as a hierarchical program has them.
std::vector<Oracle::Flow> TwoLevels(int per_rack) {
  std::vector<Oracle::Flow> flows;
  for (int i = 0; i < per_rack; ++i) {
    for (const int rack : {0, per_rack}) flows.push_back({rack + i, rack + (i + 1) % per_rack});
    flows.push_back({i, per_rack + i});
    flows.push_back({per_rack + i, i});
  }
  return flows;
}

TEST(UpkeepTest, NoFalseAlarmInAThousandIterations) {
  const Topology topology = TwoRackTopology(4, 25e6, 25e6, 1e-4);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const std::vector<Oracle::Flow>& flows : {Ring(8), TwoLevels(4)}) {
      Job job(topology, flows, seed);
      Upkeep upkeep(topology, Devices(topology));
      for (uint64_t iteration = 0; iteration < 1000; ++iteration) {
        const auto change = job.Watch(upkeep, iteration);
        ASSERT_FALSE(change.has_value())
            << "seed " << seed << ", iteration " << iteration << ": " << change->reason;
      }
      EXPECT_EQ(upkeep.topology(), topology);
    }
  }
}

// Scales the capacity at a random iteration; what Upkeep says within 10 of them.
std::optional<TopologyChange> Notice(Job& job, Upkeep& upkeep, uint64_t& iteration,
                                     const std::string& capacity, double factor) {
  job.Scale(capacity, factor);
  const uint64_t changed = iteration;
  for (; iteration < changed + 10; ++iteration) {
    auto change = job.Watch(upkeep, iteration);
    if (!change) continue;
    EXPECT_GE(change->since + 3, changed) << change->reason;
    ++iteration;
    return change;
  }
  return std::nullopt;
}

TEST(UpkeepTest, ChangesAreNoticedWithinTenIterations) {
  const Topology topology = TwoRackTopology(4, 25e6, 25e6, 1e-4);
  int noticed = 0, right = 0, tries = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    for (const std::string capacity : {"uplink0", "uplink1", "device2.up", "device5.down"}) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << capacity);
      Job job(topology, TwoLevels(4), seed);
      Upkeep upkeep(topology, Devices(topology));
      uint64_t iteration = 0;
      for (; iteration < 60 + seed; ++iteration) {
        ASSERT_FALSE(job.Watch(upkeep, iteration).has_value());
      }
      // A flow comes, and goes. A NIC must lose more before it holds up the job.
      const double part = absl::StrContains(capacity, "uplink") ? 0.4 : 0.25;
      for (const double factor : {part, 1 / part}) {
        ++tries;
        const auto change = Notice(job, upkeep, iteration, capacity, factor);
        ASSERT_TRUE(change.has_value()) << "not noticed: factor " << factor;
        ++noticed;
        if (change->elements.front().id == capacity) ++right;
        EXPECT_TRUE(absl::StrContains(change->reason, factor < 1 ? "slower" : "faster"));
        // What is left of it shows in a few more iterations at most.
        for (int i = 0; i < 30; ++i, ++iteration) job.Watch(upkeep, iteration);
      }
      EXPECT_GE(upkeep.topology().version, topology.version + 2);
      EXPECT_TRUE(Validate(upkeep.topology()).ok());
    }
  }
  EXPECT_EQ(noticed, tries);
  EXPECT_GE(right, 0.9 * tries) << right << " of " << tries << " in the right place";
}

TEST(UpkeepTest, TheNewVersionHasTheNewRateAndTheReason) {
  const Topology topology = TwoRackTopology(2, 25e6, 12.5e6, 1e-4);
  Job job(topology, TwoLevels(2), 5);
  Upkeep upkeep(topology, Devices(topology));
  uint64_t iteration = 0;
  for (; iteration < 30; ++iteration) job.Watch(upkeep, iteration);
  const auto change = Notice(job, upkeep, iteration, "uplink0", 0.5);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->topology.version, topology.version + 1);
  EXPECT_EQ(change->topology, upkeep.topology());
  ASSERT_EQ(change->elements.size(), 1u) << change->reason;
  EXPECT_EQ(change->elements[0].id, "uplink0");
  EXPECT_NEAR(change->elements[0].after, 6.25e6, 0.15 * 6.25e6);
  EXPECT_EQ(change->elements[0].flows.size(), 2u);
  EXPECT_TRUE(absl::StrContains(change->reason, "uplink0: about 12.5 MB/s -> 6."))
      << change->reason;
  EXPECT_EQ(change->topology.source, change->reason);
}

TEST(UpkeepTest, SmallAndSenselessSamplesAreLeftOut) {
  const Topology topology = StarTopology(2, 25e6, 1e-4);
  Upkeep upkeep(topology, Devices(topology));
  for (uint64_t iteration = 0; iteration < 100; ++iteration) {
    const double rate = iteration < 50 ? 25e6 : 1e6;
    const std::vector<TrafficSample> samples = {{0, 1, 100, 100 / rate},
                                                {0, 9, kBytes, 1},
                                                {-1, 0, kBytes, 1},
                                                {1, 1, kBytes, 1},
                                                {1, 0, kBytes, 0}};
    EXPECT_FALSE(upkeep.Observe(iteration, 0, 1, samples).has_value());
  }
}

// A job that does something else for a while, and achieves something else in it.
TEST(UpkeepTest, KindsOfIterationsAreComparedWithTheirOwnOnly) {
  const Topology topology = StarTopology(2, 25e6, 1e-4);
  Upkeep upkeep(topology, Devices(topology));
  uint64_t iteration = 0;
  const auto run = [&](uint64_t kind, double rate) {
    int changes = 0;
    for (int i = 0; i < 50; ++i) {
      const std::vector<TrafficSample> samples = {{0, 1, kBytes, kBytes / rate}};
      changes += upkeep.Observe(iteration++, kind, kBytes / rate, samples).has_value() ? 1 : 0;
    }
    return changes;
  };
  EXPECT_EQ(run(1, 20e6), 0);
  EXPECT_EQ(run(2, 10e6), 0) << "the job moves its data differently";
  EXPECT_EQ(run(1, 20e6), 0);
  EXPECT_EQ(run(2, 5e6), 1);
  EXPECT_EQ(run(1, 10e6), 0) << "what is known of one kind holds for the other";
  EXPECT_EQ(run(1, 20e6), 1);
}

// What a job's flows achieve on a network that it does not wait for is up to the processors.
TEST(UpkeepTest, NothingIsNoticedWhereTheNetworkHoldsUpNothing) {
  const Topology topology = StarTopology(4, 25e6, 1e-4);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Upkeep upkeep(topology, Devices(topology));
    Random random(seed);
    double slow = 1;
    for (uint64_t iteration = 0; iteration < 1000; ++iteration) {
      if (random.Unit() < 0.02) slow = 0.2 + random.Unit();
      std::vector<TrafficSample> samples;
      for (const Oracle::Flow& flow : Ring(4)) {
        samples.push_back({flow.from, flow.to, kBytes, slow * (0.002 + 0.008 * random.Unit())});
      }
      const auto change = upkeep.Observe(iteration, 0, slow * 0.015, samples);
      ASSERT_FALSE(change.has_value()) << "seed " << seed << ": " << change->reason;
    }
  }
}

// In a ring, a NIC and an uplink may be crossed by one flow each: only both directions together
// tell them apart.
TEST(UpkeepTest, BothDirectionsOfACableAreToldFromTwoOthers) {
  const Topology topology = TwoRackTopology(4, 25e6, 25e6, 1e-4);
  const auto blamed = [&](const std::vector<std::pair<int, int>>& slow) {
    Upkeep upkeep(topology, Devices(topology));
    for (uint64_t iteration = 0; iteration < 40; ++iteration) {
      std::vector<TrafficSample> samples;
      for (const Oracle::Flow& flow : Ring(8)) {
        const bool now = iteration >= 20 && std::count(slow.begin(), slow.end(),
                                                       std::make_pair(flow.from, flow.to)) > 0;
        samples.push_back({flow.from, flow.to, kBytes, kBytes / (now ? 12e6 : 24e6)});
      }
      const auto change =
          upkeep.Observe(iteration, 0, kBytes / (iteration < 20 ? 24e6 : 12e6), samples);
      if (!change) continue;
      std::set<std::string> ids;
      for (const TopologyChange::Element& element : change->elements) ids.insert(element.id);
      return ids;
    }
    return std::set<std::string>();
  };
  EXPECT_EQ(blamed({{1, 2}, {2, 3}}), (std::set<std::string>{"device2.up", "device2.down"}));
  const std::set<std::string> uplinks = blamed({{3, 4}, {7, 0}});
  EXPECT_EQ(uplinks.size(), 2u);
  for (const std::string& id : uplinks) EXPECT_TRUE(absl::StrContains(id, "uplink")) << id;
}

}  // namespace
}  // namespace syncopate::probe
