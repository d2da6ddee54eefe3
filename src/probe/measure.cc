#include "probe/measure.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/status.h"
#include "probe/flow_ends.h"

namespace syncopate::probe {
namespace {

constexpr uint32_t kStepsMax = 1 << 16;  // of one session
// Of all experiments: it stands for the protocol, and changes with it.
constexpr uint64_t kDigest = 0x70726f62653032;
constexpr int64_t kBreakNs = 2'000'000'000;
// The beginning of a flow does not count: TCP has not found its rate yet.
constexpr double kRampPart = 0.35;
// About how long a piece is on its way.
constexpr double kPieceSeconds = 0.0025;
constexpr uint32_t kPieceBytesFirst = 8 << 10;
constexpr uint32_t kPings = 16;
// Receivers answer so long after the end: pieces that were on their way then have come, mostly.
constexpr int64_t kGraceNs = 30'000'000;

// Where things lie in every worker's memory: first what an experiment needs for itself, for each of
// those that can be under way, then the pieces that all flows send.
constexpr size_t kUnderWayMax = 4;
constexpr uint64_t kHeadOffset = 0;
constexpr uint64_t kFlowsOffset = 64;
constexpr uint64_t kAnswerOffset = kFlowsOffset + kFlowBytes * kFlowsMax;
constexpr uint64_t kSmallOffset = kAnswerOffset + kAnswerHeadBytes + kAnswerFlowBytes * kFlowsMax;
constexpr uint64_t kExperimentBytes = kSmallOffset + 8 * uint64_t{kStepsMax};
constexpr uint64_t kPiecesOffset = kUnderWayMax * kExperimentBytes;
constexpr uint64_t kMemoryBytes = kPiecesOffset + kPieceBytesMax;

// Steps. Rank 0 uses RANK for a head, SIZE + RANK for taking an answer and 2 * SIZE + RANK for a
// list of flows; the others use these. Those of flows and pings come after all of them.
constexpr uint32_t kHeadStep = 0, kAnswerStep = 1, kFlowsStep = 2;
constexpr uint32_t FirstStep(int size) { return 3 * static_cast<uint32_t>(size) + 3; }

// The place of each flow among those of a worker.
uint32_t SlotOf(const Instruction& instruction, size_t flow, uint32_t rank) {
  uint32_t slot = 0;
  for (size_t i = 0; i < flow; ++i) {
    slot += instruction.flows[i].from == rank || instruction.flows[i].to == rank ? 1 : 0;
  }
  return slot;
}

void LogRates(absl::Span<const Oracle::Flow> flows, const std::vector<double>& rates) {
  if (!LogEnabled(LogLevel::kTrace)) return;
  std::string line = "flows at once, MB/s:";
  for (size_t i = 0; i < flows.size(); ++i) {
    absl::StrAppendFormat(&line, " %d>%d %.2f", flows[i].from, flows[i].to, rates[i] * 1e-6);
  }
  LogLine(LogLevel::kTrace, line);
}

// How many flows of the instruction come to a worker.
uint64_t Received(const Instruction& instruction, uint32_t rank) {
  uint64_t received = 0;
  for (const Instruction::Flow& flow : instruction.flows) received += flow.to == rank ? 1 : 0;
  return received;
}

uint64_t AnswerBytes(const Instruction& instruction, uint32_t rank) {
  if (instruction.kind == Instruction::Kind::kName) return kNameBytes;
  return kAnswerHeadBytes + kAnswerFlowBytes * Received(instruction, rank);
}

}  // namespace

class Member::Experiment {
 public:
  Experiment(Member& member, std::unique_ptr<transport::Session> session, uint64_t sequence,
             const Instruction* instruction)
      : member_(member),
        session_(std::move(session)),
        base_(sequence % kUnderWayMax * kExperimentBytes),
        deadline_ns_(member.clock_.NowNs() + member.options_.patience_ns) {
    if (instruction != nullptr) instruction_ = *instruction;
  }

  bool Poll() {
    if (phase_ == Phase::kDone) return false;
    const int64_t now_ns = member_.clock_.NowNs();
    if (phase_ == Phase::kBreaking) return PollBreaking(now_ns);
    // Who has passed the last gate goes, maybe before others have seen it pass.
    if (phase_ == Phase::kFinishing &&
        session_->State(transport::Gate::kFinish) == transport::GateState::kPassed) {
      return PollGate(transport::Gate::kFinish, Phase::kDone);
    }
    if (member_.transport_.losses() > 0) return Fail(LossStatus());
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
        const bool moved = PollFlows(now_ns);
        return PollAnswer() || moved;
      }
      case Phase::kFinishing: {
        const bool moved = PollFlows(now_ns);
        return (flows_done_ && PollGate(transport::Gate::kFinish, Phase::kDone)) || moved;
      }
      default:
        return false;
    }
  }

  // All answers are there, or this worker's is on its way; flows may still be draining.
  bool answered() const { return phase_ == Phase::kFinishing || done(); }
  bool done() const { return phase_ == Phase::kDone; }
  const absl::Status& status() const { return status_; }
  const Instruction& instruction() const { return instruction_; }
  const std::vector<std::string>& answers() const { return answers_; }
  int64_t NextWakeNs() const {
    if (phase_ != Phase::kRunning) return deadline_ns_;
    return std::min(time_is_up_ ? end_ns_ + kGraceNs : end_ns_, deadline_ns_);
  }

 private:
  enum class Phase { kStarting, kInstruction, kRunning, kAnswer, kFinishing, kBreaking, kDone };

  int rank() const { return member_.rank(); }
  int size() const { return member_.size(); }
  uint32_t first_step() const { return FirstStep(size()); }

  bool PollGate(transport::Gate gate, Phase next) {
    if (gate == transport::Gate::kFinish && !AllConsumed()) return false;
    if (!entered_) entered_ = session_->Enter(gate, rank());
    const transport::GateState state = session_->State(gate);
    if (state == transport::GateState::kOpen) return false;
    if (state == transport::GateState::kBroken) return Fail(BrokenStatus());
    entered_ = false;
    phase_ = next;
    if (next == Phase::kDone) session_.reset();
    return true;
  }

  void Offer(uint32_t step, int to, uint32_t their_step, uint64_t offset, uint64_t bytes) {
    session_->Offer(step, to, member_.memory_ + offset, {Space::kData, offset, bytes});
    offered_.push_back({to, step, their_step});
  }

  bool AllConsumed() {
    while (!offered_.empty()) {
      const Offered& last = offered_.back();
      if (!session_->Consumed(last.to, last.step, last.their_step)) return false;
      offered_.pop_back();
    }
    return true;
  }

  bool PollInstruction(int64_t now_ns) {
    if (rank() == 0) {
      const std::string head = EncodeHead(instruction_), flows = EncodeFlows(instruction_);
      std::memcpy(member_.memory_ + base_ + kHeadOffset, head.data(), head.size());
      std::memcpy(member_.memory_ + base_ + kFlowsOffset, flows.data(), flows.size());
      for (int other = 1; other < size(); ++other) {
        Offer(static_cast<uint32_t>(other), other, kHeadStep, base_ + kHeadOffset, head.size());
        if (flows.empty()) continue;
        Offer(static_cast<uint32_t>(2 * size() + other), other, kFlowsStep, base_ + kFlowsOffset,
              flows.size());
      }
    } else {
      absl::StatusOr<bool> complete = ReceiveInstruction();
      if (!complete.ok()) return Fail(complete.status());
      if (!*complete) return false;
    }
    const int64_t length_ns = static_cast<int64_t>(instruction_.seconds * 1e9);
    begin_ns_ = now_ns;
    end_ns_ = now_ns + length_ns;
    deadline_ns_ = end_ns_ + member_.options_.patience_ns;
    if (instruction_.kind == Instruction::Kind::kFlows) MakeFlows();
    if (!senders_.empty() || !receivers_.empty()) processor_time_ = ProcessorTimeNow();
    flows_done_ = senders_.empty() && receivers_.empty();
    phase_ = Phase::kRunning;
    return true;
  }

  absl::StatusOr<bool> ReceiveInstruction() {
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

  void MakeFlows() {
    const uint32_t self = static_cast<uint32_t>(rank());
    const uint32_t count = FlowSteps::Count(instruction_.pieces);
    for (size_t i = 0; i < instruction_.flows.size(); ++i) {
      const Instruction::Flow& flow = instruction_.flows[i];
      if (flow.from != self && flow.to != self) continue;
      const uint32_t other = flow.from == self ? flow.to : flow.from;
      const uint32_t own_slot = SlotOf(instruction_, i, self);
      const uint32_t their_slot = SlotOf(instruction_, i, other);
      const FlowSteps steps = {.own = first_step() + own_slot * count,
                               .their = first_step() + their_slot * count,
                               .pieces = instruction_.pieces};
      const FlowMemory memory = {.base = member_.memory_,
                                 .pieces_offset = kPiecesOffset,
                                 .small_offset = base_ + kSmallOffset};
      if (flow.from == self) {
        senders_.emplace_back(static_cast<int>(other), flow.piece_bytes, steps, memory);
      } else {
        receivers_.emplace_back(static_cast<int>(other), flow.piece_bytes, steps, memory);
      }
    }
  }

  bool PollFlows(int64_t now_ns) {
    if (flows_done_) return false;
    time_is_up_ = now_ns >= end_ns_;
    const double seconds = static_cast<double>(now_ns - begin_ns_) * 1e-9;
    bool moved = false;
    flows_done_ = true;
    for (FlowReceiver& receiver : receivers_) {
      moved = receiver.Poll(*session_, seconds) || moved;
      flows_done_ = flows_done_ && receiver.done();
    }
    for (FlowSender& sender : senders_) {
      moved = sender.Poll(*session_, now_ns, time_is_up_) || moved;
      flows_done_ = flows_done_ && sender.done();
    }
    return moved;
  }

  bool PollRunning(int64_t now_ns) {
    bool moved = false;
    if (instruction_.kind == Instruction::Kind::kFlows) {
      moved = PollFlows(now_ns);
      if (!flows_done_ && now_ns < end_ns_ + kGraceNs) return moved;
    } else if (instruction_.kind == Instruction::Kind::kPing) {
      if (!PollPings(now_ns, moved)) return moved;
    }
    MakeAnswer();
    phase_ = Phase::kAnswer;
    return true;
  }

  // True when the last one is through.
  bool PollPings(int64_t now_ns, bool& moved) {
    const Instruction::Flow& flow = instruction_.flows.front();
    const bool sends = static_cast<uint32_t>(rank()) == flow.from;
    if (!sends && static_cast<uint32_t>(rank()) != flow.to) return true;
    const int other = static_cast<int>(sends ? flow.to : flow.from);
    const transport::Extent small = {Space::kData, base_ + kSmallOffset, 8};
    while (pings_ < instruction_.pieces) {
      const uint32_t there = first_step() + 2 * pings_, back = there + 1;
      if (sends && !ping_sent_) {
        Offer(there, other, there, base_ + kSmallOffset, 8);
        ping_sent_ = true;
        ping_ns_ = member_.clock_.NowNs();
        moved = true;
      }
      const uint32_t step = sends ? back : there;
      if (session_->Arrived(other, step, small) == nullptr) return false;
      session_->Consume(step, other, step);
      if (sends) {
        best_ns_ = std::min(best_ns_, std::max(member_.clock_.NowNs(), now_ns) - ping_ns_);
        ping_sent_ = false;
      } else {
        Offer(back, other, back, base_ + kSmallOffset, 8);
      }
      ++pings_;
      moved = true;
    }
    return true;
  }

  std::optional<ProcessorTime> ProcessorTimeNow() const {
    if (!member_.options_.processor_time) return std::nullopt;
    const absl::StatusOr<ProcessorTime> time = member_.options_.processor_time();
    return time.ok() ? std::optional<ProcessorTime>(*time) : std::nullopt;
  }

  FlowsAnswer WhatWasSeen() const {
    FlowsAnswer answer;
    if (processor_time_) {
      const std::optional<ProcessorTime> now = ProcessorTimeNow();
      if (now) answer.stolen = StolenShare(*processor_time_, *now);
    }
    for (const FlowReceiver& receiver : receivers_) {
      answer.flows.push_back(
          {.rate = RateBetween(receiver.arrivals(), kRampPart * instruction_.seconds,
                               instruction_.seconds, receiver.exhausted()),
           .ended_seconds =
               receiver.exhausted() ? receiver.arrivals().back().seconds : instruction_.seconds});
    }
    return answer;
  }

  void MakeAnswer() {
    std::string answer;
    switch (instruction_.kind) {
      case Instruction::Kind::kName:
        answer = absl::StrCat(DigestOf(member_.options_.machine).ToString(),
                              member_.options_.host.substr(0, kNameBytes - 33));
        break;
      case Instruction::Kind::kPing: {
        const double latency = static_cast<double>(best_ns_) * 1e-9 / 2;
        answer.assign(reinterpret_cast<const char*>(&latency), sizeof(latency));
        break;
      }
      default:
        answer = EncodeAnswer(WhatWasSeen());
    }
    answer.resize(AnswerBytes(instruction_, static_cast<uint32_t>(rank())));
    std::memcpy(member_.memory_ + base_ + kAnswerOffset, answer.data(), answer.size());
    if (rank() == 0) {
      answers_.assign(static_cast<size_t>(size()), "");
      answers_[0] = std::move(answer);
    } else {
      Offer(kAnswerStep, 0, static_cast<uint32_t>(size() + rank()), base_ + kAnswerOffset,
            answer.size());
    }
  }

  bool PollAnswer() {
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

  bool Fail(absl::Status status) {
    if (phase_ == Phase::kFinishing && instruction_.kind == Instruction::Kind::kEnd)
      member_.ending_ = true;
    // Once all know that the probe is over, nobody needs anybody any more.
    if (!member_.ending_) status_ = std::move(status);
    const bool starting = phase_ == Phase::kStarting;
    if (starting) session_->Break(transport::Gate::kStart);
    session_->Break(transport::Gate::kFinish);
    phase_ = Phase::kBreaking;
    deadline_ns_ = member_.clock_.NowNs() + kBreakNs;
    return true;
  }

  bool PollBreaking(int64_t now_ns) {
    if (session_->State(transport::Gate::kFinish) == transport::GateState::kOpen &&
        session_->State(transport::Gate::kStart) != transport::GateState::kBroken &&
        now_ns < deadline_ns_) {
      return false;
    }
    session_.reset();
    phase_ = Phase::kDone;
    return true;
  }

  absl::Status LossStatus() const {
    const std::vector<transport::Loss> lost = member_.transport_.Lost();
    if (lost.empty()) return absl::UnavailableError("a worker was lost during the probe");
    return WithBlast(
        absl::UnavailableError(absl::StrCat("worker ", lost.front().rank,
                                            " was lost during the probe: ", lost.front().cause)),
        BlastRadius::kGroup, lost.front().rank);
  }

  absl::Status BrokenStatus() const {
    if (member_.transport_.losses() > 0) return LossStatus();
    return absl::UnavailableError("another worker gave the probe up; its own message says why");
  }

  absl::Status Overdue() {
    std::set<int> missing;
    for (int other = 0; other < size(); ++other) {
      const bool starting = phase_ == Phase::kStarting;
      if ((starting || (phase_ == Phase::kFinishing && flows_done_)) &&
          !session_->Entered(starting ? transport::Gate::kStart : transport::Gate::kFinish,
                             other)) {
        missing.insert(other);
      }
      if (phase_ == Phase::kAnswer && rank() == 0 && answers_[static_cast<size_t>(other)].empty()) {
        missing.insert(other);
      }
    }
    if (phase_ == Phase::kInstruction) missing.insert(0);
    for (const FlowSender& sender : senders_) {
      if (!sender.done()) missing.insert(sender.to());
    }
    for (const FlowReceiver& receiver : receivers_) {
      if (!receiver.done()) missing.insert(receiver.from());
    }
    const std::vector<int> ranks(missing.begin(), missing.end());
    return absl::DeadlineExceededError(
        absl::StrCat("the probe waited in vain for ",
                     ranks.empty() ? "others" : absl::StrCat("workers ", FormatRanks(ranks)),
                     "; they may be stopped, or their network cut"));
  }

  struct Offered {
    int to;
    uint32_t step;
    uint32_t their_step;
  };

  Member& member_;
  std::unique_ptr<transport::Session> session_;
  const uint64_t base_;  // where this experiment's memory begins
  Phase phase_ = Phase::kStarting;
  bool entered_ = false;
  bool has_head_ = false;
  bool flows_done_ = false;
  absl::Status status_;
  Instruction instruction_;
  std::vector<std::string> answers_;
  std::vector<Offered> offered_;
  int64_t begin_ns_ = 0, end_ns_ = 0, deadline_ns_ = 0;
  bool time_is_up_ = false;
  std::vector<FlowSender> senders_;
  std::vector<FlowReceiver> receivers_;
  std::optional<ProcessorTime> processor_time_;  // when the flows began
  uint32_t pings_ = 0;
  bool ping_sent_ = false;
  int64_t ping_ns_ = 0;
  int64_t best_ns_ = INT64_MAX;
};

Member::Member(transport::Transport& transport, const Clock& clock, const MemberOptions& options)
    : transport_(transport), clock_(clock), options_(options) {}

Member::~Member() {
  draining_.clear();
  experiment_.reset();
  port_.reset();
  if (memory_ != nullptr) transport_.Free(memory_);
}

absl::StatusOr<std::unique_ptr<Member>> Member::Make(transport::Transport& transport,
                                                     const Clock& clock,
                                                     const MemberOptions& options) {
  std::unique_ptr<Member> member(new Member(transport, clock, options));
  std::vector<int> everyone(static_cast<size_t>(transport.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  SYNCOPATE_ASSIGN_OR_RETURN(member->port_, transport.OpenGroup(options.group_key, everyone));
  SYNCOPATE_ASSIGN_OR_RETURN(member->memory_, transport.Allocate(kMemoryBytes));
  std::memset(member->memory_, 0x5a, kMemoryBytes);
  return member;
}

int Member::rank() const { return transport_.rank(); }
int Member::size() const { return transport_.size(); }

absl::Status Member::Begin(const Instruction* instruction) {
  absl::StatusOr<std::unique_ptr<transport::Session>> session =
      port_->Open({.sequence = sequence_,
                   .digest = kDigest,
                   .data = memory_,
                   .data_bytes = kMemoryBytes,
                   .steps = kStepsMax});
  SYNCOPATE_RETURN_IF_ERROR(session.status());
  if (experiment_ != nullptr) draining_.push_back(std::move(experiment_));
  experiment_ = std::make_unique<Experiment>(*this, *std::move(session), sequence_, instruction);
  ++sequence_;
  return absl::OkStatus();
}

bool Member::Poll() {
  bool moved = transport_.Progress();
  moved = experiment_->Poll() || moved;
  for (std::unique_ptr<Experiment>& old : draining_) moved = old->Poll() || moved;
  for (size_t i = 0; i < draining_.size();) {
    if (!draining_[i]->done()) {
      ++i;
      continue;
    }
    status_.Update(draining_[i]->status());
    draining_.erase(draining_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (experiment_->done()) status_.Update(experiment_->status());
  return moved;
}

bool Member::done() const {
  if (!status_.ok()) return experiment_->done() || experiment_->answered();
  if (experiment_->answered() && experiment_->instruction().kind == Instruction::Kind::kEnd) {
    return drained();
  }
  return experiment_->answered() && draining_.size() + 1 < kUnderWayMax;
}
bool Member::drained() const { return experiment_->done() && draining_.empty(); }
const absl::Status& Member::status() const { return status_; }
const Instruction& Member::instruction() const { return experiment_->instruction(); }
const std::vector<std::string>& Member::answers() const { return experiment_->answers(); }
int64_t Member::NextWakeNs() const {
  int64_t wake_ns = experiment_->NextWakeNs();
  for (const auto& old : draining_) wake_ns = std::min(wake_ns, old->NextWakeNs());
  return wake_ns;
}

void Member::Park(int64_t until_ns) {
  const uint32_t ticket = transport_.PrepareToPark();
  if (Poll()) {
    transport_.CancelPark();
    return;
  }
  transport_.Park(ticket, std::min(until_ns, NextWakeNs()));
}

absl::Status ServeProbe(Member& member) {
  while (true) {
    SYNCOPATE_RETURN_IF_ERROR(member.Begin(nullptr));
    while (!member.done()) {
      if (!member.Poll()) member.Park();
    }
    SYNCOPATE_RETURN_IF_ERROR(member.status());
    if (member.instruction().kind == Instruction::Kind::kEnd) return absl::OkStatus();
  }
}

LiveOracle::LiveOracle(Member& member, const Clock& clock, Idle idle)
    : member_(member),
      clock_(clock),
      idle_(std::move(idle)),
      began_ns_(clock.NowNs()),
      stolen_(static_cast<size_t>(member.size()), 0) {}

LiveOracle::~LiveOracle() { End().IgnoreError(); }

absl::StatusOr<std::unique_ptr<LiveOracle>> LiveOracle::Make(Member& member, const Clock& clock,
                                                             Idle idle) {
  std::unique_ptr<LiveOracle> oracle(new LiveOracle(member, clock, std::move(idle)));
  Instruction instruction;
  instruction.kind = Instruction::Kind::kName;
  SYNCOPATE_RETURN_IF_ERROR(oracle->Run(instruction));
  oracle->NameHosts(member.answers());
  return oracle;
}

void LiveOracle::NameHosts(const std::vector<std::string>& answers) {
  std::map<std::string, std::string> names;  // by machine
  std::set<std::string> taken;
  for (const std::string& answer : answers) {
    const std::string machine = answer.substr(0, 32);
    std::string& name = names[machine];
    if (name.empty()) {
      const std::string wanted = absl::StrCat(answer.c_str() + 32);
      name = wanted;
      for (int i = 2; !taken.insert(name).second; ++i) name = absl::StrCat(wanted, "-", i);
    }
    hosts_.push_back(name);
  }
}

absl::Status LiveOracle::End() {
  if (ended_) return absl::OkStatus();
  Instruction instruction;
  instruction.kind = Instruction::Kind::kEnd;
  const absl::Status status = Run(instruction);
  ended_ = true;
  return status;
}

absl::Status LiveOracle::Run(const Instruction& instruction) {
  if (ended_) return absl::FailedPreconditionError("the probe is over");
  SYNCOPATE_RETURN_IF_ERROR(member_.Begin(&instruction));
  WaitUntil([&] { return member_.done(); });
  if (!member_.status().ok()) ended_ = true;  // the others have given up as well
  return member_.status();
}

void LiveOracle::WaitUntil(const std::function<bool()>& condition, int64_t until_ns) {
  while (!condition()) {
    if (member_.Poll()) continue;
    if (idle_) {
      idle_();
    } else {
      member_.Park(until_ns);
    }
  }
}

void LiveOracle::Wait(double seconds) {
  const int64_t until_ns = clock_.NowNs() + static_cast<int64_t>(seconds * 1e9);
  WaitUntil([&] { return clock_.NowNs() >= until_ns || !member_.status().ok(); }, until_ns);
}

absl::StatusOr<double> LiveOracle::Latency(int from, int to) {
  // With no flow under way.
  WaitUntil([&] { return member_.drained() || !member_.status().ok(); });
  Instruction instruction;
  instruction.kind = Instruction::Kind::kPing;
  instruction.pieces = kPings;
  instruction.flows = {{static_cast<uint32_t>(from), static_cast<uint32_t>(to), kPieceBytesMin}};
  SYNCOPATE_RETURN_IF_ERROR(Run(instruction));
  double latency = 0;
  std::memcpy(&latency, member_.answers()[static_cast<size_t>(from)].data(), sizeof(latency));
  return latency;
}

absl::StatusOr<Instruction> LiveOracle::Plan(absl::Span<const Flow> flows, double seconds) const {
  Instruction instruction;
  instruction.kind = Instruction::Kind::kFlows;
  instruction.seconds = seconds;
  std::vector<uint32_t> sends(static_cast<size_t>(size()), 0), receives = sends, count = sends;
  for (const Flow& flow : flows) {
    ++sends[static_cast<size_t>(flow.from)];
    ++receives[static_cast<size_t>(flow.to)];
    ++count[static_cast<size_t>(flow.from)];
    ++count[static_cast<size_t>(flow.to)];
  }
  for (const Flow& flow : flows) {
    const auto known = rates_.find(flow);
    double wanted = known == rates_.end() ? kPieceBytesFirst : known->second * kPieceSeconds;
    // It will share a NIC with these.
    wanted /=
        std::max(sends[static_cast<size_t>(flow.from)], receives[static_cast<size_t>(flow.to)]);
    // Whole KiB.
    const uint32_t piece_bytes =
        static_cast<uint32_t>(std::clamp<double>(wanted, kPieceBytesMin, kPieceBytesMax)) >>
        10 << 10;
    instruction.flows.push_back(
        {static_cast<uint32_t>(flow.from), static_cast<uint32_t>(flow.to), piece_bytes});
  }
  const uint32_t busiest = *std::max_element(count.begin(), count.end());
  const uint32_t steps = (kStepsMax - FirstStep(size())) / busiest;
  if (flows.size() > kFlowsMax || steps < 32) {
    return absl::InvalidArgumentError(
        absl::StrCat(flows.size(), " flows at once are too many for the probe"));
  }
  instruction.pieces = std::min(kPiecesMax, (steps - 4) * 2 / 3);
  return instruction;
}

absl::StatusOr<std::vector<double>> LiveOracle::Rates(absl::Span<const Flow> flows,
                                                      double seconds) {
  if (flows.empty()) return std::vector<double>();
  while (true) {
    SYNCOPATE_ASSIGN_OR_RETURN(const Instruction instruction, Plan(flows, seconds));
    SYNCOPATE_RETURN_IF_ERROR(Run(instruction));
    std::vector<FlowsAnswer> answers;
    stolen_.assign(static_cast<size_t>(size()), 0);
    for (int worker = 0; worker < size(); ++worker) {
      absl::StatusOr<FlowsAnswer> answer =
          DecodeAnswer(member_.answers()[static_cast<size_t>(worker)],
                       Received(instruction, static_cast<uint32_t>(worker)));
      if (!answer.ok()) return At(absl::StrCat("worker ", worker), answer.status());
      stolen_[static_cast<size_t>(worker)] = answer->stolen;
      answers.push_back(*std::move(answer));
    }
    std::vector<double> rates;
    std::vector<size_t> taken(static_cast<size_t>(size()), 0);  // of a worker's answer
    bool too_small = false;
    for (size_t i = 0; i < flows.size(); ++i) {
      const size_t to = static_cast<size_t>(flows[i].to);
      const auto [rate, ended] = answers[to].flows[taken[to]++];
      rates_[flows[i]] = std::max(rate, 1.0);
      rates.push_back(rate);
      // It ran out of pieces long before the end, and larger ones are possible.
      const uint32_t bytes = instruction.flows[i].piece_bytes;
      if (ended < 0.7 * seconds && bytes < kPieceBytesMax) {
        rates_[flows[i]] = std::max(rate, 8.0 * bytes / kPieceSeconds);
        too_small = true;
      }
    }
    LogRates(flows, rates);
    if (!too_small) return rates;
  }
}

double LiveOracle::Elapsed() const {
  return static_cast<double>(clock_.NowNs() - began_ns_) * 1e-9;
}

}  // namespace syncopate::probe
