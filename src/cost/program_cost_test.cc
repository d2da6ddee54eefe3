// Each test states the formula that it holds the model to.
#include "cost/program_cost.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_samples.h"
#include "model/topology_makers.h"

namespace syncopate::cost {
namespace {

using samples::Copy;
using samples::Empty;
using samples::Receive;
using samples::ReceiveReduce;
using samples::Reduce;
using samples::Send;
using ::testing::HasSubstr;

constexpr double kB = 1e9;       // bytes/s
constexpr double kAlpha = 1e-5;  // seconds
constexpr size_t kFloat = 4;

ProgramCost Cost(const Program& program, const Topology& topology, size_t bytes = kFloat) {
  EXPECT_EQ(std::string(Validate(topology).message()), "");
  absl::StatusOr<ProgramCost> cost =
      CostOf(program, topology, *PlaceInOrder(topology, program.workers), bytes);
  EXPECT_EQ(std::string(cost.status().message()), "");
  return cost.ok() ? *std::move(cost) : ProgramCost();
}

double Bytes(const Program& program) {
  return static_cast<double>(program.elements()) * static_cast<double>(kFloat);
}

#define EXPECT_WITHIN_PERCENT(value, expected) EXPECT_NEAR(value, expected, 0.01 * (expected))

// One message of one chunk from the first worker to the last.
Program OneMessage(uint64_t elements) {
  Program program = Empty(Collective::kBroadcast, 2, 1, elements);
  program.steps[0] = {Send(1, 0)};
  program.steps[1] = {Receive(0, 0)};
  return program;
}

// The first worker's data goes down a chain in `pieces`.
Program Chain(int workers, uint32_t pieces, uint64_t elements) {
  Program program = Empty(Collective::kBroadcast, workers, pieces, elements / pieces);
  for (int worker = 0; worker < workers; ++worker) {
    std::vector<Step>& steps = program.steps[worker];
    for (uint32_t piece = 0; piece < pieces; ++piece) {
      const uint32_t index = static_cast<uint32_t>(steps.size());
      if (worker > 0) steps.push_back(Receive(worker - 1, piece));
      if (worker + 1 == workers) continue;
      steps.push_back(Send(worker + 1, piece));
      if (worker > 0) steps.back().after.push_back(index);
    }
  }
  return program;
}

// Worker i in the first half sends all its data to worker i + n/2.
Program Halves(int workers, uint64_t elements) {
  Program program = Empty(Collective::kBroadcast, workers, 1, elements);
  for (int worker = 0; worker < workers / 2; ++worker) {
    program.steps[worker] = {Send(worker + workers / 2, 0)};
    program.steps[worker + workers / 2] = {Receive(worker, 0)};
  }
  return program;
}

TEST(ProgramCostTest, OneMessageTakesAlphaPlusBytesOverBandwidth) {
  const Program program = OneMessage(1'000'000);
  EXPECT_WITHIN_PERCENT(Cost(program, StarTopology(2, kB, kAlpha)).seconds, kAlpha + 4e6 / kB);
  EXPECT_WITHIN_PERCENT(Cost(program, MeshTopology(2, kB, kAlpha)).seconds, kAlpha + 4e6 / kB);
}

TEST(ProgramCostTest, AnEmptyMessageTakesAlpha) {
  EXPECT_WITHIN_PERCENT(Cost(OneMessage(0), StarTopology(2, kB, kAlpha)).seconds, kAlpha);
}

TEST(ProgramCostTest, AProgramWithoutStepsTakesNoTime) {
  const ProgramCost cost =
      Cost(Empty(Collective::kAllReduce, 1, 1), SingleHostTopology(1, HostCosts()));
  EXPECT_EQ(cost.seconds, 0);
  EXPECT_TRUE(cost.critical_chain.empty());
}

// 2(n-1) alpha + 2(n-1)/n S/B
TEST(ProgramCostTest, RingOnAStar) {
  for (const int n : {2, 3, 8, 17}) {
    for (const uint64_t chunk : {1, 1000, 1'000'000}) {
      const Program program = samples::RingAllReduce(n, chunk);
      const double rounds = 2 * (n - 1);
      const ProgramCost cost = Cost(program, StarTopology(n, kB, kAlpha));
      EXPECT_WITHIN_PERCENT(cost.seconds, rounds * kAlpha + rounds / n * Bytes(program) / kB);
      EXPECT_EQ(cost.messages, static_cast<uint64_t>(rounds) * n);
      EXPECT_DOUBLE_EQ(cost.bytes_sent_max, rounds / n * Bytes(program));
      EXPECT_DOUBLE_EQ(cost.bytes_sent_total, rounds * Bytes(program));
    }
  }
}

// Every pair has its own link, so the n-1 shares of a round travel at once: of S/n each, twice. The
// additions into a chunk follow one another, so the first phase takes n-1 times one share.
TEST(ProgramCostTest, DirectOnAMesh) {
  const int n = 8;
  const Program program = samples::DirectAllReduce(n, 1'000'000);
  const double share = Bytes(program) / n / kB;
  EXPECT_WITHIN_PERCENT(Cost(program, MeshTopology(n, kB, kAlpha)).seconds,
                        2 * kAlpha + (n - 1) * share + share);
}

// A latency passes while earlier messages flow: n-1 additions that are ready at the start cost one
// alpha, not n-1.
TEST(ProgramCostTest, WaitingOffersDoNotPayTheirLatencyAgain) {
  const int n = 8;
  EXPECT_WITHIN_PERCENT(Cost(samples::DirectAllReduce(n, 0), MeshTopology(n, kB, kAlpha)).seconds,
                        2 * kAlpha);
}

// (n-1) alpha + (pieces + n - 2) (S/pieces)/B
TEST(ProgramCostTest, PipelinedChain) {
  for (const int n : {2, 4, 9}) {
    for (const uint32_t pieces : {1u, 4u, 100u}) {
      const Program program = Chain(n, pieces, 10'000'000);
      EXPECT_WITHIN_PERCENT(Cost(program, StarTopology(n, kB, kAlpha)).seconds,
                            (n - 1) * kAlpha + (pieces + n - 2) * Bytes(program) / pieces / kB);
    }
  }
}

// Two flows over one uplink get half each; four over one of twice the NICs' rate likewise.
TEST(ProgramCostTest, FlowsShareAnUplink) {
  const double bytes = 4e6;
  EXPECT_WITHIN_PERCENT(Cost(Halves(2, 1'000'000), TwoRackTopology(1, kB, kB, kAlpha)).seconds,
                        2 * kAlpha + bytes / kB);
  EXPECT_WITHIN_PERCENT(Cost(Halves(4, 1'000'000), TwoRackTopology(2, kB, kB, kAlpha)).seconds,
                        2 * kAlpha + 2 * bytes / kB);
  EXPECT_WITHIN_PERCENT(Cost(Halves(8, 1'000'000), TwoRackTopology(4, kB, 2 * kB, kAlpha)).seconds,
                        2 * kAlpha + 2 * bytes / kB);
  // A faster uplink than all NICs together does not limit.
  EXPECT_WITHIN_PERCENT(Cost(Halves(8, 1'000'000), TwoRackTopology(4, kB, 9 * kB, kAlpha)).seconds,
                        2 * kAlpha + bytes / kB);
}

// A half-duplex NIC is one capacity for both directions: an exchange takes twice as long as on a
// full-duplex one.
TEST(ProgramCostTest, BothDirectionsShareAHalfDuplexNic) {
  Program exchange = Empty(Collective::kAllReduce, 2, 2, 1'000'000);
  exchange.steps[0] = {Send(1, 0), Receive(1, 1)};
  exchange.steps[1] = {Send(0, 1), Receive(0, 0)};
  Topology topology = StarTopology(2, kB, kAlpha);
  EXPECT_WITHIN_PERCENT(Cost(exchange, topology).seconds, kAlpha + 4e6 / kB);
  for (Topology::Link& link : topology.links) link.capacities = {0};
  // Each message crosses the shared capacity twice: out of one device and into the other.
  EXPECT_WITHIN_PERCENT(Cost(exchange, topology).seconds, kAlpha + 2 * 2 * 4e6 / kB);
}

// All to one: the receiver's NIC carries all of it.
TEST(ProgramCostTest, IncastSharesTheReceiversNic) {
  const int n = 5;
  Program program = Empty(Collective::kGather, n, n, 1'000'000);
  for (int peer = 1; peer < n; ++peer) {
    program.steps[peer] = {Send(0, static_cast<uint32_t>(peer))};
    program.steps[0].push_back(Receive(peer, static_cast<uint32_t>(peer)));
  }
  const ProgramCost cost = Cost(program, StarTopology(n, kB, kAlpha));
  EXPECT_WITHIN_PERCENT(cost.seconds, kAlpha + (n - 1) * 4e6 / kB);
  const double part = (n - 1) * 4e6 / kB / cost.seconds;
  // Links 0 and 1 are those of device 0, up and down; capacities likewise.
  EXPECT_DOUBLE_EQ(cost.links[0].bytes, 0);
  EXPECT_DOUBLE_EQ(cost.links[1].bytes, (n - 1) * 4e6);
  EXPECT_WITHIN_PERCENT(cost.links[1].utilisation, part);
  EXPECT_DOUBLE_EQ(cost.capacities[1].bytes, (n - 1) * 4e6);
  EXPECT_WITHIN_PERCENT(cost.capacities[1].utilisation, part);
  EXPECT_DOUBLE_EQ(cost.links[2].bytes, 4e6);
  EXPECT_WITHIN_PERCENT(cost.links[2].utilisation, part / (n - 1));
}

HostCosts PlainHost() {
  HostCosts costs;
  costs.cores = 8;
  costs.memory_bandwidth = 30e9;
  costs.cached_bandwidth = 120e9;
  costs.cache_bytes = 1 << 20;
  costs.handover = 1e-6;
  costs.message_overhead = 0;
  return costs;
}

// Memory traffic for b bytes: receive 2b, receive-reduce 3b, copy 2b, reduce 3b.
TEST(ProgramCostTest, MemoryTrafficOnOneHost) {
  const double b = 4e8;
  const uint64_t elements = 100'000'000;
  const Topology host = SingleHostTopology(2, PlainHost());
  Program program = OneMessage(elements);
  EXPECT_WITHIN_PERCENT(Cost(program, host).seconds, 1e-6 + 2 * b / 30e9);
  program.collective = Collective::kAllReduce;
  program.root = -1;
  program.steps[1] = {ReceiveReduce(0, 0)};
  EXPECT_WITHIN_PERCENT(Cost(program, host).seconds, 1e-6 + 3 * b / 30e9);
  program = Empty(Collective::kAllReduce, 2, 2, elements);
  program.steps[0] = {Copy(Space::kData, 0, Space::kData, 1)};
  EXPECT_WITHIN_PERCENT(Cost(program, host).seconds, 2 * b / 30e9);
  program.steps[0] = {Reduce(Space::kData, 0, Space::kData, 1)};
  EXPECT_WITHIN_PERCENT(Cost(program, host).seconds, 3 * b / 30e9);
  // Two workers share the bus.
  program.steps[1] = {Reduce(Space::kData, 0, Space::kData, 1)};
  EXPECT_WITHIN_PERCENT(Cost(program, host).seconds, 2 * 3 * b / 30e9);
  // Where no memory is declared it costs nothing.
  EXPECT_EQ(Cost(program, StarTopology(2, kB, kAlpha)).seconds, 0);
}

// The buffers of both workers fit into the cache, or not.
TEST(ProgramCostTest, CachedDataIsFaster) {
  const Topology host = SingleHostTopology(2, PlainHost());
  const uint64_t fits = (1 << 20) / 2 / 4;
  EXPECT_WITHIN_PERCENT(Cost(OneMessage(fits), host).seconds,
                        1e-6 + 2 * 4.0 * static_cast<double>(fits) / 120e9);
  EXPECT_WITHIN_PERCENT(Cost(OneMessage(fits + 1), host).seconds,
                        1e-6 + 2 * 4.0 * static_cast<double>(fits) / 30e9);
}

// A device's own time is shared by all its messages: k messages of overhead o take at least k o.
TEST(ProgramCostTest, MessageOverheadsAddUpOnADevice) {
  const int n = 9;
  Program program = Empty(Collective::kGather, n, n, 1);
  for (int peer = 1; peer < n; ++peer) {
    program.steps[peer] = {Send(0, static_cast<uint32_t>(peer))};
    program.steps[0].push_back(Receive(peer, static_cast<uint32_t>(peer)));
  }
  Topology topology = StarTopology(n, kB, kAlpha);
  for (Topology::Node& node : topology.nodes) {
    if (node.kind == NodeKind::kDevice) node.message_overhead = 1e-4;
  }
  EXPECT_WITHIN_PERCENT(Cost(program, topology).seconds, kAlpha + (n - 1) * 1e-4);
  program.data_bounds.assign(n + 1, 0);  // empty messages have it too
  EXPECT_WITHIN_PERCENT(Cost(program, topology).seconds, kAlpha + (n - 1) * 1e-4);
}

// Devices of an emulated network have the machine's cores together: messages of others cost too.
TEST(ProgramCostTest, MessageOverheadsAddUpOnSharedCores) {
  const int n = 8;
  Program program = Empty(Collective::kAllToAll, n, n, 1);
  for (int worker = 0; worker < n; worker += 2) {  // pairs that have nothing to do with each other
    program.steps[worker] = {Send(worker + 1, static_cast<uint32_t>(worker))};
    program.steps[worker + 1] = {Receive(worker, static_cast<uint32_t>(worker))};
  }
  Topology topology = StarTopology(n, kB, kAlpha);
  for (Topology::Node& node : topology.nodes) {
    if (node.kind == NodeKind::kDevice) node.message_overhead = 1e-4;
  }
  EXPECT_WITHIN_PERCENT(Cost(program, topology).seconds, kAlpha + 1e-4);
  topology.shared_cores = 2;
  EXPECT_WITHIN_PERCENT(Cost(program, topology).seconds, kAlpha + n * 1e-4 / 2);
  topology.shared_cores = 2 * n;  // more than they can use
  EXPECT_WITHIN_PERCENT(Cost(program, topology).seconds, kAlpha + 1e-4);
}

TEST(ProgramCostTest, WorkersOnOneDeviceNeedNoLink) {
  const Topology topology = StarTopology(1, kB, kAlpha);
  const int device = Devices(topology)[0];
  EXPECT_EQ(CostOf(OneMessage(100), topology, {device, device}, kFloat)->seconds, 0);
}

TEST(ProgramCostTest, WorkersFinishWhenTheirLastStepDoes) {
  const Program program = Chain(3, 1, 1'000'000);
  const ProgramCost cost = Cost(program, StarTopology(3, kB, kAlpha));
  const double hop = kAlpha + 4e6 / kB;
  EXPECT_WITHIN_PERCENT(cost.worker_seconds[0], hop);
  EXPECT_WITHIN_PERCENT(cost.worker_seconds[1], 2 * hop);
  EXPECT_WITHIN_PERCENT(cost.worker_seconds[2], 2 * hop);
}

// The chain's elements follow one another without a gap, and each is a receive or a local step.
void CheckChain(const Program& program, const ProgramCost& cost) {
  ASSERT_FALSE(cost.critical_chain.empty());
  EXPECT_EQ(cost.critical_chain.front().begin, 0);
  EXPECT_EQ(cost.critical_chain.back().end, cost.seconds);
  double at = 0;
  for (const ProgramCost::ChainStep& element : cost.critical_chain) {
    EXPECT_EQ(element.begin, at);
    EXPECT_LE(element.begin, element.end);
    EXPECT_NE(program.steps[element.worker][element.step].kind, StepKind::kSend);
    at = element.end;
  }
}

TEST(ProgramCostTest, CriticalChainOfAPipeline) {
  const Program program = Chain(3, 2, 1'000'000);
  const ProgramCost cost = Cost(program, StarTopology(3, kB, kAlpha));
  CheckChain(program, cost);
  // Piece 0 to worker 1, then either piece goes on: three hops of half the data.
  ASSERT_EQ(cost.critical_chain.size(), 3u);
  EXPECT_EQ(cost.critical_chain[0].worker, 1);
  EXPECT_EQ(cost.critical_chain[0].step, 0u);
  EXPECT_EQ(cost.critical_chain[2].worker, 2);
  EXPECT_EQ(cost.critical_chain[2].step, 1u);
}

TEST(ProgramCostTest, ASlowLinkIsOnTheCriticalChainOfARing) {
  const int n = 6;
  Topology topology = StarTopology(n, kB, kAlpha);
  topology.links[2 * 4].bandwidth = kB / 10;  // device 4, up
  const Program program = samples::RingAllReduce(n, 1'000'000);
  const ProgramCost cost = Cost(program, topology);
  CheckChain(program, cost);
  double over_the_slow_link = 0;
  for (const ProgramCost::ChainStep& element : cost.critical_chain) {
    if (element.worker == 5) over_the_slow_link += element.end - element.begin;
  }
  EXPECT_GT(over_the_slow_link, 0.8 * cost.seconds);
}

TEST(ProgramCostTest, NeverFasterThanTheFullestResource) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const int n = static_cast<int>(random.Between(2, 12));
    const Topology topology = RandomTopology(n, seed);
    const uint64_t chunk = random.Below(100'000);
    const Program program = random.Below(2) == 0 ? samples::RingAllReduce(n, chunk)
                                                 : samples::DirectAllReduce(n, chunk);
    const ProgramCost cost = Cost(program, topology);
    CheckChain(program, cost);
    for (size_t i = 0; i < topology.links.size(); ++i) {
      EXPECT_LE(cost.links[i].bytes / topology.links[i].bandwidth, cost.seconds * (1 + 1e-6));
    }
    for (size_t i = 0; i < topology.capacities.size(); ++i) {
      EXPECT_LE(cost.capacities[i].bytes / topology.capacities[i].bandwidth,
                cost.seconds * (1 + 1e-6));
    }
    const ProgramCost again = Cost(program, topology);
    EXPECT_EQ(again.seconds, cost.seconds);
  }
}

TEST(ProgramCostTest, RefusesProgramsThatDoNotEnd) {
  const Topology topology = StarTopology(2, kB, kAlpha);
  const std::vector<int> placement = *PlaceInOrder(topology, 2);
  Program program = Empty(Collective::kAllReduce, 2, 1);
  program.steps[0] = {Receive(1, 0), Send(1, 0, {0})};
  program.steps[1] = {Receive(0, 0), Send(0, 0, {0})};
  absl::Status status = CostOf(program, topology, placement, kFloat).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker 0, step 0 waits for ever"));

  program.steps[1] = {};
  status = CostOf(program, topology, placement, kFloat).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("there is no matching"));

  program = OneMessage(4);
  program.data_bounds = {0, 4, 6};
  program.steps[1][0].chunk = 1;
  status = CostOf(program, topology, placement, kFloat).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("2 elements are awaited, 4 are sent"));
}

TEST(ProgramCostTest, RefusesPlacementsThatDoNotFit) {
  const Topology topology = StarTopology(2, kB, kAlpha);
  const Program program = OneMessage(4);
  for (const std::vector<int>& placement :
       {std::vector<int>{1}, std::vector<int>{1, 99}, std::vector<int>{1, 0}}) {  // 0 is the switch
    EXPECT_EQ(CostOf(program, topology, placement, kFloat).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  Program bad = program;
  bad.steps[0][0].chunk = 7;
  EXPECT_EQ(CostOf(bad, topology, *PlaceInOrder(topology, 2), kFloat).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace syncopate::cost
