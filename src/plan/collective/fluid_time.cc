// How long a program would take if its data flowed like a fluid.
#include "plan/collective/fluid_time.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/topology_routes.h"

namespace syncopate::plan {
namespace {

// The stages of a program: it reduces or hands out, inside a machine or between machines.
constexpr size_t kStages = 4;
using BytesByStage = std::array<double, kStages>;

}  // namespace

absl::StatusOr<FluidTime> FluidTimeOf(const Program& program, const Topology& topology,
                                      absl::Span<const int> placement, size_t bytes_per_element,
                                      const std::vector<std::vector<int>>& machines) {
  const size_t workers = program.steps.size();
  if (placement.size() != workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("the placement has ", placement.size(), " entries for ", workers, " workers"));
  }
  std::vector<int> machine_of(workers, -1);
  for (size_t machine = 0; machine < machines.size(); ++machine) {
    for (const int rank : machines[machine]) {
      machine_of[static_cast<size_t>(rank)] = static_cast<int>(machine);
    }
  }
  std::vector<BytesByStage> pairs(workers * workers, BytesByStage{});  // by from, then to
  for (size_t to = 0; to < workers; ++to) {
    // What reaches a worker without data of its own is on the way to be added.
    const bool has_data =
        std::binary_search(program.active.begin(), program.active.end(), static_cast<int>(to));
    for (const Step& step : program.steps[to]) {
      if (step.kind != StepKind::kReceive && step.kind != StepKind::kReceiveReduce) continue;
      const size_t from = static_cast<size_t>(step.peer);
      const bool reduces = step.kind == StepKind::kReceiveReduce || !has_data;
      const bool between = machine_of[from] != machine_of[to];
      pairs[from * workers + to][(reduces ? 0 : 2) + (between ? 1 : 0)] +=
          static_cast<double>(program.size(step) * bytes_per_element);
    }
  }

  // Bytes on every link and capacity, by stage: links first, then capacities.
  std::vector<BytesByStage> loads(topology.links.size() + topology.capacities.size(),
                                  BytesByStage{});
  Routes routes(topology);
  for (size_t from = 0; from < workers; ++from) {
    for (size_t to = 0; to < workers; ++to) {
      const BytesByStage& bytes = pairs[from * workers + to];
      if (bytes == BytesByStage{}) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> links,
                                 routes.Between(placement[from], placement[to]));
      const auto add = [&bytes](BytesByStage& load) {
        for (size_t stage = 0; stage < kStages; ++stage) load[stage] += bytes[stage];
      };
      for (const int link : links) {
        add(loads[static_cast<size_t>(link)]);
        for (const int capacity : topology.links[static_cast<size_t>(link)].capacities) {
          add(loads[topology.links.size() + static_cast<size_t>(capacity)]);
        }
      }
    }
  }

  FluidTime time;
  BytesByStage longest{};
  for (size_t i = 0; i < loads.size(); ++i) {
    const bool is_link = i < topology.links.size();
    const double bandwidth = is_link ? topology.links[i].bandwidth
                                     : topology.capacities[i - topology.links.size()].bandwidth;
    double sum = 0;
    for (size_t stage = 0; stage < kStages; ++stage) {
      longest[stage] = std::max(longest[stage], loads[i][stage] / bandwidth);
      sum += loads[i][stage];
    }
    if (sum / bandwidth <= time.pipelined) continue;
    time.pipelined = sum / bandwidth;
    time.limit = is_link
                     ? absl::StrCat("link ", topology.links[i].id)
                     : absl::StrCat("capacity ", topology.capacities[i - topology.links.size()].id);
  }
  for (const double seconds : longest) time.staged += seconds;
  return time;
}

}  // namespace syncopate::plan
