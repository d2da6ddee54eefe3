#include "probe/experiment.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"
#include "base/parse.h"
#include "base/status.h"
#include "probe/experiment_layout.h"

namespace syncopate::probe {
namespace {

// How long a worker that gave up waits for the others to agree.
constexpr int64_t kBreakNs = 2'000'000'000;
// Receivers answer this long after the end, so that most pieces that were in flight then count.
constexpr int64_t kGraceNs = 30'000'000;

}  // namespace

Experiment::Experiment(ExperimentContext& context, std::unique_ptr<transport::Session> session,
                       uint64_t sequence, const Instruction* instruction)
    : context_(context),
      session_(std::move(session)),
      base_(sequence % kUnderWayMax * kExperimentBytes),
      outbox_(context.memory),
      deadline_ns_(context.clock.NowNs() + context.options.patience_ns),
      pings_(context.clock, FirstStep(context.transport.size()), base_ + kSmallOffset) {
  if (instruction != nullptr) instruction_ = *instruction;
}

bool Experiment::Poll() {
  if (phase_ == Phase::kDone) return false;
  const int64_t now_ns = context_.clock.NowNs();
  if (phase_ == Phase::kBreaking) return PollBreaking(now_ns);
  // A worker that has passed the last gate may leave before the others have seen the gate pass, so
  // its loss does not count any more.
  if (phase_ == Phase::kFinishing &&
      session_->State(transport::Gate::kFinish) == transport::GateState::kPassed) {
    return PollGate(transport::Gate::kFinish, Phase::kDone);
  }
  if (context_.transport.losses() > 0) return Fail(LossStatus());
  if (now_ns > deadline_ns_) return Fail(Overdue());
  if (session_->Held()) return false;
  switch (phase_) {
    case Phase::kStarting:
      return PollGate(transport::Gate::kStart, Phase::kInstruction);
    case Phase::kInstruction:
      return PollInstruction(now_ns);
    case Phase::kRunning:
      return PollRunning(now_ns);
    case Phase::kAnswer: {
      const bool moved = flows_.Poll(*session_, now_ns);
      return PollAnswer() || moved;
    }
    case Phase::kFinishing: {
      const bool moved = flows_.Poll(*session_, now_ns);
      return (flows_.done() && PollGate(transport::Gate::kFinish, Phase::kDone)) || moved;
    }
    default:
      return false;
  }
}

int64_t Experiment::NextWakeNs() const {
  if (phase_ != Phase::kRunning) return deadline_ns_;
  return std::min(flows_.time_is_up() ? end_ns_ + kGraceNs : end_ns_, deadline_ns_);
}

bool Experiment::PollGate(transport::Gate gate, Phase next) {
  if (gate == transport::Gate::kFinish && !outbox_.AllConsumed(*session_)) return false;
  if (!entered_) entered_ = session_->Enter(gate, rank());
  const transport::GateState state = session_->State(gate);
  if (state == transport::GateState::kOpen) return false;
  if (state == transport::GateState::kBroken) return Fail(BrokenStatus());
  entered_ = false;
  phase_ = next;
  if (next == Phase::kDone) session_.reset();
  return true;
}

bool Experiment::PollInstruction(int64_t now_ns) {
  if (rank() == 0) {
    SendInstruction();
  } else {
    absl::StatusOr<bool> complete = ReceiveInstruction();
    if (!complete.ok()) return Fail(complete.status());
    if (!*complete) return false;
  }
  const int64_t length_ns = static_cast<int64_t>(instruction_.seconds * 1e9);
  end_ns_ = now_ns + length_ns;
  deadline_ns_ = end_ns_ + context_.options.patience_ns;
  if (instruction_.kind == Instruction::Kind::kFlows) {
    const FlowMemory memory = {.base = context_.memory,
                               .pieces_offset = kPiecesOffset,
                               .small_offset = base_ + kSmallOffset};
    flows_ = ExperimentFlows(instruction_, rank(), size(), memory, now_ns, end_ns_);
  }
  if (!flows_.empty()) processor_time_ = ProcessorTimeNow();
  phase_ = Phase::kRunning;
  return true;
}

void Experiment::SendInstruction() {
  const std::string head = EncodeHead(instruction_), flows = EncodeFlows(instruction_);
  std::memcpy(context_.memory + base_ + kHeadOffset, head.data(), head.size());
  std::memcpy(context_.memory + base_ + kFlowsOffset, flows.data(), flows.size());
  for (int other = 1; other < size(); ++other) {
    outbox_.Offer(*session_, static_cast<uint32_t>(other), other, kHeadStep, base_ + kHeadOffset,
                  head.size());
    if (flows.empty()) continue;
    outbox_.Offer(*session_, static_cast<uint32_t>(2 * size() + other), other, kFlowsStep,
                  base_ + kFlowsOffset, flows.size());
  }
}

absl::StatusOr<bool> Experiment::ReceiveInstruction() {
  const auto arrived = [&](uint32_t their_step, uint64_t offset, uint64_t bytes) {
    const std::byte* place = session_->Arrived(0, their_step, {Space::kData, offset, bytes});
    return absl::string_view(reinterpret_cast<const char*>(place), place == nullptr ? 0 : bytes);
  };
  const uint32_t self = static_cast<uint32_t>(rank());
  if (!has_head_) {
    const absl::string_view head = arrived(self, base_ + kHeadOffset, kHeadBytes);
    if (head.empty()) return false;
    absl::StatusOr<Instruction> instruction = DecodeHead(head);
    session_->Consume(kHeadStep, 0, self);
    SYNCOPATE_RETURN_IF_ERROR(instruction.status());
    instruction_ = *std::move(instruction);
    has_head_ = true;
  }
  if (instruction_.flows.empty()) return true;
  const uint32_t their_step = static_cast<uint32_t>(2 * size()) + self;
  const absl::string_view flows =
      arrived(their_step, base_ + kFlowsOffset, kFlowBytes * instruction_.flows.size());
  if (flows.empty()) return false;
  const absl::Status decoded = DecodeFlows(flows, static_cast<uint32_t>(size()), instruction_);
  session_->Consume(kFlowsStep, 0, their_step);
  SYNCOPATE_RETURN_IF_ERROR(decoded);
  return true;
}

bool Experiment::PollRunning(int64_t now_ns) {
  bool moved = false;
  if (instruction_.kind == Instruction::Kind::kFlows) {
    moved = flows_.Poll(*session_, now_ns);
    if (!flows_.done() && now_ns < end_ns_ + kGraceNs) return moved;
  } else if (instruction_.kind == Instruction::Kind::kPing) {
    if (!pings_.Poll(*session_, outbox_, instruction_, rank(), now_ns, moved)) return moved;
  }
  MakeAnswer();
  phase_ = Phase::kAnswer;
  return true;
}

std::optional<ProcessorTime> Experiment::ProcessorTimeNow() const {
  if (!context_.options.processor_time) return std::nullopt;
  const absl::StatusOr<ProcessorTime> time = context_.options.processor_time();
  return time.ok() ? std::optional<ProcessorTime>(*time) : std::nullopt;
}

FlowsAnswer Experiment::WhatWasSeen() const {
  FlowsAnswer answer;
  if (processor_time_) {
    const std::optional<ProcessorTime> now = ProcessorTimeNow();
    if (now) answer.stolen = StolenShare(*processor_time_, *now);
  }
  answer.flows = flows_.Seen();
  return answer;
}

void Experiment::MakeAnswer() {
  std::string answer;
  switch (instruction_.kind) {
    case Instruction::Kind::kName:
      answer = absl::StrCat(DigestOf(context_.options.machine).ToString(),
                            context_.options.host.substr(0, kNameBytes - 33));
      break;
    case Instruction::Kind::kPing: {
      const double latency = pings_.latency_seconds();
      answer.assign(reinterpret_cast<const char*>(&latency), sizeof(latency));
      break;
    }
    default:
      answer = EncodeAnswer(WhatWasSeen());
  }
  answer.resize(AnswerBytes(instruction_, static_cast<uint32_t>(rank())));
  std::memcpy(context_.memory + base_ + kAnswerOffset, answer.data(), answer.size());
  if (rank() == 0) {
    answers_.assign(static_cast<size_t>(size()), "");
    answers_[0] = std::move(answer);
  } else {
    outbox_.Offer(*session_, kAnswerStep, 0, static_cast<uint32_t>(size() + rank()),
                  base_ + kAnswerOffset, answer.size());
  }
}

bool Experiment::PollAnswer() {
  bool all = true, moved = false;
  for (int other = 1; other < size() && rank() == 0; ++other) {
    std::string& answer = answers_[static_cast<size_t>(other)];
    if (!answer.empty()) continue;
    const uint64_t bytes = AnswerBytes(instruction_, static_cast<uint32_t>(other));
    const std::byte* arrived =
        session_->Arrived(other, kAnswerStep, {Space::kData, base_ + kAnswerOffset, bytes});
    if (arrived == nullptr) {
      all = false;
      continue;
    }
    answer.assign(reinterpret_cast<const char*>(arrived), bytes);
    session_->Consume(static_cast<uint32_t>(size() + other), other, kAnswerStep);
    moved = true;
  }
  if (all) phase_ = Phase::kFinishing;
  return moved || all;
}

bool Experiment::Fail(absl::Status status) {
  if (phase_ == Phase::kFinishing && instruction_.kind == Instruction::Kind::kEnd)
    context_.ending = true;
  // Once all know that the probe is over, nobody needs anybody any more.
  if (!context_.ending) status_ = std::move(status);
  const bool starting = phase_ == Phase::kStarting;
  if (starting) session_->Break(transport::Gate::kStart, transport::BreakReason::kTime);
  session_->Break(transport::Gate::kFinish, transport::BreakReason::kTime);
  phase_ = Phase::kBreaking;
  deadline_ns_ = context_.clock.NowNs() + kBreakNs;
  return true;
}

bool Experiment::PollBreaking(int64_t now_ns) {
  if (session_->State(transport::Gate::kFinish) == transport::GateState::kOpen &&
      session_->State(transport::Gate::kStart) != transport::GateState::kBroken &&
      now_ns < deadline_ns_) {
    return false;
  }
  session_.reset();
  phase_ = Phase::kDone;
  return true;
}

absl::Status Experiment::LossStatus() const {
  const std::vector<transport::Loss> lost = context_.transport.Lost();
  if (lost.empty()) return absl::UnavailableError("a worker was lost during the probe");
  return WithBlast(
      absl::UnavailableError(absl::StrCat("worker ", lost.front().rank,
                                          " was lost during the probe: ", lost.front().cause)),
      BlastRadius::kGroup, lost.front().rank);
}

absl::Status Experiment::BrokenStatus() const {
  if (context_.transport.losses() > 0) return LossStatus();
  return absl::UnavailableError("another worker gave the probe up; its own message says why");
}

absl::Status Experiment::Overdue() {
  std::set<int> missing;
  for (int other = 0; other < size(); ++other) {
    const bool starting = phase_ == Phase::kStarting;
    if ((starting || (phase_ == Phase::kFinishing && flows_.done())) &&
        !session_->Entered(starting ? transport::Gate::kStart : transport::Gate::kFinish, other)) {
      missing.insert(other);
    }
    if (phase_ == Phase::kAnswer && rank() == 0 && answers_[static_cast<size_t>(other)].empty()) {
      missing.insert(other);
    }
  }
  if (phase_ == Phase::kInstruction) missing.insert(0);
  flows_.AddUnfinished(missing);
  const std::vector<int> ranks(missing.begin(), missing.end());
  return absl::DeadlineExceededError(
      absl::StrCat("the probe waited in vain for ",
                   ranks.empty() ? "others" : absl::StrCat("workers ", FormatRanks(ranks)),
                   "; they may be stopped, or their network cut"));
}

}  // namespace syncopate::probe
