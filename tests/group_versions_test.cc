// Groups of strategies between hosts, whose programs are planned by the version of the network that the strategy
// names: a new version that comes into force while a synchronizer runs, or did before it was made, is what new
// groups are planned by, on all members alike.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "adapt/network_watch.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "model/topology.h"
#include "strategy/network_versions.h"
#include "strategy/strategy.h"
#include "sync/group_cache.h"
#include "sync/pair_groups.h"
#include "sync/synchronizer.h"
#include "tests/host_workers.h"
#include "worker/job_services.h"
#include "worker/mailbox.h"

namespace syncopate::sync {
namespace {

constexpr int kHosts = 4;
constexpr uint64_t kVersion = 2;
constexpr uint64_t kElements = 1 << 18;
// A version comes into force some iterations after it is known; more than these, and something is wrong.
constexpr int64_t kIterationsMax = 5000;
constexpr int64_t kIterationsAfter = 4;

#define REQUIRE(condition)                                                  \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::fprintf(stderr, "line %d: %s is wrong\n", __LINE__, #condition); \
      return __LINE__ % 90 + 1;                                             \
    }                                                                       \
  } while (false)

// Averages parameters among all workers once in an iteration, in a group of its own, and waits for it.
class Averages : public strategy::Strategy {
 public:
  explicit Averages(uint64_t maker) : maker_(maker) {}
  std::string name() const override { return "averages"; }
  void Step(double, const strategy::Event& event,
            std::vector<strategy::Command>& commands) override {
    if (const auto* e = std::get_if<strategy::NewValue>(&event)) {
      versions_.Add(*e);
      from = e->from;
    }
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) iteration_ = e->iteration;
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.emplace_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      out_ = true;
      named = disagrees ? 1 : versions_.At(iteration_);
      commands.emplace_back(strategy::StartTransfer{
          .transfer = iteration_,
          .content = strategy::Content::kParameters,
          .members = {0, 1, 2, 3},
          .key = {.maker = maker_, .number = static_cast<uint64_t>(iteration_)},
          .version = named});
    }
    if (const auto* e = std::get_if<strategy::TransferDone>(&event)) {
      out_ = false;
      commands.emplace_back(
          strategy::ApplyUpdate{.update = strategy::Update::kAdopt, .transfer = e->transfer});
    }
    draining_ |= std::holds_alternative<strategy::Drain>(event);
    if (draining_ && !out_) {
      draining_ = false;
      commands.emplace_back(strategy::Drained{});
    }
  }

  std::atomic<int64_t> from{-1};       // of the last version that it was told of
  std::atomic<uint64_t> named{0};      // the version in its last transfer
  std::atomic<bool> disagrees{false};  // names the first version, whatever counts

 private:
  const uint64_t maker_;
  strategy::NetworkVersions versions_;
  int64_t iteration_ = 0;
  bool out_ = false, draining_ = false;
};

class Ones : public Replica {
 public:
  void Pack(strategy::Content, int, double, std::byte* to) override {
    const std::vector<float> ones(kElements, 1);
    std::memcpy(to, ones.data(), kElements * sizeof(float));
  }
  double Apply(const strategy::ApplyUpdate&, const Brought& brought) override {
    float first = 0;
    std::memcpy(&first, brought.Result(0), sizeof(first));
    wrong |= first != 1;
    return 0;
  }
  bool wrong = false;
};

absl::Status Iterate(Synchronizer& synchronizer) {
  if (absl::Status s = synchronizer.Begin(1, 0); !s.ok()) return s;
  if (absl::Status s = synchronizer.Need(0); !s.ok()) return s;
  if (absl::Status s = synchronizer.BackwardBegins(); !s.ok()) return s;
  if (absl::Status s = synchronizer.Gradient(0); !s.ok()) return s;
  if (absl::Status s = synchronizer.EndBackward(); !s.ok()) return s;
  return synchronizer.Finish();
}

// The same network, on which messages take so long that other programs are better.
std::string SlowVersion(Worker& worker) {
  Topology topology = *ParseTopology(worker.Network().topology_json);
  topology.version = kVersion;
  for (Topology::Link& link : topology.links) link.latency = 1;
  std::string bytes;
  Append(bytes, static_cast<uint32_t>(4));
  return bytes + "slow" + ToJson(topology);
}

// The topology of a job is agreed on as soon as a worker says that it is about to propose one; here each tells
// the next.
absl::Status ProposeSlowVersion(Worker& worker) {
  std::vector<float> data(kElements, 1);
  for (int i = 0; i < 2; ++i) {
    const absl::Status status =
        worker.world().AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kMax);
    if (!status.ok()) return status;
  }
  const absl::Status told = worker::MailboxOf(worker).Send(
      (worker.rank() + 1) % worker.size(), "syncopate/network", std::string(1, '\2'));
  if (!told.ok() || worker.rank() != 0) return told;
  const std::string bytes = SlowVersion(worker);
  const absl::StatusOr<Digest> digest = adapt::NetworkWatch::DigestOfVersion(bytes);
  if (!digest.ok()) return digest.status();
  const auto agreement = worker::ServicesOf(worker).Agreement();
  if (!agreement.ok()) return agreement.status();
  const int64_t wait_until_ns = MonotonicClock().NowNs() + 30'000'000'000;
  for (;;) {
    const absl::Status proposed =
        (*agreement)->Propose("topology", kVersion, *digest, bytes, [](const auto&) {});
    if (proposed.ok() || MonotonicClock().NowNs() > wait_until_ns) return proposed;
    std::this_thread::yield();  // this worker has not been told yet
  }
}

// Trains until the strategies of all have used the new version for some iterations. Only the last
// worker says what it should not in the one after these, if `disagrees`.
int TrainByVersions(Worker& worker, uint64_t maker, bool proposes, bool disagrees) {
  const TensorTable table{.model = "test", .tensors = {{.name = "t", .elements = kElements}}};
  Ones replica;
  auto owned = std::make_unique<Averages>(maker);
  Averages& strategy = *owned;
  auto synchronizer =
      Synchronizer::Make(worker, table, replica, std::move(owned), {.moves_gradients = false});
  REQUIRE(synchronizer.ok());
  int64_t end = kIterationsMax;
  for (int64_t iteration = 0; iteration < end; ++iteration) {
    const absl::Status status = Iterate(**synchronizer);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    REQUIRE(status.ok() && !replica.wrong);
    const int64_t from = strategy.from;
    REQUIRE(strategy.named == (from >= 0 && from <= iteration ? kVersion : 0));
    if (proposes && iteration == 3) REQUIRE(ProposeSlowVersion(worker).ok());
    int32_t told = from >= 0 ? 1 : 0;
    REQUIRE(worker.world().AllReduce(Array::Of(&told, 1), ReduceOp::kMin).ok());
    if (told == 1) end = from + kIterationsAfter;
  }
  REQUIRE(end < kIterationsMax && strategy.named == kVersion);
  // All were told of it from the same iteration on.
  int64_t ends[] = {end, -end};
  REQUIRE(worker.world().AllReduce(Array::Of(ends, 2), ReduceOp::kMax).ok());
  REQUIRE(ends[0] == end && ends[1] == -end);
  if (!disagrees) return 0;
  // The versions make another program: members that name different ones cannot run the call.
  strategy.disagrees = worker.rank() == kHosts - 1;
  const absl::Status refused = Iterate(**synchronizer);
  if (!absl::IsFailedPrecondition(refused)) {
    std::fprintf(stderr, "rank %d: %s\n", worker.rank(), refused.ToString().c_str());
  }
  REQUIRE(absl::IsFailedPrecondition(refused));
  return 0;
}

TEST(GroupVersionsTest, NewGroupsArePlannedByTheVersionInForceOnAllMembersAlike) {
  const auto workers = HostWorkers::OnLoopback(kHosts, 1, [](Worker& worker) {
    if (const int wrong = TrainByVersions(worker, 1, /*proposes=*/true, /*disagrees=*/false)) {
      return wrong;
    }
    // One that is made after that is told of it, too.
    return TrainByVersions(worker, 2, /*proposes=*/false, /*disagrees=*/true);
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
}

// Without keys the groups of some members follow each other, and of two workers as well.
TEST(GroupVersionsTest, GroupsWithoutAKeyAreMadeAnewForAnotherVersion) {
  const auto workers = HostWorkers::OnLoopback(kHosts, 1, [](Worker& worker) {
    REQUIRE(ProposeSlowVersion(worker).ok());
    for (int32_t known = 0; known == 0;) {
      known = worker.Network().version == kVersion ? 1 : 0;
      REQUIRE(worker.world().AllReduce(Array::Of(&known, 1), ReduceOp::kMin).ok());
    }
    GroupCache cache(worker);
    std::vector<float> data(kElements, 1);
    std::vector<Group> made;
    for (const uint64_t version : {0, 0, 2, 2, 0}) {
      // A group of parameters beside gradients: the other one of everybody is the world's.
      auto group = cache.Get({.content = strategy::Content::kParameters, .version = version},
                             /*both=*/true);
      REQUIRE(group.ok());
      REQUIRE(group->AllReduce(Array::Of(data.data(), data.size()), ReduceOp::kMax).ok());
      made.push_back(*group);
    }
    const auto same = [&](size_t a, size_t b) { return &made[a].members() == &made[b].members(); };
    REQUIRE(same(0, 1) && !same(1, 2) && same(2, 3) && !same(3, 4));
    REQUIRE(!cache.Get({.members = {0, 1, 2}, .version = 9}, false).ok());
    if (worker.rank() < 2) {
      PairGroups pairs(worker);
      const Pair pair{Pair::Purpose::kExchange, 0, 1};
      uint64_t number = 0;
      for (const uint64_t version : {0, 2, 0}) {
        double value = worker.rank() == 0 ? 7 : 0;
        auto group = pairs.Get(pair, version);
        REQUIRE(group.ok() && pairs.NumberOf(pair) == number++);
        REQUIRE(pairs.Get(pair, version).ok() && pairs.NumberOf(pair) == number - 1);
        REQUIRE(group->SendReceive(Array::Of(&value, 1), 0, 1).ok() && value == 7);
      }
    }
    REQUIRE(worker.world().Barrier().ok());
    return 0;
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace syncopate::sync
