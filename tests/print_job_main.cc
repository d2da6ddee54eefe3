// Prints who its launcher says that it is: "job <id> rank <r> of <n>, local <r> of <n>", and proves
// it by an all-reduce of the ranks among all workers.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "syncopate/syncopate.h"
#include "worker/job_environment.h"

namespace {

absl::Status AddUpRanks() {
  auto worker = syncopate::Worker::Start();
  if (!worker.ok()) return worker.status();
  int64_t sum = (*worker)->rank();
  absl::Status status =
      (*worker)->world().AllReduce(syncopate::Array::Of(&sum, 1), syncopate::ReduceOp::kSum);
  if (!status.ok()) return status;
  const int64_t size = (*worker)->size();
  if (sum != size * (size - 1) / 2) {
    return absl::InternalError(absl::StrCat("the ranks add up to ", sum));
  }
  return absl::OkStatus();
}

}  // namespace

int main() {
  const auto job = syncopate::worker::JobFromEnvironment(syncopate::ProcessEnvironment());
  if (!job.ok()) {
    std::cerr << job.status().message() << std::endl;
    return 1;
  }
  if (const absl::Status status = AddUpRanks(); !status.ok()) {
    std::cerr << status.message() << std::endl;
    return 1;
  }
  if (!job->has_value()) {
    std::cout << "alone" << std::endl;
    return 0;
  }
  const syncopate::Job& j = **job;
  // One write, so that the lines of several processes do not mix.
  std::cout << absl::StrCat("job ", j.id, " rank ", j.rank, " of ", j.size, ", local ",
                            j.local_rank, " of ", j.local_size, "\n")
            << std::flush;
  return 0;
}
