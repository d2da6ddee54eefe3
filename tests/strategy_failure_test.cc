// Strategies live with processes that are killed. Those that go on after a loss: the survivors are told
// once, before the transfers that this breaks, and train on. One that needs its server: all end and name
// it. In each case a fresh state machine that is told the same decides the same.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "model/tensor_layout.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/live_messenger.h"
#include "sync/parameter_store.h"
#include "sync/synchronizer.h"
#include "syncopate/service.h"
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
  absl::Status SetBatch(uint64_t) override { return absl::OkStatus(); }

 private:
  const TensorTable& table_;
};

// Notes what a survivor is told of the victim, and asks a second machine what it would decide.
class Watcher : public Witness {
 public:
  Watcher(int rank, int victim, std::unique_ptr<strategy::Strategy> second, Report& report)
      : rank_(rank), victim_(victim), second_(std::move(second)), report_(report) {}
  void Decided(const strategy::Decision& decision) override {
    std::vector<strategy::Command> commands;
    second_->Step(decision.now, decision.event, commands);
    if (!(commands == decision.commands)) differs = true;
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
  std::atomic<bool> early{false};    // a transfer failed before the loss was told
  std::atomic<bool> differs{false};  // the second machine decided something else

 private:
  const int rank_, victim_;
  const std::unique_ptr<strategy::Strategy> second_;
  Report& report_;
};

// Gives everybody a turn at once.
class Turns : public Service {
 public:
  absl::string_view name() const override { return strategy::PermittedServer::kService; }
  ServiceStep Step(const ServiceContext&, const ServiceEvent& event) override {
    const auto* asked = std::get_if<ServiceAsked>(&event);
    if (asked == nullptr) return {};
    return {.answers = {{.to = asked->from,
                         .ticket = asked->ticket,
                         .bytes = Encode(StrategyMessage(TurnGiven{.samples = 8}))}},
            .reason = ""};
  }
  std::string State() const override { return ""; }
  absl::Status Load(absl::string_view) override { return absl::OkStatus(); }
};

TensorTable Table() {
  TensorTable table{.model = "test", .tensors = {}};
  for (int i = 0; i < 6; ++i) {
    table.tensors.push_back({.name = "t" + std::to_string(i), .elements = 20'000});
  }
  return table;
}

bool Failed(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return !status.ok();
}

// Trains on for some iterations after the loss was told.
absl::Status TrainOn(Synchronizer& synchronizer, const Watcher& watcher, int rank, Report& report) {
  const int tensors = Table().size();
  const int64_t deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
  for (int after = 0; after < kIterationsAfter;) {
    if (MonotonicClock().NowNs() > deadline_ns) return absl::DeadlineExceededError("no loss");
    if (absl::Status status = synchronizer.Begin(1, 0); !status.ok()) return status;
    for (int t = 0; t < tensors; ++t) {
      if (absl::Status status = synchronizer.Need(t); !status.ok()) return status;
    }
    if (absl::Status status = synchronizer.BackwardBegins(); !status.ok()) return status;
    for (int t = tensors - 1; t >= 0; --t) {
      if (absl::Status status = synchronizer.Gradient(t); !status.ok()) return status;
    }
    if (absl::Status status = synchronizer.EndBackward(); !status.ok()) return status;
    ++report.iterations[static_cast<size_t>(rank)];
    after += watcher.told > 0 ? 1 : 0;
  }
  return synchronizer.Finish();
}

int GroupBody(Worker& worker, int victim, Report& report) {
  const TensorTable table = Table();
  const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
  Zeros replica(table);
  Watcher watcher(worker.rank(), victim, std::make_unique<strategy::GroupAverage>(info), report);
  auto synchronizer =
      Synchronizer::Make(worker, table, replica, std::make_unique<strategy::GroupAverage>(info),
                         {.moves_gradients = false, .watches_losses = true, .witness = &watcher});
  if (!synchronizer.ok()) return 10;
  if (Failed(TrainOn(**synchronizer, watcher, worker.rank(), report))) return 11;
  return watcher.told == 1 && !watcher.early && !watcher.differs ? 0 : 20;
}

// Rank 0 is the server. Its loss ends all, who blame it; that of another costs nobody anything.
int ServerBody(Worker& worker, int victim, Report& report) {
  const TensorTable table = Table();
  const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
  Zeros replica(table);
  SgdStore store(std::vector<std::byte>(TensorLayout(table).bytes()), 0.1);
  if (Failed(worker.AddService(std::make_unique<Turns>()))) return 9;
  LiveMessenger messenger(worker);
  Watcher watcher(worker.rank(), victim, std::make_unique<strategy::PermittedServer>(info), report);
  auto synchronizer =
      Synchronizer::Make(worker, table, replica, std::make_unique<strategy::PermittedServer>(info),
                         {.watches_losses = true,
                          .messenger = &messenger,
                          .store = worker.rank() == 0 ? &store : nullptr,
                          .witness = &watcher});
  if (!synchronizer.ok()) return 10;
  if (Failed(messenger.Begin(
          [to = synchronizer->get()](strategy::Event event) { to->Deliver(std::move(event)); }))) {
    return 10;
  }
  const absl::Status status = TrainOn(**synchronizer, watcher, worker.rank(), report);
  if (victim == 0 && (status.ok() || GetSuspect(status) != 0)) return 12;
  if (victim != 0 && Failed(status)) return 11;
  // The server leaves last.
  if (victim != 0) {
    std::vector<int> left;
    for (int rank = 0; rank < worker.size(); ++rank) {
      if (rank != victim) left.push_back(rank);
    }
    auto group = worker.NewGroup(left);
    if (!group.ok() || Failed(group->Barrier())) return 13;
  }
  messenger.Stop();
  return watcher.told == 1 && !watcher.early && !watcher.differs ? 0 : 20;
}

void KillOne(int victim, const std::function<int(Worker&, int, Report&)>& body) {
  Shared<Report> report;
  Options options;
  options.timeout = absl::Seconds(60);
  WorkerProcesses workers(
      kWorkers, [&](Worker& worker) { return body(worker, victim, *report); }, options);
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
    std::printf("victim %d: rank %d was told after %.3f s, %d transfers after it\n", victim, rank,
                static_cast<double>(noticed_ns) * 1e-9,
                report->averages_after[static_cast<size_t>(rank)].load());
    std::fflush(stdout);  // what is left in the buffer would be printed by the next children too
  }
}

TEST(StrategyFailureTest, SurvivorsOfAKillAreToldOnceAndGoOn) {
  for (const int victim : {0, 2, 3}) KillOne(victim, GroupBody);
}

TEST(StrategyFailureTest, WorkersOfAServerGoOnWithoutOneOfThem) {
  for (const int victim : {1, 3}) KillOne(victim, ServerBody);
}

TEST(StrategyFailureTest, AServerThatIsKilledEndsItForAllAndIsNamed) { KillOne(0, ServerBody); }

}  // namespace
}  // namespace syncopate::sync
