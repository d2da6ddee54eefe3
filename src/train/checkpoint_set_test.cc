// Sets of checkpoints on disks that lose power: every host has a disk of its own, and all lose power
// at once, before each single operation of a save.
#include "train/checkpoint_set.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder_testing.h"
#include "sync/exchange.h"
#include "train/options/checkpoint_note.h"
#include "train/powerless_disk_testing.h"
#include "train/trainer_testing.h"
#include "worker/worker_testing.h"

namespace syncopate::train {
namespace {

using testing::Aftermath;
using testing::kAftermaths;
using testing::Power;
using testing::PowerlessDisk;

constexpr int kSetWorkers = 3;
constexpr char kFolder[] = "/runs/one";

Checkpoint MakeCheckpoint(int64_t iteration, int rank) {
  Checkpoint checkpoint;
  checkpoint.iteration = iteration;
  checkpoint.tensors.push_back({"t", at::full({3}, rank + iteration, at::kLong)});
  return checkpoint;
}

bool IsThatOf(const Checkpoint& checkpoint, int64_t iteration, int rank) {
  return checkpoint.iteration == iteration && checkpoint.tensors.size() == 1 &&
         checkpoint.tensors[0].tensor.equal(at::full({3}, rank + iteration, at::kLong));
}

// The disks of all workers, as one of them uses them; all call everything, in the same order.
struct World {
  explicit World(int workers = kSetWorkers) {
    for (int rank = 0; rank < workers; ++rank) {
      disks.push_back(std::make_unique<PowerlessDisk>(power));
    }
  }
  PowerlessDisk& disk(int rank) { return *disks[static_cast<size_t>(rank)]; }

  Power power;
  std::vector<std::unique_ptr<PowerlessDisk>> disks;
};

// Saves 100 and 200, and 300 with a loss of power before operation `fail_at` of all hosts together.
// Returns whether power was lost: if not, there are no more operations.
bool LosePowerWhileSaving(Worker& worker, World& world, int64_t fail_at, Aftermath aftermath) {
  Group& group = worker.world();
  const int rank = worker.rank();
  PowerlessDisk& disk = world.disk(rank);
  for (const int64_t iteration : {100, 200}) {
    EXPECT_TRUE(
        SaveToSet(kFolder, sync::ExchangeOf(worker), MakeCheckpoint(iteration, rank), disk).ok());
  }
  disk.Settle();
  EXPECT_TRUE(group.Barrier().ok());
  if (rank == 0) world.power.FailAt(fail_at);
  EXPECT_TRUE(group.Barrier().ok());
  const absl::Status saved =
      SaveToSet(kFolder, sync::ExchangeOf(worker), MakeCheckpoint(300, rank), disk);
  int64_t all_saved = saved.ok() ? 1 : 0;
  EXPECT_TRUE(group.AllReduce(Array::Of(&all_saved, 1), ReduceOp::kMin).ok());
  const bool lost = world.power.failed();
  EXPECT_TRUE(group.Barrier().ok());
  if (rank == 0) world.power.Restore();
  disk.StartAgain(aftermath);
  EXPECT_TRUE(group.Barrier().ok());

  // All go on from the set that the note speaks of, and it is whole on every host.
  int64_t noted = 0;
  if (rank == 0) {
    const absl::StatusOr<CheckpointNote> note = ReadCheckpointNote(kFolder, disk);
    EXPECT_TRUE(note.ok()) << note.status();
    if (note.ok()) noted = note->iteration;
  }
  EXPECT_TRUE(group.Broadcast(Array::Of(&noted, 1), 0).ok());
  EXPECT_TRUE(noted == 300 || (noted == 200 && all_saved == 0)) << noted;
  const absl::StatusOr<LoadedSet> loaded = LoadFromSet(kFolder, sync::ExchangeOf(worker), disk);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (loaded.ok()) {
    EXPECT_TRUE(IsThatOf(loaded->checkpoint, noted, rank)) << loaded->checkpoint.iteration;
  }
  return lost;
}

// Only rank 0 forced its set's folder to disk, and nobody the run's: with a disk on every host, the
// note could speak of a set of which the others had lost their files.
TEST(CheckpointSetTest, PowerLostAnywhereInASaveLeavesAWholeSetOnEveryHost) {
  for (const Aftermath aftermath : kAftermaths) {
    bool lost = true;
    for (int64_t fail_at = 0; lost && !::testing::Test::HasFailure(); ++fail_at) {
      SCOPED_TRACE(
          absl::StrCat("aftermath ", static_cast<int>(aftermath), ", operation ", fail_at));
      World world;
      worker::RunWorkers(kSetWorkers, [&](Worker& worker) {
        const bool lost_here = LosePowerWhileSaving(worker, world, fail_at, aftermath);
        if (worker.rank() == 0) lost = lost_here;
      });
      ASSERT_LT(fail_at, 1000) << "power is never kept";
    }
  }
}

// A host whose disk keeps nothing of the newest set has the one before.
TEST(CheckpointSetTest, TwoSetsAreKept) {
  const TemporaryFolder folder;
  worker::RunWorkers(2, [&](Worker& worker) {
    for (const int64_t iteration : {100, 200, 300, 400}) {
      EXPECT_TRUE(SaveToSet(folder.path(), sync::ExchangeOf(worker),
                            MakeCheckpoint(iteration, worker.rank()))
                      .ok());
    }
  });
  EXPECT_EQ(RealDisk().List(folder.path()),
            (std::vector<std::string>{"checkpoint-300", "checkpoint-400", "checkpoint.json"}));
}

// A worker that was slow to remove older sets removed the one that another had begun on their folder.
TEST(CheckpointSetTest, ASetThatAQuickerWorkerHasBegunIsNotRemoved) {
  const TemporaryFolder folder;
  const std::string begun = folder.path() + "/checkpoint-200";
  ASSERT_TRUE(std::filesystem::create_directory(begun));
  worker::RunWorkers(2, [&](Worker& worker) {
    EXPECT_TRUE(
        SaveToSet(folder.path(), sync::ExchangeOf(worker), MakeCheckpoint(100, worker.rank()))
            .ok());
  });
  EXPECT_TRUE(std::filesystem::exists(begun));
}

TEST(CheckpointSetTest, ADamagedSetIsPassedOverForTheOneBefore) {
  World world(2);
  worker::RunWorkers(2, [&](Worker& worker) {
    const int rank = worker.rank();
    PowerlessDisk& disk = world.disk(rank);
    for (const int64_t iteration : {100, 200}) {
      EXPECT_TRUE(
          SaveToSet(kFolder, sync::ExchangeOf(worker), MakeCheckpoint(iteration, rank), disk).ok());
    }
    if (rank == 1) {
      ASSERT_TRUE(disk.Write("/runs/one/checkpoint-200/rank-1", "SYNCCKPT").ok());
    }
    const absl::StatusOr<LoadedSet> loaded = LoadFromSet(kFolder, sync::ExchangeOf(worker), disk);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(IsThatOf(loaded->checkpoint, 100, rank));
    // From now on the damaged set counts for nothing.
    const absl::StatusOr<LoadedSet> again = LoadFromSet(kFolder, sync::ExchangeOf(worker), disk);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(IsThatOf(again->checkpoint, 100, rank));
  });
}

// Rank 0 told nobody, and the others waited for it until their timeout.
TEST(CheckpointSetTest, ANoteThatCannotBeWrittenIsAnErrorOfAllAtOnce) {
  World world;
  Options options;
  options.timeout = absl::Seconds(5);
  worker::RunWorkers(
      kSetWorkers,
      [&](Worker& worker) {
        const int rank = worker.rank();
        PowerlessDisk& disk = world.disk(rank);
        if (rank == 0) disk.RefuseRenamesTo(CheckpointNotePath(kFolder));
        const absl::Status saved =
            SaveToSet(kFolder, sync::ExchangeOf(worker), MakeCheckpoint(100, rank), disk);
        EXPECT_TRUE(absl::IsUnavailable(saved)) << saved;
        EXPECT_TRUE(worker.world().Barrier().ok());  // nothing is lost by it
      },
      options);
}

}  // namespace
}  // namespace syncopate::train
