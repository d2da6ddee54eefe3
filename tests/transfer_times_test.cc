// When calls and transfers move their bytes, as they tell it: not while a member is still missing. One
// member of each comes late, after all others have begun, in shared memory and between hosts.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "sync/synchronizer.h"
#include "tests/host_workers.h"
#include "worker/call_times.h"

namespace syncopate::sync {
namespace {

using strategy::Command;
using strategy::Content;
using strategy::Event;
using strategy::Movement;

constexpr size_t kWorkersMax = 4;
// For which the late one is missed at least, so that its lateness can be seen.
constexpr absl::Duration kMissed = absl::Milliseconds(30);

// By rank; all processes are on this machine, so their clocks are one.
struct Report {
  std::array<std::atomic<int64_t>, kWorkersMax> begun_ns{};
  std::array<std::atomic<int64_t>, kWorkersMax> first_ns{};
  std::array<std::atomic<int64_t>, kWorkersMax> last_ns{};
};

// The worker with the last rank comes when all others have begun. False: they have not.
bool ComeInTime(const Worker& worker, Report& report) {
  if (worker.rank() + 1 < worker.size()) return true;
  const int64_t deadline_ns = MonotonicClock().NowNs() + 25'000'000'000;
  for (int rank = 0; rank + 1 < worker.size(); ++rank) {
    while (report.begun_ns[static_cast<size_t>(rank)] == 0) {
      if (MonotonicClock().NowNs() > deadline_ns) return false;
      usleep(1000);
    }
  }
  absl::SleepFor(kMissed);
  return true;
}

void Begins(const Worker& worker, Report& report) {
  report.begun_ns[static_cast<size_t>(worker.rank())] = MonotonicClock().NowNs();
}

void ExpectNothingBeforeTheLastHadCome(const Report& report, int workers) {
  const size_t late = static_cast<size_t>(workers) - 1;
  const int64_t came_ns = report.begun_ns[late];
  for (size_t rank = 0; rank <= late; ++rank) {
    SCOPED_TRACE(testing::Message() << "worker " << rank);
    const int64_t begun_ns = report.begun_ns[rank], first_ns = report.first_ns[rank];
    if (rank < late) {
      EXPECT_GE(came_ns - begun_ns, absl::ToInt64Nanoseconds(kMissed));
    }
    EXPECT_GE(first_ns, came_ns);
    EXPECT_GE(report.last_ns[rank].load(), first_ns);
  }
}

// ---- calls

struct CallCase {
  const char* name;
  int hosts;
  int slots;
  Call call;
  uint64_t elements;
};

// Without a timeout of their own, so that it is the job's.
Call SumOfAll() { return {.op = ReduceOp::kSum}; }
Call AverageOfAll() { return {.op = ReduceOp::kWeightedAverage, .weight = 2}; }
Call From(int root, int target) {
  return {.collective = Collective::kSendReceive, .root = root, .target = target};
}

class CallTimesTest : public ::testing::TestWithParam<CallCase> {};

TEST_P(CallTimesTest, BytesMoveWhenTheLastMemberHasCome) {
  const CallCase& each = GetParam();
  Shared<Report> report;
  const auto workers = HostWorkers::OnLoopback(each.hosts, each.slots, [&](Worker& worker) {
    if (!worker.world().Barrier().ok()) return 10;
    std::vector<float> values(each.elements, 1);
    std::mutex mutex;
    std::condition_variable news;
    bool ended = false;
    Call call = each.call;
    call.data = Array::Of(values.data(), values.size());
    call.ended = [&](const absl::Status&) {
      const std::lock_guard lock(mutex);
      ended = true;
      news.notify_all();
    };
    if (!ComeInTime(worker, *report)) return 11;
    Begins(worker, *report);
    Handle handle = worker.world().Start(call);
    if (const absl::Status status = handle.Wait(); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 12;
    }
    {
      std::unique_lock lock(mutex);
      if (!news.wait_for(lock, std::chrono::seconds(20), [&] { return ended; })) return 13;
    }
    const worker::CallTimes times = worker::TimesOf(handle);
    report->first_ns[static_cast<size_t>(worker.rank())] = times.first_ns;
    report->last_ns[static_cast<size_t>(worker.rank())] = times.last_ns;
    return worker.world().Barrier().ok() ? 0 : 14;
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
  ExpectNothingBeforeTheLastHadCome(*report, each.hosts * each.slots);
}

// Each half of a pair's messages is much more than is sent to a worker of which nobody knows whether it is
// there (transport::net::CoreLimits::early_bytes).
INSTANTIATE_TEST_SUITE_P(
    All, CallTimesTest,
    ::testing::Values(CallCase{"SumInSharedMemory", 1, 3, SumOfAll(), 1000},
                      CallCase{"LargeSumInSharedMemory", 1, 3, SumOfAll(), 500'000},
                      CallCase{"AverageInSharedMemory", 1, 3, AverageOfAll(), 1000},
                      CallCase{"SentInSharedMemory", 1, 2, From(0, 1), 1000},
                      CallCase{"AverageBetweenHosts", 3, 1, AverageOfAll(), 1000},
                      CallCase{"AverageBetweenHostsOfTwo", 2, 2, AverageOfAll(), 1000},
                      CallCase{"SumBetweenTwoHosts", 2, 1, SumOfAll(), 1000},
                      CallCase{"LargeSumBetweenTwoHosts", 2, 1, SumOfAll(), 500'000},
                      CallCase{"MuchToALateHost", 2, 1, From(0, 1), 500'000},
                      CallCase{"FromALateHost", 2, 1, From(1, 0), 1000}),
    [](const auto& each) { return each.param.name; });

// ---- transfers, as strategies hear of them

struct TransferCase {
  const char* name;
  int hosts;
  int slots;
  Movement movement;
  Content content;
};

constexpr int kTensors = 2;

// Starts one transfer of all tensors in the first iteration.
class OneTransfer : public strategy::Strategy {
 public:
  OneTransfer(Worker& worker, const TransferCase& each, Report& report)
      : worker_(worker), case_(each), report_(report) {}
  std::string name() const override { return "one-transfer"; }

  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.push_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      strategy::StartTransfer start{.transfer = 1,
                                    .movement = case_.movement,
                                    .content = case_.content,
                                    .last = kTensors - 1};
      if (case_.movement == Movement::kExchange) {  // around a ring
        const int size = worker_.size(), rank = worker_.rank();
        start.to = {(rank + 1) % size};
        start.from = {{.rank = (rank + size - 1) % size, .weight = 0.5}};
      }
      Begins(worker_, report_);
      commands.push_back(start);
    }
    if (const auto* e = std::get_if<strategy::TransferDone>(&event)) {
      const size_t rank = static_cast<size_t>(worker_.rank());
      report_.first_ns[rank] = static_cast<int64_t>(e->first_byte * 1e9);
      report_.last_ns[rank] = static_cast<int64_t>(e->last_byte * 1e9);
      commands.push_back(strategy::ApplyUpdate{.update = case_.content == Content::kGradients
                                                             ? strategy::Update::kStepAveraged
                                                             : strategy::Update::kAdopt,
                                               .last = kTensors - 1,
                                               .transfer = 1});
      done_ = true;
    }
    draining_ |= std::holds_alternative<strategy::Drain>(event);
    if (draining_ && done_) {
      draining_ = false;
      commands.push_back(strategy::Drained{});
    }
  }

 private:
  Worker& worker_;
  const TransferCase& case_;
  Report& report_;
  bool done_ = false, draining_ = false;
};

class NoValues : public Replica {
 public:
  explicit NoValues(const TensorTable& table) : table_(table) {}
  void Pack(Content, int tensor, double, std::byte* to) override {
    std::memset(to, 0, table_.tensors[static_cast<size_t>(tensor)].bytes());
  }
  double Apply(const strategy::ApplyUpdate&, const Brought&) override { return 0; }

 private:
  const TensorTable& table_;
};

absl::Status TrainOnce(Synchronizer& synchronizer, int size) {
  // Their batches are known, so gradients between hosts are added up (sync/live_transfers.h).
  if (absl::Status s = synchronizer.Begin(1, static_cast<uint64_t>(size)); !s.ok()) return s;
  for (int t = 0; t < kTensors; ++t) {
    if (absl::Status s = synchronizer.Need(t); !s.ok()) return s;
  }
  if (absl::Status s = synchronizer.BackwardBegins(); !s.ok()) return s;
  for (int t = kTensors - 1; t >= 0; --t) {
    if (absl::Status s = synchronizer.Gradient(t); !s.ok()) return s;
  }
  if (absl::Status s = synchronizer.EndBackward(); !s.ok()) return s;
  return synchronizer.Finish();
}

class TransferTimesTest : public ::testing::TestWithParam<TransferCase> {};

TEST_P(TransferTimesTest, TheFirstByteIsNotBeforeTheLastMember) {
  const TransferCase& each = GetParam();
  Shared<Report> report;
  const auto workers = HostWorkers::OnLoopback(each.hosts, each.slots, [&](Worker& worker) {
    TensorTable table{.model = "test", .tensors = {}};
    for (int i = 0; i < kTensors; ++i) {
      // Two types, so that it takes two calls.
      table.tensors.push_back({.name = "t" + std::to_string(i),
                               .elements = 1000,
                               .type = i == 0 ? DataType::kFloat32 : DataType::kFloat64});
    }
    NoValues replica(table);
    auto synchronizer = Synchronizer::Make(
        worker, table, replica, std::make_unique<OneTransfer>(worker, each, *report), {});
    if (!synchronizer.ok() || !worker.world().Barrier().ok()) return 20;
    if (!ComeInTime(worker, *report)) return 21;
    if (const absl::Status status = TrainOnce(**synchronizer, worker.size()); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 22;
    }
    return worker.world().Barrier().ok() ? 0 : 23;
  });
  for (const int code : workers->Join()) EXPECT_EQ(code, 0);
  // Seconds as a double are exact to less than this.
  for (size_t rank = 0; rank < kWorkersMax; ++rank) report->first_ns[rank] += 1000;
  for (size_t rank = 0; rank < kWorkersMax; ++rank) report->last_ns[rank] += 2000;
  ExpectNothingBeforeTheLastHadCome(*report, each.hosts * each.slots);
}

INSTANTIATE_TEST_SUITE_P(
    All, TransferTimesTest,
    ::testing::Values(
        TransferCase{"GradientsInSharedMemory", 1, 3, Movement::kAverage, Content::kGradients},
        TransferCase{"ParametersInSharedMemory", 1, 3, Movement::kAverage, Content::kParameters},
        TransferCase{"ExchangeInSharedMemory", 1, 2, Movement::kExchange, Content::kParameters},
        TransferCase{"GradientsBetweenTwoHosts", 2, 1, Movement::kAverage, Content::kGradients},
        TransferCase{"ParametersBetweenHosts", 3, 1, Movement::kAverage, Content::kParameters},
        TransferCase{"ExchangeBetweenHosts", 2, 1, Movement::kExchange, Content::kParameters}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace syncopate::sync
