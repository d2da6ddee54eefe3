// For tests: whole training jobs, their workers threads of this process.
#ifndef SYNCOPATE_TRAIN_TRAINER_TESTING_H_
#define SYNCOPATE_TRAIN_TRAINER_TESTING_H_

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/temporary_folder_testing.h"
#include "train/checkpoint.h"
#include "train/trainer.h"
#include "worker/worker_testing.h"

namespace syncopate::train::testing {

// Options of a job that takes a moment: the cost is in starting it.
inline TrainOptions SmallJob(const std::string& model) {
  TrainOptions options;
  options.model = model;
  options.data = ReadsText(model) ? "synthetic-text" : "synthetic";
  options.synthetic_samples = 64;
  options.batch = 16;
  options.iterations = 4;
  options.evaluate_samples = 8;
  options.rate.base = 0.05;
  options.schedule = "wfbp";
  options.threads = 1;
  return options;
}

// How each worker of a job ended.
inline std::vector<absl::Status> RunJob(int workers, const TrainOptions& options) {
  std::vector<absl::Status> ends(static_cast<size_t>(workers));
  worker::RunWorkers(workers, [&](Worker& worker) {
    ends[static_cast<size_t>(worker.rank())] =
        Train(worker, options, [](absl::string_view) {}).status();
  });
  return ends;
}

// What a worker has in the end: parameters, buffers and what its optimizer remembers, by name.
using Tensors = std::map<std::string, at::Tensor>;

inline Tensors TensorsAt(const std::string& folder, int64_t iteration, int rank) {
  const auto checkpoint =
      LoadCheckpoint(absl::StrCat(folder, "/checkpoint-", iteration, "/rank-", rank));
  Tensors tensors;
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return tensors;
  for (const CheckpointTensor& one : checkpoint->tensors) tensors[one.name] = one.tensor;
  return tensors;
}

// Trains to the end in a folder of its own: what every worker has then. Empty where it failed.
inline std::vector<Tensors> TrainAll(int workers, TrainOptions options) {
  const TemporaryFolder folder;
  options.run_folder = folder.path();
  options.checkpoint_every = options.iterations;
  options.overwrite = true;
  std::vector<Tensors> all;
  for (const absl::Status& end : RunJob(workers, options)) EXPECT_TRUE(end.ok()) << end;
  for (int rank = 0; rank < workers; ++rank) {
    all.push_back(TensorsAt(folder.path(), options.iterations, rank));
  }
  return all;
}

inline Tensors Only(const Tensors& tensors, const std::string& prefix) {
  Tensors only;
  for (const auto& [name, tensor] : tensors) {
    if (name.rfind(prefix, 0) == 0) only[name] = tensor;
  }
  return only;
}

inline void ExpectSameBits(const Tensors& one, const Tensors& two) {
  ASSERT_EQ(one.size(), two.size());
  for (const auto& [name, tensor] : one) {
    ASSERT_EQ(two.count(name), 1u) << name;
    EXPECT_TRUE(tensor.equal(two.at(name))) << name;
  }
}

}  // namespace syncopate::train::testing

#endif  // SYNCOPATE_TRAIN_TRAINER_TESTING_H_
