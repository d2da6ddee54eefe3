// For tests: what planners are asked for.
#ifndef SYNCOPATE_ENGINE_REQUEST_TESTING_H_
#define SYNCOPATE_ENGINE_REQUEST_TESTING_H_

#include <cstdint>
#include <numeric>

#include "plan/collective/request.h"

namespace syncopate::engine {

// An all-reduce among all of `workers`.
inline plan::CollectiveRequest AllReduceOf(int workers, uint64_t elements) {
  plan::CollectiveRequest request;
  request.workers = workers;
  request.active.resize(static_cast<size_t>(workers));
  std::iota(request.active.begin(), request.active.end(), 0);
  request.elements = elements;
  return request;
}

}  // namespace syncopate::engine

#endif  // SYNCOPATE_ENGINE_REQUEST_TESTING_H_
