// Data-parallel training of any LibTorch model: five lines around an ordinary loop.
//
//   auto worker = syncopate::Worker::Start();
//   auto parallel = syncopate::DataParallel::Make(**worker, *model);
//   for (auto& batch : *loader) {  // this worker's batches
//     optimizer.zero_grad();
//     loss_of(model, batch).backward();     // gradients leave for the others as they are ready
//     status = (*parallel)->Synchronize();  // .grad() is the mean of all workers' now
//     optimizer.step();
//   }
//
// Link with syncopate::torch (CMake) besides LibTorch. Errors are those of
// syncopate/syncopate.h.
#ifndef SYNCOPATE_TORCH_H_
#define SYNCOPATE_TORCH_H_

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "syncopate/syncopate.h"

namespace syncopate {

// Averages the gradients of a model over all workers while its backward pass runs. Not thread-safe:
// it is used from the thread that trains.
class DataParallel {
 public:
  // How gradients travel.
  struct Options {
    // Who averages with whom, and when. DataParallel takes strategies that average gradients: bsp.
    // Those that update parameters themselves are refused with InvalidArgument.
    std::string strategy = "bsp";
    // Which gradients are sent together and when: none, wfbp, mg-wfbp, bucket, asc-wfbp or search.
    // Those that plan (mg-wfbp, asc-wfbp, search) measure the network at the start and the backward
    // pass in the first iterations; until then buckets are used.
    std::string schedule = "search";
    absl::Duration timeout = absl::Minutes(5);  // of every wait
  };

  // Gives all workers rank 0's parameters and buffers. The model's parameters must stay the same
  // tensors while the object lives; those that need no gradient are left alone. `worker` must
  // outlive it. All workers of the job call it.
  static absl::StatusOr<std::unique_ptr<DataParallel>> Make(Worker& worker,
                                                            ::torch::nn::Module& model,
                                                            Options options);
  // The same with the default options.
  static absl::StatusOr<std::unique_ptr<DataParallel>> Make(Worker& worker,
                                                            ::torch::nn::Module& model) {
    return Make(worker, model, Options());
  }
  ~DataParallel();

  // Before backward(): the number of samples behind the gradient, where workers' batches differ.
  // Means are weighted with it. All workers call it in an iteration, or none.
  void SetSamples(uint64_t samples);
  // Between several backward() whose gradients add up: true before all but the last one, which
  // sends them.
  void SetAccumulating(bool on);
  // After backward(): waits until .grad() of every parameter is the mean of all workers' gradients.
  // A parameter that had no part in a worker's backward pass counts as 0 there.
  absl::Status Synchronize();
  // Buffers, such as batch norm's statistics, become their mean over the workers (floating types)
  // or rank 0's: before evaluating or saving the model. All workers call it.
  absl::Status AverageBuffers();

 private:
  class Impl;
  explicit DataParallel(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_TORCH_H_
