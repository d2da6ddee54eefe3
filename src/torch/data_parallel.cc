// The DataParallel of syncopate/torch.h: hooks of a module's parameters drive a
// synchronizer (sync/synchronizer.h), whose schedule is kept while the job runs
// (torch/kept_schedule.h).
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/status.h"
#include "schedule/planners.h"
#include "strategy/registry.h"
#include "sync/assemble.h"
#include "sync/synchronizer.h"
#include "syncopate/torch.h"
#include "torch/gradient_hooks.h"
#include "torch/kept_schedule.h"
#include "torch/torch_replica.h"

namespace syncopate {

// A replica whose averaged gradients become .grad(); the caller takes the optimizer's step.
class GradientReplica final : public torch::TorchReplica {
 public:
  using TorchReplica::TorchReplica;

 protected:
  // The rate is the caller's.
  void StepWith(int tensor, const at::Tensor& gradient, double /*rate_factor*/) override {
    at::Tensor& own = parameters()[static_cast<size_t>(tensor)].mutable_grad();
    if (own.defined()) {
      own.copy_(gradient);
    } else {
      own = gradient.clone();
    }
  }
};

class DataParallel::Impl {
 public:
  Impl(Worker& worker, ::torch::nn::Module& model, const Options& options,
       std::vector<at::Tensor> parameters, Group control)
      : worker_(worker),
        module_(model),
        options_(options),
        parameters_(parameters),
        control_(std::move(control)),
        replica_(std::move(parameters)) {}

  absl::Status Start(const TensorTable& table) {
    for (const TensorInfo& tensor : table.tensors) names_.push_back(tensor.name);
    SYNCOPATE_RETURN_IF_ERROR(CheckSameAsFirst());
    SYNCOPATE_RETURN_IF_ERROR(torch::BroadcastTensors(control_, module_.parameters()));
    SYNCOPATE_RETURN_IF_ERROR(torch::BroadcastTensors(control_, module_.buffers()));
    SYNCOPATE_ASSIGN_OR_RETURN(
        keeper_, torch::MakeKeeper(worker_, table, options_.schedule, torch::KeeperOptions{}));
    strategy::StrategyOptions values;
    values.schedule = std::make_shared<Schedule>(keeper_->schedule());
    SYNCOPATE_ASSIGN_OR_RETURN(
        synchronizer_, sync::MakeSynchronizer(worker_, table, replica_, options_.strategy, values,
                                              {.timeout = options_.timeout}));
    hooks_ =
        std::make_unique<torch::GradientHooks>(parameters_, [this](int tensor) { Ready(tensor); });
    return absl::OkStatus();
  }

  void SetSamples(uint64_t samples) {
    samples_ = samples;
    all_samples_ = 0;  // not known here: they travel with the gradients
  }
  void SetAccumulating(bool on) { accumulating_ = on; }

  absl::Status Synchronize() {
    Note(BeginOnce());  // a worker without any gradient takes part
    Note(synchronizer_->EndBackward());
    for (int tensor = 0; tensor < static_cast<int>(parameters_.size()) && status_.ok(); ++tensor) {
      Note(synchronizer_->Need(tensor));
    }
    begun_ = false;
    if (!status_.ok()) return status_;
    Note(torch::KeepSchedule(*keeper_, *synchronizer_).status());
    return status_;
  }

  absl::Status AverageBuffers() { return torch::AverageTensors(control_, module_.buffers()); }

 private:
  void Note(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }

  // Workers with different models would wait for each other, or add up what does not belong
  // together.
  absl::Status CheckSameAsFirst() {
    std::string text = absl::StrCat(options_.strategy, " ", options_.schedule);
    int64_t elements = 0;
    const auto add = [&](const auto& items) {
      for (const auto& item : items) {
        absl::StrAppend(&text, "\n", item.key(), " ", c10::toString(item.value().scalar_type()),
                        " ", absl::StrJoin(item.value().sizes(), "x"), " ",
                        item.value().requires_grad());
        elements += item.value().numel();
      }
    };
    add(module_.named_parameters());
    add(module_.named_buffers());
    const Digest digest = DigestOf(absl::string_view(text));
    const int64_t own[] = {static_cast<int64_t>(digest.high), static_cast<int64_t>(digest.low),
                           elements};
    int64_t first[] = {own[0], own[1], own[2]};
    SYNCOPATE_RETURN_IF_ERROR(control_.Broadcast(Array::Of(first, 3), 0));
    const bool same = std::equal(std::begin(own), std::end(own), first);
    int64_t others = same ? 0 : 1;
    SYNCOPATE_RETURN_IF_ERROR(control_.AllReduce(Array::Of(&others, 1), ReduceOp::kSum));
    if (!same) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the model of rank ", worker_.rank(), " (", elements,
          " elements) is not that of rank 0 (", first[2],
          " elements): names, types and shapes of parameters and buffers, the strategy and the "
          "schedule must be the same on all workers"));
    }
    if (others == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(others, " workers have models that are not rank 0's"));
  }

  absl::Status BeginOnce() {
    if (begun_) return absl::OkStatus();
    begun_ = true;
    sent_.assign(parameters_.size(), false);
    SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Begin(samples_, all_samples_));
    return synchronizer_->BackwardBegins();
  }

  void Ready(int tensor) {
    if (accumulating_ || !status_.ok()) return;
    Note(BeginOnce());
    if (sent_[static_cast<size_t>(tensor)]) {  // what was sent lacks this part
      return Note(absl::FailedPreconditionError(absl::StrCat(
          "a second gradient of parameter ", names_[static_cast<size_t>(tensor)],
          " before Synchronize(); where backward passes add up, SetAccumulating(true) comes before "
          "all but the last of them")));
    }
    sent_[static_cast<size_t>(tensor)] = true;
    Note(synchronizer_->Gradient(tensor));
  }

  Worker& worker_;
  ::torch::nn::Module& module_;
  const Options options_;
  const std::vector<at::Tensor> parameters_;
  // A group of all workers for what is not gradients, since transfers start in an order of their
  // own.
  Group control_;
  GradientReplica replica_;
  std::unique_ptr<adapt::ScheduleKeeper> keeper_;
  std::unique_ptr<sync::Synchronizer> synchronizer_;
  std::unique_ptr<torch::GradientHooks> hooks_;
  uint64_t samples_ = 1;
  uint64_t all_samples_ = static_cast<uint64_t>(worker_.size());
  bool accumulating_ = false;
  bool begun_ = false;      // the iteration
  std::vector<bool> sent_;  // by parameter, in this iteration
  std::vector<std::string> names_;
  absl::Status status_;
};

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Make(Worker& worker,
                                                                 ::torch::nn::Module& model,
                                                                 Options options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const strategy::StrategyEntry* entry,
                             strategy::FindStrategy(options.strategy));
  if (entry->moves_parameters()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "strategy ", entry->name,
        " updates parameters itself, and DataParallel leaves that to the ",
        "caller's optimizer: it takes strategies that average gradients, such as bsp"));
  }
  std::vector<torch::NamedTensor> named;
  std::vector<at::Tensor> parameters;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    named.push_back({item.key(), item.value()});
    parameters.push_back(item.value());
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const TensorTable table, torch::TableOf(model.name(), named));
  std::vector<int> everyone(static_cast<size_t>(worker.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  SYNCOPATE_ASSIGN_OR_RETURN(Group control, worker.NewGroup(everyone));
  auto impl =
      std::make_unique<Impl>(worker, model, options, std::move(parameters), std::move(control));
  SYNCOPATE_RETURN_IF_ERROR(impl->Start(table));
  return std::unique_ptr<DataParallel>(new DataParallel(std::move(impl)));
}

DataParallel::DataParallel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DataParallel::~DataParallel() = default;
void DataParallel::SetSamples(uint64_t samples) { impl_->SetSamples(samples); }
void DataParallel::SetAccumulating(bool on) { impl_->SetAccumulating(on); }
absl::Status DataParallel::Synchronize() { return impl_->Synchronize(); }
absl::Status DataParallel::AverageBuffers() { return impl_->AverageBuffers(); }

}  // namespace syncopate
