#include "train/model_mean.h"

#include <utility>

#include "base/status.h"

namespace syncopate::train {

absl::Status ModelMean::Start(ModelCopy copy, const Purpose& purpose) {
  if (purpose.order.members.size() == 1) {
    mean_ = Mean{purpose, std::move(copy)};
    return absl::OkStatus();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(Group group,
                             worker_.NewGroup(purpose.order.members, purpose.order.key));
  Handle handle =
      group.Start({.collective = Collective::kAllReduce,
                   .data = Array::Of(copy.numbers.data_ptr<float>(),
                                     static_cast<uint64_t>(copy.numbers.numel())),
                   .op = ReduceOp::kAverage,
                   .priority = kPriority,
                   // The operation holds the memory that it works on, for as long as it exists.
                   .ended = [memory = copy.numbers](const absl::Status&) {}});
  under_way_.push_back({{purpose, std::move(copy)}, std::move(group), std::move(handle)});
  return absl::OkStatus();
}

std::optional<ModelMean::Mean> ModelMean::Take() {
  for (auto each = under_way_.begin(); each != under_way_.end();) {
    if (!each->handle.Done()) {
      ++each;
      continue;
    }
    if (each->handle.Wait().ok()) {
      mean_ = std::move(each->mean);
    } else {
      failed_ = each->mean.purpose.order;
    }
    each = under_way_.erase(each);
  }
  return std::exchange(mean_, std::nullopt);
}

absl::Status ModelMean::Wait() {
  absl::Status status;
  while (!under_way_.empty()) {
    status = under_way_.front().handle.Wait();
    if (status.ok()) mean_ = std::move(under_way_.front().mean);
    under_way_.pop_front();
  }
  return status;
}

}  // namespace syncopate::train
