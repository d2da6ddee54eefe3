// Meets the other workers of its job and prints whom it met: "met rank <r> of <n>: <payloads>".
// With a number as argument it meets so often.
#include <unistd.h>

#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/environment.h"
#include "control/meeting.h"
#include "worker/job_environment.h"

namespace {

constexpr int64_t kPatienceNs = 30'000'000'000;

absl::Status MeetOnce(const syncopate::Job& job) {
  const syncopate::Clock& clock = syncopate::MonotonicClock();
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  syncopate::control::MeetingOptions options;
  options.job = job.id;
  options.rank = job.rank;
  options.size = job.size;
  options.host = host;
  options.payload = absl::StrCat("p", job.rank);
  options.deadline_ns = clock.NowNs() + kPatienceNs;
  const auto meeting = syncopate::control::Meet(options, clock, syncopate::ProcessEnvironment());
  if (!meeting.ok()) return meeting.status();
  // One write, so that the lines of several processes do not mix.
  std::cout << absl::StrCat("met rank ", job.rank, " of ", job.size, ": ",
                            absl::StrJoin(meeting->payloads, " "), "\n")
            << std::flush;
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const auto job = syncopate::worker::JobFromEnvironment(syncopate::ProcessEnvironment());
  if (!job.ok() || !job->has_value()) {
    std::cerr << (job.ok() ? "no launcher" : job.status().message()) << std::endl;
    return 1;
  }
  int times = 1;
  if (argc > 1 && !absl::SimpleAtoi(argv[1], &times)) return 2;
  for (int i = 0; i < times; ++i) {
    if (const absl::Status status = MeetOnce(**job); !status.ok()) {
      std::cerr << absl::StrCat(status.message(), "\n") << std::flush;
      return 1;
    }
  }
  return 0;
}
