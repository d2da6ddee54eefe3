// What the workers of a simulated job do: they make calls, take their results, check them, and make
// new groups after a failure.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simulation/simulation_run.h"
#include "syncopate/status.h"

namespace syncopate::simulation {
namespace {

using engine::OperationSpec;
using transport::Loss;

// A call whose deadline has passed, or one of whose members is lost, ends once the members are asked,
// and a lost arbiter is replaced up to once for every fault.
constexpr int64_t kGraceNs = 6 * kSecond;

void Store(DataType type, std::byte* data, uint64_t element, double value) {
  const auto put = [&](auto typed) {
    std::memcpy(data + element * sizeof(typed), &typed, sizeof(typed));
  };
  switch (type) {
    case DataType::kFloat32:
      return put(static_cast<float>(value));
    case DataType::kFloat64:
      return put(value);
    case DataType::kInt32:
      return put(static_cast<int32_t>(value));
    default:
      return put(static_cast<int64_t>(value));
  }
}

double Load(DataType type, const std::byte* data, uint64_t element) {
  const auto get = [&](auto typed) {
    std::memcpy(&typed, data + element * sizeof(typed), sizeof(typed));
    return static_cast<double>(typed);
  };
  switch (type) {
    case DataType::kFloat32:
      return get(float{});
    case DataType::kFloat64:
      return get(double{});
    case DataType::kInt32:
      return get(int32_t{});
    default:
      return get(int64_t{});
  }
}

}  // namespace

bool Simulation::StartCall(Worker& worker) {
  if (worker.out || time_.now_ns() < worker.busy_until_ns || worker.groups.empty()) return false;
  const size_t first = worker.random.Below(worker.groups.size());
  for (size_t i = 0; i < worker.groups.size(); ++i) {
    GroupRun& run = *worker.groups[(first + i) % worker.groups.size()];
    if (run.failed || run.next == run.plan->calls.size() ||
        run.under_way.size() >= Index(scenario_.window)) {
      continue;
    }
    // A worker for which any call has failed does not make the last one, so that it fails for all.
    if (run.next + 1 == run.plan->calls.size() && !run.under_way.empty()) continue;
    StartCall(worker, run);
    worker.busy_until_ns = time_.now_ns() + worker.random.Between(0, scenario_.pause_ns);
    return true;
  }
  return false;
}

void Simulation::StartCall(Worker& worker, GroupRun& run) {
  const CallPlan& plan = run.plan->calls[run.next];
  Call call;
  call.index = static_cast<int>(run.next++);
  memories_.push_back(std::make_unique<Memory>(plan.request.elements * SizeOf(plan.type)));
  call.memory = memories_.back().get();
  for (uint64_t e = 0; e < plan.request.elements; ++e) {
    Store(plan.type, call.memory->bytes.get(), e,
          static_cast<double>(Initial(worker.rank, e, run.plan->key + Index(call.index))));
  }
  call.start_ns = time_.now_ns();
  call.deadline_ns = worker.clock.NowNs() + plan.timeout_ns;
  int64_t& time_up_ns =
      time_up_ns_.try_emplace(run.plan->key, time_.now_ns() + plan.timeout_ns).first->second;
  time_up_ns = std::min(time_up_ns, time_.now_ns() + plan.timeout_ns);
  OperationSpec spec;
  spec.group = run.group;
  spec.program = *engine::CompileProgram(plan.program, run.member);
  spec.data = call.memory->bytes.get();
  spec.type = plan.type;
  spec.op = plan.op;
  spec.weight = plan.weights[Index(run.member)];
  spec.priority = plan.priority;
  spec.deadline_ns = call.deadline_ns;
  Note("start ", worker.rank, " group ", run.plan->key, " call ", call.index, " ",
       Name(plan.request.collective), " ", plan.program.algorithm, " of ", plan.request.elements);
  call.operation = worker.engine->Start(std::move(spec));
  run.under_way.push_back(std::move(call));
}

bool Simulation::CollectCalls(Worker& worker) {
  bool any = false;
  for (size_t i = 0; i < worker.groups.size(); ++i) {  // a call that failed may add a group
    GroupRun& run = *worker.groups[i];
    for (size_t c = 0; c < run.under_way.size();) {
      if (!run.under_way[c].operation->done()) {
        ++c;
        continue;
      }
      Call call = std::move(run.under_way[c]);
      run.under_way.erase(run.under_way.begin() + static_cast<ptrdiff_t>(c));
      FinishCall(worker, run, call);
      any = true;
    }
    if (run.ended()) run.group.reset();
  }
  return any;
}

void Simulation::FinishCall(Worker& worker, GroupRun& run, Call& call) {
  const absl::Status status = call.operation->status();
  const BlastRadius blast = GetBlast(status).value_or(BlastRadius::kOperation);
  const int suspect = GetSuspect(status).value_or(-1);
  const std::string what =
      absl::StrCat("worker ", worker.rank, ", group ", run.plan->key, " (",
                   absl::StrJoin(run.plan->members, ","), "), call ", call.index);
  Note("done ", worker.rank, " group ", run.plan->key, " call ", call.index, " ",
       status.ok() ? "ok" : std::string(status.message()));
  ++(status.ok() ? report_.calls_new : report_.calls_old);
  CheckData(worker, run, call, status.ok());
  call.operation.reset();
  call.memory->digest = DigestOf(call.memory->bytes.get(), call.memory->size);
  // A worker that was stopped finds only when it wakes that time is up.
  const int64_t late_ns = worker.clock.NowNs() - call.deadline_ns - worker.slept_ns;
  const auto faults = static_cast<int64_t>(scenario_.faults.size());
  int64_t stopped_ns = 0;
  for (const Fault& fault : scenario_.faults) {
    if (fault.kind == Fault::Kind::kStop) stopped_ns += std::max<int64_t>(fault.duration_ns, 0);
  }
  const int64_t grace_ns = kGraceNs * (1 + faults) + stopped_ns;
  if (worker.stops == 0 && late_ns > grace_ns && !worker.out) {
    Fail(what, " ended ", late_ns / kMs, " ms after its deadline");
  }
  outcomes_[{run.plan->key, call.index}][worker.rank] = {.ok = status.ok(), .suspect = suspect};
  if (status.ok()) return;
  const std::vector<Loss> lost = worker.transport->Lost();
  const auto is_lost = [&](int rank) {
    return std::any_of(lost.begin(), lost.end(),
                       [&](const Loss& loss) { return loss.rank == rank; });
  };
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      if (!is_lost(suspect)) {
        Fail(what, " blames one that is not lost: ", status.message());
      } else if (const int64_t waited_ns =
                     time_.now_ns() - std::max(call.start_ns, worker.noticed_ns.at(suspect));
                 waited_ns - worker.slept_ns > grace_ns) {
        Fail(what, " ended ", waited_ns / kMs, " ms after the loss was known");
      }
      break;
    case absl::StatusCode::kAborted:
      if (!is_lost(worker.rank)) Fail(what, " is not out: ", status.message());
      worker.out = true;
      break;
    case absl::StatusCode::kDeadlineExceeded:
      ++report_.calls_late;
      if (!scenario_.hasty) {
        Fail(what, " hung until its deadline: ", status.message());
      } else if (time_.now_ns() < time_up_ns_.at(run.plan->key)) {
        Fail(what, " blames a worker before time was up for anybody: ", status.message());
      }
      break;
    default:
      Fail(what, ": ", status.ToString());
  }
  if (blast == BlastRadius::kJob) worker.out = true;
  if (blast == BlastRadius::kGroup && !std::exchange(run.failed, true)) {
    Regroup(worker, run, suspect);
  }
}

void Simulation::CheckData(const Worker& worker, const GroupRun& run, const Call& call, bool ok) {
  const CallPlan& plan = run.plan->calls[Index(call.index)];
  if (!ok && !Reduces(plan.request.collective)) return;  // unspecified
  std::vector<std::vector<double>> initial;
  for (const int rank : run.plan->members) {
    initial.emplace_back();
    for (uint64_t e = 0; e < plan.request.elements; ++e) {
      initial.back().push_back(
          static_cast<double>(Initial(rank, e, run.plan->key + Index(call.index))));
    }
  }
  const std::vector<double> expected =
      ok ? Expected(plan, run.member, initial) : initial[Index(run.member)];
  for (uint64_t e = 0; e < plan.request.elements; ++e) {
    if (std::isnan(expected[e])) continue;
    const double value = Load(plan.type, call.memory->bytes.get(), e);
    const double slack =
        ok && plan.op == ReduceOp::kWeightedAverage ? 1e-9 * (1 + std::abs(expected[e])) : 0;
    if (std::abs(value - expected[e]) <= slack) continue;
    Fail("worker ", worker.rank, ", group ", run.plan->key, " (",
         absl::StrJoin(run.plan->members, ","), "), call ", call.index, " (",
         Name(plan.request.collective), ", ", plan.program.algorithm, ", ", plan.request.elements,
         " elements): element ", e, " is ", value, ", not the ", ok ? "new " : "old ", expected[e]);
    return;
  }
}

// As user code does: a new group without the worker to blame.
void Simulation::Regroup(Worker& worker, const GroupRun& run, int suspect) {
  if (suspect < 0 || suspect == worker.rank || worker.out) return;
  std::vector<int> members = run.plan->members;
  std::erase(members, suspect);
  if (members.size() == run.plan->members.size()) return;
  uint64_t key = Mix(run.plan->key, Index(suspect) + 1);
  // Half of the jobs make no group with a worker that they know to be lost: then a worker that knew less
  // may be alone in it.
  if (scenario_.seed % 2 == 0) {
    for (const Loss& loss : worker.transport->Lost()) {
      if (std::erase(members, loss.rank) > 0) key = Mix(key, Index(loss.rank) + 1);
    }
  }
  if (members.size() < 2) return;
  ++report_.regroups;
  Join(worker, PlanOf(key, members, 1 + key % 4));
}

void Simulation::NoteLosses(Worker& worker) {
  if (worker.transport->losses() == worker.noticed_ns.size()) return;
  for (const Loss& loss : worker.transport->Lost()) {
    if (!worker.noticed_ns.emplace(loss.rank, time_.now_ns()).second) continue;
    trouble_ns_ = time_.now_ns();
    Note("lost ", worker.rank, " knows ", loss.rank, ": ", loss.cause);
    if (loss.rank == worker.rank) worker.out = true;
  }
}

bool Simulation::IsIdle(const Worker& worker) const {
  if (worker.dead || worker.stops > 0) return true;
  return worker.begun &&
         std::all_of(worker.groups.begin(), worker.groups.end(), [&](const auto& run) {
           return run->ended() || (worker.out && run->under_way.empty());
         });
}

}  // namespace syncopate::simulation
