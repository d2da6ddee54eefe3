#include "probe/member.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "probe/experiment_layout.h"

namespace syncopate::probe {
namespace {

// The digest of every experiment. It stands for the protocol, and changes with it.
constexpr uint64_t kDigest = 0x70726f62653032;

}  // namespace

Member::Member(transport::Transport& transport, const Clock& clock, const MemberOptions& options)
    : context_{.transport = transport, .clock = clock, .options = options} {}

Member::~Member() {
  draining_.clear();
  experiment_.reset();
  port_.reset();
  if (context_.memory != nullptr) context_.transport.Free(context_.memory);
}

absl::StatusOr<std::unique_ptr<Member>> Member::Make(transport::Transport& transport,
                                                     const Clock& clock,
                                                     const MemberOptions& options) {
  std::unique_ptr<Member> member(new Member(transport, clock, options));
  std::vector<int> everyone(static_cast<size_t>(transport.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  SYNCOPATE_ASSIGN_OR_RETURN(member->port_, transport.OpenGroup(options.group_key, everyone));
  SYNCOPATE_ASSIGN_OR_RETURN(member->context_.memory, transport.Allocate(kMemoryBytes));
  std::memset(member->context_.memory, 0x5a, kMemoryBytes);
  return member;
}

int Member::rank() const { return context_.transport.rank(); }
int Member::size() const { return context_.transport.size(); }

absl::Status Member::Begin(const Instruction* instruction) {
  absl::StatusOr<std::unique_ptr<transport::Session>> session =
      port_->Open({.sequence = sequence_,
                   .digest = kDigest,
                   .data = context_.memory,
                   .data_bytes = kMemoryBytes,
                   .steps = kStepsMax});
  SYNCOPATE_RETURN_IF_ERROR(session.status());
  if (experiment_ != nullptr) draining_.push_back(std::move(experiment_));
  experiment_ = std::make_unique<Experiment>(context_, *std::move(session), sequence_, instruction);
  ++sequence_;
  return absl::OkStatus();
}

bool Member::Poll() {
  bool moved = context_.transport.Progress();
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
  const uint32_t ticket = context_.transport.PrepareToPark();
  if (Poll()) {
    context_.transport.CancelPark();
    return;
  }
  context_.transport.Park(ticket, std::min(until_ns, NextWakeNs()));
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

}  // namespace syncopate::probe
