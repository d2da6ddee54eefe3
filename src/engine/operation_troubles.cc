// What an operation does when a member is lost, a gate breaks or the deadline comes, and what it
// then says: who is to blame, and how much is lost with it.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"
#include "engine/operation.h"

namespace syncopate::engine {
namespace {

// Live members finish an exchange that has started within moments. A member that has not finished
// this long after the deadline is stuck, and it is expelled from the job.
constexpr int64_t kFinishGraceNs = 10'000'000'000;

}  // namespace

Operation::Outcome Operation::Fail(absl::Status status, bool breaks_group) {
  // The first failure is kept: later operations of the group fail with its cause, not with theirs.
  if (breaks_group) {
    if (GetBlast(status).value_or(BlastRadius::kOperation) < BlastRadius::kGroup) {
      status = WithBlast(std::move(status), BlastRadius::kGroup);
    }
    if (spec_.group->failure.ok()) spec_.group->failure = status;
  }
  Complete(std::move(status));
  Retire();
  return Outcome::kMoved;
}

Operation::Outcome Operation::FailBroken(transport::Gate gate) {
  if (const auto oddity = session_->FindOddity()) {
    // All members learn it, so the group stays in step and can be used again.
    return Fail(WithBlast(At(Describe(), OddityStatus(oddity->member, oddity->digest)),
                          BlastRadius::kOperation),
                /*breaks_group=*/false);
  }
  std::optional<absl::Status> status = BrokenStatus(gate);
  return status ? Fail(*std::move(status), /*breaks_group=*/true) : Outcome::kBlocked;
}

void Operation::CallOff(const absl::Status& why) {
  if (retired()) return;
  // Breaking the gates tells the others now what they would otherwise learn only at their deadline.
  if (!done()) {
    const auto reason = transport::BreakReason::kTime;
    if (session_ != nullptr && state_ <= State::kStarting) {
      session_->Break(transport::Gate::kStart, reason);
    }
    if (session_ != nullptr && shape_ == Shape::kSteps) {
      session_->Break(transport::Gate::kFinish, reason);
    }
    Complete(At(Describe(), why));
  }
  Retire();
}

bool Operation::IsLost(int member, absl::Span<const transport::Loss> losses) const {
  const int rank = spec_.group->members[static_cast<size_t>(member)];
  return std::any_of(losses.begin(), losses.end(),
                     [&](const transport::Loss& loss) { return loss.rank == rank; });
}

// Losses have one order for all workers, of which each knows the beginning: all name the same first
// one. The member that broke the gate said whether it did so for a loss. By what this worker knows
// itself, it would blame a member that had not come yet until it hears of the loss, and a lost member
// as soon as it hears of one, while others blame the one that was late.
std::optional<absl::Status> Operation::BrokenStatus(transport::Gate gate) const {
  const transport::Session::Failure failure = session_->WhyBroken(gate);
  const auto& ranks = spec_.group->members;
  std::optional<absl::Status> status;
  if (!failure.for_loss) status = LateStatus(failure);
  for (const transport::Loss& loss : transport_.Lost()) {
    if (loss.rank == transport_.rank()) {
      return WithBlast(absl::AbortedError(absl::StrCat(
                           Describe(), ": this worker is out of the job: it ", loss.cause)),
                       BlastRadius::kJob, loss.rank);
    }
    if (status || std::find(ranks.begin(), ranks.end(), loss.rank) == ranks.end()) continue;
    status = WithBlast(
        absl::UnavailableError(absl::StrCat(Describe(), ": worker ", loss.rank, " ", loss.cause,
                                            "; this group is lost, make a new one without it")),
        BlastRadius::kGroup, loss.rank);
  }
  return status;
}

absl::Status Operation::LateStatus(const transport::Session::Failure& failure) const {
  std::vector<int> missing;
  for (const int member : failure.missing) {
    missing.push_back(spec_.group->members[static_cast<size_t>(member)]);
  }
  const bool self_missing =
      std::find(missing.begin(), missing.end(), transport_.rank()) != missing.end();
  const int suspect = missing.empty() ? -1 : missing.front();
  const absl::string_view what = failure.gate == transport::Gate::kStart ? "join" : "finish";
  return WithBlast(
      absl::DeadlineExceededError(
          self_missing
              ? absl::StrCat(Describe(), ": the others gave up before this worker could ", what)
              : absl::StrCat(Describe(), ": workers ", FormatRanks(missing), " did not ", what,
                             " in time; this group is lost")),
      BlastRadius::kGroup, suspect);
}

// What can be done about a loss or a deadline depends on the state. Up to the start gate the
// operation can be broken without a trace. After it, steps are broken at the finish gate, as long
// as that has not passed; a one-shot and an exchange must be finished.
Operation::Outcome Operation::CheckTroubles(int64_t now_ns,
                                            absl::Span<const transport::Loss> losses) {
  const bool late = now_ns >= deadline_ns();
  auto missing_is_lost = [&](transport::Gate gate) {
    for (int member = 0; member < members(); ++member) {
      if (IsLost(member, losses) && !session_->Entered(gate, member)) return true;
    }
    return false;
  };
  auto any_is_lost = [&] {
    for (int member = 0; member < members(); ++member) {
      if (IsLost(member, losses)) return true;
    }
    return false;
  };
  const auto reason = [](bool lost) {
    return lost ? transport::BreakReason::kLoss : transport::BreakReason::kTime;
  };
  switch (state_) {
    case State::kQueued:
      if (!late) return Outcome::kBlocked;
      return Fail(
          WithBlast(absl::DeadlineExceededError(absl::StrCat(
                        Describe(), ": earlier operations of the group did not end in time")),
                    BlastRadius::kGroup),
          /*breaks_group=*/true);
    case State::kEntering:  // the group's first member has not made the group
      // Without it nobody has entered, so a loss among the members is one that will be missed. The first
      // member may never make the group, if it knew of that loss before. (An optimistic transport settles
      // losses itself, and Poll() sees how.)
      if (!late && (spec_.group->port->optimistic() || !any_is_lost())) return Outcome::kBlocked;
      if (session_->Break(transport::Gate::kStart, reason(any_is_lost())) !=
          transport::GateState::kBroken) {
        return Outcome::kBlocked;
      }
      return FailBroken(transport::Gate::kStart);
    case State::kStarting: {
      // A member that knew of a loss before it made the group does not make it, even if the lost one had
      // come to the gate.
      const bool lost = missing_is_lost(transport::Gate::kStart) ||
                        (any_is_lost() && spec_.group->port->Renounced());
      // After an operation of the group has failed, a member that has not joined will not do so.
      if (!late && !lost && !spec_.group->port->Failed()) return Outcome::kBlocked;
      // Break() may come too late: then the gate has passed, and the operation goes on.
      if (session_->Break(transport::Gate::kStart, reason(lost)) == transport::GateState::kOpen) {
        return Outcome::kBlocked;
      }
      return AwaitStart();
    }
    case State::kWorking:
    case State::kFinishing:
    case State::kLingering:
      break;
    default:
      return Outcome::kBlocked;
  }
  if (spec_.group->port->optimistic()) {
    // The transport settles losses itself, and Poll() sees how. A shared result may reach others late
    // without harm to ours.
    if (late && state_ != State::kLingering) {
      session_->Break(transport::Gate::kFinish, transport::BreakReason::kTime);
    }
    return Outcome::kBlocked;
  }
  if (shape_ == Shape::kSteps) {
    const bool lost = missing_is_lost(transport::Gate::kFinish);
    if (!late && !lost) return Outcome::kBlocked;
    if (session_->Break(transport::Gate::kFinish, reason(lost)) == transport::GateState::kPassed) {
      return Outcome::kMoved;
    }
    if (state_ == State::kLingering) {  // done for the caller; only the group is lost
      const std::optional<absl::Status> status = BrokenStatus(transport::Gate::kFinish);
      if (!status) return Outcome::kBlocked;
      if (spec_.group->failure.ok()) spec_.group->failure = *status;
      Retire();
      return Outcome::kMoved;
    }
    return FailBroken(transport::Gate::kFinish);
  }
  // The data is committed: what lost members left undone, a survivor does. A one-shot needs nothing
  // more of a lost member, whose data lies in scratch memory, so its gate is entered for it.
  Outcome outcome = Outcome::kBlocked;
  for (int member = 0; member < members() && !retired(); ++member) {
    if (session_->Entered(transport::Gate::kFinish, member)) continue;
    if (IsLost(member, losses)) {
      if (shape_ == Shape::kExchange) {
        if (Rescue(member, losses)) outcome = Outcome::kWorked;
      } else {
        session_->Enter(transport::Gate::kFinish, member);
        outcome = Outcome::kMoved;
      }
    } else if (shape_ == Shape::kExchange && now_ns >= deadline_ns() + kFinishGraceNs) {
      transport_.Expel(spec_.group->members[static_cast<size_t>(member)]);
    }
  }
  return outcome;
}

}  // namespace syncopate::engine
