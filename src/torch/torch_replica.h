// Parameters of LibTorch as the replica that a synchronizer packs and updates.
#ifndef SYNCOPATE_TORCH_TORCH_REPLICA_H_
#define SYNCOPATE_TORCH_TORCH_REPLICA_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/tensor_table.h"
#include "sync/replica.h"
#include "syncopate/syncopate.h"

namespace syncopate::torch {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// The table of these parameters, without times. InvalidArgument names one that is of a type that
// cannot be averaged, or that has no elements.
absl::StatusOr<TensorTable> TableOf(const std::string& model,
                                    const std::vector<NamedTensor>& parameters);

class TorchReplica : public sync::Replica {
 public:
  explicit TorchReplica(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {}

  void Pack(strategy::Content content, int tensor, double factor, std::byte* to) override;
  double Apply(const strategy::ApplyUpdate& update, const sync::Brought& brought) override;

 protected:
  // Takes the optimizer's step of one parameter, with this gradient and this factor on the rate.
  virtual void StepWith(int tensor, const at::Tensor& gradient, double rate_factor) = 0;
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

 private:
  const std::vector<at::Tensor> parameters_;
};

// Every worker gets rank 0's values. All members of `group` call it with tensors of the same
// shapes, in the same order. Any element type will do.
absl::Status BroadcastTensors(Group& group, const std::vector<at::Tensor>& tensors);
// Every worker gets the mean of floating tensors and rank 0's values of the others.
absl::Status AverageTensors(Group& group, const std::vector<at::Tensor>& tensors);

}  // namespace syncopate::torch

#endif  // SYNCOPATE_TORCH_TORCH_REPLICA_H_
