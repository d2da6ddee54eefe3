// Strategies live: the same mathematics and the same decisions as in virtual time, on real
// collectives among threads.
#include "sync/synchronizer.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/planners.h"
#include "sim/virtual_cluster.h"
#include "strategy/bsp.h"
#include "worker/worker_testing.h"

namespace syncopate::sync {
namespace {

using strategy::Command;
using strategy::Event;

constexpr uint64_t kSeed = 77;
constexpr double kLearningRate = 0.1;

TensorTable Table() {
  TensorTable table{.model = "test", .tensors = {}};
  Random random(3);
  for (int i = 0; i < 14; ++i) {
    table.tensors.push_back({.name = "t" + std::to_string(i),
                             .elements = 1 + random.Below(3000),
                             .type = i % 5 == 3 ? DataType::kFloat64 : DataType::kFloat32,
                             .forward_seconds = 1e-5,
                             .backward_seconds = 1e-5});
  }
  return table;
}

// All elements of a tensor have the same value, that of the virtual cluster.
class NumberReplica : public Replica {
 public:
  NumberReplica(const TensorTable& table, int rank) : table_(table), rank_(rank) {
    for (int t = 0; t < table.size(); ++t) {
      parameters.push_back(sim::FirstParameter(kSeed, t));
      gradients.push_back(0);
    }
  }
  void Pack(strategy::Content content, int tensor, double factor, std::byte* to) override {
    const auto& values = content == strategy::Content::kGradients ? gradients : parameters;
    const double value = values[static_cast<size_t>(tensor)] * factor;
    for (uint64_t i = 0; i < Info(tensor).elements; ++i) {
      if (Info(tensor).type == DataType::kFloat64) {
        std::memcpy(to + i * 8, &value, 8);
      } else {
        const float small = static_cast<float>(value);
        std::memcpy(to + i * 4, &small, 4);
      }
    }
  }
  void Apply(const strategy::ApplyUpdate& update,
             const std::function<const std::byte*(int)>& from) override {
    for (int t = update.first; t <= update.last; ++t) {
      double value = gradients[static_cast<size_t>(t)];
      if (update.update != strategy::Update::kStepLocal) {
        const std::byte* last = from(t) + (Info(t).elements - 1) * SizeOf(Info(t).type);
        if (Info(t).type == DataType::kFloat64) {
          std::memcpy(&value, last, 8);
        } else {
          float small;
          std::memcpy(&small, last, 4);
          value = small;
        }
      }
      double& parameter = parameters[static_cast<size_t>(t)];
      parameter =
          update.update == strategy::Update::kAdopt ? value : parameter - kLearningRate * value;
    }
  }
  void Compute(int64_t iteration, int tensor) {
    gradients[static_cast<size_t>(tensor)] = sim::GradientOf(kSeed, rank_, iteration, tensor);
  }

  std::vector<double> parameters, gradients;

 private:
  const TensorInfo& Info(int tensor) const { return table_.tensors[static_cast<size_t>(tensor)]; }
  const TensorTable& table_;
  const int rank_;
};

cost::CommunicationCosts Costs() {
  return {.a = 1e-5, .b = 1e-9, .gamma = {1, 1.3, 1.6}, .source = ""};
}

absl::Status Train(Synchronizer& synchronizer, NumberReplica& replica, int tensors, int iterations,
                   uint64_t samples, uint64_t all_samples, uint64_t pauses = 0) {
  Random random(pauses);
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    if (absl::Status s = synchronizer.Begin(samples, all_samples); !s.ok()) return s;
    for (int t = 0; t < tensors; ++t) {
      if (absl::Status s = synchronizer.Need(t); !s.ok()) return s;
    }
    if (absl::Status s = synchronizer.BackwardBegins(); !s.ok()) return s;
    for (int t = tensors - 1; t >= 0; --t) {
      if (pauses != 0) std::this_thread::sleep_for(std::chrono::microseconds(random.Below(400)));
      replica.Compute(iteration, t);
      if (absl::Status s = synchronizer.Gradient(t); !s.ok()) return s;
    }
    if (absl::Status s = synchronizer.EndBackward(); !s.ok()) return s;
  }
  return synchronizer.Finish();
}

std::vector<double> OneWorkerParameters(int tensors, int iterations,
                                        const std::vector<uint64_t>& samples) {
  std::vector<double> parameters;
  for (int t = 0; t < tensors; ++t) {
    double parameter = sim::FirstParameter(kSeed, t);
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
      double sum = 0, weights = 0;
      for (size_t rank = 0; rank < samples.size(); ++rank) {
        const double weight = static_cast<double>(samples[rank]);
        sum += weight * sim::GradientOf(kSeed, static_cast<int>(rank), iteration, t);
        weights += weight;
      }
      parameter -= kLearningRate * sum / weights;
    }
    parameters.push_back(parameter);
  }
  return parameters;
}

class LiveBspTest : public testing::TestWithParam<std::tuple<std::string, int, bool>> {};

TEST_P(LiveBspTest, GivesTheParametersOfOneWorkerWithAllBatches) {
  const auto& [planner, workers, known] = GetParam();
  const TensorTable table = Table();
  const auto schedule = std::make_shared<Schedule>(*schedule::MakeSchedule(
      planner, table, Costs(), {.bucket_bytes = 20'000, .first_bucket_bytes = 5'000}));
  std::vector<uint64_t> samples;
  uint64_t all = 0;
  for (int rank = 0; rank < workers; ++rank) {
    samples.push_back(static_cast<uint64_t>(3 + 5 * rank % 7));
    all += samples.back();
  }
  const int iterations = 5;
  const std::vector<double> expected = OneWorkerParameters(table.size(), iterations, samples);
  worker::RunWorkers(workers, [&, known = known](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    struct Told {
      double now;
      Event event;
      std::vector<Command> commands;
    };
    std::vector<Told> told;
    const strategy::WorkerInfo info{worker.rank(), worker.size(), table.size()};
    {
      SynchronizerOptions options;
      options.told = [&](double now, const Event& event, const std::vector<Command>& commands) {
        told.push_back({now, event, commands});
      };
      auto synchronizer =
          Synchronizer::Make(worker, table, replica, strategy::MakeBsp(info, schedule), options);
      ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
      const absl::Status status = Train(**synchronizer, replica, table.size(), iterations,
                                        samples[static_cast<size_t>(worker.rank())],
                                        known ? all : 0, static_cast<uint64_t>(worker.rank()) + 1);
      ASSERT_TRUE(status.ok()) << status;
    }
    for (int t = 0; t < table.size(); ++t) {
      EXPECT_NEAR(replica.parameters[static_cast<size_t>(t)], expected[static_cast<size_t>(t)],
                  1e-6);
    }
    // A fresh machine decides the same when it is told the same.
    const auto machine = strategy::MakeBsp(info, schedule);
    for (const Told& step : told) {
      std::vector<Command> commands;
      machine->Step(step.now, step.event, commands);
      ASSERT_EQ(commands.size(), step.commands.size()) << ToText(step.event);
      for (size_t i = 0; i < commands.size(); ++i) {
        EXPECT_EQ(ToText(commands[i]), ToText(step.commands[i]));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, LiveBspTest,
                         testing::Combine(testing::Values("none", "wfbp", "mg-wfbp", "bucket",
                                                          "asc-wfbp", "search"),
                                          testing::Values(1, 2, 4, 8), testing::Bool()),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param);
                           std::erase(name, '-');
                           return name + std::to_string(std::get<1>(test.param)) +
                                  (std::get<2>(test.param) ? "Known" : "Unknown");
                         });

TEST(SynchronizerTest, AWorkerThatGoesEndsItForAllAndIsNamed) {
  const TensorTable table = Table();
  const auto schedule = std::make_shared<Schedule>(*schedule::MakeSchedule("wfbp", table, Costs()));
  Options options;
  options.timeout = absl::Seconds(20);
  worker::RunWorkers(
      3,
      [&](Worker& worker) {
        NumberReplica replica(table, worker.rank());
        auto synchronizer = Synchronizer::Make(
            worker, table, replica,
            strategy::MakeBsp({worker.rank(), worker.size(), table.size()}, schedule), {});
        ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
        const int iterations = worker.rank() == 1 ? 2 : 1000;  // it leaves early
        const absl::Status status = Train(**synchronizer, replica, table.size(), iterations, 1, 3);
        if (worker.rank() == 1) {
          EXPECT_TRUE(status.ok()) << status;
        } else {
          EXPECT_FALSE(status.ok());
          EXPECT_EQ(GetSuspect(status), 1) << status;
          EXPECT_EQ((*synchronizer)->Begin(1, 3), status);  // and so it stays
        }
      },
      options);
}

TEST(SynchronizerTest, TensorsWithoutAGradientCountAsZero) {
  const TensorTable table = Table();
  const auto schedule = std::make_shared<Schedule>(*schedule::MakeSchedule("none", table, Costs()));
  worker::RunWorkers(2, [&](Worker& worker) {
    NumberReplica replica(table, worker.rank());
    auto synchronizer = Synchronizer::Make(
        worker, table, replica,
        strategy::MakeBsp({worker.rank(), worker.size(), table.size()}, schedule), {});
    ASSERT_TRUE(synchronizer.ok()) << synchronizer.status();
    ASSERT_TRUE((*synchronizer)->Begin(1, 2).ok());
    for (int t = 0; t < table.size(); ++t) ASSERT_TRUE((*synchronizer)->Need(t).ok());
    ASSERT_TRUE((*synchronizer)->BackwardBegins().ok());
    if (worker.rank() == 0) {
      replica.Compute(0, 5);
      ASSERT_TRUE((*synchronizer)->Gradient(5).ok());
    }
    ASSERT_TRUE((*synchronizer)->EndBackward().ok());
    ASSERT_TRUE((*synchronizer)->Finish().ok());
    for (int t = 0; t < table.size(); ++t) {
      const double mean = t == 5 ? sim::GradientOf(kSeed, 0, 0, 5) / 2 : 0;
      EXPECT_NEAR(replica.parameters[static_cast<size_t>(t)],
                  sim::FirstParameter(kSeed, t) - kLearningRate * mean, 1e-6);
    }
  });
}

}  // namespace
}  // namespace syncopate::sync
