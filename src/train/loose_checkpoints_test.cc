// Checkpoints of jobs without lockstep: workers at positions of their own, disks that lose power before each
// single operation of a set, workers that leave in the middle.
#include "train/loose_checkpoints.h"

#include <ATen/ATen.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sync/exchange.h"
#include "train/checkpoint_files.h"
#include "train/checkpoint_set.h"
#include "train/powerless_disk_testing.h"
#include "worker/worker_testing.h"

namespace syncopate::train {
namespace {

using testing::Aftermath;
using ::testing::ElementsAre;
using testing::kAftermaths;
using testing::Power;
using testing::PowerlessDisk;

constexpr char kRunFolder[] = "/runs/loose";
constexpr absl::Duration kLooseEndTimeout = absl::Seconds(60);

// Of a worker that has done `iteration` of its own.
Checkpoint LooseCheckpoint(int64_t iteration, int rank) {
  Checkpoint checkpoint;
  checkpoint.iteration = iteration;
  checkpoint.course = absl::StrCat("course of ", rank);
  checkpoint.tensors.push_back({"t", at::full({3}, 1000 * rank + iteration, at::kLong)});
  return checkpoint;
}

bool IsLooseOf(const Checkpoint& checkpoint, int rank) {
  return checkpoint.course == absl::StrCat("course of ", rank) && checkpoint.tensors.size() == 1 &&
         checkpoint.tensors[0].tensor.equal(
             at::full({3}, 1000 * rank + checkpoint.iteration, at::kLong));
}

// Boundaries until the set counts here, or a disk fails.
absl::Status WorkUntilNoted(LooseCheckpoints& checkpoints, int64_t set, int64_t iteration, int rank,
                            const std::atomic<bool>& stop) {
  const int64_t until_ns = MonotonicClock().NowNs() + 60'000'000'000;
  while (checkpoints.noted() < set) {
    if (stop) return absl::CancelledError("another one failed");
    if (MonotonicClock().NowNs() > until_ns) return absl::DeadlineExceededError("no set");
    if (absl::Status status =
            checkpoints.AtBoundary(set, [&] { return LooseCheckpoint(iteration, rank); });
        !status.ok()) {
      return status;
    }
    std::this_thread::yield();
  }
  return absl::OkStatus();
}

TEST(LooseCheckpointsTest, WorkersWriteAtBoundariesOfTheirOwnAndTwoSetsAreKept) {
  const TemporaryFolder folder;
  worker::RunWorkers(3, [&](Worker& worker) {
    auto checkpoints = LooseCheckpoints::Start(worker, {.folder = folder.path(), .every = 10});
    ASSERT_TRUE(checkpoints.ok()) << checkpoints.status();
    // Workers that do two, three and four iterations while the job does one of all.
    int64_t iteration = 0;
    const auto capture = [&] { return LooseCheckpoint(iteration, worker.rank()); };
    for (int64_t position = 0; position < 45; ++position) {
      iteration += 2 + worker.rank();
      const absl::Status status = (*checkpoints)->AtBoundary(position, capture);
      ASSERT_TRUE(status.ok()) << status;
      usleep(500);
    }
    const absl::Status status = (*checkpoints)->End(45, capture, kLooseEndTimeout);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ((*checkpoints)->noted(), 45);
  });
  const auto note = ReadCheckpointNote(folder.path());
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_EQ(note->iteration, 45);
  EXPECT_GT(note->previous, 0);
  EXPECT_EQ(note->previous % 10, 0);
  EXPECT_THAT(
      RealDisk().List(folder.path()),
      ElementsAre(absl::StrCat("checkpoint-", note->previous), "checkpoint-45", "checkpoint.json"));
  worker::RunWorkers(3, [&](Worker& worker) {
    const auto loaded = LoadFromSet(folder.path(), sync::ExchangeOf(worker));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(IsLooseOf(loaded->checkpoint, worker.rank()));
    EXPECT_EQ(loaded->checkpoint.iteration, 45 * (2 + worker.rank()));
  });
}

// The job goes on with those that the set is of, under new ranks; the set before has their old names.
TEST(LooseCheckpointsTest, AJobGoesOnWithoutTheWorkersThatWereGone) {
  const TemporaryFolder folder;
  std::atomic<bool> never{false}, leaves{false};
  worker::RunWorkers(4, [&](Worker& worker) {
    auto checkpoints = LooseCheckpoints::Start(worker, {.folder = folder.path(), .every = 10});
    ASSERT_TRUE(checkpoints.ok()) << checkpoints.status();
    EXPECT_TRUE(WorkUntilNoted(**checkpoints, 10, 5, worker.rank(), never).ok());
    if (worker.rank() == 1) {
      leaves = true;  // it writes nothing more
      return;
    }
    while (!leaves) std::this_thread::yield();
    EXPECT_TRUE(WorkUntilNoted(**checkpoints, 20, 9, worker.rank(), never).ok());
  });
  const CheckpointNote expected = {.iteration = 20,
                                   .workers = 3,
                                   .previous = 10,
                                   .ranks = {0, 2, 3},
                                   .previous_ranks = {0, 2, 3}};
  ASSERT_EQ(*ReadCheckpointNote(folder.path()), expected);
  constexpr int kOld[] = {0, 2, 3};
  worker::RunWorkers(3, [&](Worker& worker) {
    const auto loaded = LoadFromSet(folder.path(), sync::ExchangeOf(worker));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(IsLooseOf(loaded->checkpoint, kOld[worker.rank()]));
    auto checkpoints = LooseCheckpoints::Start(
        worker, {.folder = folder.path(), .every = 10, .resumed = loaded->note});
    ASSERT_TRUE(checkpoints.ok()) << checkpoints.status();
    EXPECT_TRUE(WorkUntilNoted(**checkpoints, 30, 12, worker.rank(), never).ok());
  });
  const CheckpointNote after = {
      .iteration = 30, .workers = 3, .previous = 20, .ranks = {}, .previous_ranks = {0, 2, 3}};
  ASSERT_EQ(*ReadCheckpointNote(folder.path()), after);
  // Where the new set is damaged, the old one is found under its names.
  ASSERT_TRUE(RealDisk().Write(RankFile(folder.path(), 30, 2), "SYNCCKPT").ok());
  worker::RunWorkers(3, [&](Worker& worker) {
    const auto loaded = LoadFromSet(folder.path(), sync::ExchangeOf(worker));
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(IsLooseOf(loaded->checkpoint, kOld[worker.rank()]));
    EXPECT_EQ(loaded->note.iteration, 20);
  });
  EXPECT_EQ(ReadCheckpointNote(folder.path())->ranks, std::vector<int>({0, 2, 3}));
}

// Every host has a disk of its own, and all lose power before operation `fail_at` of the third set. Returns
// whether power was lost: if not, there are no more operations.
bool LosePowerInAThirdSet(int64_t fail_at, Aftermath aftermath) {
  constexpr int kWorkers = 3;
  Power power;
  std::vector<std::unique_ptr<PowerlessDisk>> disks;
  for (int rank = 0; rank < kWorkers; ++rank) {
    disks.push_back(std::make_unique<PowerlessDisk>(power));
  }
  std::atomic<bool> failed{false};
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    const int rank = worker.rank();
    PowerlessDisk& disk = *disks[static_cast<size_t>(rank)];
    auto checkpoints =
        LooseCheckpoints::Start(worker, {.folder = kRunFolder, .every = 100, .disk = &disk});
    ASSERT_TRUE(checkpoints.ok()) << checkpoints.status();
    for (const int64_t set : {100, 200}) {
      ASSERT_TRUE(WorkUntilNoted(**checkpoints, set, set + rank, rank, failed).ok());
      // One that is still at this set would write its part of the next one, too, as it is now.
      ASSERT_TRUE(worker.world().Barrier().ok());
    }
    disk.Settle();
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (rank == 0) power.FailAt(fail_at);
    ASSERT_TRUE(worker.world().Barrier().ok());
    if (!WorkUntilNoted(**checkpoints, 300, 300 + rank, rank, failed).ok()) failed = true;
    ASSERT_TRUE(worker.world().Barrier().ok());
  });
  const bool lost = power.failed();
  power.Restore();
  for (const auto& disk : disks) disk->StartAgain(aftermath);
  const auto note = ReadCheckpointNote(kRunFolder, *disks[0]);
  EXPECT_TRUE(note.ok()) << note.status();
  if (!note.ok()) return lost;
  EXPECT_TRUE(note->iteration == 300 || (note->iteration == 200 && failed)) << note->iteration;
  // All go on from the set that the note speaks of, and it is whole on every host.
  worker::RunWorkers(kWorkers, [&](Worker& worker) {
    const int rank = worker.rank();
    const auto loaded =
        LoadFromSet(kRunFolder, sync::ExchangeOf(worker), *disks[static_cast<size_t>(rank)]);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(IsLooseOf(loaded->checkpoint, rank));
    EXPECT_EQ(loaded->checkpoint.iteration, note->iteration + rank);
  });
  return lost;
}

TEST(LooseCheckpointsTest, PowerLostAnywhereInASetLeavesAWholeOneOnEveryHost) {
  for (const Aftermath aftermath : kAftermaths) {
    bool lost = true;
    for (int64_t fail_at = 0; lost && !HasFailure(); ++fail_at) {
      SCOPED_TRACE(
          absl::StrCat("aftermath ", static_cast<int>(aftermath), ", operation ", fail_at));
      lost = LosePowerInAThirdSet(fail_at, aftermath);
      ASSERT_LT(fail_at, 1000) << "power is never kept";
    }
  }
}

// One that had been stopped and given up wrote over what the others had noted since.
TEST(LooseCheckpointsTest, NobodyGoesBackBehindANoteThatOthersHaveWritten) {
  const TemporaryFolder folder;
  const std::atomic<bool> never{false};
  // What a run before has left there is nobody's.
  ASSERT_TRUE(WriteCheckpointNote(folder.path(), {.iteration = 500, .workers = 2}).ok());
  worker::RunWorkers(1, [&](Worker& worker) {
    auto checkpoints = LooseCheckpoints::Start(worker, {.folder = folder.path(), .every = 10});
    ASSERT_TRUE(checkpoints.ok()) << checkpoints.status();
    ASSERT_TRUE(WorkUntilNoted(**checkpoints, 10, 1, 0, never).ok());
    ASSERT_TRUE(WorkUntilNoted(**checkpoints, 20, 2, 0, never).ok());
    EXPECT_EQ(ReadCheckpointNote(folder.path())->iteration, 20);
    const CheckpointNote others = {.iteration = 40, .workers = 3, .previous = 30};
    ASSERT_TRUE(WriteCheckpointNote(folder.path(), others).ok());
    const absl::Status status = WorkUntilNoted(**checkpoints, 30, 3, 0, never);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(*ReadCheckpointNote(folder.path()), others);
  });
}

TEST(LooseCheckpointsTest, OneThatCannotWriteSaysSo) {
  const TemporaryFolder folder;
  worker::RunWorkers(1, [&](Worker& worker) {
    auto checkpoints =
        LooseCheckpoints::Start(worker, {.folder = folder.path() + "/none", .every = 1});
    ASSERT_TRUE(checkpoints.ok()) << checkpoints.status();
    ASSERT_TRUE(RealDisk().Write(folder.path() + "/none", "a file").ok());
    absl::Status status;
    const int64_t until_ns = MonotonicClock().NowNs() + 60'000'000'000;
    while (status.ok() && MonotonicClock().NowNs() < until_ns) {
      status = (*checkpoints)->AtBoundary(1, [] { return LooseCheckpoint(1, 0); });
    }
    EXPECT_FALSE(status.ok());
  });
}

}  // namespace
}  // namespace syncopate::train
