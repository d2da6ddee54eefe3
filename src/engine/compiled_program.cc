#include "engine/compiled_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/program_steps.h"

namespace syncopate::engine {
namespace {

using Share = CompiledProgram::Share;
using StepPlan = CompiledProgram::StepPlan;

bool IsReceive(const Step& step) {
  return step.kind == StepKind::kReceive || step.kind == StepKind::kReceiveReduce;
}

bool After(const Step& step, uint32_t only) {
  return step.after.size() == 1 && step.after[0] == only;
}

// The order in which worker `self` folds everyone's scratch, if its steps have the shape of a
// one-shot: copy to scratch, send scratch to all, then fold into data in one chain.
std::optional<std::vector<int>> OneShotOrder(const Program& program, int self) {
  const std::vector<Step>& steps = program.steps[static_cast<size_t>(self)];
  const size_t workers = program.steps.size();
  if (program.chunks(Space::kData) != 1 || program.chunks(Space::kScratch) != 1 || steps.empty()) {
    return std::nullopt;
  }
  const Step& copy = steps[0];
  if (copy.kind != StepKind::kCopy || copy.space != Space::kScratch ||
      copy.source_space != Space::kData || !copy.after.empty()) {
    return std::nullopt;
  }
  std::vector<bool> sent(workers, false);
  std::vector<int> order;
  uint32_t last = 0;  // the latest step of the chain; the copy is its start
  for (uint32_t i = 1; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.kind == StepKind::kSend) {
      if (step.space != Space::kScratch || !After(step, 0)) return std::nullopt;
      sent[static_cast<size_t>(step.peer)] = true;
      continue;
    }
    if (step.space != Space::kData || !After(step, last)) return std::nullopt;
    if (order.empty() && step.kind == StepKind::kReceiveReduce) order.push_back(self);
    const bool first = order.empty();
    if (step.kind == StepKind::kReduce && !first && step.source_space == Space::kScratch) {
      order.push_back(self);
    } else if (step.kind == (first ? StepKind::kReceive : StepKind::kReceiveReduce)) {
      order.push_back(step.peer);
    } else {
      return std::nullopt;
    }
    last = i;
  }
  sent[static_cast<size_t>(self)] = true;
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t w = 0; w < workers; ++w) {
    if (!sent[w] || sorted.size() != workers || sorted[w] != static_cast<int>(w))
      return std::nullopt;
  }
  return order;
}

std::optional<std::vector<int>> FindOneShot(const Program& program) {
  std::optional<std::vector<int>> common = OneShotOrder(program, 0);
  for (size_t w = 1; common && w < program.steps.size(); ++w) {
    if (OneShotOrder(program, static_cast<int>(w)) != common) return std::nullopt;
  }
  return common;
}

// The share of worker `self`, if its steps have the shape of an exchange: hand every other worker
// its share to fold, fold the own one in a chain, hand the result to all, take the others' results
// where their shares were read.
std::optional<Share> ShareOf(const Program& program, const StepTable& table, int self) {
  const std::vector<Step>& steps = program.steps[static_cast<size_t>(self)];
  const size_t workers = program.steps.size();
  std::vector<uint32_t> chain, results, takes;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.space != Space::kData) return std::nullopt;
    switch (step.kind) {
      case StepKind::kSend:
        if (!step.after.empty()) results.push_back(i);
        break;
      case StepKind::kReceiveReduce:
        chain.push_back(i);
        break;
      case StepKind::kReceive:
        takes.push_back(i);
        break;
      default:
        return std::nullopt;
    }
  }
  if (chain.size() != workers - 1 || results.size() != workers - 1 || takes.size() != workers - 1 ||
      steps.size() != 4 * (workers - 1)) {
    return std::nullopt;
  }
  const Step& own = steps[chain[0]];
  Share share = {.begin = program.begin(Space::kData, own.chunk),
                 .end = program.begin(Space::kData, own.chunk + own.count),
                 .order = {self}};
  auto is_own = [&](const Step& step) {
    return step.chunk == own.chunk && step.count == own.count;
  };
  for (size_t c = 0; c < chain.size(); ++c) {
    const Step& step = steps[chain[c]];
    const Step& there = table[table.partner(table.begin(self) + chain[c])];
    if (!is_own(step) || !is_own(there) || !there.after.empty() ||
        (c == 0 ? !step.after.empty() : !After(step, chain[c - 1]))) {
      return std::nullopt;
    }
    share.order.push_back(step.peer);
  }
  for (uint32_t i : results) {
    if (!is_own(steps[i]) || !After(steps[i], chain.back())) return std::nullopt;
  }
  for (uint32_t i : takes) {
    // What is taken is the result of a chain there, and it overwrites only what that chain has
    // read.
    const Step& take = steps[i];
    const Step& there = table[table.partner(table.begin(self) + i)];
    if (there.after.empty() || take.after.size() != 1) return std::nullopt;
    const Step& handed = steps[take.after[0]];
    if (handed.kind != StepKind::kSend || !handed.after.empty() || handed.peer != take.peer ||
        handed.chunk != take.chunk || handed.count != take.count || there.chunk != take.chunk ||
        there.count != take.count) {
      return std::nullopt;
    }
  }
  std::vector<int> sorted = share.order;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return std::nullopt;
  return share;
}

std::optional<std::vector<Share>> FindExchange(const Program& program, const StepTable& table) {
  std::vector<Share> shares;
  for (size_t w = 0; w < program.steps.size(); ++w) {
    std::optional<Share> share = ShareOf(program, table, static_cast<int>(w));
    if (!share) return std::nullopt;
    shares.push_back(*std::move(share));
  }
  // Together they are all of the data, each element once.
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const Share& share : shares) {
    if (share.begin < share.end) ranges.emplace_back(share.begin, share.end);
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != covered) return std::nullopt;
    covered = end;
  }
  if (covered != program.elements()) return std::nullopt;
  return shares;
}

std::vector<StepPlan> PlanSteps(const Program& program, const StepTable& table, int self) {
  const std::vector<Step>& steps = program.steps[static_cast<size_t>(self)];
  std::vector<StepPlan> plan(steps.size());
  for (uint32_t i = 0; i < steps.size(); ++i) {
    plan[i].step = steps[i];
    for (uint32_t before : steps[i].after) plan[before].dependents.push_back(i);
    const StepTable::Id id = table.begin(self) + i;
    if (table.partner(id) == StepTable::kNone) continue;
    plan[i].match = static_cast<uint32_t>(table.index(table.partner(id)));
    if (!IsReceive(steps[i])) continue;
    const auto [space, chunk] = table.Source(id);
    plan[i].their_space = space;
    plan[i].their_begin = program.begin(space, chunk);
  }
  return plan;
}

bool IsActive(const Program& program, int worker) {
  return std::binary_search(program.active.begin(), program.active.end(), worker);
}

// An inactive worker may have no data at all: a step on it would go to no memory.
absl::Status CheckLeavesDataAlone(const Program& program, int self) {
  const std::vector<Step>& steps = program.steps[static_cast<size_t>(self)];
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const bool has_source = step.kind == StepKind::kCopy || step.kind == StepKind::kReduce;
    if (program.size(step) == 0 ||
        (step.space != Space::kData && (!has_source || step.source_space != Space::kData))) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("worker ", self, ", step ", i,
                                                   " uses data, but the worker is not active; a ",
                                                   "relay may use its scratch only"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const CompiledProgram>> CompileProgram(Program program, int self) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(program));
  if (self < 0 || self >= program.workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", self, " is not in a program of ", program.workers));
  }
  const bool active = IsActive(program, self);
  if (!active) SYNCOPATE_RETURN_IF_ERROR(CheckLeavesDataAlone(program, self));
  SYNCOPATE_ASSIGN_OR_RETURN(const StepTable table, StepTable::Make(program));
  auto compiled = std::make_shared<CompiledProgram>();
  compiled->self = self;
  compiled->active = active;
  compiled->digest = DigestOf(program).low;
  const bool all_active = static_cast<int>(program.active.size()) == program.workers;
  if (program.elements() == 0 || program.workers == 1) {
    compiled->shape = CompiledProgram::Shape::kEmpty;
  } else if (program.collective == Collective::kAllReduce && all_active) {
    if (std::optional<std::vector<int>> order = FindOneShot(program)) {
      compiled->shape = CompiledProgram::Shape::kOneShot;
      compiled->order = *std::move(order);
    } else if (std::optional<std::vector<Share>> shares = FindExchange(program, table)) {
      compiled->shape = CompiledProgram::Shape::kExchange;
      compiled->shares = *std::move(shares);
    }
  }
  compiled->plan = PlanSteps(program, table, self);
  compiled->incoming.resize(static_cast<size_t>(program.workers));
  for (const StepPlan& plan : compiled->plan) {
    if (!IsReceive(plan.step)) continue;
    compiled->incoming[static_cast<size_t>(plan.step.peer)] += program.size(plan.step);
  }
  compiled->program = std::move(program);
  compiled->program.steps = {};
  return compiled;
}

}  // namespace syncopate::engine
