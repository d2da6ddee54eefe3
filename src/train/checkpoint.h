// Everything that training goes on from, in one file: bit for bit the same as without a stop.
//
// A worker saves its own file: parameters are the same for all workers of a BSP job, but statistics
// of batch norm and the state of the random generator are each worker's own.
//
// The form, all numbers little-endian, texts and blocks with a length before them:
//   "SYNCCKPT", u32 version, text model, text config, i64 iteration, i64 epoch, i64 offset in it,
//   block generator, block course, block strategy, block service, u32 tensors, for each: text name, u8 type, u8 dimensions, i64 extents, bytes;
//   u64 u64 digest of all before it.
#ifndef SYNCOPATE_TRAIN_CHECKPOINT_H_
#define SYNCOPATE_TRAIN_CHECKPOINT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "train/data/sampler.h"
#include "train/models.h"
#include "train/optimizer.h"
#include "train/options/disk.h"

namespace syncopate::train {

struct CheckpointTensor {
  std::string name;
  at::Tensor tensor;
};

struct Checkpoint {
  std::string model;
  std::string config;     // what must be the same to go on: a digest, say
  int64_t iteration = 0;  // how many are done
  SamplerPosition sampler;
  std::string generator;  // of LibTorch, for the processor
  std::string course;     // WorkerCourse::State() of a job without lockstep; else empty
  std::string strategy;   // Strategy::State() of this worker
  std::string service;    // Synchronizer::ServiceState(); empty: it has none
  std::vector<CheckpointTensor> tensors;
};

// The tensors and the generator as they are now, in memory of their own. The caller fills in the
// rest.
Checkpoint Capture(const Model& model, const Optimizer& optimizer);

// Puts them back. FailedPrecondition, and nothing changed, if the checkpoint is of another model,
// config or optimizer.
absl::Status Restore(const Checkpoint& checkpoint, absl::string_view model_name,
                     absl::string_view config, Model& model, Optimizer& optimizer);

// Writes beside the target, forces it to disk and renames: there is always a whole file.
absl::Status SaveCheckpoint(const std::string& path, const Checkpoint& checkpoint,
                            Disk& disk = RealDisk());
// NotFound if there is none, DataLoss if it is damaged.
absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path, Disk& disk = RealDisk());

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_CHECKPOINT_H_
