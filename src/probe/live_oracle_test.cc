// The live oracle over real transports: all in one thread on `loop`, a thread a worker on `shm` and
// over TCP on the loopback interface.
#include "probe/live_oracle.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/loop/loop_transport.h"
#include "transport/net/net_transport.h"
#include "transport/shm/shm_transport.h"

namespace syncopate::probe {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

MemberOptions OptionsOf(int rank, int64_t patience_ns = 30'000'000'000) {
  const std::string host = "host" + std::to_string(rank);
  MemberOptions options;
  options.host = host;
  options.machine = host;
  options.group_key = 99;
  options.patience_ns = patience_ns;
  return options;
}

// ---- loop: deterministic, one thread

class LoopProbe {
 public:
  using ProcessorTimeOf = std::function<absl::StatusOr<ProcessorTime>()>;

  LoopProbe(int size, uint64_t seed, int64_t patience_ns,
            const std::function<ProcessorTimeOf(int rank)>& processor_time = nullptr)
      : network_(size, seed) {
    for (int rank = 0; rank < size; ++rank) {
      MemberOptions options = OptionsOf(rank, patience_ns);
      if (processor_time) options.processor_time = processor_time(rank);
      transports_.push_back(network_.Attach(rank));
      members_.push_back(*Member::Make(*transports_.back(), network_.clock(), options));
    }
    for (int rank = 1; rank < size; ++rank) {
      EXPECT_TRUE(members_[static_cast<size_t>(rank)]->Begin(nullptr).ok());
    }
  }

  // One turn of everybody but rank 0.
  void Turn() {
    network_.Tick();
    for (size_t rank = 1; rank < members_.size(); ++rank) {
      Member& member = *members_[rank];
      if (static_cast<int>(rank) == silent_) continue;
      member.Poll();
      if (!member.done() || !member.status().ok()) continue;
      if (member.instruction().kind != Instruction::Kind::kEnd) {
        EXPECT_TRUE(member.Begin(nullptr).ok());
      }
    }
  }

  absl::StatusOr<std::unique_ptr<LiveOracle>> Oracle() {
    return LiveOracle::Make(*members_[0], network_.clock(), [this] { Turn(); });
  }
  Member& member(int rank) { return *members_[static_cast<size_t>(rank)]; }
  transport::LoopNetwork& network() { return network_; }
  void Silence(int rank) { silent_ = rank; }

 private:
  transport::LoopNetwork network_;
  std::vector<std::unique_ptr<transport::Transport>> transports_;
  std::vector<std::unique_ptr<Member>> members_;
  int silent_ = -1;
};

TEST(LiveOracleLoopTest, FlowsAndPingsUnderManyOrdersOfMessages) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    LoopProbe probe(4, seed, 1'000'000'000);
    absl::StatusOr<std::unique_ptr<LiveOracle>> oracle = probe.Oracle();
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    EXPECT_EQ((*oracle)->HostOf(2), "host2");
    const std::vector<Oracle::Flow> flows = {{0, 1}, {1, 0}, {2, 3}, {2, 1}, {3, 0}};
    const absl::StatusOr<std::vector<double>> rates = (*oracle)->Rates(flows, 0.00003);
    ASSERT_TRUE(rates.ok()) << rates.status();
    ASSERT_EQ(rates->size(), flows.size());
    for (const double rate : *rates) EXPECT_GT(rate, 0);
    const absl::StatusOr<double> latency = (*oracle)->Latency(1, 2);
    ASSERT_TRUE(latency.ok()) << latency.status();
    EXPECT_GT(*latency, 0);
    EXPECT_LT(*latency, 20e-6) << "a message takes at most 8 ticks of a microsecond";
    EXPECT_TRUE((*oracle)->End().ok());
    for (int i = 0; i < 100; ++i) probe.Turn();
    for (int rank = 1; rank < 4; ++rank) {
      EXPECT_TRUE(probe.member(rank).done());
      EXPECT_EQ(probe.member(rank).instruction().kind, Instruction::Kind::kEnd);
    }
  }
}

TEST(LiveOracleLoopTest, WorkersTellWhatWasStolenFromTheirHosts) {
  // Of the processors of rank r, r tenths are stolen; rank 2 cannot tell.
  std::vector<ProcessorTime> times(4);
  LoopProbe probe(4, 1, 1'000'000'000, [&](int rank) {
    return [&times, rank]() -> absl::StatusOr<ProcessorTime> {
      if (rank == 2) return absl::UnavailableError("no such file");
      ProcessorTime& time = times[static_cast<size_t>(rank)];
      time.total += 10;
      time.stolen += static_cast<uint64_t>(rank);
      return time;
    };
  });
  absl::StatusOr<std::unique_ptr<LiveOracle>> oracle = probe.Oracle();
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  const auto stolen = [&](std::vector<Oracle::Flow> flows) {
    const absl::StatusOr<std::vector<double>> rates = (*oracle)->Rates(flows, 0.00003);
    EXPECT_TRUE(rates.ok()) << rates.status();
    std::vector<double> all;
    for (int worker = 0; worker < 4; ++worker) all.push_back((*oracle)->Stolen(worker));
    return all;
  };
  EXPECT_THAT(stolen({{0, 1}, {2, 3}}), ElementsAre(0, DoubleEq(0.1), 0, DoubleEq(0.3)));
  EXPECT_THAT(stolen({{3, 0}}), ElementsAre(0, 0, 0, DoubleEq(0.3))) << "1 and 2 had no part";
  EXPECT_THAT(stolen({{1, 2}}), ElementsAre(0, DoubleEq(0.1), 0, 0));
  const double before = (*oracle)->Elapsed();
  (*oracle)->Wait(0.0001);
  EXPECT_GE((*oracle)->Elapsed() - before, 0.0001 - 1e-9);
  EXPECT_THAT(stolen({{1, 3}}), ElementsAre(0, DoubleEq(0.1), 0, DoubleEq(0.3)));
}

TEST(LiveOracleLoopTest, LostWorkerIsNamed) {
  LoopProbe probe(3, 1, 1'000'000'000);
  absl::StatusOr<std::unique_ptr<LiveOracle>> oracle = probe.Oracle();
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  probe.network().Kill(2);
  const absl::Status status = (*oracle)->Rates(std::vector<Oracle::Flow>{{0, 1}}, 0.001).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "worker 2")) << status;
}

TEST(LiveOracleLoopTest, SilentWorkerIsNamedAtTheDeadline) {
  LoopProbe probe(3, 1, 5'000'000);
  absl::StatusOr<std::unique_ptr<LiveOracle>> oracle = probe.Oracle();
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  probe.Silence(1);
  const absl::Status status = (*oracle)->Rates(std::vector<Oracle::Flow>{{0, 1}}, 0.001).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "workers 1")) << status;
}

// ---- one thread a worker

using StartTransports = std::vector<std::unique_ptr<transport::Transport>> (*)(int size);

std::vector<std::unique_ptr<transport::Transport>> StartShm(int size) {
  static int jobs = 0;
  const std::string job = "probe-test-" + std::to_string(getpid()) + "-" + std::to_string(++jobs);
  std::vector<std::unique_ptr<transport::Transport>> transports(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      transports[static_cast<size_t>(rank)] = *transport::StartShmTransport(
          {.job = job, .rank = rank, .size = size, .arena_bytes = 8 << 20}, MonotonicClock());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return transports;
}

std::vector<std::unique_ptr<transport::Transport>> StartTcp(int size) {
  std::vector<std::unique_ptr<transport::NetStart>> starts;
  std::vector<std::string> payloads;
  for (int rank = 0; rank < size; ++rank) {
    transport::NetOptions options;
    options.job = "probe-test";
    options.rank = rank;
    options.size = size;
    options.ip = "127.0.0.1";
    options.machine = "machine" + std::to_string(rank);  // no shared memory among them
    options.arena_bytes = 8 << 20;
    starts.push_back(*transport::StartNetTransport(options, MonotonicClock()));
    payloads.push_back(starts.back()->payload());
  }
  std::vector<std::unique_ptr<transport::Transport>> transports(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      transports[static_cast<size_t>(rank)] =
          *starts[static_cast<size_t>(rank)]->Connect(payloads, std::string(32, 'k'));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return transports;
}

class LiveOracleTransportTest
    : public ::testing::TestWithParam<std::pair<const char*, StartTransports>> {};

TEST_P(LiveOracleTransportTest, RatesAndLatencies) {
  constexpr int kSize = 4;
  const std::vector<std::unique_ptr<transport::Transport>> transports = GetParam().second(kSize);
  std::vector<std::thread> others;
  for (int rank = 1; rank < kSize; ++rank) {
    others.emplace_back([&, rank] {
      absl::StatusOr<std::unique_ptr<Member>> member =
          Member::Make(*transports[static_cast<size_t>(rank)], MonotonicClock(), OptionsOf(rank));
      ASSERT_TRUE(member.ok()) << member.status();
      const absl::Status status = ServeProbe(**member);
      EXPECT_TRUE(status.ok()) << status;
    });
  }
  {
    absl::StatusOr<std::unique_ptr<Member>> member =
        Member::Make(*transports[0], MonotonicClock(), OptionsOf(0));
    ASSERT_TRUE(member.ok()) << member.status();
    absl::StatusOr<std::unique_ptr<LiveOracle>> oracle =
        LiveOracle::Make(**member, MonotonicClock());
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    for (int round = 0; round < 3; ++round) {
      const std::vector<Oracle::Flow> flows = {{0, 1}, {1, 0}, {2, 3}, {3, 2}};
      // On a busy machine a flow may get no time at all in a short experiment; then a longer one
      // tells.
      absl::StatusOr<std::vector<double>> rates;
      for (double seconds = 0.05; seconds < 5; seconds *= 4) {
        rates = (*oracle)->Rates(flows, seconds);
        ASSERT_TRUE(rates.ok()) << rates.status();
        if (*std::min_element(rates->begin(), rates->end()) > 0) break;
      }
      for (const double rate : *rates) EXPECT_GT(rate, 0);
      const double before = (*oracle)->Elapsed();
      (*oracle)->Wait(0.01);
      EXPECT_GE((*oracle)->Elapsed() - before, 0.01 - 1e-9);
    }
    const absl::StatusOr<double> latency = (*oracle)->Latency(2, 1);
    ASSERT_TRUE(latency.ok()) << latency.status();
    EXPECT_GT(*latency, 0);
    EXPECT_TRUE((*oracle)->End().ok());
  }
  for (std::thread& other : others) other.join();
}

INSTANTIATE_TEST_SUITE_P(All, LiveOracleTransportTest,
                         ::testing::Values(std::make_pair("shm", &StartShm),
                                           std::make_pair("tcp", &StartTcp)),
                         [](const auto& param) { return std::string(param.param.first); });

}  // namespace
}  // namespace syncopate::probe
