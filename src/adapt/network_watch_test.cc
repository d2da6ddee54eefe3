// Several workers in one process that watch the same network: their host notices changes from what all report,
// and all change their plans at the same call.
#include "adapt/network_watch.h"

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/value_agreement_testing.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"

namespace syncopate::adapt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kWatchedWorkers = 4;
constexpr int64_t kSlot = transport::Traffic::kSlotNs;
constexpr int kTickSlots = static_cast<int>(NetworkWatch::kTickNs / kSlot);
constexpr double kRate = 20e6;  // bytes/s of a NIC

// A ring that moves all the time, at the pace of the slowest NIC. The clocks of workers differ.
class Job {
 public:
  explicit Job(bool measured = true) {
    network = StarTopology(kWatchedWorkers, kRate, /*latency=*/50e-6);
    const std::vector<int> placement = *PlaceInOrder(network, kWatchedWorkers);
    for (int rank = 0; rank < kWatchedWorkers; ++rank) {
      agreements.push_back(std::make_unique<InstantAgreement>(agreed, rank));
      clocks_.push_back(std::make_unique<ManualClock>());
      clocks_.back()->AdvanceNs((rank + 1) * 1'000'000'000'000);
      watches.push_back(std::make_unique<NetworkWatch>(
          rank, network, placement, measured,
          NetworkWatch::Seams{.take_traffic = [this, rank] { return TrafficOf(rank); },
                              .send =
                                  [this, rank](int to, const std::string& message) {
                                    bytes_max = std::max(bytes_max, message.size());
                                    ++sent;
                                    mail_.push_back({rank, to, message});
                                  },
                              .host = [this] { return host; },
                              .beside = [](const std::function<void()>& work) { work(); },
                              .new_plans =
                                  [this, rank](uint64_t version, const Topology& topology) {
                                    published[rank].push_back(version);
                                    last[rank] = topology;
                                  }},
          *agreements.back(), *clocks_.back()));
    }
  }

  // Half a second in which every worker makes some calls; the versions that they are planned by.
  std::vector<uint64_t> Tick(double moved = 1) {
    for (const auto& clock : clocks_) clock->AdvanceNs(NetworkWatch::kTickNs);
    for (const auto& watch : watches) watch->Tick();
    while (!mail_.empty()) {
      const auto [from, to, message] = mail_.front();
      mail_.pop_front();
      watches[static_cast<size_t>(to)]->Received(from, message);
    }
    std::vector<uint64_t> versions;
    for (int i = 0; i < 20; ++i) {
      ++call_;
      versions.clear();
      for (size_t rank = 0; rank < kWatchedWorkers; ++rank) {
        agreements[rank]->Reach(call_);
        versions.push_back(
            watches[rank]->BeforeCall(call_, static_cast<uint64_t>(moved * (1 << 20))));
      }
    }
    return versions;
  }
  std::vector<uint64_t> Ticks(int count, double moved = 1) {
    std::vector<uint64_t> versions;
    for (int i = 0; i < count; ++i) versions = Tick(moved);
    return versions;
  }

  Topology network;
  int host = 0;
  double rate = kRate;  // of the NIC of worker 2
  bool quiet = false;   // nothing moves
  size_t bytes_max = 0;
  int sent = 0;
  AgreedValues agreed{kWatchedWorkers, NetworkWatch::kCallsFurther};
  std::vector<std::unique_ptr<InstantAgreement>> agreements;
  std::vector<std::unique_ptr<NetworkWatch>> watches;
  std::map<int, std::vector<uint64_t>> published;  // by rank: versions that may be planned by
  std::map<int, Topology> last;

 private:
  struct Message {
    int from, to;
    std::string text;
  };

  std::vector<transport::Traffic> TrafficOf(int rank) {
    std::vector<transport::Traffic> all(kWatchedWorkers);
    const int64_t now_ns = clocks_[static_cast<size_t>(rank)]->NowNs();
    for (int from = 0; from < kWatchedWorkers && !quiet; ++from) {
      if ((from + 1) % kWatchedWorkers != rank) continue;
      transport::Traffic& traffic = all[static_cast<size_t>(from)];
      // All hops move at the pace of the slowest, and the others have less in flight.
      const bool slowest = from == 2 || rank == 2 || rate >= kRate;
      const int64_t busy_ns = slowest ? kSlot : static_cast<int64_t>(kSlot * (rate / kRate));
      traffic.begin_ns = now_ns - kTickSlots * kSlot;
      for (int i = 0; i < kTickSlots; ++i) {
        traffic.slots.push_back(
            {.bytes = static_cast<uint64_t>(rate * SecondsOf(kSlot)), .busy_ns = busy_ns});
        traffic.bytes += traffic.slots.back().bytes;
      }
    }
    return all;
  }

  std::vector<std::unique_ptr<ManualClock>> clocks_;
  std::deque<Message> mail_;
  int64_t call_ = 0;
};

double RateOf(const Topology& topology, const std::string& part) {
  for (const Topology::Capacity& capacity : topology.capacities) {
    if (capacity.id.find(part) != std::string::npos) return capacity.bandwidth;
  }
  return 0;
}

// The name of a capacity of worker 2.
std::string NicOfTwo(const Topology& topology) {
  return topology.nodes[static_cast<size_t>(Devices(topology)[2])].id;
}

TEST(NetworkWatchTest, AllPlanByTheSameVersionFromTheSameCallOn) {
  Job job;
  const uint64_t first = job.network.version;
  EXPECT_THAT(job.Ticks(20), ElementsAre(first, first, first, first));
  EXPECT_THAT(job.published, IsEmpty());
  job.rate = kRate / 2;
  EXPECT_THAT(job.Ticks(14), ElementsAre(first + 1, first + 1, first + 1, first + 1));
  for (int rank = 0; rank < kWatchedWorkers; ++rank) {
    EXPECT_THAT(job.published[rank], ElementsAre(first + 1));
    EXPECT_EQ(job.watches[static_cast<size_t>(rank)]->Newest().reason,
              job.watches[0]->Newest().reason);
    EXPECT_EQ(DigestOf(job.last[rank]), DigestOf(job.last[0]));
  }
  EXPECT_NEAR(RateOf(job.last[0], NicOfTwo(job.network)), kRate / 2, kRate / 20);
  // And back; what was learned before helps.
  job.rate = kRate;
  EXPECT_THAT(job.Ticks(14), ElementsAre(first + 2, first + 2, first + 2, first + 2));
  EXPECT_NEAR(RateOf(job.last[0], NicOfTwo(job.network)), kRate, kRate / 20);
  EXPECT_LE(job.bytes_max, 4000u);
}

TEST(NetworkWatchTest, PlansThatMoveLessAreTakenBack) {
  Job job;
  const uint64_t first = job.network.version;
  job.Ticks(20);
  job.rate = kRate / 2;
  int ticks = 0;
  while (job.Tick().front() == first && ++ticks < 40) continue;
  ASSERT_LT(ticks, 40);
  EXPECT_THAT(job.Ticks(30, /*moved=*/0.5),
              ElementsAre(first + 2, first + 2, first + 2, first + 2));
  EXPECT_THAT(job.watches[3]->Newest().reason, HasSubstr("taken back"));
  EXPECT_NEAR(RateOf(job.last[3], NicOfTwo(job.network)), kRate, 1);
  // It is not tried again, nor is that tried.
  EXPECT_EQ(job.Ticks(60, 0.3).front(), first + 2);
}

TEST(NetworkWatchTest, PlansThatMoveAsMuchStay) {
  Job job;
  job.Ticks(20);
  job.rate = kRate / 2;
  job.Ticks(60);
  EXPECT_EQ(job.watches[0]->NewestNumber(), job.network.version + 1);
}

TEST(NetworkWatchTest, AssumedRatesNameNothing) {
  Job job(/*measured=*/false);
  job.Ticks(20);
  job.rate = kRate / 4;
  job.Ticks(60);
  EXPECT_THAT(job.published, IsEmpty());
}

TEST(NetworkWatchTest, WhatOneKnowsByAMeasurementAllPlanBy) {
  Job job(/*measured=*/false);
  Topology measured = job.network;
  measured.source = "measured";
  job.watches[3]->Know(measured, "measured just now");
  const uint64_t first = job.network.version;
  EXPECT_THAT(job.Ticks(20), ElementsAre(first + 1, first + 1, first + 1, first + 1));
  EXPECT_EQ(job.watches[1]->Newest().reason, "measured just now");
  // And what changes then is noticed, since the host's detector knows it as well.
  job.rate = kRate / 2;
  EXPECT_THAT(job.Ticks(14), ElementsAre(first + 2, first + 2, first + 2, first + 2));
}

TEST(NetworkWatchTest, AQuietJobSendsNothing) {
  Job job;
  job.quiet = true;
  job.Ticks(20);
  EXPECT_EQ(job.sent, 0);
}

TEST(NetworkWatchTest, AnotherHostGoesOn) {
  Job job;
  job.Ticks(20);
  job.host = 1;
  job.Ticks(20);
  job.rate = kRate / 2;
  job.Ticks(20);
  EXPECT_EQ(job.watches[0]->NewestNumber(), job.network.version + 1);
  EXPECT_THAT(job.watches[0]->Newest().reason, Not(IsEmpty()));
}

TEST(NetworkWatchTest, MessagesThatAreNoneAreLeftOut) {
  Job job;
  NetworkWatch& watch = *job.watches[0];
  watch.Received(1, "");
  watch.Received(1, std::string(1, '\1'));
  watch.Received(1, std::string("\1\0\0\0\0\0\0\0\0\5", 10));
  watch.Received(1, std::string(200, '\1'));
  watch.Received(1, std::string(200, '\xff'));
  job.Ticks(20);
  EXPECT_THAT(job.published, IsEmpty());
}

TEST(NetworkWatchTest, AVersionThatIsNoneHasNoDigest) {
  EXPECT_FALSE(NetworkWatch::DigestOfVersion("").ok());
  EXPECT_FALSE(NetworkWatch::DigestOfVersion(std::string("\xff\xff\xff\xff", 4)).ok());
  EXPECT_FALSE(NetworkWatch::DigestOfVersion(std::string("\0\0\0\0{}", 6)).ok());
}

}  // namespace
}  // namespace syncopate::adapt
