// Groups that change in every round, as a schedule or a service decides: each round has other pairs, some
// of which sit it out. Whoever decides on a group gives it a key, and the workers that bring the key meet,
// however many groups each of them has made before.
//
//   syncopate launch -n 5 -- ./changing_groups
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "syncopate/syncopate.h"

// The partner of `rank` in this round, by the circle method: everybody meets everybody once. With an odd
// number of workers one of them has none (-1).
int PartnerOf(int rank, int round, int size) {
  const int seats = size + size % 2;
  int partner = (round + seats * (seats - 1) - rank) % (seats - 1);
  if (rank == seats - 1) {
    // The last seat stays, and meets the one that would meet itself.
    for (partner = 0; (2 * partner) % (seats - 1) != round % (seats - 1); ++partner) {
    }
  } else if (partner == rank) {
    partner = seats - 1;
  }
  return partner < size ? partner : -1;
}

absl::Status Run() {
  auto worker = syncopate::Worker::Start();
  if (!worker.ok()) return worker.status();
  const int rank = (*worker)->rank(), size = (*worker)->size();

  // Everybody begins with its rank. Averaging with one after the other brings all to the mean of all.
  float value = static_cast<float>(rank);
  int met = 0;
  for (int round = 0; round < 12 * size; ++round) {
    const int partner = PartnerOf(rank, round, size);
    if (partner < 0) continue;  // the others do not wait for this worker
    const std::vector<int> members = {std::min(rank, partner), std::max(rank, partner)};
    // The round and the lower of the two name the pair; nobody else brings this key.
    const uint64_t number = static_cast<uint64_t>(round * size + members[0]);
    auto pair = (*worker)->NewGroup(members, {.maker = 1, .number = number});
    if (!pair.ok()) return pair.status();
    const absl::Status status =
        pair->AllReduce(syncopate::Array::Of(&value, 1), syncopate::ReduceOp::kAverage);
    if (!status.ok()) return status;
    ++met;
  }  // each worker lets go of its pair for itself
  std::printf("rank %d of %d: %d pairs, the mean is %.3f\n", rank, size, met, value);
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
