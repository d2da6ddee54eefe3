// What synchronization costs a loop that has nobody to synchronize with: an ordinary LibTorch loop
// and the same one with DataParallel of one worker, iteration by iteration in turns.
#ifndef SYNCOPATE_TRAIN_HOOKS_COST_TESTING_H_
#define SYNCOPATE_TRAIN_HOOKS_COST_TESTING_H_

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/median.h"
#include "base/status.h"
#include "syncopate/torch.h"
#include "train/training_testing.h"

namespace syncopate::train::testing {

inline double SecondsOf(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct LoopTimes {
  std::vector<double> wall_seconds;    // by iteration
  std::vector<double> thread_seconds;  // of processor time of the thread that trains
};

// An ordinary loop, to be taken step by step.
class PlainLoop {
 public:
  explicit PlainLoop(const std::string& model)
      : parts_(model, {}, 1, 0),
        optimizer_(parts_.model->ParameterTensors(),
                   ::torch::optim::SGDOptions(0.01).momentum(0.9)) {}

  ::torch::nn::Module& module() { return *parts_.model; }
  LoopTimes& times() { return times_; }

  // `synchronize` is called between backward() and step().
  template <typename Synchronize>
  void Step(int64_t batch_size, const Synchronize& synchronize) {
    const SampleBatch samples = *parts_.sampler.Next({batch_size}, 0);
    const Batch batch = MakeBatch(parts_.data.info, parts_.data.train, samples.samples);
    const double wall = SecondsOf(CLOCK_MONOTONIC);
    const double thread = SecondsOf(CLOCK_THREAD_CPUTIME_ID);
    optimizer_.zero_grad();
    Loss(parts_.model->Forward(batch.inputs), batch.labels).backward();
    synchronize();
    optimizer_.step();
    times_.thread_seconds.push_back(SecondsOf(CLOCK_THREAD_CPUTIME_ID) - thread);
    times_.wall_seconds.push_back(SecondsOf(CLOCK_MONOTONIC) - wall);
  }

 private:
  LoneWorker parts_;
  ::torch::optim::SGD optimizer_;
  LoopTimes times_;
};

struct HooksCost {
  LoopTimes plain;
  LoopTimes hooked;
};

// `worker` is alone in its job. LibTorch computes on the calling thread only.
inline absl::StatusOr<HooksCost> MeasureHooks(Worker& worker, const std::string& model,
                                              int64_t batch_size, int iterations) {
  at::set_num_threads(1);
  PlainLoop plain(model), hooked(model);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<DataParallel> parallel,
                             DataParallel::Make(worker, hooked.module()));
  absl::Status status;
  const auto nothing = [] {};
  const auto synchronize = [&] { status = parallel->Synchronize(); };
  for (int i = -2; i < iterations; ++i) {  // two to warm up
    if (i == 0) plain.times() = hooked.times() = {};
    for (const bool with : {i % 2 == 0, i % 2 != 0}) {  // who is first takes turns too
      if (with) {
        hooked.Step(batch_size, synchronize);
      } else {
        plain.Step(batch_size, nothing);
      }
      SYNCOPATE_RETURN_IF_ERROR(status);
    }
  }
  return HooksCost{plain.times(), hooked.times()};
}

}  // namespace syncopate::train::testing

#endif  // SYNCOPATE_TRAIN_HOOKS_COST_TESTING_H_
