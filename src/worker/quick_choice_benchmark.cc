// What a call of a new kind takes before it begins: choosing by formula, writing the program of all workers and
// compiling one's own part.
//
//   quick_choice_benchmark [ROUNDS]
//
// For each collective it prints the steps of the program and the median and the ninth decile of the time over
// all rounds, in milliseconds: among 16, 32, 64 and 128 workers on as many hosts
// (plan/collective/quick_choice.h), and among 16, 32 and 48, which is the most, on one
// (plan/collective/quick_select.h).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "engine/compiled_program.h"
#include "model/topology_makers.h"
#include "plan/collective/planners.h"
#include "plan/collective/quick_choice.h"
#include "plan/collective/quick_select.h"

namespace syncopate::worker {
namespace {

constexpr uint64_t kBytesPerElement = 4;
constexpr uint64_t kElements = 1 << 18;  // of a block, where the collective has any

plan::CollectiveRequest TimedRequest(Collective collective, int workers) {
  plan::CollectiveRequest request = {.collective = collective,
                                     .workers = workers,
                                     .active = std::vector<int>(static_cast<size_t>(workers)),
                                     .block_elements = {}};
  std::iota(request.active.begin(), request.active.end(), 0);
  request.elements = collective == Collective::kBarrier ? 0 : kElements;
  if (HasRoot(collective)) request.root = 0;
  if (collective == Collective::kSendReceive) request.target = workers - 1;
  if (HasBlocks(collective)) {
    request.block_elements.assign(request.active.size(), kElements);
    request.elements = kElements * request.active.size();
  }
  return request;
}

enum class Where { kHosts, kOneHost };

// All that GroupImpl has done for such a call. Counts the steps.
absl::Status ChooseAndCompile(const plan::CollectiveRequest& request, Where where,
                              const plan::NetworkFigures& network, size_t& steps) {
  absl::StatusOr<Program> program;
  if (where == Where::kHosts) {
    program = plan::PlanQuickly(request, kBytesPerElement, network, request.active);
  } else {
    HostCosts costs;
    costs.cores = 2;
    const plan::QuickSelect select(request.workers, costs);
    plan::PlannerOptions options;
    options.bytes_per_element = kBytesPerElement;
    program =
        plan::PlanBy(select.Algorithm(request.collective, request.elements * kBytesPerElement),
                     request, options);
  }
  if (!program.ok()) return program.status();
  steps = 0;
  for (const std::vector<Step>& list : program->steps) steps += list.size();
  return engine::CompileProgram(*std::move(program), request.workers / 2).status();
}

// False if there is no choice.
bool TimeChoice(Collective collective, Where where, int workers, int rounds) {
  const plan::CollectiveRequest request = TimedRequest(collective, workers);
  const plan::NetworkFigures network = plan::FiguresOf(StarTopology(workers, 1e9, 50e-6));
  std::vector<int64_t> times_ns;
  size_t steps = 0;
  for (int round = 0; round < rounds; ++round) {
    const int64_t begin_ns = MonotonicClock().NowNs();
    if (!ChooseAndCompile(request, where, network, steps).ok()) return false;
    times_ns.push_back(MonotonicClock().NowNs() - begin_ns);
  }
  std::sort(times_ns.begin(), times_ns.end());
  const auto milliseconds = [&](size_t tenth) {
    return static_cast<double>(times_ns[times_ns.size() * tenth / 10]) / 1e6;
  };
  std::printf("%-16s %8d %-8s %8zu %10.3f %10.3f\n", std::string(Name(collective)).c_str(), workers,
              where == Where::kHosts ? "hosts" : "one host", steps, milliseconds(5),
              milliseconds(9));
  return true;
}

int TimeChoices(int rounds) {
  std::printf("%-16s %8s %-8s %8s %10s %10s\n", "collective", "workers", "on", "steps", "p50 ms",
              "p90 ms");
  for (const Collective collective : kCollectives) {
    for (const int workers : {16, 32, 64, 128}) {
      if (!TimeChoice(collective, Where::kHosts, workers, rounds)) return 1;
    }
    for (const int workers : {16, 32, 48}) {
      if (!TimeChoice(collective, Where::kOneHost, workers, rounds)) return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace syncopate::worker

int main(int argc, char** argv) {
  int rounds = 200;
  if (argc > 2 || (argc == 2 && (!absl::SimpleAtoi(argv[1], &rounds) || rounds < 1))) {
    std::fprintf(stderr, "usage: quick_choice_benchmark [ROUNDS]\n");
    return 2;
  }
  return syncopate::worker::TimeChoices(rounds);
}
