#include "train/checkpoint.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace syncopate::train {

namespace {

// What a checkpoint calls each tensor.
std::string ParameterName(const std::string& name) { return absl::StrCat("parameter/", name); }
std::string BufferName(const std::string& name) { return absl::StrCat("buffer/", name); }
std::string StateName(const char* part, const std::string& name) {
  return absl::StrCat("optimizer/", part, "/", name);
}

std::string GeneratorState() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  return {static_cast<const char*>(state.data_ptr()), state.nbytes()};
}

absl::Status SetGeneratorState(const std::string& bytes) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  at::Tensor state = generator.get_state();
  if (state.nbytes() != bytes.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the random generator's state has ", bytes.size(), " bytes, and this LibTorch's ",
        state.nbytes(), ": it was saved with another version"));
  }
  state = state.clone();
  std::memcpy(state.data_ptr(), bytes.data(), bytes.size());
  try {
    generator.set_state(state);
  } catch (const std::exception&) {
    return absl::FailedPreconditionError("the random generator's state is none of this LibTorch's");
  }
  return absl::OkStatus();
}

std::string ShapeText(const at::Tensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.sizes(), ", "), "]");
}

// Finds tensors by name, and in the end whether all were asked for.
class TensorsByName {
 public:
  explicit TensorsByName(const Checkpoint& checkpoint) {
    for (const auto& [name, tensor] : checkpoint.tensors) tensors_[name] = tensor;
  }

  bool Has(const std::string& name) const { return tensors_.count(name) > 0; }
  // One that can replace `like`.
  absl::StatusOr<at::Tensor> Take(const std::string& name, const at::Tensor& like) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      return absl::FailedPreconditionError(absl::StrCat("it has no ", name));
    }
    at::Tensor tensor = std::move(found->second);
    tensors_.erase(found);
    if (tensor.sizes() != like.sizes() || tensor.scalar_type() != like.scalar_type()) {
      return absl::FailedPreconditionError(absl::StrCat(name, " is ", ShapeText(tensor),
                                                        " in it and ", ShapeText(like),
                                                        " in the model, or of another type"));
    }
    return tensor;
  }
  absl::Status CheckNoneLeft() const {
    if (tensors_.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("it has ", tensors_.begin()->first, ", which the model or optimizer has not"));
  }

 private:
  std::map<std::string, at::Tensor> tensors_;
};

absl::StatusOr<std::vector<OptimizerState>> TakeStates(TensorsByName& tensors, const Model& model) {
  std::vector<OptimizerState> states;
  for (const ModelParameter& parameter : model.ordered_parameters()) {
    OptimizerState state;
    SYNCOPATE_ASSIGN_OR_RETURN(
        const at::Tensor updates,
        tensors.Take(StateName("updates", parameter.name), at::empty({1}, at::kLong)));
    state.updates = updates.item<int64_t>();
    for (const auto& [part, tensor] :
         {std::pair{"first", &state.first}, std::pair{"second", &state.second}}) {
      const std::string name = StateName(part, parameter.name);
      if (!tensors.Has(name)) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(*tensor, tensors.Take(name, parameter.tensor));
    }
    states.push_back(std::move(state));
  }
  return states;
}

absl::Status CheckSame(const char* what, absl::string_view saved, absl::string_view now) {
  if (saved == now) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("it was saved with ", what, " ", saved, ", and this job has ", now));
}

}  // namespace

Checkpoint Capture(const Model& model, const Optimizer& optimizer) {
  const at::NoGradGuard no_grad;
  Checkpoint checkpoint;
  const auto add = [&](std::string name, const at::Tensor& tensor) {
    checkpoint.tensors.push_back({std::move(name), tensor.detach().clone()});
  };
  const auto& parameters = model.ordered_parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    const OptimizerState& state = optimizer.states()[i];
    add(ParameterName(name), parameters[i].tensor);
    add(StateName("updates", name), at::full({1}, state.updates, at::kLong));
    if (state.first.defined()) add(StateName("first", name), state.first);
    if (state.second.defined()) add(StateName("second", name), state.second);
  }
  for (const auto& buffer : model.named_buffers()) add(BufferName(buffer.key()), buffer.value());
  checkpoint.generator = GeneratorState();
  return checkpoint;
}

absl::Status Restore(const Checkpoint& checkpoint, absl::string_view model_name,
                     absl::string_view config, Model& model, Optimizer& optimizer) {
  const at::NoGradGuard no_grad;
  SYNCOPATE_RETURN_IF_ERROR(CheckSame("model", checkpoint.model, model_name));
  SYNCOPATE_RETURN_IF_ERROR(CheckSame("config", checkpoint.config, config));
  TensorsByName tensors(checkpoint);
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // to, from
  for (const ModelParameter& parameter : model.ordered_parameters()) {
    SYNCOPATE_ASSIGN_OR_RETURN(at::Tensor from,
                               tensors.Take(ParameterName(parameter.name), parameter.tensor));
    copies.emplace_back(parameter.tensor, std::move(from));
  }
  for (const auto& buffer : model.named_buffers()) {
    SYNCOPATE_ASSIGN_OR_RETURN(at::Tensor from,
                               tensors.Take(BufferName(buffer.key()), buffer.value()));
    copies.emplace_back(buffer.value(), std::move(from));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<OptimizerState> states, TakeStates(tensors, model));
  SYNCOPATE_RETURN_IF_ERROR(tensors.CheckNoneLeft());
  for (OptimizerState& state : states) {  // the checkpoint keeps its own
    if (state.first.defined()) state.first = state.first.clone();
    if (state.second.defined()) state.second = state.second.clone();
  }
  std::vector<OptimizerState> before = optimizer.states();
  if (const absl::Status status = optimizer.SetStates(std::move(states)); !status.ok()) {
    return absl::FailedPreconditionError(status.message());
  }
  if (const absl::Status status = SetGeneratorState(checkpoint.generator); !status.ok()) {
    optimizer.SetStates(std::move(before)).IgnoreError();  // they were its own
    return status;
  }
  for (auto& [to, from] : copies) to.copy_(from);
  return absl::OkStatus();
}

}  // namespace syncopate::train
