// Strategies that go on after a loss, live and with processes that are killed: the survivors are told
// once, before the transfers that this breaks, and train on.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/synchronizer.h"
#include "tests/worker_processes.h"

namespace syncopate::sync {
namespace {

constexpr int kWorkers = 4;
constexpr int kIterationsAfter = 4;
// What a killed worker may cost.
constexpr int64_t kNoticeNsMax = 5'000'000'000;

struct Report {
  std::array<std::atomic<int>, kWorkers> iterations{};
  std::atomic<int64_t> killed_ns{0};
  std::array<std::atomic<int64_t>, kWorkers> told_ns{};
  std::array<std::atomic<int>, kWorkers> averages_after{};
};

class Zeros : public Replica {
 public:
  explicit Zeros(const TensorTable& table) : table_(table) {}
  void Pack(strategy::Content, int tensor, double, std::byte* to) override {
    std::memset(to, 0, table_.tensors[static_cast<size_t>(tensor)].bytes());
  }
  double Apply(const strategy::ApplyUpdate&, const Brought&) override { return 0; }

 private:
  const TensorTable& table_;
};

// Notes what a survivor is told of the victim.
class Watcher : public Witness {
 public:
  Watcher(int rank, int victim, Report& report) : rank_(rank), victim_(victim), report_(report) {}
  void Decided(const strategy::Decision& decision) override {
    const size_t rank = static_cast<size_t>(rank_);
    if (const auto* lost = std::get_if<strategy::WorkerLost>(&decision.event)) {
      if (lost->rank != victim_) return;
      ++told;
      report_.told_ns[rank] = MonotonicClock().NowNs();
    }
    if (std::holds_alternative<strategy::TransferFailed>(decision.event) && told == 0) early = true;
    if (std::holds_alternative<strategy::TransferDone>(decision.event) && told > 0) {
      ++report_.averages_after[rank];
    }
  }
  std::atomic<int> told{0};
  std::atomic<bool> early{false};  // a transfer failed before the loss was told

 private:
  const int rank_, victim_;
  Report& report_;
};

int Body(Worker& worker, int victim, Report& report) {
  TensorTable table{.model = "test", .tensors = {}};
  for (int i = 0; i < 6; ++i) {
    table.tensors.push_back({.name = "t" + std::to_string(i), .elements = 20'000});
  }
  Zeros replica(table);
  Watcher watcher(worker.rank(), victim, report);
  auto synchronizer =
      Synchronizer::Make(worker, table, replica,
                         std::make_unique<strategy::GroupAverage>(
                             strategy::WorkerInfo{worker.rank(), worker.size(), table.size()}),
                         {.moves_gradients = false, .watches_losses = true, .witness = &watcher});
  if (!synchronizer.ok()) return 10;
  const int64_t deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
  const auto failed = [](const absl::Status& status) {
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return !status.ok();
  };
  for (int after = 0; after < kIterationsAfter;) {
    if (MonotonicClock().NowNs() > deadline_ns) return 11;
    if (failed((*synchronizer)->Begin(1, 0))) return 12;
    for (int t = 0; t < table.size(); ++t) {
      if (failed((*synchronizer)->Need(t))) return 13;
    }
    if (failed((*synchronizer)->BackwardBegins())) return 14;
    for (int t = table.size() - 1; t >= 0; --t) {
      if (failed((*synchronizer)->Gradient(t))) return 15;
    }
    if (failed((*synchronizer)->EndBackward())) return 16;
    ++report.iterations[static_cast<size_t>(worker.rank())];
    after += watcher.told > 0 ? 1 : 0;
  }
  if (failed((*synchronizer)->Finish())) return 17;
  return watcher.told == 1 && !watcher.early ? 0 : 20;
}

TEST(StrategyFailureTest, SurvivorsOfAKillAreToldOnceAndGoOn) {
  for (const int victim : {0, 2, 3}) {
    Shared<Report> report;
    Options options;
    options.timeout = absl::Seconds(60);
    WorkerProcesses workers(
        kWorkers, [&](Worker& worker) { return Body(worker, victim, *report); }, options);
    const int64_t deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
    while (report->iterations[static_cast<size_t>(victim)] < 3 + 5 * victim &&
           MonotonicClock().NowNs() < deadline_ns && !workers.AnyHasEnded()) {
      usleep(200);
    }
    ASSERT_FALSE(workers.AnyHasEnded());
    ASSERT_GE(report->iterations[static_cast<size_t>(victim)], 3);
    report->killed_ns = MonotonicClock().NowNs();
    workers.Signal(victim, SIGKILL);
    const std::vector<int> codes = workers.Join();
    for (int rank = 0; rank < kWorkers; ++rank) {
      const int code = codes[static_cast<size_t>(rank)];
      if (rank == victim) {
        EXPECT_TRUE(WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL) << code;
        continue;
      }
      EXPECT_TRUE(WIFEXITED(code) && WEXITSTATUS(code) == 0) << "rank " << rank << ": " << code;
      const int64_t noticed_ns = report->told_ns[static_cast<size_t>(rank)] - report->killed_ns;
      EXPECT_GT(noticed_ns, 0);
      EXPECT_LE(noticed_ns, kNoticeNsMax);
      std::printf("victim %d: rank %d was told after %.3f s, %d averages after it\n", victim, rank,
                  static_cast<double>(noticed_ns) * 1e-9,
                  report->averages_after[static_cast<size_t>(rank)].load());
      std::fflush(stdout);  // what is left in the buffer would be printed by the next children too
    }
  }
}

}  // namespace
}  // namespace syncopate::sync
