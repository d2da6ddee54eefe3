// group_churn: a job that makes very many groups, and what that takes.
//
//   build/release/tests/group_churn                    10,000 groups of 16 workers in shared memory
//   build/release/tests/group_churn --tcp              the same over TCP on the loopback
//   build/release/tests/group_churn --death-every 500  the same while workers die
//
// It prints each worker's memory (RSS and memory files) after 1,000 groups and after all, and the median
// time of 1 MiB on a new group and on an old one. The exit code is 1 if a worker did not meet the others
// where it should, if memory grew by more than 2 %, or if a new group takes more than 3 times as long. Where
// workers die in shared memory, the others begin to look into each other's tables of groups that they will not
// make (32 KiB each), which may be added once.
#include <cstdio>

#include "CLI/CLI.hpp"
#include "tests/forked.h"
#include "tests/group_churn.h"

int main(int argc, char** argv) {
  syncopate::ChurnOptions options;
  CLI::App app("Makes very many groups in one job and tells what that takes.");
  app.add_option("-n,--workers", options.workers, "Workers of the job")
      ->check(CLI::Range(2, 20))
      ->capture_default_str();
  app.add_option("--groups", options.groups, "Groups that are made, all different")
      ->capture_default_str();
  app.add_option("--size-max", options.size_max, "Members of the largest groups")
      ->check(CLI::Range(2, 20))
      ->capture_default_str();
  app.add_option("--first-mark", options.first_mark, "Memory is first looked at after this many")
      ->capture_default_str();
  app.add_option("--elements", options.elements, "Floats that a group averages")
      ->capture_default_str();
  app.add_option("--death-every", options.death_every,
                 "A worker dies after this many groups, as long as more than the members of the "
                 "largest group are left; 0: nobody dies")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Draws the groups")->capture_default_str();
  app.add_flag("--tcp", options.tcp, "Over TCP on the loopback, not in shared memory");
  CLI11_PARSE(app, argc, argv);

  syncopate::Shared<syncopate::ChurnReport> report;
  const absl::Status status = syncopate::RunChurn(options, *report);
  if (!status.ok()) {
    std::fprintf(stderr, "group_churn: %s\n", status.ToString().c_str());
    return 1;
  }
  bool ok = true;
  const double tables =
      options.death_every > 0 && !options.tcp ? options.workers / 32.0 : 0;  // MiB
  std::printf("rank  groups met  lost to deaths  MiB at %5llu  MiB at %5llu  ratio\n",
              static_cast<unsigned long long>(options.first_mark),
              static_cast<unsigned long long>(options.groups));
  for (int rank = 0; rank < options.workers; ++rank) {
    const syncopate::ChurnOfWorker& worker = report->workers[static_cast<size_t>(rank)];
    const double first = static_cast<double>(worker.bytes_first) / (1 << 20);
    const double last = static_cast<double>(worker.bytes_last) / (1 << 20);
    const bool ended = worker.bytes_last > 0 && worker.bytes_first > 0;
    std::printf("%4d  %10llu  %14llu  %12.2f  %12.2f  ", rank,
                static_cast<unsigned long long>(worker.met),
                static_cast<unsigned long long>(worker.lost), first, last);
    std::printf(ended ? "%5.3f\n" : " died\n", ended ? last / first : 0);
    ok = ok && (!ended || last <= 1.02 * first + tables);
  }
  const syncopate::ChurnOfWorker& timed = report->workers[0];
  const double ratio = static_cast<double>(timed.fresh_ns) / static_cast<double>(timed.cached_ns);
  std::printf(
      "1 MiB among 4, median of %d: %.1f us on a new group, %.1f us on an old one, %.2f x\n",
      options.timed_rounds, static_cast<double>(timed.fresh_ns) / 1e3,
      static_cast<double>(timed.cached_ns) / 1e3, ratio);
  return ok && ratio <= 3 ? 0 : 1;
}
