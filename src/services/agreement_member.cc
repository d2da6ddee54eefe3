#include "services/agreement_member.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/status.h"

namespace syncopate::services {
namespace {

// Tags: one request of the conversation (Listen or Position) is open at a time; proposals and fetches
// have numbers.
constexpr uint64_t kConversation = 0;
// Kinds that the service is being told of at a time: a worker may ask so much at a time (kTicketsOpenMax).
constexpr size_t kReleasingMax = 8;

}  // namespace

void AgreementMember::AskService(uint64_t tag, const AgreementRequest& request) {
  commands_.push_back(Ask{tag, EncodeRequest(request)});
}

void AgreementMember::Listen() { AskService(kConversation, services::Listen{.seen = seen_}); }

absl::StatusOr<uint64_t> AgreementMember::Propose(ValueTitle title, std::string value) {
  title.bytes = value.size();
  SYNCOPATE_RETURN_IF_ERROR(Validate(title));
  const uint64_t number = ++next_;
  AskService(number, services::Propose{title, value});
  proposals_[number] = {std::move(title), std::move(value), 0};
  return number;
}

void AgreementMember::Reached(absl::string_view kind, int64_t position) {
  const auto found = positions_.find(kind);
  if (found == positions_.end()) {
    positions_.emplace(kind, position);
  } else {
    found->second = std::max(found->second, position);
  }
}

void AgreementMember::Release(absl::string_view kind) {
  const std::string name(kind);
  if (!released_.insert(name).second) return;
  remembered_.push_back(name);
  if (remembered_.size() > kReleasedMax) {
    released_.erase(remembered_.front());
    remembered_.pop_front();
  }
  positions_.erase(name);
  in_force_.erase(name);
  missing_.erase(name);
  to_release_.push_back(name);
  ReleaseNext();
}

bool AgreementMember::HasProposed(absl::string_view kind) const {
  return std::any_of(proposals_.begin(), proposals_.end(),
                     [&](const auto& entry) { return entry.second.title.kind == kind; });
}

// A proposal may be a parcel, which what comes after it may overtake.
void AgreementMember::ReleaseNext() {
  std::deque<std::string> left;
  for (std::string& kind : to_release_) {
    if (releasing_.size() >= kReleasingMax || HasProposed(kind)) {
      left.push_back(std::move(kind));
      continue;
    }
    AskService(++next_, services::Release{kind});
    releasing_[next_] = std::move(kind);
  }
  to_release_ = std::move(left);
}

bool AgreementMember::Releases(absl::string_view kind) const {
  return std::find(to_release_.begin(), to_release_.end(), kind) != to_release_.end() ||
         std::any_of(releasing_.begin(), releasing_.end(),
                     [&](const auto& entry) { return entry.second == kind; });
}

int64_t AgreementMember::Limit(absl::string_view kind) const {
  int64_t limit = INT64_MAX;
  if (asked_.has_value() && asked_->limit.has_value() && asked_->title.kind == kind) {
    limit = *asked_->limit;
  }
  if (missing_.empty()) return limit;
  const auto missing = missing_.find(std::string(kind));
  return missing == missing_.end() ? limit : std::min(limit, missing->second.from - 1);
}

std::vector<AgreementMember::Command> AgreementMember::TakeCommands() {
  return std::exchange(commands_, {});
}

void AgreementMember::Answered(uint64_t tag, absl::StatusCode code, absl::string_view bytes) {
  // What is refused stays in force: that is all the harm.
  if (releasing_.erase(tag) > 0) return ReleaseNext();
  if (code != absl::StatusCode::kOk) return Refused(tag, absl::Status(code, bytes));
  absl::StatusOr<AgreementAnswer> answer = DecodeAnswer(bytes);
  if (!answer.ok()) return Refused(tag, answer.status());
  std::visit([&](auto& body) { On(std::move(body), tag); }, *answer);
}

void AgreementMember::Refused(uint64_t tag, const absl::Status& status) {
  if (tag == kConversation) {
    status_ = status;
    // Others may have heard the outcome, and use the value from beyond the limit that was promised on: it stays.
    if (asked_.has_value() && !asked_->limit.has_value()) asked_.reset();
    return;
  }
  if (const auto fetch = fetches_.find(tag); fetch != fetches_.end()) {
    const ValueTitle title = fetch->second;
    fetches_.erase(fetch);
    // The round is over, or a later value has come into force: both will be heard.
    if (asked_.has_value() && asked_->title == title) {
      asked_.reset();
      Listen();
    }
    if (const auto missing = missing_.find(title.kind);
        missing != missing_.end() && missing->second.title == title) {
      missing_.erase(missing);
    }
    return;
  }
  if (proposals_.erase(tag) > 0) commands_.push_back(Decided{tag, status, 0});
  ReleaseNext();
}

void AgreementMember::On(Settled&& answer, uint64_t tag) {
  if (const auto proposal = proposals_.find(tag); proposal != proposals_.end()) {
    // Whoever knows an outcome must report it: if host and standby are lost now, nobody else may have heard it.
    const ValueTitle title = proposal->second.title;
    TakeOver(title, answer.from, asked_);
    proposals_.erase(proposal);
    commands_.push_back(Decided{tag, absl::OkStatus(), answer.from});
  }
  ReleaseNext();
}

const std::string* AgreementMember::OwnValue(const ValueTitle& title) const {
  for (const auto& [number, proposal] : proposals_) {
    if (proposal.title == title) return &proposal.value;
  }
  return nullptr;
}

void AgreementMember::On(Question&& answer, uint64_t tag) {
  if (tag != kConversation) return;
  asked_ = Asked{.round = answer.round, .title = std::move(answer.title), .value = {}, .limit = {}};
  const std::string* own = OwnValue(asked_->title);
  if (Released(asked_->title.kind)) return CheckedTooLate(asked_->round);
  if (answer.value.size() == asked_->title.bytes) {
    HaveValue(std::move(answer.value));
  } else if (own != nullptr) {
    HaveValue(*own);
  } else {
    fetches_[++next_] = asked_->title;
    AskService(next_, Fetch{asked_->title.kind, asked_->title.version});
  }
}

void AgreementMember::HaveValue(std::string value) {
  asked_->value = std::move(value);
  commands_.push_back(Check{asked_->round, asked_->title, *asked_->value});
}

void AgreementMember::Checked(const ServiceId& round, const absl::StatusOr<Digest>& digest) {
  if (!asked_.has_value() || asked_->round != round || asked_->limit.has_value()) return;
  const auto reached = positions_.find(asked_->title.kind);
  const int64_t position = reached == positions_.end() ? 0 : reached->second;
  asked_->limit = position + MarginOf(asked_->title);
  Position told = {.round = round, .position = position, .digest = {}, .fault = ""};
  if (digest.ok()) {
    told.digest = *digest;
  } else {
    told.fault =
        std::string(digest.status().message().substr(0, limits::kServiceErrorBytesMax / 2));
    if (told.fault.empty()) told.fault = "unknown";
  }
  AskService(kConversation, told);
}

// What this worker has proposed itself it does not refuse; it makes no difference here.
void AgreementMember::CheckedTooLate(const ServiceId& round) {
  if (!asked_.has_value() || asked_->round != round) return;
  if (OwnValue(asked_->title) != nullptr) return Checked(round, asked_->title.digest);
  Checked(round, absl::CancelledError("it uses none any more"));
}

void AgreementMember::On(Value&& answer, uint64_t tag) {
  const auto fetch = fetches_.find(tag);
  if (fetch == fetches_.end()) return;
  if (fetch->second != answer.title) {
    return Refused(tag, absl::NotFoundError("there is another value of this version"));
  }
  fetches_.erase(fetch);
  if (asked_.has_value() && asked_->title == answer.title && !asked_->value.has_value()) {
    HaveValue(answer.value);
  }
  const auto missing = missing_.find(answer.title.kind);
  if (missing != missing_.end() && missing->second.title == answer.title) {
    Held held = std::move(missing->second);
    missing_.erase(missing);
    held.value = std::move(answer.value);
    Use(std::move(held));
  }
}

void AgreementMember::On(Outcome&& answer, uint64_t tag) {
  if (tag != kConversation) return;
  seen_ = answer.round;
  const std::optional<Asked> asked = std::exchange(asked_, std::nullopt);
  if (answer.accepted) TakeOver(answer.title, answer.from, asked);
  Listen();
}

void AgreementMember::On(Welcome&& answer, uint64_t tag) {
  if (tag != kConversation) return;
  seen_ = answer.seen;
  const std::optional<Asked> asked = std::exchange(asked_, std::nullopt);
  for (const InForceEntry& entry : answer.values) {
    const std::string& kind = entry.title.kind;
    TakeOver(entry.title, entry.from, asked);
    // A service that was rebuilt does not know who has let go of what.
    if (Released(kind) && !Releases(kind)) to_release_.push_back(kind);
  }
  ReleaseNext();
  Listen();
}

// A value is in force: uses it, or fetches what it has not got.
void AgreementMember::TakeOver(const ValueTitle& title, int64_t from,
                               const std::optional<Asked>& asked) {
  if (released_.contains(title.kind)) return;
  const auto found = in_force_.find(title.kind);
  if (found != in_force_.end() && found->second.title.version >= title.version) return;
  const std::string* own = OwnValue(title);
  if (asked.has_value() && asked->title == title && asked->value.has_value()) {
    Use({title, *asked->value, from});
  } else if (own != nullptr) {
    Use({title, *own, from});
  } else if (title.bytes == 0) {
    Use({title, "", from});
  } else {
    missing_[title.kind] = {title, "", from};
    fetches_[++next_] = title;
    AskService(next_, Fetch{title.kind, title.version});
  }
}

void AgreementMember::Use(Held value) {
  const auto missing = missing_.find(value.title.kind);
  if (missing != missing_.end() && missing->second.title.version <= value.title.version) {
    missing_.erase(missing);
  }
  commands_.push_back(Adopt{value.title, value.value, value.from});
  const std::string kind = value.title.kind;
  in_force_[kind] = std::move(value);
}

std::string AgreementMember::Report() const {
  AgreementReport report;
  const auto add = [&](const ValueTitle& title, bool in_force, int64_t from,
                       const std::string& value) {
    report.entries.push_back({title, in_force, from, value});
  };
  for (const auto& [kind, value] : in_force_) add(value.title, true, value.from, value.value);
  for (const auto& [kind, value] : missing_) add(value.title, true, value.from, "");
  if (asked_.has_value() && asked_->value.has_value()) {
    add(asked_->title, false, 0, *asked_->value);
  }
  return EncodeReport(report);
}

}  // namespace syncopate::services
