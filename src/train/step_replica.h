// The replica of a training job: parameters that our optimizer steps.
#ifndef SYNCOPATE_TRAIN_STEP_REPLICA_H_
#define SYNCOPATE_TRAIN_STEP_REPLICA_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <utility>
#include <vector>

#include "torch/torch_replica.h"
#include "train/optimizer.h"
#include "train/worker_course.h"

namespace syncopate::train {

// Steps tensor by tensor, with the rate of the iteration that made the gradients; with clipping all
// at once, since that needs the norm of the whole gradient. Not thread-safe.
class StepReplica final : public torch::TorchReplica {
 public:
  // Optimizer and course must outlive it. Without clipping `clip_norm` is 0.
  StepReplica(std::vector<at::Tensor> tensors, Optimizer& optimizer, double clip_norm,
              WorkerCourse& course)
      : TorchReplica(std::move(tensors)),
        optimizer_(optimizer),
        clip_norm_(clip_norm),
        course_(course) {}

  void SetRate(double rate) { rate_ = rate; }

  absl::Status SetBatch(uint64_t samples) override { return course_.SetBatch(samples); }
  absl::Status SetBatches(const std::map<int, uint64_t>& samples) override {
    return course_.SetBatches(samples);
  }
  absl::Status SetProgress(const strategy::SetProgress& progress) override {
    return course_.SetProgress(progress);
  }

 protected:
  void StepWith(int tensor, const at::Tensor& gradient, double rate_factor) override;

 private:
  Optimizer& optimizer_;
  const double clip_norm_;
  WorkerCourse& course_;
  double rate_ = 0;
  std::vector<std::pair<int, at::Tensor>> held_;  // until all are there to be clipped
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_STEP_REPLICA_H_
