// Exact epochs in jobs whose workers are processes, at unequal speed, while workers are killed, the one that
// hosts the services among them: each sample counts once in every epoch. Of a worker that is gone nobody
// knows whether the last that it said was heard; what it said and nobody else counted counts for it.
//
// More by hand:
//
//   SYNCOPATE_TEST_EPOCH_RUNS=20 build/release/tests/exact_epochs_test
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/live_messenger.h"
#include "sync/sample_source.h"
#include "sync/synchronizer.h"
#include "tests/no_parameters.h"
#include "tests/pair_groups.h"
#include "tests/worker_processes.h"
#include "train/worker_course.h"

namespace syncopate {
namespace {

constexpr int kWorkers = 4;
constexpr uint64_t kSamples = 601, kEpochs = 3;  // no multiple of a batch
constexpr int64_t kBatch = 8;

struct Board {
  std::atomic<int> ready{0};  // workers that have begun
  std::atomic<uint64_t> heard_all{0};
  // By epoch and place in its order: by how many workers it was said and heard, and a bit for each worker
  // that said it, whether that was heard or not.
  std::array<std::array<std::atomic<int>, kSamples>, kEpochs> heard{};
  std::array<std::array<std::atomic<uint32_t>, kSamples>, kEpochs> said{};
  // By epoch and sample: how often it was computed.
  std::array<std::array<std::atomic<int>, kSamples>, kEpochs> computed{};
  std::atomic<uint64_t> repeated{0};
};

// Notes what goes through another source.
class NotingSource : public sync::SampleSource {
 public:
  NotingSource(sync::SampleSource& source, int rank, Board& board)
      : source_(source), rank_(rank), board_(board) {}
  absl::StatusOr<sync::GrantAnswer> Next(uint64_t want) override {
    Said();
    auto grant = source_.Next(want);
    if (grant.ok()) {
      Heard();
      for (const sync::SampleRange& range : grant->ranges) held_[range.id] = range;
    }
    return grant;
  }
  void Use(const std::vector<ServiceId>& ranges) override {
    for (const ServiceId& id : ranges) used_.push_back(held_.at(id));
    source_.Use(ranges);
  }
  absl::StatusOr<sync::SummaryAnswer> Say() override {
    Said();
    auto summary = source_.Say();
    if (summary.ok()) Heard();
    return summary;
  }

 private:
  template <typename Note>
  void ForEach(const Note& note) {
    for (const sync::SampleRange& range : used_) {
      for (uint64_t i = range.samples.first; i < range.samples.end(); ++i) note(range.epoch, i);
    }
  }
  void Said() {
    ForEach([&](uint64_t epoch, uint64_t i) { board_.said[epoch][i] |= 1u << rank_; });
  }
  void Heard() {
    ForEach([&](uint64_t epoch, uint64_t i) {
      ++board_.heard[epoch][i];
      ++board_.heard_all;
    });
    used_.clear();
  }

  sync::SampleSource& source_;
  const int rank_;
  Board& board_;
  std::map<ServiceId, sync::SampleRange> held_;
  std::vector<sync::SampleRange> used_;
};

int Complain(const absl::Status& status, int code) {
  std::fprintf(stderr, "process %d: %s\n", static_cast<int>(getpid()), status.ToString().c_str());
  return code;
}

absl::Status TrainEpochs(train::WorkerCourse& course, sync::Synchronizer& synchronizer, int tensors,
                         int rank, Board& board) {
  for (int64_t iteration = 0;; ++iteration) {
    auto picked = course.Next();
    while (picked.ok() && picked->samples.empty() && !course.Ended(iteration)) {
      if (absl::Status status = synchronizer.Finish(); !status.ok()) return status;
      course.AllApplied();
      picked = course.Next();
    }
    if (!picked.ok()) return picked.status();
    if (picked->samples.empty()) break;
    if (absl::Status status = synchronizer.Begin(picked->samples.size(), 0); !status.ok())
      return status;
    for (int t = 0; t < tensors; ++t) {
      if (absl::Status status = synchronizer.Need(t); !status.ok()) return status;
    }
    course.UpdatesApplied();
    for (const int64_t sample : picked->samples) {
      ++board.computed[static_cast<size_t>(picked->epoch)][static_cast<size_t>(sample)];
    }
    usleep(static_cast<useconds_t>(rank == 3 ? 3000 : 1000));  // one is slow
    if (absl::Status status = synchronizer.BackwardBegins(); !status.ok()) return status;
    for (int t = tensors - 1; t >= 0; --t) {
      if (absl::Status status = synchronizer.Gradient(t); !status.ok()) return status;
    }
    if (absl::Status status = synchronizer.EndBackward(); !status.ok()) return status;
  }
  return synchronizer.Finish();
}

int EpochsBody(Worker& worker, Board& board) {
  const TensorTable table = SmallTable();
  if (absl::Status status = worker.AddService(std::make_unique<PairGroups>()); !status.ok())
    return Complain(status, 10);
  auto live = sync::StartSampleSource(worker, {.samples = kSamples, .epochs = kEpochs});
  if (!live.ok()) return Complain(live.status(), 11);
  NotingSource source(**live, worker.rank(), board);
  auto course = train::WorkerCourse::Make({.data = strategy::DataMode::kRanges,
                                           .rank = worker.rank(),
                                           .batches = std::vector<int64_t>(kWorkers, kBatch),
                                           .samples = kSamples,
                                           .seed = 3,
                                           .source = &source});
  if (!course.ok()) return Complain(course.status(), 12);
  NoParameters replica(table);
  sync::LiveMessenger messenger(worker);
  auto synchronizer = sync::Synchronizer::Make(
      worker, table, replica,
      std::make_unique<strategy::AskedGroups>(
          strategy::WorkerInfo{worker.rank(), worker.size(), table.size()}),
      {.moves_gradients = false, .watches_losses = true, .messenger = &messenger});
  if (!synchronizer.ok()) return Complain(synchronizer.status(), 13);
  if (absl::Status status = messenger.Begin(
          [to = synchronizer->get()](strategy::Event event) { to->Deliver(std::move(event)); },
          [to = synchronizer->get()](absl::Status why) { to->End(std::move(why)); });
      !status.ok()) {
    return Complain(status, 14);
  }
  ++board.ready;
  if (absl::Status status =
          TrainEpochs(*course, **synchronizer, table.size(), worker.rank(), board);
      !status.ok()) {
    return Complain(status, 15);
  }
  const auto repeated = course->Repeated();
  if (!repeated.ok()) return Complain(repeated.status(), 16);
  board.repeated = *repeated;
  messenger.Stop();
  return 0;
}

// A job in which these workers are killed, each when a part of all samples has been counted.
void KillSome(const std::vector<std::pair<int, uint64_t>>& kills, uint64_t seed) {
  SCOPED_TRACE(seed);
  Shared<Board> board;
  Options options;
  options.timeout = absl::Seconds(60);
  WorkerProcesses workers(
      kWorkers, [&](Worker& worker) { return EpochsBody(worker, *board); }, options);
  uint32_t dead = 0;
  for (const auto& [victim, heard] : kills) {
    const int64_t deadline_ns = MonotonicClock().NowNs() + 60'000'000'000;
    while ((board->ready < kWorkers || board->heard_all < heard) &&
           MonotonicClock().NowNs() < deadline_ns) {
      usleep(100);
    }
    ASSERT_GE(board->heard_all, heard);
    workers.Signal(victim, SIGKILL);
    dead |= 1u << victim;
  }
  const std::vector<int> codes = workers.Join(absl::Seconds(120));
  for (int rank = 0; rank < kWorkers; ++rank) {
    const int code = codes[static_cast<size_t>(rank)];
    // One that had done all its work was quicker than the kill.
    if (WIFEXITED(code) && WEXITSTATUS(code) == 0) dead &= ~(1u << rank);
    if ((dead >> rank & 1) != 0) {
      EXPECT_TRUE(WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL)
          << "rank " << rank << ": " << code;
    } else {
      EXPECT_TRUE(WIFEXITED(code) && WEXITSTATUS(code) == 0) << "rank " << rank << ": " << code;
    }
  }
  uint64_t by_the_dead = 0, twice = 0;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (uint64_t i = 0; i < kSamples; ++i) {
      const int heard = board->heard[epoch][i];
      EXPECT_LE(heard, 1) << "sample " << i << " of epoch " << epoch << " counts twice";
      EXPECT_TRUE(heard == 1 || (board->said[epoch][i] & dead) != 0)
          << "sample " << i << " of epoch " << epoch << " does not count";
      by_the_dead += heard == 0 ? 1 : 0;
      EXPECT_GE(board->computed[epoch][i], 1) << "sample " << i << " of epoch " << epoch;
      twice += board->computed[epoch][i] > 1 ? 1 : 0;
    }
  }
  // What was handed out twice may not have been computed by the one that is dead.
  EXPECT_LE(twice, board->repeated);
  EXPECT_LE(by_the_dead, kills.size() * 2 * kBatch);
  std::printf("run %2llu: %zu killed, %llu samples handed out again, %llu computed twice\n",
              static_cast<unsigned long long>(seed), kills.size(),
              static_cast<unsigned long long>(board->repeated.load()),
              static_cast<unsigned long long>(twice));
  std::fflush(stdout);  // what is left in the buffer would be printed by the next children too
}

TEST(ExactEpochsTest, EachSampleCountsOnceAnEpochWhoeverIsKilled) {
  int runs = 3;
  if (const char* text = std::getenv("SYNCOPATE_TEST_EPOCH_RUNS"); text != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(text, &runs));
  }
  constexpr uint64_t kAll = kSamples * kEpochs;
  for (int run = 0; run < runs && !HasFailure(); ++run) {
    Random random(static_cast<uint64_t>(run) + 1);
    // The first one kills the host of the services; every other one kills two.
    const int first = run == 0 ? 0 : static_cast<int>(random.Below(kWorkers));
    std::vector<std::pair<int, uint64_t>> kills = {{first, kAll / 20 + random.Below(kAll / 2)}};
    if (run % 2 == 1) {
      const int second = (first + 1 + static_cast<int>(random.Below(kWorkers - 1))) % kWorkers;
      // The services have a standby again by then.
      kills.emplace_back(second, kills[0].second + kAll / 6 + random.Below(kAll / 6));
    }
    KillSome(kills, static_cast<uint64_t>(run));
  }
}

}  // namespace
}  // namespace syncopate
