// A strategy that sets batches and says how far the job has come, in a whole training job: the samples,
// the rates and the end are those of a plain LibTorch loop that does the same.
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/strategy_message.h"
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
                             .lockstep = true,
                             .moves = strategy::Moves::kParameters,
                             .data = strategy::DataMode::kIndependent,
                             .make = [](const strategy::StrategyOptions& options)
                                 -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
                               return std::make_unique<Grows>(options);
                             }});
  return added;
}

constexpr char kAtWillName[] = "at-will-for-tests";
constexpr int64_t kAhead = 100;  // iterations of rank 0 in one of rank 1

// Each worker steps alone. Rank 1 stands in its second iteration until rank 0 is far ahead.
class AtWill : public strategy::Strategy {
 public:
  explicit AtWill(const strategy::StrategyOptions& options)
      : rank_(options.rank), tensors_(options.table.size()) {}
  std::string name() const override { return kAtWillName; }
  void Step(double, const Event& event, std::vector<Command>& commands) override {
    if (const auto* e = std::get_if<strategy::IterationBegan>(&event)) {
      held_ = rank_ == 1 && e->iteration == 1 && !told_;
      begun[rank_] = e->iteration + 1;
      if (rank_ == 0 && e->iteration == kAhead) {
        commands.push_back(strategy::SendMessage{1, Distance{.iteration = kAhead}});
      }
    }
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      needed_.push_back(e->tensor);
    }
    if (std::holds_alternative<strategy::MessageArrived>(event)) {
      told_ = true;
      held_ = false;
    }
    if (!held_) {
      for (const int tensor : std::exchange(needed_, {})) {
        commands.push_back(strategy::Proceed{tensor});
      }
    }
    if (std::holds_alternative<strategy::BackwardEnded>(event)) {
      commands.push_back(
          strategy::ApplyUpdate{.update = strategy::Update::kStepLocal, .last = tensors_ - 1});
    }
    if (std::holds_alternative<strategy::Drain>(event)) commands.push_back(strategy::Drained{});
  }

  static std::atomic<int64_t> begun[2];  // iterations, by rank

 private:
  const int rank_, tensors_;
  bool held_ = false, told_ = false;
  std::vector<int> needed_;
};

std::atomic<int64_t> AtWill::begun[2];

absl::Status AddAtWill() {
  static const absl::Status added =
      strategy::AddStrategy({.name = kAtWillName,
                             .about = "for tests",
                             .lockstep = false,
                             .survives = true,
                             .ends_together = false,
                             .moves = strategy::Moves::kParameters,
                             .sends = true,
                             .data = strategy::DataMode::kIndependent,
                             .model = strategy::ModelIs::kMean,
                             .make = [](const strategy::StrategyOptions& options)
                                 -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
                               return std::make_unique<AtWill>(options);
                             }});
  return added;
}

// The slow worker did as many iterations as the fast one, and those that waited for it failed.
TEST(StrategyCourseTest, WorkersThatNeedNotEndTogetherDoNotCatchUpWithTheFastest) {
  ASSERT_TRUE(AddAtWill().ok());
  TrainOptions options = SmallJob("mlp");
  options.strategy = kAtWillName;
  options.iterations = (kAhead + 20) / 2;  // of both: nearly all are done when rank 1 goes on
  options.pace = {.pace = {"5ms,100000"}, .slow = {}};  // so that news outrun iterations
  for (const absl::Status& end : testing::RunJob(2, options)) ASSERT_TRUE(end.ok()) << end;
  EXPECT_GT(AtWill::begun[0], kAhead);
  EXPECT_GE(AtWill::begun[1], 2);
  EXPECT_LT(AtWill::begun[1], kAhead);
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
