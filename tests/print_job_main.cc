// Prints who its launcher says that it is: "job <id> rank <r> of <n>, local <r> of <n>".
#include <iostream>

#include "absl/strings/str_cat.h"
#include "api/job_environment.h"
#include "base/environment.h"

int main() {
  const auto job = syncopate::JobFromEnvironment(syncopate::ProcessEnvironment());
  if (!job.ok()) {
    std::cerr << job.status().message() << std::endl;
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
