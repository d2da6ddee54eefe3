// What the quick choice (plan/collective/quick_choice.h) takes for a call of a new kind: choosing, writing
// the program of all workers and compiling one's own part.
//
//   quick_choice_benchmark [ROUNDS]
//
// For each collective among 16, 32, 64 and 128 workers it prints the steps of the program and the median and
// the ninth decile of the time over all rounds, in milliseconds.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "engine/compiled_program.h"
#include "model/topology_makers.h"
#include "plan/collective/quick_choice.h"

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

// False if there is no choice.
bool TimeChoice(Collective collective, int workers, int rounds) {
  const plan::CollectiveRequest request = TimedRequest(collective, workers);
  const plan::NetworkFigures network = plan::FiguresOf(StarTopology(workers, 1e9, 50e-6));
  std::vector<int64_t> times_ns;
  size_t steps = 0;
  for (int round = 0; round < rounds; ++round) {
    const int64_t begin_ns = MonotonicClock().NowNs();
    absl::StatusOr<Program> program =
        plan::PlanQuickly(request, kBytesPerElement, network, request.active);
    if (!program.ok()) return false;
    steps = 0;
    for (const std::vector<Step>& list : program->steps) steps += list.size();
    if (!engine::CompileProgram(*std::move(program), workers / 2).ok()) return false;
    times_ns.push_back(MonotonicClock().NowNs() - begin_ns);
  }
  std::sort(times_ns.begin(), times_ns.end());
  const auto milliseconds = [&](size_t tenth) {
    return static_cast<double>(times_ns[times_ns.size() * tenth / 10]) / 1e6;
  };
  std::printf("%-16s %8d %8zu %10.3f %10.3f\n", std::string(Name(collective)).c_str(), workers,
              steps, milliseconds(5), milliseconds(9));
  return true;
}

int TimeChoices(int rounds) {
  std::printf("%-16s %8s %8s %10s %10s\n", "collective", "workers", "steps", "p50 ms", "p90 ms");
  for (const Collective collective : kCollectives) {
    for (const int workers : {16, 32, 64, 128}) {
      if (!TimeChoice(collective, workers, rounds)) return 1;
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
