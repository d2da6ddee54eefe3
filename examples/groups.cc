// All-reduces that are not "everybody, equally": among some of the workers, with weights, and of
// some workers' data with the help of all. Every worker brings its rank.
//
//   syncopate launch -n 4 -- ./groups
#include <cstdio>
#include <vector>

#include "syncopate/syncopate.h"

absl::Status Run() {
  auto worker = syncopate::Worker::Start();
  if (!worker.ok()) return worker.status();
  const int rank = (*worker)->rank(), size = (*worker)->size();

  // A subgroup: workers of even rank and workers of odd rank. Its members make it alone, without a
  // message; inside it they have ranks of its own.
  std::vector<int> members;
  for (int other = rank % 2; other < size; other += 2) members.push_back(other);
  auto half = (*worker)->NewGroup(members);
  if (!half.ok()) return half.status();
  float sum = static_cast<float>(rank);  // any memory will do; Allocate()'s is quicker
  absl::Status status = half->AllReduce(syncopate::Array::Of(&sum, 1), syncopate::ReduceOp::kSum);
  if (!status.ok()) return status;

  // Weights: a worker with three samples counts three times as much as one with a single sample.
  const double samples = 1 + rank;
  float mean = static_cast<float>(rank);
  status = (*worker)->world().AllReduce(syncopate::Array::Of(&mean, 1),
                                        syncopate::ReduceOp::kWeightedAverage, samples);
  if (!status.ok()) return status;

  // Only rank 0 and the last rank have data; the others may relay, and keep what they have.
  float ends = static_cast<float>(rank);
  const std::vector<int> active = size > 1 ? std::vector<int>{0, size - 1} : std::vector<int>{0};
  status = (*worker)->world().AllReduceAmong(active, syncopate::Array::Of(&ends, 1),
                                             syncopate::ReduceOp::kMax);
  if (!status.ok()) return status;
  std::printf("rank %d of %d: sum of my half %g, weighted mean %g, at the ends %g\n", rank, size,
              sum, mean, ends);
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
