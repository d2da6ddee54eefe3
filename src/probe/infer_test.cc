// The inference on simulated networks: that racks and capacities are found, in how many
// measurements, whatever the noise.
#include "probe/infer.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "probe/simulated_oracle.h"
#include "probe/trial.h"

namespace syncopate::probe {
namespace {

using ::testing::ElementsAre;

std::string Describe(const NetworkShape& shape) {
  std::string text;
  for (const NetworkShape::Rack& rack : shape.racks) {
    absl::StrAppend(&text, rack.name, " up ", rack.up / 1e6, " down ", rack.down / 1e6, ":");
    for (const int host : rack.hosts) {
      const NetworkShape::Host& h = shape.hosts[static_cast<size_t>(host)];
      absl::StrAppend(&text, " ", h.name, "(", h.out / 1e6, "/", h.in / 1e6, ")");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

struct Tally {
  int networks = 0, racks_right = 0, capacities = 0, within = 0, flows_max = 0;
  double seconds_max = 0;
};

Tally TryNetworks(uint64_t first_seed, int count, const TrialOptions& options,
                  const SimulatedNoise& noise) {
  Tally tally;
  for (uint64_t seed = first_seed; seed < first_seed + static_cast<uint64_t>(count); ++seed) {
    const NetworkShape truth = RandomNetwork(seed, options);
    SimulatedOracle oracle(ToTopology(truth), noise, seed);
    const absl::StatusOr<Inference> found = InferNetwork(oracle, {});
    if (!found.ok()) {
      ADD_FAILURE() << found.status();
      continue;
    }
    const Verdict verdict = Compare(truth, found->shape);
    if (!verdict.racks_right) {
      std::cout << "seed " << seed << "\n"
                << Describe(truth) << "found\n"
                << Describe(found->shape);
    }
    ++tally.networks;
    tally.racks_right += verdict.racks_right ? 1 : 0;
    tally.capacities += verdict.capacities;
    tally.within += verdict.within;
    tally.flows_max = std::max(tally.flows_max, found->flows);
    tally.seconds_max = std::max(tally.seconds_max, found->seconds);
  }
  return tally;
}

TEST(InferTest, FindsRacksAndCapacitiesOfRandomNetworks) {
  SimulatedNoise noise;
  noise.outliers = 0;
  const Tally tally = TryNetworks(1, 500, {}, noise);
  EXPECT_GE(tally.racks_right, 0.995 * tally.networks);
  EXPECT_GE(tally.within, 0.95 * tally.capacities);
  EXPECT_LT(tally.seconds_max, 45) << "20 hosts";
}

// One flow in a hundred is measured at 0.3 to 0.8 of its rate: some twenty in each network.
TEST(InferTest, FindsThemAlthoughSomeMeasurementsAreFarOff) {
  const Tally tally = TryNetworks(1, 500, {}, {});
  EXPECT_GE(tally.racks_right, 0.99 * tally.networks);
  EXPECT_GE(tally.within, 0.95 * tally.capacities);
  EXPECT_LT(tally.seconds_max, 45) << "20 hosts";
}

TEST(InferTest, UplinksMayDifferByDirection) {
  TrialOptions options;
  options.equal_ways = false;
  SimulatedNoise noise;
  noise.outliers = 0;
  const Tally tally = TryNetworks(1, 100, options, noise);
  EXPECT_EQ(tally.racks_right, tally.networks);
  EXPECT_GE(tally.within, 0.95 * tally.capacities);
}

Inference Infer(const Topology& topology, const SimulatedNoise& noise = {}) {
  SimulatedOracle oracle(topology, noise, 7);
  absl::StatusOr<Inference> found = InferNetwork(oracle, {});
  EXPECT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(Validate(ToTopology(found->shape)).ok()) << Validate(ToTopology(found->shape));
  return *std::move(found);
}

TEST(InferTest, MeasurementsGrowSlowerThanTheSquare) {
  SimulatedNoise quiet;
  quiet.outliers = 0;
  std::vector<int> flows;
  for (const int hosts : {16, 32, 64, 128}) {
    SimulatedOracle oracle(TwoRackTopology(hosts / 2, 1e8, 1e8, 1e-4), quiet, 7);
    const absl::StatusOr<Inference> found = InferNetwork(oracle, {.budget_seconds = 120});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->shape.racks.size(), 2u) << hosts << " hosts";
    flows.push_back(found->flows);
  }
  for (size_t i = 1; i < flows.size(); ++i) EXPECT_LT(flows[i], 3 * flows[i - 1]);
}

TEST(InferTest, OneSwitchIsOneRack) {
  for (const int hosts : {2, 3, 8, 13}) {
    const Inference found = Infer(StarTopology(hosts, 1e8, 1e-4));
    EXPECT_EQ(found.shape.racks.size(), 1u) << Describe(found.shape);
    for (const NetworkShape::Host& host : found.shape.hosts) {
      EXPECT_NEAR(host.out, 1e8, 5e6);
      EXPECT_NEAR(host.in, 1e8, 5e6);
    }
  }
}

TEST(InferTest, UplinkAsFastAsANicShowsByConcurrencyOnly) {
  const Inference found = Infer(TwoRackTopology(4, 1e8, 1e8, 1e-4));
  ASSERT_EQ(found.shape.racks.size(), 2u) << Describe(found.shape);
  EXPECT_THAT(found.shape.racks[0].hosts, ElementsAre(0, 1, 2, 3));
  EXPECT_NEAR(found.shape.racks[0].up, 1e8, 5e6);
  const Topology topology = ToTopology(found.shape);
  EXPECT_EQ(topology.nodes[static_cast<size_t>(Devices(topology)[5])].group, "rack1");
  EXPECT_NEAR(found.shape.latency_between_racks, 2e-4, 1e-5);
}

TEST(InferTest, UplinkThatNobodyCanFillIsNotSeen) {
  const Inference found = Infer(TwoRackTopology(2, 1e8, 3e8, 1e-4));
  EXPECT_EQ(found.shape.racks.size(), 1u) << Describe(found.shape);
}

TEST(InferTest, PairsWithLinksOfTheirOwn) {
  Topology mesh = MeshTopology(6, 1e8, 1e-4);
  for (size_t i = 0; i < mesh.links.size(); ++i) mesh.links[i].bandwidth *= 1 + i % 3;
  for (const Topology& topology : {MeshTopology(6, 1e8, 1e-4), mesh}) {
    const Inference found = Infer(topology);
    ASSERT_EQ(found.shape.links.size(), 6u);
    size_t link = 0;
    for (size_t from = 0; from < 6; ++from) {
      for (size_t to = 0; to < 6; ++to) {
        if (from == to) continue;
        const double rate = topology.links[link++].bandwidth;
        EXPECT_NEAR(found.shape.links[from][to], rate, 0.1 * rate);
      }
    }
  }
}

TEST(InferTest, WorkersOfOneHostShareItsNic) {
  NetworkShape truth = RandomNetwork(3, {});
  const int hosts = static_cast<int>(truth.hosts.size());
  for (int h = 0; h < hosts; ++h) truth.hosts[static_cast<size_t>(h)].workers = {h, h + hosts};
  const Inference found = Infer(ToTopology(truth));
  EXPECT_TRUE(Compare(truth, found.shape).racks_right);
  EXPECT_THAT(found.shape.hosts[1].workers, ElementsAre(1, 1 + hosts));
  EXPECT_EQ(Devices(ToTopology(found.shape)).size(), static_cast<size_t>(2 * hosts));
}

TEST(InferTest, RacksInPods) {
  // Four racks of three, two in a pod; the pods' uplinks are as fast as one rack's.
  NetworkShape truth;
  for (int pod = 0; pod < 2; ++pod) {
    truth.pods.push_back({"pod" + std::to_string(pod), {2 * pod, 2 * pod + 1}, 5e7, 5e7});
  }
  for (int rack = 0; rack < 4; ++rack) {
    truth.racks.push_back({"rack" + std::to_string(rack), {}, rack / 2, 6e7, 6e7, 1e-4});
    for (int i = 0; i < 3; ++i) {
      const int host = 3 * rack + i;
      truth.racks.back().hosts.push_back(host);
      truth.hosts.push_back({"h" + std::to_string(host), {host}, rack, 1e8, 1e8});
    }
  }
  truth.latency_between_racks = 3e-4;
  const Inference found = Infer(ToTopology(truth));
  ASSERT_EQ(found.shape.racks.size(), 4u) << Describe(found.shape);
  ASSERT_EQ(found.shape.pods.size(), 2u) << Describe(found.shape);
  EXPECT_THAT(found.shape.pods[0].racks, ElementsAre(0, 1));
  EXPECT_NEAR(found.shape.pods[1].up, 5e7, 5e6);
  const Topology topology = ToTopology(found.shape);
  EXPECT_EQ(topology.nodes[static_cast<size_t>(Devices(topology)[11])].group, "pod1/rack3");
}

TEST(InferTest, OneWorkerAndOneHostNeedNoMeasurement) {
  EXPECT_EQ(Infer(StarTopology(1, 1e8, 1e-4)).experiments, 0);
  const Inference one_host = Infer(SingleHostTopology(4, {}));
  EXPECT_EQ(one_host.experiments, 0);
  EXPECT_EQ(Devices(ToTopology(one_host.shape)).size(), 4u);
}

// A simulated network whose hosts lose processor time for some seconds: flows are measured at 0.4
// to 0.9 of their rates. `tells`: what a hypervisor takes is known.
class DisturbedOracle final : public Oracle {
 public:
  DisturbedOracle(Oracle& quiet, uint64_t seed, bool tells)
      : quiet_(quiet), tells_(tells), random_(seed) {}

  int size() const override { return quiet_.size(); }
  std::string HostOf(int worker) const override { return quiet_.HostOf(worker); }
  absl::StatusOr<double> Latency(int from, int to) override { return quiet_.Latency(from, to); }
  absl::StatusOr<std::vector<double>> Rates(absl::Span<const Flow> flows, double seconds) override {
    disturbed_ = Elapsed() > 1 && Elapsed() < 5;
    absl::StatusOr<std::vector<double>> rates = quiet_.Rates(flows, seconds);
    if (!rates.ok() || !disturbed_) return rates;
    for (double& rate : *rates) rate *= 0.4 + 0.5 * random_.Unit();
    return rates;
  }
  double Stolen(int) const override { return tells_ && disturbed_ ? 0.3 : 0.01; }
  void Wait(double seconds) override { quiet_.Wait(seconds); }
  double Elapsed() const override { return quiet_.Elapsed(); }

 private:
  Oracle& quiet_;
  const bool tells_;
  Random random_;
  bool disturbed_ = false;
};

TEST(InferTest, StolenTimeIsWaitedOut) {
  SimulatedNoise noise;
  noise.outliers = 0;
  int right = 0, right_if_blind = 0;
  constexpr int kNetworks = 100;
  for (uint64_t seed = 1; seed <= kNetworks; ++seed) {
    const NetworkShape truth = RandomNetwork(seed, {});
    for (const bool tells : {true, false}) {
      SimulatedOracle quiet(ToTopology(truth), noise, seed);
      DisturbedOracle oracle(quiet, seed, tells);
      const absl::StatusOr<Inference> found = InferNetwork(oracle, {});
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ(found->disturbance.experiments, 0) << "it ended in time";
      (tells ? right : right_if_blind) += Compare(truth, found->shape).racks_right ? 1 : 0;
    }
  }
  EXPECT_GE(right, 0.98 * kNetworks);
  EXPECT_GT(right, right_if_blind);
}

TEST(InferTest, ErrorsOfTheOracleArePassedOn) {
  class Broken final : public Oracle {
   public:
    int size() const override { return 3; }
    std::string HostOf(int worker) const override { return std::to_string(worker); }
    absl::StatusOr<double> Latency(int, int) override { return 1.0; }
    absl::StatusOr<std::vector<double>> Rates(absl::Span<const Flow>, double) override {
      return absl::UnavailableError("worker 2 died");
    }
    double Stolen(int) const override { return 0; }
    void Wait(double) override {}
    double Elapsed() const override { return 0; }
  } broken;
  EXPECT_EQ(InferNetwork(broken, {}).status(), absl::UnavailableError("worker 2 died"));
}

}  // namespace
}  // namespace syncopate::probe
