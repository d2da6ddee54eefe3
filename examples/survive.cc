// A job that goes on when a worker dies: in its third step the last rank kills itself, and the
// others repeat the step without it.
//
//   syncopate launch -n 4 --on-failure continue -- ./survive
#include <csignal>
#include <cstdio>
#include <optional>
#include <vector>

#include "syncopate/syncopate.h"

absl::Status Run() {
  auto worker = syncopate::Worker::Start();
  if (!worker.ok()) return worker.status();
  const int rank = (*worker)->rank(), size = (*worker)->size();

  syncopate::Group group = (*worker)->world();
  std::vector<int> members = group.members();
  float mean = 0;
  for (int step = 0; step < 5; ++step) {
    if (step == 2 && size > 1 && rank == size - 1) std::raise(SIGKILL);
    mean = static_cast<float>(rank);
    const syncopate::Array data = syncopate::Array::Of(&mean, 1);
    absl::Status status = group.AllReduce(data, syncopate::ReduceOp::kAverage);
    while (!status.ok()) {
      // All survivors get the same suspect, and the data of all of them is as it was.
      const std::optional<int> suspect = syncopate::GetSuspect(status);
      if (syncopate::GetBlast(status) != syncopate::BlastRadius::kGroup || !suspect) return status;
      std::printf("rank %d: rank %d is lost in step %d\n", rank, *suspect, step);
      std::erase(members, *suspect);
      auto survivors = (*worker)->NewGroup(members);
      if (!survivors.ok()) return survivors.status();
      group = *survivors;
      status = group.AllReduce(data, syncopate::ReduceOp::kAverage);
    }
  }
  std::printf("rank %d: done with %d of %d workers, the mean is %g\n", rank, group.size(), size,
              mean);
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
