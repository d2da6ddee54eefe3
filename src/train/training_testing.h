// A job of one worker, for tests: what a trainer does, without anybody to synchronize with.
#ifndef SYNCOPATE_TRAIN_TRAINING_TESTING_H_
#define SYNCOPATE_TRAIN_TRAINING_TESTING_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/batch.h"
#include "train/checkpoint.h"
#include "train/data/synthetic.h"
#include "train/models.h"
#include "train/optimizer.h"

namespace syncopate::train::testing {

inline Dataset DataFor(const std::string& model) {
  if (ReadsText(model)) return *MakeSyntheticText(20'000, 1);
  return *MakeSyntheticImages({{3, 32, 32}, 10, 400, 100, 1});
}

struct LoneWorker {
  LoneWorker(const std::string& name, const OptimizerOptions& optimizer_options, uint64_t seed,
             double dropout)
      : data(DataFor(name)),
        model(*MakeModel({name, data.info.sample_shape, data.info.classes, seed, dropout})),
        optimizer(*MakeOptimizer(optimizer_options, model->ParameterTensors())),
        sampler(data.train.samples, 1) {}

  // The loss before the step.
  double Step(int64_t batch_size, double rate) {
    const SampleBatch samples = *sampler.Next({batch_size}, 0);
    const Batch batch = MakeBatch(data.info, data.train, samples.samples);
    model->zero_grad();
    const at::Tensor loss = Loss(model->Forward(batch.inputs), batch.labels);
    loss.backward();
    for (size_t i = 0; i < model->ordered_parameters().size(); ++i) {
      optimizer->Apply(i, model->ordered_parameters()[i].tensor.grad(), rate);
    }
    return loss.item<double>();
  }

  Dataset data;
  std::shared_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  Sampler sampler;
};

}  // namespace syncopate::train::testing

#endif  // SYNCOPATE_TRAIN_TRAINING_TESTING_H_
