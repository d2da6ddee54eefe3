// Runs simulated jobs for a range of seeds and counts what became of them. tests/campaign starts it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/clock.h"
#include "simulation/simulation.h"

namespace syncopate::simulation {
namespace {

struct Counts {
  uint64_t runs = 0, failures = 0, events = 0, calls_new = 0, calls_old = 0, losses = 0;
  uint64_t regroups = 0, jobs_lost = 0, calls_late = 0, mail_posted = 0, mail_refused = 0;
  uint64_t values_adopted = 0, values_used = 0, values_refused = 0, values_awaited = 0;
  uint64_t hosts_lost = 0, unhosted = 0;
  int64_t virtual_ns = 0, notice_kill_ns = 0, notice_silence_ns = 0, outcome_ns = 0;
};

void Print(const char* world, const Counts& counts, double seconds) {
  std::printf("%s: %lu runs, %lu failures; %.1f h of virtual time, %lu events, %.0f s\n", world,
              counts.runs, counts.failures, static_cast<double>(counts.virtual_ns) / 3.6e12,
              counts.events, seconds);
  std::printf(
      "  calls: %lu new, %lu old (%lu since time was up); %lu losses, %lu new groups, "
      "%lu jobs without survivors\n",
      counts.calls_new, counts.calls_old, counts.calls_late, counts.losses, counts.regroups,
      counts.jobs_lost);
  std::printf("  noticed after a single fault: a death within %ld ms, silence within %ld ms\n",
              counts.notice_kill_ns / 1'000'000, counts.notice_silence_ns / 1'000'000);
  std::printf("  mail: %lu messages and parcels, and %lu refused by full queues\n",
              counts.mail_posted, counts.mail_refused);
  std::printf(
      "  agreement: %lu values told to workers, %lu in use, %lu refused, %lu waits at the end of a "
      "margin\n",
      counts.values_adopted, counts.values_used, counts.values_refused, counts.values_awaited);
  std::printf(
      "  %lu hosts lost, %lu jobs without any; outcomes within %ld ms of the last trouble\n",
      counts.hosts_lost, counts.unhosted, counts.outcome_ns / 1'000'000);
  std::fflush(stdout);
}

Counts RunSeeds(World world, uint64_t first, uint64_t seeds, bool trace) {
  Counts counts;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const Report report = Simulate(seed, world, trace);
    ++counts.runs;
    counts.events += report.events;
    counts.virtual_ns += report.virtual_ns;
    counts.calls_new += static_cast<uint64_t>(report.calls_new);
    counts.calls_old += static_cast<uint64_t>(report.calls_old);
    counts.losses += static_cast<uint64_t>(report.losses);
    counts.regroups += static_cast<uint64_t>(report.regroups);
    counts.calls_late += static_cast<uint64_t>(report.calls_late);
    counts.mail_posted += static_cast<uint64_t>(report.mail_posted);
    counts.mail_refused += static_cast<uint64_t>(report.mail_refused);
    counts.jobs_lost += report.survivors == 0 ? 1 : 0;
    counts.values_adopted += static_cast<uint64_t>(report.values_adopted);
    counts.values_used += static_cast<uint64_t>(report.values_used);
    counts.values_refused += static_cast<uint64_t>(report.values_refused);
    counts.values_awaited += static_cast<uint64_t>(report.values_awaited);
    counts.hosts_lost += static_cast<uint64_t>(report.hosts_lost);
    counts.unhosted += report.unhosted ? 1 : 0;
    counts.outcome_ns = std::max(counts.outcome_ns, report.outcome_ns);
    counts.notice_kill_ns = std::max(counts.notice_kill_ns, report.notice_kill_ns);
    counts.notice_silence_ns = std::max(counts.notice_silence_ns, report.notice_silence_ns);
    if (trace) std::printf("digest %016lx\n", report.digest);
    if (report.failure.empty()) continue;
    ++counts.failures;
    std::printf("seed %lu: %s\n  repeat it by: %s\n", seed, report.failure.c_str(),
                RepeatCommand(seed, world).c_str());
    std::fflush(stdout);
  }
  return counts;
}

int Main(int argc, char** argv) {
  CLI::App app("Runs simulated jobs with faults, each from one seed.");
  uint64_t seeds = 200, first = 1;
  std::string world = "both";
  bool trace = false;
  app.add_option("--seeds", seeds, "How many seeds to run")->capture_default_str();
  app.add_option("--seed", first, "The first seed")->capture_default_str();
  app.add_option("--world", world, "frames: simulated wires; sockets: TcpWires; both")
      ->check(CLI::IsMember({"frames", "sockets", "both"}))
      ->capture_default_str();
  app.add_flag("--trace", trace, "Print what happens");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  uint64_t failures = 0;
  for (const World each : {World::kFrames, World::kSockets}) {
    const char* name = each == World::kFrames ? "frames" : "sockets";
    if (world != "both" && world != name) continue;
    const int64_t begin_ns = MonotonicClock().NowNs();
    const Counts counts = RunSeeds(each, first, seeds, trace);
    Print(name, counts, static_cast<double>(MonotonicClock().NowNs() - begin_ns) / 1e9);
    failures += counts.failures;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace syncopate::simulation

int main(int argc, char** argv) { return syncopate::simulation::Main(argc, argv); }
