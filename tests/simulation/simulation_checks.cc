// What must hold at the end of a simulated run.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simulation/simulation_run.h"

namespace syncopate::simulation {
namespace {

using transport::Loss;

constexpr int64_t kNoticeKillNs = kSecond;
constexpr int64_t kNoticeSilenceNs = 5 * kSecond;
constexpr uint64_t kLastGroup = 0xf17a;

}  // namespace

std::vector<int> Simulation::Survivors() const {
  std::vector<int> survivors;
  for (const auto& worker : workers_) {
    if (!worker->dead && !worker->out) survivors.push_back(worker->rank);
  }
  return survivors;
}

// Those whom the faults may have cost their place.
std::set<int> Simulation::Justified() const {
  std::map<int, int64_t> trouble_ns;
  std::set<int> struck;
  for (const Fault& fault : scenario_.faults) {
    const int64_t long_ns = fault.is_long() ? kRunNsMax : fault.duration_ns;
    trouble_ns[fault.rank] += long_ns;
    if (fault.is_long()) struck.insert(fault.rank);
    if (fault.kind == Fault::Kind::kCutPair || fault.kind == Fault::Kind::kCutOneWay) {
      trouble_ns[fault.other] += long_ns;
    }
  }
  std::set<int> justified;
  // Where the others are no majority, they may give up too.
  const bool any = 2 * struck.size() >= Index(scenario_.size);
  for (int rank = 0; rank < scenario_.size; ++rank) {
    if (any || trouble_ns[rank] > 2500 * kMs) justified.insert(rank);
  }
  return justified;
}

void Simulation::CompareLosses(const std::vector<int>& survivors) {
  const std::set<int> justified = Justified();
  const auto text = [](const std::vector<Loss>& losses) {
    return absl::StrJoin(losses, ", ", [](std::string* out, const Loss& loss) {
      absl::StrAppend(out, loss.order, ": ", loss.rank, " ", loss.cause);
    });
  };
  for (const auto& worker : workers_) {
    if (worker->dead) continue;
    for (const Loss& loss : worker->transport->Lost()) {
      if (!justified.contains(loss.rank)) {
        Fail("worker ", worker->rank, " holds ", loss.rank,
             " for lost without a reason: ", loss.cause);
      }
    }
  }
  if (survivors.empty()) return;
  const std::vector<Loss> first = worker(survivors.front()).transport->Lost();
  for (const int rank : survivors) {
    const std::vector<Loss> losses = worker(rank).transport->Lost();
    if (text(losses) != text(first)) {
      Fail("workers ", survivors.front(), " and ", rank, " differ on the losses: ", text(first),
           "; ", text(losses));
    }
  }
  for (int rank = 0; rank < scenario_.size; ++rank) {
    const bool lost = std::any_of(first.begin(), first.end(),
                                  [&](const Loss& loss) { return loss.rank == rank; });
    const bool survives = std::find(survivors.begin(), survivors.end(), rank) != survivors.end();
    if (lost == survives) {
      Fail("worker ", rank,
           lost ? " goes on and is held for lost by " : " is gone and not lost for ",
           survivors.front(), ": ", text(first));
    }
  }
  report_.losses = static_cast<int>(first.size());
}

void Simulation::CompareCalls(const std::vector<int>& survivors) {
  // A new group without the suspect works only if all leave the same one out, whichever of the calls
  // that failed they have looked at first.
  std::map<uint64_t, std::set<int>> suspects;  // by group
  for (const auto& [id, by_rank] : outcomes_) {
    const GroupPlan& plan = *plans_.at(id.first);
    const CallPlan& call = plan.calls[Index(id.second)];
    int ok = 0, members = 0;
    for (const int rank : survivors) {
      if (std::find(plan.members.begin(), plan.members.end(), rank) == plan.members.end()) continue;
      ++members;
      const auto found = by_rank.find(rank);
      if (found == by_rank.end()) continue;
      if (found->second.ok) {
        ++ok;
      } else {
        suspects[id.first].insert(found->second.suspect);
      }
    }
    if (suspects[id.first].size() > 1) {
      Fail("group ", id.first, ", call ", id.second, ": survivors blame ",
           absl::StrJoin(suspects[id.first], ","));
    }
    if (!Reduces(call.request.collective) || call.request.elements == 0) continue;
    if (ok > 0 && ok < members) {
      Fail("group ", id.first, ", call ", id.second, ": ", ok, " of ", members,
           " survivors have the new values");
    }
  }
}

// Whom a single long fault must cost its place, and nobody else.
std::set<int> Simulation::LostBySingleFault() const {
  const Fault& fault = scenario_.faults.front();
  if (!fault.is_long()) return {};
  const bool pair = fault.kind == Fault::Kind::kCutPair || fault.kind == Fault::Kind::kCutOneWay;
  return {pair ? std::max(fault.rank, fault.other) : fault.rank};
}

void Simulation::CheckSingleFault(const std::vector<int>& survivors) {
  if (scenario_.faults.size() != 1 || scenario_.size < 3) return;
  const std::set<int> expected = LostBySingleFault();
  const bool kill = scenario_.faults.front().kind == Fault::Kind::kKill;
  std::set<int> lost;
  for (const int rank : survivors) {
    for (const auto& [other, at_ns] : worker(rank).noticed_ns) {
      lost.insert(other);
      int64_t& longest = kill ? report_.notice_kill_ns : report_.notice_silence_ns;
      longest = std::max(longest, at_ns - fault_ns_);
    }
  }
  if (lost != expected || survivors.size() + expected.size() != Index(scenario_.size)) {
    Fail("lost are ", absl::StrJoin(lost, ","), "; it should be ", absl::StrJoin(expected, ","));
  }
  if (report_.notice_kill_ns > kNoticeKillNs || report_.notice_silence_ns > kNoticeSilenceNs) {
    Fail("the loss was noticed after ",
         std::max(report_.notice_kill_ns, report_.notice_silence_ns) / kMs, " ms");
  }
}

void Simulation::WorkOnce(const std::vector<int>& survivors) {
  if (survivors.size() < 2) return;
  const GroupPlan& plan = PlanOf(kLastGroup, survivors, 4);
  for (const int rank : survivors) {
    Join(worker(rank), plan);
    Wake(rank);
  }
  const auto working = [&] {
    return !std::all_of(survivors.begin(), survivors.end(),
                        [&](int rank) { return IsIdle(worker(rank)); });
  };
  if (!RunWhile(working, time_.now_ns() + 20 * kSecond)) Fail("the last group does not end");
  for (size_t call = 0; call < plan.calls.size(); ++call) {
    for (const int rank : survivors) {
      if (!outcomes_[{kLastGroup, static_cast<int>(call)}][rank].ok) {
        Fail("the survivors cannot work together: call ", call, " failed at worker ", rank);
      }
    }
  }
}

}  // namespace syncopate::simulation
