#include "services/agreement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/limits.h"

namespace syncopate::services {
namespace {

Answer Reply(int to, uint64_t ticket, const AgreementAnswer& answer) {
  // Only what a proposal led to is kept: asking for the rest again gives what is true then.
  return {.to = to,
          .ticket = ticket,
          .bytes = EncodeAnswer(answer),
          .kept = std::holds_alternative<Settled>(answer)};
}

}  // namespace

ServiceStep Agreement::Step(const ServiceContext& context, const ServiceEvent& event) {
  ServiceStep step;
  if (const auto* asked = std::get_if<Asked>(&event)) {
    absl::StatusOr<AgreementRequest> request = DecodeRequest(asked->request);
    if (!request.ok()) {
      step.answers.push_back(Refusal(asked->from, asked->ticket, request.status()));
      return step;
    }
    std::visit([&](auto& body) { On(context, asked->from, asked->ticket, std::move(body), step); },
               *request);
  } else if (const auto* departed = std::get_if<Departed>(&event)) {
    members_.erase(departed->rank);
    listeners_.erase(departed->rank);
    const auto forget = [&](Proposal& proposal) {
      std::erase_if(proposal.askers,
                    [&](const auto& item) { return item.first == departed->rank; });
    };
    if (round_.has_value()) forget(round_->proposal);
    for (Proposal& proposal : waiting_) forget(proposal);
    ForgetReleased();
    EndRoundIfAllAnswered(context, step);
  } else if (const auto* joined = std::get_if<Joined>(&event)) {
    members_.insert(joined->rank);
  }
  return step;
}

absl::Status Agreement::MayPropose(const ValueTitle& title) const {
  // It is no fault of the proposer's: others have come to the end sooner.
  if (const auto released = released_.find(title.kind); released != released_.end()) {
    return absl::CancelledError(
        absl::StrCat("rank ", *released->second.begin(), " uses no ", title.kind, " any more"));
  }
  const auto found = in_force_.find(title.kind);
  if (found == in_force_.end()) {
    if (in_force_.size() < limits::kAgreementKindsMax) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("values of ", in_force_.size(), " kinds are in force already"));
  }
  const ValueTitle& now = found->second.title;
  if (title.version > now.version) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(Describe(title), " is proposed, but ", Describe(now), " is in force"));
}

Agreement::Proposal* Agreement::FindAlike(const ValueTitle& title) {
  const auto alike = [&](const Proposal& proposal) {
    return proposal.title.kind == title.kind && proposal.title.version == title.version;
  };
  if (round_.has_value() && alike(round_->proposal)) return &round_->proposal;
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), alike);
  return found == waiting_.end() ? nullptr : &*found;
}

uint64_t Agreement::ValueBytes() const {
  uint64_t bytes = round_.has_value() ? round_->proposal.value.size() : 0;
  for (const auto& [kind, value] : in_force_) bytes += value.value.size();
  for (const Proposal& proposal : waiting_) bytes += proposal.value.size();
  return bytes;
}

void Agreement::On(const ServiceContext& context, int from, uint64_t ticket, Propose request,
                   ServiceStep& step) {
  const auto refuse = [&](const absl::Status& status) {
    step.reason = absl::StrCat("rank ", from, " is refused: ", status.message());
    step.answers.push_back(Refusal(from, ticket, status));
  };
  const auto now = in_force_.find(request.title.kind);
  if (now != in_force_.end() && now->second.title == request.title) {
    step.answers.push_back(Reply(from, ticket, Settled{.round = last(), .from = now->second.from}));
    return;
  }
  const absl::Status may = MayPropose(request.title);
  if (!may.ok()) return refuse(may);
  if (Proposal* alike = FindAlike(request.title)) {
    if (alike->title == request.title) {
      alike->askers.emplace_back(from, ticket);
      return;
    }
    return refuse(absl::FailedPreconditionError(absl::StrCat(
        Describe(request.title), " is proposed, but ", Describe(alike->title), " was before it")));
  }
  if (waiting_.size() >= limits::kAgreementQueueMax ||
      ValueBytes() + request.value.size() > limits::kAgreementBytesMax) {
    return refuse(absl::ResourceExhaustedError(
        absl::StrCat(waiting_.size(), " proposals wait, and all values have ", ValueBytes(),
                     " bytes; the limits are ", limits::kAgreementQueueMax, " and ",
                     limits::kAgreementBytesMax)));
  }
  waiting_.push_back({.title = std::move(request.title),
                      .value = std::move(request.value),
                      .askers = {{from, ticket}}});
  BeginRound(context, step);
}

void Agreement::BeginRound(const ServiceContext& context, ServiceStep& step) {
  while (!round_.has_value() && !waiting_.empty()) {
    Proposal proposal = std::move(waiting_.front());
    waiting_.pop_front();
    const absl::Status may = MayPropose(proposal.title);  // a later version may have come first
    if (!may.ok()) {
      for (const auto& [rank, ticket] : proposal.askers) {
        step.answers.push_back(Refusal(rank, ticket, may));
      }
      continue;
    }
    round_ = Round{
        .id = {context.incarnation, ++rounds_}, .proposal = std::move(proposal), .positions = {}};
    step.reason = absl::StrCat("round ", round_->id.incarnation, ".", round_->id.number, " about ",
                               Describe(round_->proposal.title), " among ", members_.size());
    for (const auto& [rank, ticket] : std::exchange(listeners_, {})) {
      step.answers.push_back(AskAbout(rank, ticket));
    }
  }
}

Answer Agreement::AskAbout(int rank, uint64_t ticket) const {
  const Proposal& proposal = round_->proposal;
  Question question = {.round = round_->id, .title = proposal.title, .value = ""};
  if (proposal.value.size() <= kInlineValueBytesMax) question.value = proposal.value;
  return Reply(rank, ticket, question);
}

AgreementAnswer Agreement::WhatFollows(const ServiceId& seen) const {
  return last_.has_value() && seen == before_last_ ? AgreementAnswer(*last_) : InForceNow();
}

// For one that may have missed the ends of several rounds: it has joined, comes from before the service was
// rebuilt, or another worker's word has ended a round before its own was there.
Welcome Agreement::InForceNow() const {
  Welcome welcome = {.seen = last(), .values = {}};
  for (const auto& [kind, value] : in_force_) welcome.values.push_back({value.title, value.from});
  return welcome;
}

void Agreement::On(const ServiceContext& /*context*/, int from, uint64_t ticket, Listen request,
                   ServiceStep& step) {
  if (!members_.contains(from) || listeners_.contains(from)) {
    step.answers.push_back(Refusal(
        from, ticket,
        absl::FailedPreconditionError(absl::StrCat(
            "rank ", from,
            members_.contains(from) ? " listens already" : " does not take part in agreements"))));
  } else if (request.seen != last()) {
    step.answers.push_back(Reply(from, ticket, WhatFollows(request.seen)));
  } else if (round_.has_value() && !round_->positions.contains(from)) {
    step.answers.push_back(AskAbout(from, ticket));
  } else {
    listeners_[from] = ticket;
  }
}

void Agreement::On(const ServiceContext& context, int from, uint64_t ticket, Position request,
                   ServiceStep& step) {
  if (!round_.has_value() || round_->id != request.round || !members_.contains(from)) {
    // It has not heard how that round ended, so the outcome of a later one would not be enough.
    const bool ended_last = last_.has_value() && last_->round == request.round;
    step.answers.push_back(
        Reply(from, ticket, ended_last ? AgreementAnswer(*last_) : AgreementAnswer(InForceNow())));
    return;
  }
  const ValueTitle& title = round_->proposal.title;
  listeners_[from] = ticket;
  if (!request.fault.empty() || request.digest != title.digest) {
    Outcome outcome = {.round = round_->id, .title = title};
    outcome.reason =
        request.fault.empty()
            ? absl::StrCat("rank ", from, " computes the digest ", request.digest.ToString(),
                           " for ", Describe(title))
            : absl::StrCat("rank ", from, " cannot use ", Describe(title), ": ", request.fault);
    outcome.reason.resize(std::min<size_t>(outcome.reason.size(), limits::kServiceErrorBytesMax));
    return Conclude(context, std::move(outcome), step);
  }
  round_->positions[from] = request.position;
  EndRoundIfAllAnswered(context, step);
}

void Agreement::EndRoundIfAllAnswered(const ServiceContext& context, ServiceStep& step) {
  if (!round_.has_value() || members_.empty()) return;
  const auto& positions = round_->positions;
  if (!std::all_of(members_.begin(), members_.end(),
                   [&](int rank) { return positions.contains(rank); })) {
    return;
  }
  int64_t furthest = 0;
  for (const auto& [rank, position] : positions) furthest = std::max(furthest, position);
  const ValueTitle& title = round_->proposal.title;
  Conclude(context,
           {.round = round_->id,
            .accepted = true,
            .from = furthest + MarginOf(title) + 1,
            .title = title},
           step);
}

void Agreement::On(const ServiceContext& context, int from, uint64_t ticket, Release request,
                   ServiceStep& step) {
  if (released_.size() >= kReleasedMax && !released_.contains(request.kind)) {
    step.answers.push_back(
        Refusal(from, ticket,
                absl::ResourceExhaustedError(absl::StrCat(
                    released_.size(), " kinds are let go of by some workers and not by others"))));
    return;
  }
  step.answers.push_back(Reply(from, ticket, Settled{.round = last(), .from = 0}));
  if (!members_.contains(from)) return;
  released_[request.kind].insert(from);
  step.reason = absl::StrCat("rank ", from, " lets go of ", request.kind);
  // A round about it ends now; proposals that wait are refused when their turn comes.
  if (round_.has_value() && round_->proposal.title.kind == request.kind) {
    Outcome outcome = {.round = round_->id, .title = round_->proposal.title};
    outcome.reason = absl::StrCat("rank ", from, " uses no ", request.kind, " any more");
    Conclude(context, std::move(outcome), step, absl::StatusCode::kCancelled);
  }
  ForgetReleased();
}

std::set<std::string> Agreement::kinds() const {
  std::set<std::string> kinds;
  for (const auto& [kind, value] : in_force_) kinds.insert(kind);
  for (const auto& [kind, ranks] : released_) kinds.insert(kind);
  return kinds;
}

void Agreement::ForgetReleased() {
  std::erase_if(released_, [&](const auto& entry) {
    const auto& [kind, ranks] = entry;
    if (!std::all_of(members_.begin(), members_.end(),
                     [&ranks = ranks](int rank) { return ranks.contains(rank); })) {
      return false;
    }
    in_force_.erase(kind);
    return true;
  });
}

void Agreement::Conclude(const ServiceContext& context, Outcome outcome, ServiceStep& step,
                         absl::StatusCode why) {
  Proposal proposal = std::move(round_->proposal);
  round_.reset();
  before_last_ = last();
  if (outcome.accepted) {
    in_force_[outcome.title.kind] = {outcome.title, std::move(proposal.value), outcome.from};
  }
  for (const auto& [rank, ticket] : proposal.askers) {
    step.answers.push_back(
        outcome.accepted
            ? Reply(rank, ticket, Settled{.round = outcome.round, .from = outcome.from})
            : Refusal(rank, ticket, absl::Status(why, outcome.reason)));
  }
  for (const auto& [rank, ticket] : std::exchange(listeners_, {})) {
    step.answers.push_back(Reply(rank, ticket, outcome));
  }
  step.reason = outcome.accepted
                    ? absl::StrCat(Describe(outcome.title), " from ", outcome.from, " on")
                    : outcome.reason;
  last_ = std::move(outcome);
  const std::string reason = step.reason;
  BeginRound(context, step);
  if (step.reason != reason) step.reason = absl::StrCat(reason, "; ", step.reason);
}

void Agreement::On(const ServiceContext& /*context*/, int from, uint64_t ticket, Fetch request,
                   ServiceStep& step) {
  const auto found = in_force_.find(request.kind);
  if (found != in_force_.end() && found->second.title.version == request.version) {
    step.answers.push_back(Reply(from, ticket, Value{found->second.title, found->second.value}));
  } else if (round_.has_value() && round_->proposal.title.kind == request.kind &&
             round_->proposal.title.version == request.version) {
    step.answers.push_back(
        Reply(from, ticket, Value{round_->proposal.title, round_->proposal.value}));
  } else {
    step.answers.push_back(Refusal(
        from, ticket,
        absl::NotFoundError(absl::StrCat("there is no ", request.kind, " ", request.version))));
  }
}

}  // namespace syncopate::services
