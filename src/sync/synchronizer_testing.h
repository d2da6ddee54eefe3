// For tests of strategies that run live: a training loop whose tensors have the numbers of the virtual
// cluster, a witness that remembers everything, and strategies that do what a test says.
#ifndef SYNCOPATE_SYNC_SYNCHRONIZER_TESTING_H_
#define SYNCOPATE_SYNC_SYNCHRONIZER_TESTING_H_

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cost/communication_costs.h"
#include "gtest/gtest.h"
#include "model/tensor_table.h"
#include "sim/virtual_cluster.h"
#include "strategy/record.h"
#include "strategy/strategy.h"
#include "sync/replica.h"
#include "sync/synchronizer.h"

namespace syncopate::sync {

using strategy::Command;
using strategy::Event;

inline constexpr uint64_t kSeed = 77;
inline constexpr double kLearningRate = 0.1;

inline TensorTable Table() {
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
    gradients_packed += content == strategy::Content::kGradients ? 1 : 0;
    for (uint64_t i = 0; i < Info(tensor).elements; ++i) {
      if (Info(tensor).type == DataType::kFloat64) {
        std::memcpy(to + i * 8, &value, 8);
      } else {
        const float small = static_cast<float>(value);
        std::memcpy(to + i * 4, &small, 4);
      }
    }
  }
  double Apply(const strategy::ApplyUpdate& update, const Brought& brought) override {
    double squared = 0;
    for (int t = update.first; t <= update.last; ++t) {
      EXPECT_FALSE(in_use.contains(t)) << "an update of tensor " << t << ", which a pass uses";
      double& parameter = parameters[static_cast<size_t>(t)];
      const double before = parameter;
      switch (update.update) {
        case strategy::Update::kStepAveraged:
          parameter -= kLearningRate * update.rate_factor * Read(brought.Result(t), t);
          break;
        case strategy::Update::kStepLocal:
          parameter -= kLearningRate * update.rate_factor * gradients[static_cast<size_t>(t)];
          break;
        case strategy::Update::kAdopt:
          parameter = Read(brought.Result(t), t);
          break;
        case strategy::Update::kAddChange:
          parameter += Read(brought.Result(t), t) - Read(brought.Sent(t), t);
          break;
      }
      squared += (parameter - before) * (parameter - before);
    }
    return squared;
  }
  absl::Status SetProgress(const strategy::SetProgress& progress) override {
    total_samples = progress.total_samples;
    return absl::OkStatus();
  }
  absl::Status SetBatch(uint64_t samples) override {
    batch = samples;
    return absl::OkStatus();
  }
  absl::Status SetBatches(const std::map<int, uint64_t>& samples) override {
    batches.push_back(samples);
    return absl::OkStatus();
  }
  void Compute(int64_t iteration, int tensor) {
    gradients[static_cast<size_t>(tensor)] = sim::GradientOf(kSeed, rank_, iteration, tensor);
  }

  std::vector<double> parameters, gradients;
  std::set<int> in_use;  // by the passes of the test
  int gradients_packed = 0;
  uint64_t total_samples = 0;
  uint64_t batch = 0;                            // of the last SetBatch
  std::vector<std::map<int, uint64_t>> batches;  // of each SetBatches

 private:
  // All elements of a tensor have moved.
  double Read(const std::byte* from, int tensor) const {
    const auto at = [&](uint64_t i) -> double {
      if (Info(tensor).type == DataType::kFloat64) {
        double value;
        std::memcpy(&value, from + i * 8, 8);
        return value;
      }
      float small;
      std::memcpy(&small, from + i * 4, 4);
      return small;
    };
    const uint64_t last = Info(tensor).elements - 1;
    // Parts of it may have been added up in another order.
    EXPECT_NEAR(at(0), at(last), 1e-6);
    EXPECT_NEAR(at(last / 2), at(last), 1e-6);
    return at(last);
  }
  const TensorInfo& Info(int tensor) const { return table_.tensors[static_cast<size_t>(tensor)]; }
  const TensorTable& table_;
  const int rank_;
};

// Remembers what a synchronizer did.
class Memory : public Witness {
 public:
  void Decided(const strategy::Decision& decision) override {
    const std::lock_guard lock(mutex_);
    decisions_.push_back(decision);
  }
  void Transferred(const Transfer& transfer) override {
    const std::lock_guard lock(mutex_);
    transfers_.push_back(transfer);
  }
  void Applied(const Update& update) override {
    const std::lock_guard lock(mutex_);
    updates_.push_back(update);
  }

  std::vector<strategy::Decision> decisions() const { return Copy(decisions_); }
  std::vector<Transfer> transfers() const { return Copy(transfers_); }
  std::vector<Update> updates() const { return Copy(updates_); }

 private:
  template <typename T>
  T Copy(const T& list) const {
    const std::lock_guard lock(mutex_);
    return list;
  }

  mutable std::mutex mutex_;
  std::vector<strategy::Decision> decisions_;
  std::vector<Transfer> transfers_;
  std::vector<Update> updates_;
};

// A fresh machine decides the same when it is told the same.
inline void ExpectSameDecisions(strategy::Strategy& machine,
                                const std::vector<strategy::Decision>& decisions) {
  EXPECT_FALSE(decisions.empty());
  for (const strategy::Decision& step : decisions) {
    std::vector<Command> commands;
    machine.Step(step.now, step.event, commands);
    ASSERT_TRUE(commands == step.commands) << ToText(step.event);
  }
}

inline cost::CommunicationCosts Costs() {
  return {.a = 1e-5, .b = 1e-9, .gamma = {1, 1.3, 1.6}, .source = ""};
}

inline absl::Status TrainOnce(Synchronizer& synchronizer, NumberReplica& replica, int tensors,
                              int64_t iteration, uint64_t samples = 1, uint64_t all_samples = 0,
                              Random* pauses = nullptr) {
  if (absl::Status s = synchronizer.Begin(samples, all_samples); !s.ok()) return s;
  for (int t = 0; t < tensors; ++t) {
    if (absl::Status s = synchronizer.Need(t); !s.ok()) return s;
    replica.in_use.insert(t);
  }
  if (absl::Status s = synchronizer.BackwardBegins(); !s.ok()) return s;
  for (int t = tensors - 1; t >= 0; --t) {
    if (pauses != nullptr) {
      std::this_thread::sleep_for(std::chrono::microseconds(pauses->Below(400)));
    }
    replica.Compute(iteration, t);
    replica.in_use.erase(t);
    if (absl::Status s = synchronizer.Gradient(t); !s.ok()) return s;
  }
  return synchronizer.EndBackward();
}

inline absl::Status Train(Synchronizer& synchronizer, NumberReplica& replica, int tensors,
                          int iterations, uint64_t samples, uint64_t all_samples,
                          uint64_t pauses = 0) {
  Random random(pauses);
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    if (absl::Status s = TrainOnce(synchronizer, replica, tensors, iteration, samples, all_samples,
                                   pauses != 0 ? &random : nullptr);
        !s.ok()) {
      return s;
    }
  }
  return synchronizer.Finish();
}

inline std::vector<double> OneWorkerParameters(int tensors, int iterations,
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

// What all workers have in the mean when each steps with its own gradient and averages keep the
// mean.
inline std::vector<double> MeanOfLocalSteps(int tensors, int workers, int iterations) {
  return OneWorkerParameters(tensors, iterations,
                             std::vector<uint64_t>(static_cast<size_t>(workers), 1));
}

inline constexpr SynchronizerOptions kParametersOnly = {.moves_gradients = false,
                                                        .watches_losses = true};

inline SynchronizerOptions ParametersOnly(Witness* witness, Messenger* messenger = nullptr) {
  SynchronizerOptions options = kParametersOnly;
  options.witness = witness;
  options.messenger = messenger;
  return options;
}

// The end states of all workers of a test, which run as threads.
class Ends {
 public:
  explicit Ends(int workers) : parameters_(static_cast<size_t>(workers)) {}
  void Set(int rank, const std::vector<double>& parameters) {
    const std::lock_guard lock(mutex_);
    parameters_[static_cast<size_t>(rank)] = parameters;
  }
  double Mean(int tensor) const {
    double sum = 0;
    for (const auto& own : parameters_) sum += own.at(static_cast<size_t>(tensor));
    return sum / static_cast<double>(parameters_.size());
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<double>> parameters_;
};

// Does what it is told for each event, and lets the training thread go on unless the script does.
class Scripted : public strategy::Strategy {
 public:
  using Script = std::function<void(double now, const Event&, std::vector<Command>&)>;
  explicit Scripted(Script script, bool holds = false)
      : script_(std::move(script)), holds_(holds) {}
  std::string name() const override { return "scripted"; }
  void Step(double now, const Event& event, std::vector<Command>& commands) override {
    script_(now, event, commands);
    if (holds_) return;
    if (const auto* e = std::get_if<strategy::ForwardNeeds>(&event)) {
      commands.push_back(strategy::Proceed{e->tensor});
    }
    if (std::holds_alternative<strategy::Drain>(event)) commands.push_back(strategy::Drained{});
  }

 private:
  const Script script_;
  const bool holds_;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_SYNCHRONIZER_TESTING_H_
