#include "worker/live_agreement.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "services/agreement.h"

namespace syncopate::worker {
namespace {

// So that what the member itself asks always finds an open place (limits::kTicketsOpenMax).
constexpr size_t kProposalsOpenMax = 32;

}  // namespace

absl::StatusOr<std::unique_ptr<LiveAgreement>> LiveAgreement::Start(
    Mailbox& mailbox, const Clock& clock, const LiveService::Options& options) {
  std::vector<int> everyone(static_cast<size_t>(options.size));
  std::iota(everyone.begin(), everyone.end(), 0);
  auto live = std::unique_ptr<LiveAgreement>(new LiveAgreement(mailbox, clock));
  LiveAgreement* const self = live.get();
  SYNCOPATE_ASSIGN_OR_RETURN(
      live->service_, LiveService::Start(mailbox, clock, options,
                                         std::make_unique<services::Agreement>(everyone), [self] {
                                           MutexLock lock(&self->mutex_);
                                           return self->member_.Report();
                                         }));
  // The member listens from its beginning.
  mailbox.Do([self] { self->Carry(); });
  return live;
}

absl::Status LiveAgreement::Register(Kind kind, int64_t position) {
  {
    MutexLock lock(&mutex_);
    const std::string name = kind.name;
    if (!kinds_.try_emplace(name, std::move(kind)).second) {
      return absl::AlreadyExistsError(absl::StrCat("agreement on ", name, " is registered twice"));
    }
    member_.Reached(name, position);
    // What came before goes its way now.
    for (Member::Check& check : std::exchange(unknown_, {})) commands_.push_back(std::move(check));
  }
  mailbox_.Do([this] { Carry(); });
  return absl::OkStatus();
}

void LiveAgreement::Release(absl::string_view kind) {
  {
    MutexLock lock(&mutex_);
    const auto found = kinds_.find(kind);
    if (found == kinds_.end()) return;
    kinds_.erase(found);
    member_.Release(kind);
    TakeCommands();
  }
  mailbox_.Do([this] { Carry(); });
}

absl::Status LiveAgreement::Propose(absl::string_view kind, uint64_t version, const Digest& digest,
                                    std::string value, Decided decided) {
  {
    MutexLock lock(&mutex_);
    const auto found = kinds_.find(kind);
    if (found == kinds_.end()) {
      return absl::NotFoundError(absl::StrCat("agreement on ", kind, " is not registered"));
    }
    if (decided_.size() >= kProposalsOpenMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat(decided_.size(), " proposals of this worker are not decided yet"));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const uint64_t number,
                               member_.Propose({.kind = std::string(kind),
                                                .version = version,
                                                .scale = found->second.scale,
                                                .unit = found->second.unit,
                                                .further = found->second.further,
                                                .digest = digest},
                                               std::move(value)));
    decided_[number] = std::move(decided);
    TakeCommands();
  }
  mailbox_.Do([this] { Carry(); });
  return absl::OkStatus();
}

absl::Status LiveAgreement::Reach(absl::string_view kind, int64_t position, int64_t deadline_ns) {
  MutexLock lock(&mutex_);
  int64_t begin_ns = INT64_MAX;
  while (member_.status().ok() && position > Limit(kind)) {
    begin_ns = std::min(begin_ns, clock_.NowNs());
    const int64_t left_ns = deadline_ns - clock_.NowNs();
    if (left_ns <= 0) {
      return WithBlast(absl::DeadlineExceededError(absl::StrCat(
                           "waited ", (clock_.NowNs() - begin_ns) / 1'000'000, " ms at position ",
                           position - 1, " for the outcome of ", WhatIsOpen(),
                           ": another worker does not say what it thinks of it")),
                       BlastRadius::kJob);
    }
    changed_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
  }
  if (position > Limit(kind)) {
    return WithBlast(
        absl::AbortedError(absl::StrCat("this worker will not learn the outcome of ", WhatIsOpen(),
                                        " (", member_.status().message(),
                                        "), which others may use from position ", position, " on")),
        BlastRadius::kJob);
  }
  member_.Reached(kind, position);
  if (begin_ns != INT64_MAX) {
    Log(LogLevel::kInfo, "waited ", (clock_.NowNs() - begin_ns) / 1000, " us before position ",
        position, " for the outcome of ", WhatIsOpen());
  }
  return member_.status();
}

bool LiveAgreement::MayReach(absl::string_view kind, int64_t position) {
  MutexLock lock(&mutex_);
  return !member_.status().ok() || position <= Limit(kind);
}

int64_t LiveAgreement::Limit(absl::string_view kind) const {
  int64_t limit = member_.Limit(kind);
  for (const auto& [of, from] : adopting_) {
    if (of == kind) limit = std::min(limit, from - 1);
  }
  return limit;
}

std::string LiveAgreement::WhatIsOpen() const {
  return asked_.has_value() ? services::Describe(*asked_) : "what is agreed on";
}

void LiveAgreement::TakeCommands() {
  for (Member::Command& command : member_.TakeCommands()) {
    if (const auto* adopt = std::get_if<Member::Adopt>(&command)) {
      adopting_.emplace_back(adopt->title.kind, adopt->from);
    }
    commands_.push_back(std::move(command));
  }
}

void LiveAgreement::Carry() {
  for (;;) {
    std::deque<Member::Command> commands;
    {
      MutexLock lock(&mutex_);
      TakeCommands();
      commands = std::exchange(commands_, {});
      changed_.SignalAll();  // the limit may have moved
    }
    if (commands.empty()) return;
    for (Member::Command& command : commands) {
      std::visit([this](auto& what) { Carry(what); }, command);
    }
  }
}

void LiveAgreement::Carry(Member::Ask& ask) {
  const uint64_t tag = ask.tag;
  const absl::Status asked =
      service_->Ask(std::move(ask.bytes), [this, tag](const absl::StatusOr<std::string>& answer) {
        Answer(tag, answer);
        Carry();
      });
  if (!asked.ok()) Answer(tag, asked);
}

void LiveAgreement::Answer(uint64_t tag, const absl::StatusOr<std::string>& answer) {
  MutexLock lock(&mutex_);
  if (answer.ok()) {
    member_.Answered(tag, absl::StatusCode::kOk, *answer);
  } else {
    member_.Answered(tag, answer.status().code(), answer.status().message());
  }
  TakeCommands();
}

void LiveAgreement::Carry(Member::Check& check) {
  decltype(Kind::check) how;
  {
    MutexLock lock(&mutex_);
    asked_ = check.title;
    const auto found = kinds_.find(check.title.kind);
    if (found == kinds_.end()) {
      if (!member_.Released(check.title.kind)) {
        unknown_.push_back(std::move(check));
        return;
      }
      member_.CheckedTooLate(check.round);
      return TakeCommands();
    }
    how = found->second.check;
  }
  how(check.title.version, std::move(check.value),
      [this, round = check.round](const absl::StatusOr<Digest>& digest) {
        {
          MutexLock lock(&mutex_);
          member_.Checked(round, digest);
          TakeCommands();
        }
        mailbox_.Do([this] { Carry(); });
      });
}

void LiveAgreement::Carry(Member::Adopt& adopt) {
  decltype(Kind::adopt) how;
  const std::pair<std::string, int64_t> place = {adopt.title.kind, adopt.from};
  {
    MutexLock lock(&mutex_);
    // A worker that has answered for a kind knows it, unless it has let go of it since.
    if (const auto found = kinds_.find(adopt.title.kind); found != kinds_.end()) {
      how = found->second.adopt;
    }
  }
  if (how) how(adopt.title.version, std::move(adopt.value), adopt.from);
  MutexLock lock(&mutex_);
  if (const auto done = std::find(adopting_.begin(), adopting_.end(), place);
      done != adopting_.end()) {
    adopting_.erase(done);
  }
  changed_.SignalAll();
}

void LiveAgreement::Carry(Member::Decided& decided) {
  Decided tell;
  {
    MutexLock lock(&mutex_);
    if (const auto found = decided_.extract(decided.proposal); !found.empty()) {
      tell = std::move(found.mapped());
    }
  }
  if (!tell) return;
  if (decided.status.ok()) return tell(decided.from);
  tell(decided.status);
}

}  // namespace syncopate::worker
