#include "plan/groups/round_times.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/topology_routes.h"
#include "plan/collective/locality.h"
#include "plan/collective/route_loads.h"
#include "plan/collective/select.h"

namespace syncopate::plan {
namespace {

// The bounds of all tables in one, each as often as the table has it that has it most often, so that
// every chunk of a table, empty ones too, is a run of chunks of the common one.
std::vector<uint64_t> CommonBounds(const std::vector<const std::vector<uint64_t>*>& tables) {
  std::vector<uint64_t> common = {0};
  for (const std::vector<uint64_t>* table : tables) {
    std::vector<uint64_t> both;
    std::set_union(common.begin(), common.end(), table->begin(), table->end(),
                   std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

// Where a table's bounds stand in the common one. A chunk that holds something begins at the last of
// equal bounds and ends at the first.
class CommonChunks {
 public:
  CommonChunks(const std::vector<uint64_t>& table, const std::vector<uint64_t>& common)
      : table_(table), common_(common) {}

  // The run of chunks that covers `count` of the table from `chunk` on.
  std::pair<uint32_t, uint32_t> Run(uint32_t chunk, uint32_t count) const {
    const uint64_t begin = table_[chunk], end = table_[chunk + count];
    const auto first = std::lower_bound(common_.begin(), common_.end(), begin);
    if (begin == end) return {static_cast<uint32_t>(first - common_.begin()), 1};
    const auto last_equal = std::upper_bound(first, common_.end(), begin) - 1;
    const auto stop = std::lower_bound(last_equal, common_.end(), end);
    return {static_cast<uint32_t>(last_equal - common_.begin()),
            static_cast<uint32_t>(stop - last_equal)};
  }

 private:
  const std::vector<uint64_t>& table_;
  const std::vector<uint64_t>& common_;
};

}  // namespace

Program PlayedTogether(int workers, const std::vector<const Program*>& programs,
                       const std::vector<std::vector<int>>& members) {
  Program together;
  together.algorithm = "groups";
  together.workers = workers;
  together.active.resize(static_cast<size_t>(workers));
  std::iota(together.active.begin(), together.active.end(), 0);
  together.steps.resize(static_cast<size_t>(workers));
  std::vector<const std::vector<uint64_t>*> data, scratch;
  for (const Program* program : programs) {
    data.push_back(&program->data_bounds);
    scratch.push_back(&program->scratch_bounds);
  }
  together.data_bounds = CommonBounds(data);
  together.scratch_bounds = CommonBounds(scratch);
  for (size_t i = 0; i < programs.size(); ++i) {
    const CommonChunks in_data(programs[i]->data_bounds, together.data_bounds);
    const CommonChunks in_scratch(programs[i]->scratch_bounds, together.scratch_bounds);
    const auto run = [&](Space space, uint32_t chunk, uint32_t count) {
      return (space == Space::kData ? in_data : in_scratch).Run(chunk, count);
    };
    for (size_t w = 0; w < programs[i]->steps.size(); ++w) {
      std::vector<Step>& steps = together.steps[static_cast<size_t>(members[i][w])];
      for (Step step : programs[i]->steps[w]) {
        if (step.peer >= 0) step.peer = members[i][static_cast<size_t>(step.peer)];
        if (step.kind == StepKind::kCopy || step.kind == StepKind::kReduce) {
          step.source_chunk = run(step.source_space, step.source_chunk, step.count).first;
        }
        std::tie(step.chunk, step.count) = run(step.space, step.chunk, step.count);
        steps.push_back(std::move(step));
      }
    }
  }
  return together;
}

RoundPlayer::RoundPlayer(const Topology& topology, absl::Span<const int> placement,
                         const GroupNetwork& network, uint64_t elements, size_t bytes_per_element)
    : topology_(topology),
      placement_(placement),
      network_(network),
      elements_(elements),
      bytes_per_element_(bytes_per_element) {}

absl::StatusOr<std::string> RoundPlayer::LooksOf(const std::vector<int>& placement) const {
  std::vector<int> workers(placement.size());
  std::iota(workers.begin(), workers.end(), 0);
  SYNCOPATE_ASSIGN_OR_RETURN(const RouteLoads loads, RouteLoads::Of(topology_, placement, workers));
  Routes routes(topology_);
  std::string looks;
  for (size_t a = 0; a < placement.size(); ++a) {
    const Topology::Node& node = topology_.nodes[static_cast<size_t>(placement[a])];
    absl::StrAppend(&looks, "d", node.message_overhead);
    for (const int memory : MemoryOf(topology_, placement[a])) absl::StrAppend(&looks, "m", memory);
    for (size_t b = 0; b < placement.size(); ++b) {
      if (a == b) continue;
      double latency = 0;
      SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> links,
                                 routes.Between(placement[a], placement[b]));
      for (const int link : links) latency += topology_.links[static_cast<size_t>(link)].latency;
      absl::StrAppend(&looks, ";", latency);
      for (const int part : loads.Between(a, b)) {
        absl::StrAppend(&looks, ",", part, ":", loads.seconds_per_byte(part));
      }
    }
  }
  for (const auto& level : LevelsOf(topology_, placement, workers)) {
    absl::StrAppend(&looks, "|");
    for (const std::vector<int>& group : level) {
      absl::StrAppend(&looks, "/");
      for (const int worker : group) absl::StrAppend(&looks, worker, ",");
    }
  }
  return looks;
}

absl::StatusOr<const RoundPlayer::Planned*> RoundPlayer::PlanFor(const Pattern::Group& group) {
  std::vector<int> placement;
  for (const int rank : group) placement.push_back(placement_[static_cast<size_t>(rank)]);
  auto known = looks_.find(group);
  if (known == looks_.end()) {
    SYNCOPATE_ASSIGN_OR_RETURN(std::string looks, LooksOf(placement));
    known = looks_.emplace(group, std::move(looks)).first;
  }
  const auto found = planned_.find(known->second);
  if (found != planned_.end()) return &found->second;
  CollectiveRequest request;
  request.workers = static_cast<int>(group.size());
  request.active.resize(group.size());
  std::iota(request.active.begin(), request.active.end(), 0);
  request.elements = elements_;
  SYNCOPATE_ASSIGN_OR_RETURN(
      Selection selection,
      SelectProgram(request, bytes_per_element_, topology_, placement, SelectOptions()));
  Planned planned{std::move(selection.program), Describe(selection.candidates[0])};
  return &planned_.emplace(known->second, std::move(planned)).first->second;
}

std::vector<double> RoundPlayer::UplinkBytes(const Program& program) const {
  std::vector<double> out(network_.uplinks().size(), 0), in = out;
  for (int worker = 0; worker < program.workers; ++worker) {
    for (const Step& step : program.steps[static_cast<size_t>(worker)]) {
      if (step.kind != StepKind::kSend) continue;
      const double bytes = static_cast<double>(program.size(step) * bytes_per_element_);
      for (const int uplink : network_.Leaving(worker, step.peer)) {
        out[static_cast<size_t>(uplink)] += bytes;
      }
      for (const int uplink : network_.Leaving(step.peer, worker)) {
        in[static_cast<size_t>(uplink)] += bytes;
      }
    }
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::max(out[i], in[i]);
  return out;
}

absl::StatusOr<PlayedRound> RoundPlayer::Play(const Pattern::Round& round) {
  PlayedRound played;
  std::vector<const Program*> programs;
  std::vector<std::vector<int>> members;
  // First all are planned: what was planned before may move when another is added.
  for (const Pattern::Group& group : round) {
    if (group.size() > 1) SYNCOPATE_RETURN_IF_ERROR(PlanFor(group).status());
  }
  for (const Pattern::Group& group : round) {
    played.algorithms.emplace_back();
    if (group.size() == 1) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(const Planned* planned, PlanFor(group));
    played.algorithms.back() = planned->algorithm;
    programs.push_back(&planned->program);
    members.push_back(group);
  }
  const Program together = PlayedTogether(network_.workers(), programs, members);
  SYNCOPATE_ASSIGN_OR_RETURN(played.cost,
                             cost::CostOf(together, topology_, placement_, bytes_per_element_));
  played.seconds = played.cost.seconds;
  played.uplink_bytes = UplinkBytes(together);
  return played;
}

}  // namespace syncopate::plan
