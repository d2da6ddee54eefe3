// Every worker brings its rank, all get the mean.
#include <cstdio>

#include "syncopate/syncopate.h"

absl::Status Run() {
  auto worker = syncopate::Worker::Start();  // rank and size from the environment
  if (!worker.ok()) return worker.status();
  auto buffer = (*worker)->Allocate(1000 * sizeof(float));  // memory that the others can reach
  if (!buffer.ok()) return buffer.status();
  float* numbers = buffer->as<float>();
  for (int i = 0; i < 1000; ++i) numbers[i] = static_cast<float>((*worker)->rank());

  absl::Status status = (*worker)->world().AllReduce(syncopate::Array::Of(numbers, 1000),
                                                     syncopate::ReduceOp::kAverage);
  if (!status.ok()) return status;  // says what is lost and whom to blame
  std::printf("rank %d of %d: the mean is %g\n", (*worker)->rank(), (*worker)->size(),
              numbers[999]);
  return status;
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
