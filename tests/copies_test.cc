// How often a gradient is copied and how many threads it passes on its way from one worker's backward
// pass to its update, on one host and between hosts: what docs/tour.md says.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/copy_count.h"
#include "gtest/gtest.h"
#include "strategy/bsp.h"
#include "sync/synchronizer.h"
#include "tests/host_workers.h"
#include "tests/worker_processes.h"

namespace syncopate::sync {
namespace {

constexpr int kWorkers = 4;
constexpr int kIterations = 20;
constexpr uint64_t kElements = uint64_t{1} << 20;
constexpr uint64_t kBytes = kElements * sizeof(float);

struct Report {
  // By worker and stage, of one iteration.
  std::array<std::array<std::atomic<uint64_t>, kCopyStages>, kWorkers> copied{};
  // Thread changes of one gradient: where the training thread computed when the transfer ended, and the
  // least where it waited.
  std::array<std::atomic<int>, kWorkers> hops_computing{};
  std::array<std::atomic<int>, kWorkers> hops_waiting{};
};

// Notes which thread does what, and is the training framework whose memory is packed.
class Watcher : public Replica, public Witness {
 public:
  void Pack(strategy::Content, int, double, std::byte* to) override {
    std::memset(to, 0, kBytes);
    Note();
  }
  double Apply(const strategy::ApplyUpdate&, const Brought&) override {
    Note();
    return 0;
  }
  void Decided(const strategy::Decision& decision) override {
    if (!std::holds_alternative<strategy::TransferDone>(decision.event)) return;
    Note();
    ended_ = true;
  }
  bool ended() const { return ended_; }
  void Note() {
    const std::lock_guard lock(mutex_);
    threads_.push_back(std::this_thread::get_id());
  }
  // How often the thread changes from one note to the next, since the last call; `engine` is at it
  // between the first and the second.
  int TakeHops(std::thread::id engine) {
    const std::lock_guard lock(mutex_);
    if (!threads_.empty()) threads_.insert(threads_.begin() + 1, engine);
    int hops = 0;
    for (size_t i = 1; i < threads_.size(); ++i) hops += threads_[i] != threads_[i - 1] ? 1 : 0;
    threads_.clear();
    ended_ = false;
    return hops;
  }

 private:
  std::mutex mutex_;
  std::vector<std::thread::id> threads_;
  std::atomic<bool> ended_{false};
};

// `computes`: the training thread makes no call until the transfer has ended.
absl::Status Iterate(Synchronizer& synchronizer, const Watcher& watcher, bool computes) {
  for (const absl::Status& status : {synchronizer.Begin(1, kWorkers), synchronizer.Need(0),
                                     synchronizer.BackwardBegins(), synchronizer.Gradient(0)}) {
    if (!status.ok()) return status;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (computes && !watcher.ended() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  if (const absl::Status status = synchronizer.EndBackward(); !status.ok()) return status;
  return synchronizer.Finish();
}

// The thread that drives the engine tells of the end of a call; one of the test's own shows which it is.
absl::StatusOr<std::thread::id> EngineThread(Worker& worker) {
  std::atomic<std::thread::id> engine{};
  float one = 1;
  Call call{.collective = Collective::kAllReduce, .data = Array::Of(&one, 1)};
  call.ended = [&](const absl::Status&) { engine = std::this_thread::get_id(); };
  Handle handle = worker.world().Start(call);
  while (!handle.Done()) std::this_thread::yield();
  if (const absl::Status status = handle.Wait(); !status.ok()) return status;
  return engine.load();
}

// One tensor, one transfer an iteration; the first iterations make the group's memory.
int Body(Worker& worker, Report& report) {
  TensorTable table{.model = "test", .tensors = {{.name = "t", .elements = kElements}}};
  Watcher watcher;
  const auto schedule = std::make_shared<Schedule>(
      Schedule{.planner = "test", .transfers = {{.first = 0, .last = 0}}});
  auto synchronizer = Synchronizer::Make(
      worker, table, watcher, strategy::MakeBsp({worker.rank(), worker.size(), 1}, schedule),
      {.moves_parameters = false, .witness = &watcher});
  if (!synchronizer.ok()) return 10;
  for (int i = 0; i < kIterations; ++i) {
    if (const absl::Status status = worker.world().Barrier(); !status.ok()) return 11;
    std::array<uint64_t, kCopyStages> before;
    for (size_t stage = 0; stage < kCopyStages; ++stage) {
      before[stage] = CopiedBytes(static_cast<CopyStage>(stage));
    }
    watcher.TakeHops({});
    const bool computes = i % 2 == 0;
    if (const absl::Status status = Iterate(**synchronizer, watcher, computes); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 12;
    }
    const absl::StatusOr<std::thread::id> engine = EngineThread(worker);
    if (!engine.ok() || *engine == std::this_thread::get_id()) return 13;
    const size_t rank = static_cast<size_t>(worker.rank());
    for (size_t stage = 0; stage < kCopyStages; ++stage) {
      report.copied[rank][stage] = CopiedBytes(static_cast<CopyStage>(stage)) - before[stage];
    }
    const int hops = watcher.TakeHops(*engine);
    if (computes) {
      report.hops_computing[rank] = hops;
    } else if (i == 1 || hops < report.hops_waiting[rank]) {
      report.hops_waiting[rank] = hops;
    }
    if (const absl::Status status = worker.world().Barrier(); !status.ok()) return 14;
  }
  return 0;
}

// Of the bytes of the gradient; the small call beside it is lost in rounding.
double Times(const Report& report, int rank, CopyStage stage) {
  const uint64_t bytes = report.copied[static_cast<size_t>(rank)][static_cast<size_t>(stage)];
  return static_cast<double>(bytes) / static_cast<double>(kBytes);
}

void Print(const char* where, const Report& report) {
  for (int rank = 0; rank < kWorkers; ++rank) {
    std::printf(
        "%s, rank %d: packed %.3f, staged %.3f, folded %.3f, copied %.3f, received %.3f; "
        "%d hops, %d where it waits\n",
        where, rank, Times(report, rank, CopyStage::kPacked),
        Times(report, rank, CopyStage::kStaged), Times(report, rank, CopyStage::kFolded),
        Times(report, rank, CopyStage::kCopied), Times(report, rank, CopyStage::kReceived),
        report.hops_computing[static_cast<size_t>(rank)].load(),
        report.hops_waiting[static_cast<size_t>(rank)].load());
  }
  std::fflush(stdout);
}

// A training thread that computes: to the engine's thread, to the control thread, which tells the
// strategy, and back. One that waits tells it itself, unless the machine has kept it from waiting in
// time; it has several tries.
void ExpectHops(const Report& report, int rank) {
  EXPECT_EQ(report.hops_computing[static_cast<size_t>(rank)], 3);
  EXPECT_EQ(report.hops_waiting[static_cast<size_t>(rank)], 2);
}

// Packing is the only copy of a gradient; the fold of all of them writes each result where it is read.
TEST(CopiesTest, OnOneHostAGradientIsCopiedOnceAndWrittenOnceAsTheResult) {
  Shared<Report> report;
  WorkerProcesses workers(kWorkers, [&](Worker& worker) { return Body(worker, *report); });
  for (const int code : workers.Join()) ASSERT_EQ(code, 0);
  Print("one host", *report);
  for (int rank = 0; rank < kWorkers; ++rank) {
    EXPECT_NEAR(Times(*report, rank, CopyStage::kPacked), 1, 1e-6);
    EXPECT_NEAR(Times(*report, rank, CopyStage::kStaged), 0, 1e-4);
    EXPECT_NEAR(Times(*report, rank, CopyStage::kFolded), 1, 1e-2);
    EXPECT_NEAR(Times(*report, rank, CopyStage::kCopied), 0, 1e-4);
    EXPECT_NEAR(Times(*report, rank, CopyStage::kReceived), 0, 1e-6);
    ExpectHops(*report, rank);
  }
}

// A worker a host, over TCP, by a ring, in a copy of the data that becomes the data when all have it:
// one part of n is put there to be sent first, the others are written there as sums, and so are the
// results of the others when they come. What is read together with a frame's header is copied once more.
TEST(CopiesTest, BetweenHostsThereIsTheCopyThatAFailedAverageNeeds) {
  Shared<Report> report;
  ASSERT_EQ(setenv("SYNCOPATE_ALGORITHM", "allreduce:ring", 1), 0);
  const auto workers =
      HostWorkers::OnLoopback(kWorkers, 1, [&](Worker& worker) { return Body(worker, *report); });
  ASSERT_EQ(unsetenv("SYNCOPATE_ALGORITHM"), 0);
  for (const int code : workers->Join()) ASSERT_EQ(code, 0);
  Print("four hosts", *report);
  const double part = 1.0 / kWorkers;
  for (int rank = 0; rank < kWorkers; ++rank) {
    EXPECT_NEAR(Times(*report, rank, CopyStage::kPacked), 1, 1e-6);
    EXPECT_NEAR(Times(*report, rank, CopyStage::kStaged), part, 1e-3);
    EXPECT_NEAR(Times(*report, rank, CopyStage::kFolded), 1 - part, 1e-3);
    EXPECT_NEAR(Times(*report, rank, CopyStage::kCopied), (1 - part) + 1, 1e-3);
    EXPECT_LE(Times(*report, rank, CopyStage::kReceived), 2 * (1 - part));
    ExpectHops(*report, rank);
  }
}

}  // namespace
}  // namespace syncopate::sync
