#include "simulation/scenario.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/collective/planners.h"

namespace syncopate::simulation {
namespace {

absl::string_view Name(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kKill:
      return "kill";
    case Fault::Kind::kStop:
      return "stop";
    case Fault::Kind::kCutPair:
      return "cut pair";
    case Fault::Kind::kCutOneWay:
      return "cut one way";
    case Fault::Kind::kCutOff:
      return "cut off";
    case Fault::Kind::kMute:
      return "mute";
    case Fault::Kind::kDeaf:
      return "deaf";
  }
  return "?";
}

Fault DrawFault(Random& random, int size) {
  Fault fault;
  // Deaths are the most frequent kind.
  const uint64_t kind = random.Below(10);
  fault.kind = kind < 4 ? Fault::Kind::kKill : static_cast<Fault::Kind>(kind - 3);
  fault.rank = static_cast<int>(random.Below(static_cast<uint64_t>(size)));
  fault.other =
      (fault.rank + 1 + static_cast<int>(random.Below(static_cast<uint64_t>(size) - 1))) % size;
  fault.duration_ns = random.Below(2) == 0   ? random.Between(10 * kMs, 1500 * kMs)
                      : random.Below(2) == 0 ? random.Between(4500 * kMs, 8 * kSecond)
                                             : -1;
  return fault;
}

// Where workers agree on values, often those are struck that host the service, at times both at once.
void DrawAgreement(Random& random, Scenario& scenario) {
  scenario.proposals = static_cast<int>(random.Between(1, 4));
  scenario.odd_checks = random.Below(4) == 0 ? 15 : 0;
  std::vector<int>& candidates = scenario.candidates;
  for (const Fault& fault : scenario.faults) {
    if (random.Below(2) == 0 &&
        std::find(candidates.begin(), candidates.end(), fault.rank) == candidates.end()) {
      candidates.push_back(fault.rank);
    }
  }
  std::vector<int> others;
  for (int rank = 0; rank < scenario.size; ++rank) {
    if (std::find(candidates.begin(), candidates.end(), rank) == candidates.end()) {
      others.push_back(rank);
    }
  }
  for (size_t i = others.size(); i > 1; --i) std::swap(others[i - 1], others[random.Below(i)]);
  candidates.insert(candidates.end(), others.begin(), others.end());
  // As where the last ranks are servers.
  if (random.Below(4) == 0) candidates.resize(1 + random.Below(candidates.size()));
}

}  // namespace

std::string ToText(const Fault& fault) {
  std::string text = absl::StrCat(Name(fault.kind), " ", fault.rank);
  if (fault.kind == Fault::Kind::kCutPair || fault.kind == Fault::Kind::kCutOneWay) {
    absl::StrAppend(&text, " ", fault.other);
  }
  if (fault.kind != Fault::Kind::kKill) {
    absl::StrAppend(&text, fault.duration_ns < 0
                               ? " for ever"
                               : absl::StrCat(" for ", fault.duration_ns / kMs, " ms"));
  }
  return text;
}

std::string ToText(const Scenario& scenario) {
  std::string text = absl::StrCat(
      scenario.size, " workers on hosts ", absl::StrJoin(scenario.hosts, ","), ", ",
      scenario.network.lanes, " lanes, groups of ",
      absl::StrJoin(scenario.groups, " ",
                    [](std::string* out, const std::vector<int>& group) {
                      absl::StrAppend(out, absl::StrJoin(group, ","));
                    }),
      scenario.hasty ? ", hasty" : "", ", fragments of ", scenario.limits.fragment_bytes);
  if (scenario.proposals >= 0) {
    absl::StrAppend(&text, ", agreement by ", absl::StrJoin(scenario.candidates, ","));
  }
  for (const Fault& fault : scenario.faults) {
    absl::StrAppend(&text, "; ", ToText(fault),
                    fault.at_event > 0 ? absl::StrCat(" at event ", fault.at_event)
                                       : absl::StrCat(" ", fault.after_ns / kMs, " ms later"));
  }
  return text;
}

Scenario DrawScenario(uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15u + 1);
  Scenario scenario;
  scenario.seed = seed;
  scenario.size = static_cast<int>(random.Below(8) == 0 ? 2 : random.Between(3, 6));
  const uint64_t hosts = 2 + random.Below(static_cast<uint64_t>(scenario.size) - 1);
  for (int rank = 0; rank < scenario.size; ++rank) {
    scenario.hosts.push_back(
        static_cast<int>(rank < 2 ? static_cast<uint64_t>(rank) : random.Below(hosts)));
  }
  std::vector<int> everyone(static_cast<size_t>(scenario.size));
  std::iota(everyone.begin(), everyone.end(), 0);
  scenario.groups.push_back(everyone);
  for (uint64_t i = random.Below(3); i > 0; --i) {
    std::vector<int> some;
    for (const int rank : everyone) {
      if (random.Below(2) == 0) some.push_back(rank);
    }
    if (some.size() >= 2) scenario.groups.push_back(some);
  }
  scenario.calls = static_cast<int>(random.Between(3, 10));
  scenario.window = static_cast<int>(random.Between(1, 6));
  scenario.pause_ns = random.Below(2) == 0 ? 0 : random.Between(10 * kUs, 20 * kMs);
  scenario.hasty = random.Below(6) == 0;
  const uint64_t faults = random.Below(10) == 0 ? 0 : 1 + random.Below(random.Below(3) + 1);
  for (uint64_t i = 0; i < faults; ++i) {
    Fault fault = DrawFault(random, scenario.size);
    if (i == 0) {
      fault.at_event = 1 + random.Below(random.Below(4) == 0 ? 300 : 6000);
    } else {
      const uint64_t when = random.Below(3);
      fault.after_ns = when == 0 ? random.Between(0, kMs) : random.Between(0, 1200 * kMs);
      if (when == 2) fault.after_ns = random.Between(0, 9 * kSecond);
    }
    scenario.faults.push_back(fault);
  }
  transport::net::CoreLimits& limits = scenario.limits;
  limits.fragment_bytes = static_cast<uint32_t>(random.Between(64, 2048));
  limits.early_bytes = static_cast<uint64_t>(random.Between(64, 4096));
  // Peers keep to early_bytes for each call. Those of two groups in the place of each of the first
  // ones may be there at once: the one that failed and the one that follows it.
  limits.unopened_bytes_max =
      static_cast<uint64_t>(scenario.calls) * limits.early_bytes * (2 * scenario.groups.size() + 1);
  limits.kept_bytes_max = random.Below(2) == 0 ? 0 : random.Below(32 << 10);
  limits.prompt_bytes = static_cast<uint64_t>(random.Between(0, 4096));
  NetworkOptions& network = scenario.network;
  network.size = scenario.size;
  network.lanes = static_cast<int>(random.Between(1, 3));
  network.seed = random.Next();
  network.piece_bytes_max = static_cast<size_t>(random.Between(64, 2048));
  network.window_bytes = static_cast<size_t>(random.Between(1 << 10, 32 << 10));
  network.delay_usual_ns = random.Between(5 * kUs, 300 * kUs);
  scenario.mail = static_cast<int>(random.Below(4) == 0 ? 0 : random.Between(1, 40));
  limits.mail_queued_bytes = static_cast<uint64_t>(random.Between(5 << 10, 30 << 10));
  if (random.Below(2) == 0) DrawAgreement(random, scenario);
  return scenario;
}

CallPlan DrawCall(const Scenario& scenario, uint64_t group_key, int members, int index, bool last) {
  Random random(scenario.seed ^ (group_key * 0xbf58476d1ce4e5b9u) ^
                (static_cast<uint64_t>(index) * 0x94d049bb133111ebu));
  CallPlan call;
  plan::CollectiveRequest& request = call.request;
  const uint64_t kind = random.Below(10);
  request.collective = last || kind < 5 ? Collective::kAllReduce
                       : kind < 7       ? Collective::kBroadcast
                                        : kCollectives[random.Below(std::size(kCollectives))];
  request.workers = members;
  const bool all_active = random.Below(5) != 0 || last;
  for (int member = 0; member < members; ++member) {
    if (all_active || random.Below(3) > 0) request.active.push_back(member);
  }
  if (request.active.empty()) request.active.push_back(0);
  request.root = request.active[random.Below(request.active.size())];
  request.target = request.active[random.Below(request.active.size())];
  const uint64_t most = random.Below(3) == 0 ? 1500 : 200;
  request.elements = request.collective == Collective::kBarrier ? 0 : last + random.Below(most);
  if (HasBlocks(request.collective)) {
    request.elements = 0;
    const uint64_t same = random.Below(most / 4);
    for (size_t i = 0; i < request.active.size(); ++i) {
      request.block_elements.push_back(
          request.collective == Collective::kAllToAll ? same : random.Below(most / 4));
      request.elements += request.block_elements.back();
    }
  }
  std::vector<const plan::PlannerInfo*> planners;
  for (const plan::PlannerInfo* planner : plan::AllPlanners()) {
    if (planner->collective == request.collective) planners.push_back(planner);
  }
  plan::PlannerOptions options;
  options.pieces = static_cast<int>(random.Between(1, 3));
  for (int member = 0; member < members; ++member) {
    if (random.Below(3) == 0) options.servers.push_back(member);
  }
  const plan::PlannerInfo& planner = *planners[random.Below(planners.size())];
  absl::StatusOr<Program> program = planner.plan(request, options);
  if (!program.ok()) std::abort();  // planners answer every valid request
  call.program = *std::move(program);
  constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat64, DataType::kInt32,
                                 DataType::kInt64};
  call.type = kTypes[random.Below(std::size(kTypes))];
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax,
                               ReduceOp::kWeightedAverage};
  call.op = kOps[random.Below(std::size(kOps))];
  if (call.op == ReduceOp::kWeightedAverage) call.type = DataType::kFloat64;
  for (int member = 0; member < members; ++member) {
    call.weights.push_back(static_cast<double>(1 + random.Below(4)));
  }
  call.priority = static_cast<int>(random.Below(3));
  call.timeout_ns = scenario.hasty ? random.Between(300 * kMs, 2 * kSecond) : 60 * kSecond;
  return call;
}

int64_t Initial(int rank, uint64_t element, uint64_t salt) {
  return static_cast<int64_t>((element * 31 + static_cast<uint64_t>(rank) * 1000003 + salt * 977) %
                              100000);
}

std::vector<double> Expected(const CallPlan& call, int member,
                             const std::vector<std::vector<double>>& initial) {
  const plan::CollectiveRequest& request = call.request;
  const std::vector<int>& active = request.active;
  std::vector<double> values = initial[static_cast<size_t>(member)];
  const auto place = std::find(active.begin(), active.end(), member);
  if (place == active.end()) return values;
  const size_t index = static_cast<size_t>(place - active.begin());
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  const auto at = [&](int from, uint64_t e) { return initial[static_cast<size_t>(from)][e]; };
  const auto reduced = [&](uint64_t e) {
    double total = at(active.front(), e), sum = 0, weights = 0;
    for (const int from : active) {
      const double value = at(from, e);
      const double weight = call.weights[static_cast<size_t>(from)];
      if (from != active.front()) {
        total = call.op == ReduceOp::kMin   ? std::min(total, value)
                : call.op == ReduceOp::kMax ? std::max(total, value)
                                            : total + value;
      }
      sum += weight * value;
      weights += weight;
    }
    return call.op == ReduceOp::kWeightedAverage ? sum / weights : total;
  };
  std::vector<uint64_t> begin = {0};
  for (const uint64_t elements : request.block_elements) begin.push_back(begin.back() + elements);
  const auto block_of = [&](uint64_t e) {
    return static_cast<size_t>(std::upper_bound(begin.begin(), begin.end(), e) - begin.begin()) - 1;
  };
  for (uint64_t e = 0; e < request.elements; ++e) {
    switch (request.collective) {
      case Collective::kAllReduce:
        values[e] = reduced(e);
        break;
      case Collective::kReduce:
        values[e] = member == request.root ? reduced(e) : unknown;
        break;
      case Collective::kBroadcast:
        values[e] = at(request.root, e);
        break;
      case Collective::kAllGather:
        values[e] = at(active[block_of(e)], e);
        break;
      case Collective::kReduceScatter:
        values[e] = block_of(e) == index ? reduced(e) : unknown;
        break;
      case Collective::kGather:
        values[e] = member == request.root ? at(active[block_of(e)], e) : unknown;
        break;
      case Collective::kScatter:
        values[e] = block_of(e) == index ? at(request.root, e) : unknown;
        break;
      case Collective::kAllToAll: {
        const size_t from = block_of(e);
        values[e] = at(active[from], begin[index] + (e - begin[from]));
        break;
      }
      case Collective::kSendReceive:
        if (member == request.target) values[e] = at(request.root, e);
        break;
      case Collective::kBarrier:
        break;
    }
  }
  return values;
}

}  // namespace syncopate::simulation
