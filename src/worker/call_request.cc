#include "worker/call_request.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"

namespace syncopate::worker {

bool IsActive(const Call& call, int self) {
  return call.active.empty() ||
         std::find(call.active.begin(), call.active.end(), self) != call.active.end();
}

absl::Status CheckCall(const Call& call, int size, int self) {
  auto refuse = [&](const auto&... why) {
    return WithBlast(absl::InvalidArgumentError(absl::StrCat(Name(call.collective), ": ", why...)),
                     BlastRadius::kOperation);
  };
  if (call.data.elements > limits::kElementsMax) {
    return refuse(call.data.elements, " elements are more than the limit of ",
                  limits::kElementsMax);
  }
  if (!call.active.empty()) {
    if (call.collective != Collective::kAllReduce) {
      return refuse("only an all-reduce can do without some of the workers' data");
    }
    std::vector<int> sorted = call.active;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.front() < 0 || sorted.back() >= size) {
      return refuse("active rank ", sorted.front() < 0 ? sorted.front() : sorted.back(),
                    " is not a rank of a group of ", size);
    }
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) return refuse("active rank ", *twice, " stands there twice");
  }
  const bool active = IsActive(call, self);
  if (active && call.data.elements > 0 && call.data.data == nullptr) {
    return refuse("data is null");
  }
  if (HasRoot(call.collective) && (call.root < 0 || call.root >= size)) {
    return refuse("root ", call.root, " is not a rank of a group of ", size);
  }
  if (call.collective == Collective::kSendReceive && (call.target < 0 || call.target >= size)) {
    return refuse("target ", call.target, " is not a rank of a group of ", size);
  }
  if (Reduces(call.collective) && call.op == ReduceOp::kWeightedAverage) {
    if (!IsFloating(call.data.type)) {
      return refuse("a weighted average needs a floating type, not ", Name(call.data.type));
    }
    if (active && (!std::isfinite(call.weight) || call.weight < 0)) {
      return refuse("weight ", call.weight, " is not a finite number of 0 or more");
    }
  }
  if (HasBlocks(call.collective)) {
    const uint64_t n = static_cast<uint64_t>(size);
    if (call.block_elements.empty() && call.data.elements % n != 0) {
      return refuse(call.data.elements, " elements cannot be cut into ", n,
                    " equal blocks; give block_elements");
    }
    if (!call.block_elements.empty() &&
        (call.block_elements.size() != n ||
         std::accumulate(call.block_elements.begin(), call.block_elements.end(), uint64_t{0}) !=
             call.data.elements)) {
      return refuse("block_elements must have ", n, " entries that add up to the ",
                    call.data.elements, " elements of data");
    }
  }
  if (!call.algorithm.empty() && !call.program.empty()) {
    return refuse("both an algorithm and a program are given; give one of the two");
  }
  if (call.timeout && *call.timeout <= absl::ZeroDuration())
    return refuse("the timeout is not positive");
  return absl::OkStatus();
}

plan::CollectiveRequest RequestOf(const Call& call, int size) {
  plan::CollectiveRequest request;
  request.collective = call.collective;
  request.workers = size;
  request.active = call.active;
  std::sort(request.active.begin(), request.active.end());
  if (call.active.empty()) {
    request.active.resize(static_cast<size_t>(size));
    std::iota(request.active.begin(), request.active.end(), 0);
  }
  if (HasRoot(call.collective)) request.root = call.root;
  if (call.collective == Collective::kSendReceive) request.target = call.target;
  request.elements = call.data.elements;
  if (HasBlocks(call.collective)) {
    request.block_elements = call.block_elements;
    if (call.block_elements.empty()) {
      request.block_elements.assign(static_cast<size_t>(size),
                                    call.data.elements / static_cast<uint64_t>(size));
    }
  }
  return request;
}

}  // namespace syncopate::worker
