// Bulk-synchronous training must compute what one worker computes with the batches of all, whatever
// the schedule, the number of workers, and how the batch is divided among them. The one worker is a
// plain LibTorch loop with torch::optim, which shares only models and data with the trainer.
#include "train/trainer.h"

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/batch.h"
#include "train/data/load.h"
#include "train/trainer_testing.h"

namespace syncopate::train {
namespace {

using testing::ExpectSameBits;
using testing::Only;
using testing::SmallJob;
using testing::Tensors;
using testing::TrainAll;
using ::testing::ValuesIn;

const std::vector<std::string> kSchedules = {"none",   "wfbp",     "mg-wfbp",
                                             "bucket", "asc-wfbp", "search"};
const int kSizes[] = {1, 2, 4, 8};
// Planners that measure take their own plan after the first iterations, if they measure first: go
// past those.
constexpr int64_t kIterationsWithPlan = 8;

std::unique_ptr<::torch::optim::Optimizer> MakeTorchOptimizer(const OptimizerOptions& options,
                                                              std::vector<at::Tensor> parameters,
                                                              double rate) {
  if (options.name == "adam") {
    return std::make_unique<::torch::optim::Adam>(
        std::move(parameters),
        ::torch::optim::AdamOptions(rate).eps(options.epsilon).weight_decay(options.weight_decay));
  }
  return std::make_unique<::torch::optim::SGD>(std::move(parameters),
                                               ::torch::optim::SGDOptions(rate)
                                                   .momentum(options.momentum)
                                                   .nesterov(options.nesterov)
                                                   .weight_decay(options.weight_decay));
}

double Norm(const at::Tensor& tensor) { return tensor.to(at::kDouble).norm().item<double>(); }

struct PlainResult {
  Tensors before;
  Tensors after;
};

// An ordinary loop over the global batches, as a user without Syncopate would write it.
PlainResult TrainPlainly(const TrainOptions& options) {
  LoadOptions load;
  load.synthetic.train_samples = options.synthetic_samples;
  const Dataset data = *LoadDataset(options.data, load);
  const auto model = *MakeModel(
      {options.model, data.info.sample_shape, data.info.classes, options.seed, options.dropout});
  Sampler sampler(data.train.samples, options.seed);
  PlainResult result;
  const auto keep = [&](Tensors& to) {
    for (const ModelParameter& parameter : model->ordered_parameters()) {
      to["parameter/" + parameter.name] = parameter.tensor.detach().clone();
    }
  };
  keep(result.before);
  const auto optimizer =
      MakeTorchOptimizer(options.optimizer, model->ParameterTensors(), options.rate.base);
  for (int64_t i = 0; i < options.iterations; ++i) {
    const Batch batch = MakeBatch(data.info, data.train, sampler.Next({options.batch}, 0)->samples);
    optimizer->zero_grad();
    Loss(model->Forward(batch.inputs), batch.labels).backward();
    if (options.clip_norm > 0) {
      double squares = 0;
      for (const at::Tensor& parameter : model->ParameterTensors()) {
        squares += std::pow(Norm(parameter.grad()), 2);
      }
      const double share = options.clip_norm / std::sqrt(squares);
      for (const at::Tensor& parameter : model->ParameterTensors()) {
        if (share < 1) parameter.mutable_grad().mul_(share);
      }
    }
    optimizer->step();
  }
  keep(result.after);
  return result;
}

// How far `got` is from `expected`, for the worst tensor: as a part of how far training moved it.
double RelativeError(const Tensors& got, const PlainResult& expected) {
  double worst = 0;
  EXPECT_EQ(got.size(), expected.after.size());
  for (const auto& [name, tensor] : got) {
    const at::Tensor& after = expected.after.at(name);
    const double moved = Norm(after - expected.before.at(name));
    EXPECT_GT(moved, 0) << name;
    worst = std::max(worst, Norm(tensor - after) / moved);
  }
  return worst;
}

// What sums in another order may differ by, after a few iterations that carry it on: seen are 5e-7
// to 2e-5. A wrong weight, a lost or doubled gradient or a late update shows as 0.01 and more.
constexpr double kRounding = 1e-4;

void ExpectAsPlain(int workers, const TrainOptions& options, const PlainResult& plain) {
  const std::vector<Tensors> all = TrainAll(workers, options);
  ASSERT_EQ(all.size(), static_cast<size_t>(workers));
  EXPECT_LT(RelativeError(Only(all[0], "parameter/"), plain), kRounding);
  // All workers have the same bits, of parameters and of what the optimizer remembers.
  for (size_t rank = 1; rank < all.size(); ++rank) ExpectSameBits(all[0], all[rank]);
}

// ---- every schedule, every number of workers

class ScheduleTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ScheduleTest, AnyNumberOfWorkersTrainsAsOne) {
  TrainOptions options = SmallJob("mlp");
  options.schedule = GetParam();
  options.measure_first = true;
  options.iterations = kIterationsWithPlan;
  const PlainResult plain = TrainPlainly(options);
  for (const int workers : kSizes) {
    SCOPED_TRACE(workers);
    ExpectAsPlain(workers, options, plain);
  }
}

TEST_P(ScheduleTest, UnevenBatchesTrainAsOneWorker) {
  TrainOptions options = SmallJob("cnn");
  options.schedule = GetParam();
  options.measure_first = true;
  options.iterations = kIterationsWithPlan;
  options.batches = {1, 9, 2, 4};
  ExpectAsPlain(4, options, TrainPlainly(options));
}

TEST_P(ScheduleTest, ClipsTheWholeGradient) {
  TrainOptions options = SmallJob("mlp");
  options.schedule = GetParam();
  options.measure_first = true;
  options.clip_norm = 0.5;
  TrainOptions unclipped = options;
  unclipped.clip_norm = 0;
  const PlainResult plain = TrainPlainly(options);
  // Clipping changes something here.
  EXPECT_GT(RelativeError(TrainPlainly(unclipped).after, plain), 10 * kRounding);
  for (const int workers : {1, 3}) {
    SCOPED_TRACE(workers);
    ExpectAsPlain(workers, options, plain);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScheduleTest, ValuesIn(kSchedules), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// ---- models, optimizers and ways to divide a batch

struct Variant {
  const char* name;
  int workers;
  std::function<void(TrainOptions&)> change;
};

class VariantTest : public ::testing::TestWithParam<Variant> {};

TEST_P(VariantTest, TrainsAsOneWorker) {
  TrainOptions options = SmallJob("mlp");
  GetParam().change(options);
  ExpectAsPlain(GetParam().workers, options, TrainPlainly(options));
}

// A gradient that is nothing but rounding moves a parameter as far as any other in Adam, unless
// epsilon holds it back.
void UseAdam(TrainOptions& options) {
  options.optimizer.name = "adam";
  options.optimizer.epsilon = 1e-4;
  options.rate.base = 0.002;
}

const Variant kVariants[] = {
    {"cnn", 2, [](TrainOptions& o) { o.model = "cnn"; }},
    {"transformer", 2, [](TrainOptions& o) { o = SmallJob("transformer"); }},
    {"transformer_uneven", 3,
     [](TrainOptions& o) {
       o = SmallJob("transformer");
       o.batches = {9, 1, 6};
     }},
    {"sgd_without_momentum", 4, [](TrainOptions& o) { o.optimizer.momentum = 0; }},
    {"nesterov_and_weight_decay", 2,
     [](TrainOptions& o) {
       o.optimizer.nesterov = true;
       o.optimizer.weight_decay = 0.01;
     }},
    {"adam", 4, UseAdam},
    {"adam_uneven", 2,
     [](TrainOptions& o) {
       UseAdam(o);
       o.batches = {15, 1};
     }},
    {"paced_and_slow", 2,
     [](TrainOptions& o) { o.pace = {.pace = {"1ms,1000"}, .slow = {"1:1"}}; }},
    {"batch_that_cannot_be_divided", 3, [](TrainOptions& o) { o.batch = 17; }},
    {"eight_uneven", 8, [](TrainOptions& o) { o.batches = {1, 1, 1, 1, 2, 2, 3, 5}; }},
    {"accumulation_alone", 1, [](TrainOptions& o) { o.accumulate = 4; }},
    {"accumulation", 2, [](TrainOptions& o) { o.accumulate = 3; }},
    {"accumulation_uneven_clipped", 4,
     [](TrainOptions& o) {
       o.accumulate = 2;
       o.batches = {1, 3, 5, 7};
       o.clip_norm = 0.5;
       o.schedule = "bucket";
     }},
    {"accumulation_with_adam_and_cnn", 2,
     [](TrainOptions& o) {
       UseAdam(o);
       o.model = "cnn";
       o.accumulate = 2;
       o.schedule = "none";
     }},
};

INSTANTIATE_TEST_SUITE_P(All, VariantTest, ValuesIn(kVariants),
                         [](const auto& test) { return test.param.name; });

// ---- what the tolerance is worth

// The same comparison fails for a batch that is divided wrongly.
TEST(TrainerTest, OtherSamplesAreToldApart) {
  TrainOptions options = SmallJob("mlp");
  const PlainResult plain = TrainPlainly(options);
  options.batch = 15;
  EXPECT_GT(RelativeError(Only(TrainAll(2, options)[0], "parameter/"), plain), 10 * kRounding);
}

// 20 ms and 8 samples at 400 a second are 40 ms, the second worker's 120 ms: for all, since they go in step.
TEST(TrainerTest, IterationsTakeTheirPaceAndTheSlowWorkersComputingTheMost) {
  TrainOptions options = SmallJob("mlp");
  options.pace = {.pace = {"20ms,400"}, .slow = {"1:2"}};
  std::optional<observe::Summary> summary;
  worker::RunWorkers(2, [&](Worker& worker) {
    const auto own = Train(worker, options, [](absl::string_view) {});
    ASSERT_TRUE(own.ok()) << own.status();
    if (worker.rank() == 0) summary = **own;
    EXPECT_EQ(own->has_value(), worker.rank() == 0);
  });
  ASSERT_TRUE(summary && summary->wall && summary->mean_ms);
  EXPECT_GE(summary->wall->iterations, 4 * 0.12);
  // Means of both workers: a wait counts as compute with the one that is slow, as waiting with the other.
  EXPECT_GE(summary->mean_ms->compute, (40 + 120) / 2 * 0.99);
  EXPECT_GT(summary->mean_ms->waiting, 0);
  ASSERT_TRUE(summary->cores_busy.has_value());
  EXPECT_GT(*summary->cores_busy, 0);
  EXPECT_LE(*summary->cores_busy, 1);
}

// It was reported as a message that cannot be read, which is an error of what the user asked for.
TEST(TrainerTest, ATestLossThatIsNoNumberEndsTheJobAndSaysSo) {
  const TemporaryFolder folder;
  TrainOptions options = SmallJob("mlp");
  options.iterations = 2;   // whose training losses are numbers still
  options.rate.base = 1e6;  // but what follows from their updates is not
  options.evaluate_every = 2;
  for (const char* when : {"in", "beside", "after"}) {
    SCOPED_TRACE(when);
    options.evaluate = when;
    options.run_folder = absl::StrCat(folder.path(), "/", when);
    const absl::Status end = testing::RunJob(1, options)[0];
    EXPECT_EQ(end.code(), absl::StatusCode::kOutOfRange) << end;
    EXPECT_THAT(std::string(end.message()),
                ::testing::HasSubstr("the test loss is no number after iteration 2"));
  }
}

// Each worker's batch norm sees its own batch, but all take the same steps.
TEST(TrainerTest, WithBatchNormWorkersKeepTheSameParameters) {
  TrainOptions options = SmallJob("resnet20");
  options.iterations = 2;
  options.batch = 8;
  const std::vector<Tensors> all = TrainAll(2, options);
  ASSERT_FALSE(Only(all[0], "buffer/").empty());
  ExpectSameBits(Only(all[0], "parameter/"), Only(all[1], "parameter/"));
}

}  // namespace
}  // namespace syncopate::train
