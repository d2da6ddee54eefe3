// Strategies live with processes that are killed, in shared memory and between "hosts" by TCP. Those that
// go on after a loss: the survivors are told once, before the transfers that this breaks, and train on.
// One that needs its server, or its neighbours: all end and name who is gone. In each case a fresh state
// machine that is told the same decides the same.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "absl/strings/match.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "model/tensor_layout.h"
#include "strategy/record.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/live_messenger.h"
#include "sync/parameter_store.h"
#include "sync/synchronizer.h"
#include "syncopate/service.h"
#include "tests/host_workers.h"
#include "tests/pair_groups.h"
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
  absl::Status SetProgress(const strategy::SetProgress&) override { return absl::OkStatus(); }

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
    if (!(commands == decision.commands)) {
      differs = true;
      std::fprintf(stderr, "rank %d decided something else: %s\n", rank_,
                   ToText(decision.event).c_str());
    }
    const size_t rank = static_cast<size_t>(rank_);
    if (const auto* lost = std::get_if<strategy::WorkerLost>(&decision.event)) {
      if (lost->rank != victim_) return;
      ++told;
      report_.told_ns[rank] = MonotonicClock().NowNs();
    }
    if (const auto* failed = std::get_if<strategy::TransferFailed>(&decision.event);
        failed && told == 0) {
      early = true;
      std::fprintf(stderr, "rank %d: failed before the loss was told: %s\n", rank_,
                   failed->why.ToString().c_str());
    }
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

// What a survivor ends with.
int CodeOf(const Watcher& watcher) {
  return watcher.told == 1 && !watcher.early && !watcher.differs ? 0 : 20;
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
  return CodeOf(watcher);
}

// Groups by keys that a service gives; its host may be the one that is killed.
int AskedBody(Worker& worker, int victim, Report& report) {
  const TensorTable table = Table();
  const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
  Zeros replica(table);
  if (Failed(worker.AddService(std::make_unique<PairGroups>()))) return 9;
  LiveMessenger messenger(worker);
  Watcher watcher(worker.rank(), victim, std::make_unique<strategy::AskedGroups>(info), report);
  auto synchronizer =
      Synchronizer::Make(worker, table, replica, std::make_unique<strategy::AskedGroups>(info),
                         {.moves_gradients = false,
                          .watches_losses = true,
                          .messenger = &messenger,
                          .witness = &watcher});
  if (!synchronizer.ok()) return 10;
  if (Failed(messenger.Begin(
          [to = synchronizer->get()](strategy::Event event) { to->Deliver(std::move(event)); },
          [to = synchronizer->get()](absl::Status why) { to->End(std::move(why)); }))) {
    return 10;
  }
  if (Failed(TrainOn(**synchronizer, watcher, worker.rank(), report))) return 11;
  messenger.Stop();
  return CodeOf(watcher);
}

// The loss of one ends the ring for all, who blame it.
int RingBody(Worker& worker, int victim, Report& report) {
  const TensorTable table = Table();
  const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
  const uint64_t bytes = TensorLayout(table).bytes();
  Zeros replica(table);
  Watcher watcher(worker.rank(), victim, std::make_unique<strategy::RingExchange>(info, bytes),
                  report);
  auto synchronizer = Synchronizer::Make(
      worker, table, replica, std::make_unique<strategy::RingExchange>(info, bytes),
      {.moves_gradients = false, .watches_losses = true, .witness = &watcher});
  if (!synchronizer.ok()) return 10;
  const absl::Status status = TrainOn(**synchronizer, watcher, worker.rank(), report);
  if (status.ok() || GetSuspect(status) != victim) return Failed(status) ? 12 : 13;
  return CodeOf(watcher);
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
          [to = synchronizer->get()](strategy::Event event) { to->Deliver(std::move(event)); },
          [to = synchronizer->get()](absl::Status why) { to->End(std::move(why)); }))) {
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
  return CodeOf(watcher);
}

using Body = std::function<int(Worker&, int, Report&)>;

// Kills it in the middle, and waits for the end of all.
void KillAndWatch(Forked& workers, int victim, Report& report) {
  const int64_t deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
  while (report.iterations[static_cast<size_t>(victim)] < 3 + 5 * victim &&
         MonotonicClock().NowNs() < deadline_ns && !workers.AnyHasEnded()) {
    usleep(200);
  }
  ASSERT_FALSE(workers.AnyHasEnded());
  ASSERT_GE(report.iterations[static_cast<size_t>(victim)], 3);
  report.killed_ns = MonotonicClock().NowNs();
  workers.Signal(victim, SIGKILL);
  const std::vector<int> codes = workers.Join();
  for (int rank = 0; rank < kWorkers; ++rank) {
    const int code = codes[static_cast<size_t>(rank)];
    if (rank == victim) {
      EXPECT_TRUE(WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL) << code;
      continue;
    }
    EXPECT_TRUE(WIFEXITED(code) && WEXITSTATUS(code) == 0) << "rank " << rank << ": " << code;
    const int64_t noticed_ns = report.told_ns[static_cast<size_t>(rank)] - report.killed_ns;
    EXPECT_GT(noticed_ns, 0);
    EXPECT_LE(noticed_ns, kNoticeNsMax);
    std::printf("victim %d: rank %d was told after %.3f s, %d transfers after it\n", victim, rank,
                static_cast<double>(noticed_ns) * 1e-9,
                report.averages_after[static_cast<size_t>(rank)].load());
    std::fflush(stdout);  // what is left in the buffer would be printed by the next children too
  }
}

// The parameter: how many "hosts" the workers are on, which meet on the loopback. 1: shared memory.
class StrategyFailureTest : public ::testing::TestWithParam<int> {
 protected:
  static void KillOne(int victim, const Body& body) {
    Shared<Report> report;
    const auto run = [&](Worker& worker) { return body(worker, victim, *report); };
    if (GetParam() == 1) {
      Options options;
      options.timeout = absl::Seconds(60);
      WorkerProcesses workers(kWorkers, run, options);
      KillAndWatch(workers, victim, *report);
    } else {
      const auto workers = HostWorkers::OnLoopback(GetParam(), kWorkers / GetParam(), run);
      KillAndWatch(*workers, victim, *report);
    }
  }
};

TEST_P(StrategyFailureTest, SurvivorsOfAKillAreToldOnceAndGoOn) {
  for (const int victim : {0, 2, 3}) KillOne(victim, GroupBody);
}

TEST_P(StrategyFailureTest, SurvivorsGoOnWithGroupsOfAServiceWhoseHostIsKilled) {
  for (const int victim : {0, 3}) KillOne(victim, AskedBody);
}

TEST_P(StrategyFailureTest, WorkersOfAServerGoOnWithoutOneOfThem) {
  for (const int victim : {1, 3}) KillOne(victim, ServerBody);
}

TEST_P(StrategyFailureTest, AServerThatIsKilledEndsItForAllAndIsNamed) { KillOne(0, ServerBody); }

TEST_P(StrategyFailureTest, ANeighbourThatIsKilledEndsTheRingAndIsNamed) { KillOne(2, RingBody); }

INSTANTIATE_TEST_SUITE_P(Hosts, StrategyFailureTest, ::testing::Values(1, 2, 4),
                         ::testing::PrintToStringParamName());

// Trains until an error, which must be that of the service.
int LostServiceBody(Worker& worker, Report& report) {
  const TensorTable table = Table();
  Zeros replica(table);
  if (Failed(worker.AddService(std::make_unique<syncopate::PairGroups>()))) return 9;
  LiveMessenger messenger(worker);
  auto synchronizer = Synchronizer::Make(
      worker, table, replica,
      std::make_unique<strategy::AskedGroups>(
          strategy::WorkerInfo{worker.rank(), worker.size(), table.size()}),
      {.moves_gradients = false, .watches_losses = true, .messenger = &messenger});
  if (!synchronizer.ok()) return 10;
  if (Failed(messenger.Begin(
          [to = synchronizer->get()](strategy::Event event) { to->Deliver(std::move(event)); },
          [to = synchronizer->get()](absl::Status why) { to->End(std::move(why)); }))) {
    return 10;
  }
  const int64_t deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
  absl::Status status;
  while (status.ok()) {
    if (MonotonicClock().NowNs() > deadline_ns) return 11;
    status = (*synchronizer)->Begin(1, 0);
    for (int t = 0; status.ok() && t < table.size(); ++t) status = (*synchronizer)->Need(t);
    if (status.ok()) status = (*synchronizer)->BackwardBegins();
    for (int t = table.size(); status.ok() && t > 0; --t) {
      status = (*synchronizer)->Gradient(t - 1);
    }
    if (status.ok()) status = (*synchronizer)->EndBackward();
    ++report.iterations[static_cast<size_t>(worker.rank())];
  }
  messenger.Stop();
  if (GetBlast(status) == BlastRadius::kJob &&
      absl::StrContains(status.message(), "cannot rebuild: groups")) {
    return (*synchronizer)->Begin(1, 0) == status ? 0 : 12;
  }
  return Failed(status) ? 13 : 14;
}

// Host and standby of the service that gives groups are lost together, so nobody knows what it knew. Workers
// that the strategy could do without are no reason to go on.
TEST(StrategyServiceLossTest, AServiceThatIsLostWithItsStandbyEndsItForAllWithTheServicesError) {
  Shared<Report> report;
  Options options;
  options.timeout = absl::Seconds(60);
  WorkerProcesses workers(
      kWorkers, [&](Worker& worker) { return LostServiceBody(worker, *report); }, options);
  const int64_t deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
  while (*std::min_element(report->iterations.begin(), report->iterations.end()) < 5 &&
         MonotonicClock().NowNs() < deadline_ns && !workers.AnyHasEnded()) {
    usleep(200);
  }
  ASSERT_FALSE(workers.AnyHasEnded());
  // Stopped first, so that neither learns that the other is gone.
  for (const int signal : {SIGSTOP, SIGKILL}) {
    for (const int rank : {0, 1}) workers.Signal(rank, signal);
  }
  const std::vector<int> codes = workers.Join();
  for (const size_t rank : {size_t{0}, size_t{1}}) EXPECT_TRUE(WIFSIGNALED(codes[rank]));
  for (const size_t rank : {size_t{2}, size_t{3}}) EXPECT_EQ(codes[rank], 0) << "rank " << rank;
}

// ---- a connection that has ended before all agree on the loss

// Pushes to rank 0 after each backward pass, and waits for the end of that only when it drains.
class PushesToZero : public strategy::Strategy {
 public:
  explicit PushesToZero(int tensors) : tensors_(tensors) {}
  std::string name() const override { return "pushes-to-zero"; }
  void Step(double, const strategy::Event& event,
            std::vector<strategy::Command>& commands) override {
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.emplace_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      out_ = true;
      commands.emplace_back(strategy::StartTransfer{.transfer = next_++,
                                                    .movement = strategy::Movement::kPush,
                                                    .last = tensors_ - 1,
                                                    .target = 0});
    }
    if (std::holds_alternative<strategy::TransferFailed>(event)) out_ = false;
    draining_ |= std::holds_alternative<strategy::Drain>(event);
    if (draining_ && !out_) {
      draining_ = false;
      commands.emplace_back(strategy::Drained{});
    }
  }

 private:
  const int tensors_;
  int64_t next_ = 0;
  bool out_ = false, draining_ = false;
};

constexpr int kMissed = 30;  // all had agreed before the push

struct PushReport {
  Report report;
  std::atomic<int> ready{0};
  std::atomic<bool> pushed{false}, done{false};
};

// Rank 2 pushes when no mail reaches rank 0 any more; the others do nothing.
int PushBody(Worker& worker, PushReport& report) {
  const TensorTable table = Table();
  const int tensors = table.size();
  Zeros replica(table);
  SgdStore store(std::vector<std::byte>(TensorLayout(table).bytes()), 0.1);
  Watcher watcher(worker.rank(), 0, std::make_unique<PushesToZero>(tensors), report.report);
  auto synchronizer =
      Synchronizer::Make(worker, table, replica, std::make_unique<PushesToZero>(tensors),
                         {.moves_parameters = false,
                          .watches_losses = true,
                          .store = worker.rank() == 0 ? &store : nullptr,
                          .witness = &watcher});
  if (!synchronizer.ok() || Failed(worker.world().Barrier())) return 10;
  ++report.ready;
  const int64_t deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
  while (worker.rank() != 2 && !report.done && MonotonicClock().NowNs() < deadline_ns) usleep(200);
  if (worker.rank() != 2) return 0;
  while (!absl::IsUnavailable(worker.Send(0, "probe", ""))) {
    if (MonotonicClock().NowNs() > deadline_ns) return 11;
    usleep(200);
  }
  absl::Status status = (*synchronizer)->Begin(1, 0);
  for (int t = 0; status.ok() && t < tensors; ++t) status = (*synchronizer)->Need(t);
  if (status.ok()) status = (*synchronizer)->BackwardBegins();
  for (int t = tensors - 1; status.ok() && t >= 0; --t) status = (*synchronizer)->Gradient(t);
  if (status.ok()) status = (*synchronizer)->EndBackward();
  const bool missed = !worker.Lost().empty();
  report.pushed = true;
  if (status.ok()) status = (*synchronizer)->Finish();
  report.done = true;
  if (missed) return kMissed;
  return Failed(status) ? 12 : CodeOf(watcher);
}

bool IsStopped(pid_t pid) {
  siginfo_t info = {};
  waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG | WNOWAIT);
  return info.si_pid == pid;
}

// Rank 3 stands still meanwhile, so that the others cannot agree on the loss of rank 0.
int KillBesideAStoppedWorker() {
  Shared<PushReport> report;
  const auto workers = HostWorkers::OnLoopback(
      kWorkers, 1, [&](Worker& worker) { return PushBody(worker, *report); });
  const int64_t deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
  const auto await = [&](const std::function<bool()>& condition) {
    while (!condition() && MonotonicClock().NowNs() < deadline_ns) usleep(200);
  };
  await([&] { return report->ready == kWorkers; });
  EXPECT_EQ(report->ready, kWorkers);
  workers->Signal(3, SIGSTOP);
  await([&] { return IsStopped(workers->pids()[3]); });
  EXPECT_TRUE(IsStopped(workers->pids()[3]));
  workers->Signal(0, SIGKILL);
  await([&] { return report->pushed.load(); });
  EXPECT_TRUE(report->pushed);
  workers->Signal(3, SIGCONT);
  const int code = workers->Join()[2];
  EXPECT_TRUE(WIFEXITED(code)) << code;
  return WEXITSTATUS(code);
}

// A request to a server that was killed a moment ago cannot be sent; that must not be told before the
// loss.
TEST(StrategyLossOrderTest, APushThatCannotBeAskedForFailsAfterTheLossIsTold) {
  int code = kMissed;
  for (int i = 0; code == kMissed && i < 5; ++i) code = KillBesideAStoppedWorker();
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace syncopate::sync
