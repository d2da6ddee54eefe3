// A strategy that sets batches and says how far the job has come, in a whole training job: the samples,
// the rates and the end are those of a plain LibTorch loop that does the same.
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/registry.h"
#include "train/batch.h"
#include "train/data/load.h"
#include "train/trainer_testing.h"

namespace syncopate::train {
namespace {

using strategy::Command;
using strategy::Event;
using testing::SmallJob;
using testing::Tensors;

constexpr uint64_t kBatches[] = {16, 24, 8, 40};  // of the iterations
constexpr char kName[] = "grows-for-tests";

// Steps alone, with another batch in every iteration, and stops the job after the last of them.
class Grows : public strategy::Strategy {
 public:
  explicit Grows(const strategy::StrategyOptions& options) : tensors_(options.table.size()) {}
  std::string name() const override { return kName; }
  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) {
      iteration_ = e->iteration;
      total_ += e->samples;
    }
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.push_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      commands.push_back(strategy::ApplyUpdate{
          .update = strategy::Update::kStepLocal, .last = tensors_ - 1, .rate_factor = 0.5});
      const size_t next = static_cast<size_t>(iteration_) + 1;
      if (next < std::size(kBatches)) commands.push_back(strategy::SetBatch{kBatches[next]});
      commands.push_back(
          strategy::SetProgress{.total_samples = total_, .stop = next == std::size(kBatches)});
    }
    if (std::holds_alternative<strategy::Drain>(event)) commands.push_back(strategy::Drained{});
  }

 private:
  const int tensors_;
  int64_t iteration_ = 0;
  uint64_t total_ = 0;
};

absl::Status AddGrows() {
  static const absl::Status added =
      strategy::AddStrategy({.name = kName,
                             .about = "for tests",
                             .lockstep = true,  // training knows no other yet
                             .moves = strategy::Moves::kParameters,
                             .data = strategy::DataMode::kIndependent,
                             .make = [](const strategy::StrategyOptions& options)
                                 -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
                               return std::make_unique<Grows>(options);
                             }});
  return added;
}

TEST(StrategyCourseTest, BatchesReachTheSamplerAndProgressTheRateAndTheEnd) {
  ASSERT_TRUE(AddGrows().ok());
  TrainOptions options = SmallJob("mlp");
  options.strategy = kName;
  options.iterations = 1000;  // it is told to stop
  options.optimizer.momentum = 0;
  options.rate.warmup = 5;  // so that the rate depends on the progress
  options.checkpoint_every = 4;
  const TemporaryFolder folder;
  options.run_folder = folder.path();
  options.overwrite = true;
  for (const absl::Status& end : testing::RunJob(1, options)) ASSERT_TRUE(end.ok()) << end;
  const Tensors got = testing::Only(testing::TensorsAt(folder.path(), 4, 0), "parameter/");

  LoadOptions load;
  load.synthetic.train_samples = options.synthetic_samples;
  const Dataset data = *LoadDataset(options.data, load);
  const auto model = *MakeModel(
      {options.model, data.info.sample_shape, data.info.classes, options.seed, options.dropout});
  Sampler sampler(data.train.samples, MixSeed(options.seed, 0));
  LearningRate rate = options.rate;
  rate.iterations = options.iterations;
  uint64_t total = 0;
  for (const uint64_t samples : kBatches) {
    const Batch batch =
        MakeBatch(data.info, data.train, sampler.Next({static_cast<int64_t>(samples)}, 0)->samples);
    model->zero_grad();
    Loss(model->Forward(batch.inputs), batch.labels).backward();
    const at::NoGradGuard guard;
    const double step =
        0.5 * rate.RateAt(static_cast<int64_t>(total / static_cast<uint64_t>(options.batch)));
    for (const at::Tensor& parameter : model->ParameterTensors()) {
      parameter.sub_(parameter.grad(), step);
    }
    total += samples;
  }
  ASSERT_EQ(got.size(), model->ordered_parameters().size());
  for (const ModelParameter& parameter : model->ordered_parameters()) {
    const at::Tensor difference = got.at("parameter/" + parameter.name) - parameter.tensor;
    EXPECT_LT(difference.abs().max().item<double>(), 1e-5) << parameter.name;
  }
}

}  // namespace
}  // namespace syncopate::train
