// Virtual training: a small real model whose gradients are computed inside the simulation, so that
// mathematics and time come from one run.
#include <cmath>
#include <memory>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "model/tensor_layout.h"
#include "schedule/planners.h"
#include "sim/virtual_cluster.h"
#include "strategy/bsp.h"
#include "strategy/sample_strategies_testing.h"

namespace syncopate::sim {
namespace {

using strategy::WorkerInfo;

constexpr int kInputs = 6;
constexpr int kHidden = 8;
constexpr int kBatch = 8;

// A perceptron with one hidden layer that learns whether the inputs' sum of squares is large.
// Parameters: kHidden x kInputs weights, kHidden biases, kHidden weights, one bias.
struct Sample {
  std::vector<double> x;
  double y = 0;
};

Sample SampleOf(uint64_t seed, uint64_t number) {
  Random random(seed * 1000003 + number);
  Sample sample;
  double squares = 0;
  for (int i = 0; i < kInputs; ++i) {
    sample.x.push_back(2 * random.Unit() - 1);
    squares += sample.x.back() * sample.x.back();
  }
  sample.y = squares > kInputs / 3.0 ? 1 : 0;
  return sample;
}

// Adds the gradient of one sample to `gradient`, and returns its loss.
double Learn(absl::Span<const double> p, const Sample& sample, std::vector<double>* gradient) {
  const size_t bias = kHidden * kInputs, out = bias + kHidden, last = out + kHidden;
  std::vector<double> hidden(kHidden);
  double z = p[last];
  for (size_t h = 0; h < kHidden; ++h) {
    double sum = p[bias + h];
    for (size_t i = 0; i < kInputs; ++i) sum += p[h * kInputs + i] * sample.x[i];
    hidden[h] = std::tanh(sum);
    z += p[out + h] * hidden[h];
  }
  const double guess = 1 / (1 + std::exp(-z));
  if (gradient != nullptr) {
    const double dz = guess - sample.y;
    (*gradient)[last] += dz;
    for (size_t h = 0; h < kHidden; ++h) {
      (*gradient)[out + h] += dz * hidden[h];
      const double dh = dz * p[out + h] * (1 - hidden[h] * hidden[h]);
      (*gradient)[bias + h] += dh;
      for (size_t i = 0; i < kInputs; ++i) (*gradient)[h * kInputs + i] += dh * sample.x[i];
    }
  }
  return -std::log(sample.y > 0.5 ? guess : 1 - guess);
}

TensorTable Perceptron() {
  TensorTable table{.model = "perceptron", .tensors = {}};
  for (const auto& [name, elements] : std::vector<std::pair<std::string, uint64_t>>{
           {"w1", kHidden * kInputs}, {"b1", kHidden}, {"w2", kHidden}, {"b2", 1}}) {
    table.tensors.push_back(
        {.name = name, .elements = elements, .forward_seconds = 0.001, .backward_seconds = 0.002});
  }
  return table;
}

// The batches of `share` of `all` workers: rank r of 16 has samples r*8.. of each 128.
VirtualOptions Job(int workers, int all = 16) {
  VirtualOptions options;
  options.workers = workers;
  options.iterations = 150;
  options.seed = 3;
  options.table = Perceptron();
  options.costs.a = 0.0005;
  options.costs.b = 1e-8;
  options.learning_rate = 0.7;
  options.keep_log = false;
  const int batch = kBatch * all / workers;
  options.samples.assign(static_cast<size_t>(workers), static_cast<uint64_t>(batch));
  options.gradients = [=](int rank, int64_t iteration, absl::Span<const double> parameters) {
    std::vector<double> gradient(parameters.size(), 0);
    for (int i = 0; i < batch; ++i) {
      const uint64_t number =
          static_cast<uint64_t>(iteration) * static_cast<uint64_t>(kBatch * all) +
          static_cast<uint64_t>(rank * batch + i);
      Learn(parameters, SampleOf(1, number), &gradient);
    }
    for (double& each : gradient) each /= batch;
    return gradient;
  };
  return options;
}

double LossOf(const std::vector<double>& parameters) {
  double loss = 0;
  for (uint64_t i = 0; i < 500; ++i) loss += Learn(parameters, SampleOf(2, i), nullptr) / 500;
  return loss;
}

absl::StatusOr<VirtualResult> TrainBsp(const VirtualOptions& options) {
  const auto schedule =
      std::make_shared<Schedule>(*schedule::MakeSchedule("wfbp", options.table, options.costs));
  return RunVirtually(options,
                      [&](const WorkerInfo& info) { return strategy::MakeBsp(info, schedule); });
}

TEST(VirtualTrainingTest, SixteenWorkersLearnWhatOneWithAllBatchesLearns) {
  const auto many = TrainBsp(Job(16)), one = TrainBsp(Job(1));
  ASSERT_TRUE(many.ok() && one.ok()) << many.status() << one.status();
  ASSERT_EQ(one->parameters[0].size(), Perceptron().elements());
  for (const std::vector<double>& parameters : many->parameters) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_NEAR(parameters[i], one->parameters[0][i], 1e-9) << i;
    }
  }
  VirtualOptions untrained = Job(1);
  untrained.iterations = 1;
  untrained.learning_rate = 0;
  const auto before = TrainBsp(untrained);
  ASSERT_TRUE(before.ok());
  EXPECT_LT(LossOf(many->parameters[0]), 0.8 * LossOf(before->parameters[0]));
}

TEST(VirtualTrainingTest, TheSameSeedTrainsTheSameBits) {
  VirtualOptions options = Job(16);
  options.jitter = 1;
  options.slowness.assign(16, 1);
  options.slowness[3] = 4;
  const auto once = TrainBsp(options), again = TrainBsp(options);
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_EQ(once->digest, again->digest);
  EXPECT_EQ(once->parameters, again->parameters);
}

// Groups that change and exchanges of byte ranges, which cut tensors, train all elements, too.
TEST(VirtualTrainingTest, GroupsAndExchangesTrainAsWell) {
  for (const bool ring : {false, true}) {
    const VirtualOptions options = Job(8, 8);
    const uint64_t bytes = TensorLayout(options.table).bytes();
    const auto result =
        RunVirtually(options, [&](const WorkerInfo& info) -> std::unique_ptr<strategy::Strategy> {
          if (ring) return std::make_unique<strategy::RingExchange>(info, bytes);
          return std::make_unique<strategy::GroupAverage>(info);
        });
    ASSERT_TRUE(result.ok()) << result.status();
    std::vector<double> mean(result->parameters[0].size(), 0);
    for (const std::vector<double>& parameters : result->parameters) {
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += parameters[i] / 8;
    }
    std::vector<double> first;
    for (size_t i = 0; i < mean.size(); ++i) {
      first.push_back(FirstParameter(options.seed, static_cast<int>(i)));
    }
    EXPECT_LT(LossOf(mean), 0.8 * LossOf(first)) << ring;
  }
}

TEST(VirtualTrainingTest, GradientsOfTheWrongSizeAreAFault) {
  VirtualOptions options = Job(2);
  options.gradients = [](int, int64_t, absl::Span<const double>) {
    return std::vector<double>(3, 0);
  };
  EXPECT_EQ(TrainBsp(options).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace syncopate::sim
