// The smallest program that uses Syncopate from outside: a worker alone averages a buffer.
#include <cstdint>
#include <cstdio>

#include "syncopate/syncopate.h"

int main() {
  auto worker = syncopate::Worker::Start();
  if (!worker.ok()) {
    std::fprintf(stderr, "start: %s\n", worker.status().ToString().c_str());
    return 1;
  }
  constexpr uint64_t kElements = 1000;
  auto buffer = (*worker)->Allocate(kElements * sizeof(float));
  if (!buffer.ok()) {
    std::fprintf(stderr, "allocate: %s\n", buffer.status().ToString().c_str());
    return 1;
  }
  float* const numbers = buffer->as<float>();
  for (uint64_t i = 0; i < kElements; ++i) numbers[i] = static_cast<float>(i);
  const absl::Status status = (*worker)->world().AllReduce(syncopate::Array::Of(numbers, kElements),
                                                           syncopate::ReduceOp::kAverage);
  if (!status.ok()) {
    std::fprintf(stderr, "all-reduce: %s\n", status.ToString().c_str());
    return 1;
  }
  for (uint64_t i = 0; i < kElements; ++i) {
    if (numbers[i] != static_cast<float>(i)) {
      std::fprintf(stderr, "element %lu is %g\n", static_cast<unsigned long>(i), numbers[i]);
      return 1;
    }
  }
  std::printf("worker %d of %d is right\n", (*worker)->rank(), (*worker)->size());
  return 0;
}
