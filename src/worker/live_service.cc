#include "worker/live_service.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"
#include "worker/awaited.h"

namespace syncopate::worker {
namespace {

using services::Change;
using transport::MailKind;

constexpr absl::string_view kTopics = "syncopate/service/";
// How soon what a peer did not take is tried again.
constexpr int64_t kPostAgainNs = 2'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<LiveService>> LiveService::Start(Mailbox& mailbox,
                                                                const Clock& clock,
                                                                const Options& options,
                                                                std::unique_ptr<Service> service,
                                                                Report report) {
  std::string name(service->name());
  if (name.empty() || name.size() > kServiceNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a service's name of ", name.size(), " bytes; it may have 1 to ", kServiceNameBytesMax));
  }
  if (!options.name.empty()) name = options.name;
  services::Services list;
  list.push_back(std::move(service));
  SYNCOPATE_ASSIGN_OR_RETURN(auto host,
                             services::ServiceHost::Make({.rank = options.rank,
                                                          .size = options.size,
                                                          .candidates = options.candidates,
                                                          .history = {}},
                                                         std::move(list), clock.NowNs()));
  auto live = std::unique_ptr<LiveService>(new LiveService(
      mailbox, clock, options.rank, std::move(name), std::move(host), std::move(report)));
  // From here on the host belongs to the control thread.
  SYNCOPATE_RETURN_IF_ERROR(
      mailbox.Receive(live->topic_, [self = live.get()](const Mail& mail) { self->Handle(mail); }));
  mailbox.Do([self = live.get()] { self->Drain(); });
  return live;
}

LiveService::LiveService(Mailbox& mailbox, const Clock& clock, int rank, std::string name,
                         std::unique_ptr<services::ServiceHost> host, Report report)
    : mailbox_(mailbox),
      clock_(clock),
      rank_(rank),
      name_(std::move(name)),
      topic_(absl::StrCat(kTopics, name_)),
      report_(std::move(report)),
      host_(std::move(host)) {}

absl::Status LiveService::Ask(std::string request, Answered answered) {
  return Enqueue({.number = 0, .bytes = std::move(request), .answered = std::move(answered)});
}

absl::Status LiveService::Enqueue(Request request) {
  {
    MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    if (requests_.size() + answered_.size() >= limits::kTicketsOpenMax) {
      return WithBlast(absl::ResourceExhaustedError(
                           absl::StrCat("service ", name_, ": ", limits::kTicketsOpenMax,
                                        " requests of this worker are not answered yet")),
                       BlastRadius::kOperation);
    }
    requests_.push_back(std::move(request));
    if (requests_.size() > 1) return absl::OkStatus();  // the control thread has been told
  }
  mailbox_.Do([this] { TakeRequests(); });
  return absl::OkStatus();
}

absl::StatusOr<std::string> LiveService::AskAndWait(std::string request, int64_t deadline_ns) {
  return EnqueueAndWait(0, std::move(request), deadline_ns);
}

absl::StatusOr<std::string> LiveService::StateAndWait(int64_t deadline_ns) {
  return EnqueueAndWait(services::kStateOfService, "", deadline_ns);
}

absl::StatusOr<std::string> LiveService::EnqueueAndWait(uint16_t number, std::string bytes,
                                                        int64_t deadline_ns) {
  const auto awaited = std::make_shared<Awaited<absl::StatusOr<std::string>>>();
  SYNCOPATE_RETURN_IF_ERROR(Enqueue({.number = number,
                                     .bytes = std::move(bytes),
                                     .answered = [awaited](absl::StatusOr<std::string> answer) {
                                       (void)awaited->Bring(answer);
                                     }}));
  std::optional<absl::StatusOr<std::string>> answer = awaited->Wait(clock_, deadline_ns);
  return answer.has_value() ? *std::move(answer) : TooLate();
}

absl::Status LiveService::TooLate() const {
  return WithBlast(
      absl::DeadlineExceededError(absl::StrCat("service ", name_, " did not answer rank ", rank_,
                                               " in time; has every worker added it?")),
      BlastRadius::kOperation);
}

void LiveService::Leave() {
  mailbox_.Do([this] {
    host_->Leave(clock_.NowNs());
    Drain();
  });
}

bool LiveService::WaitUntilMayLeave(int64_t deadline_ns) {
  MutexLock lock(&mutex_);
  while (!may_leave_ && status_.ok()) {
    const int64_t left_ns = deadline_ns - clock_.NowNs();
    if (left_ns <= 0) return false;
    changed_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
  }
  return true;
}

void LiveService::Close(const absl::Status& status) {
  std::vector<Answered> open;
  {
    MutexLock lock(&mutex_);
    if (status_.ok()) status_ = status;
    for (auto& [tag, answered] : std::exchange(answered_, {})) open.push_back(std::move(answered));
    for (Request& request : std::exchange(requests_, {})) {
      open.push_back(std::move(request.answered));
    }
    changed_.SignalAll();
  }
  for (const Answered& answered : open) answered(status);
}

absl::Status LiveService::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

void LiveService::Handle(const Mail& mail) {
  const int64_t now_ns = clock_.NowNs();
  if (mail.kind == Mail::Kind::kMessage || mail.kind == Mail::Kind::kParcel) {
    host_->Arrived(mail.from, mail.bytes, now_ns);
  } else {
    outboxes_.erase(mail.from);
    host_->Changed(
        {.kind = mail.kind == Mail::Kind::kLost ? Change::Kind::kLost : Change::Kind::kLeft,
         .rank = mail.from,
         .order = mail.order},
        now_ns);
  }
  Drain();
}

void LiveService::TakeRequests() {
  struct Tagged {
    uint64_t tag;
    uint16_t number;
    std::string bytes;
  };
  std::deque<Tagged> requests;
  {
    // At once, since Ask() counts both.
    MutexLock lock(&mutex_);
    for (Request& request : std::exchange(requests_, {})) {
      answered_[next_tag_] = std::move(request.answered);
      requests.push_back({next_tag_++, request.number, std::move(request.bytes)});
    }
  }
  for (auto& [tag, number, bytes] : requests) {
    const absl::StatusOr<uint64_t> ticket =
        host_->Ask(number, tag, std::move(bytes), clock_.NowNs());
    if (ticket.ok()) continue;
    if (const Answered answered = TakeAnswered(tag)) answered(ticket.status());
  }
  Drain();
}

LiveService::Answered LiveService::TakeAnswered(uint64_t tag) {
  MutexLock lock(&mutex_);
  const auto found = answered_.extract(tag);
  return found.empty() ? nullptr : std::move(found.mapped());
}

void LiveService::Drain() {
  for (std::vector<services::ServiceCommand> commands = host_->TakeCommands(); !commands.empty();
       commands = host_->TakeCommands()) {
    for (services::ServiceCommand& command : commands) {
      std::visit([this](auto& what) { Carry(what); }, command);
    }
  }
  TickLater();
}

void LiveService::TickLater() {
  const int64_t next_ns = host_->NextTickNs();
  if (next_ns >= tick_at_ns_) return;
  tick_at_ns_ = next_ns;
  mailbox_.DoAt(next_ns, [this] {
    tick_at_ns_ = INT64_MAX;
    host_->Tick(clock_.NowNs());
    Drain();
  });
}

void LiveService::Carry(services::Send& command) {
  Post(command.to, MailKind::kMessage, std::move(command.bytes));
}

void LiveService::Carry(services::SendParcel& command) {
  Post(command.to, MailKind::kParcel, std::move(command.bytes));
}

// Mail to one that does not take it quickly enough waits here. How much that can be follows from the
// open tickets of workers and from what may be on its way to a standby. Mail to one that is gone is
// dropped: its departure is on its way to this worker.
void LiveService::Post(int to, MailKind kind, std::string bytes) {
  const auto found = outboxes_.find(to);
  const auto k = static_cast<size_t>(kind);
  if ((found == outboxes_.end() || found->second.waiting[k].empty()) &&
      !absl::IsResourceExhausted(mailbox_.Send(to, kind, topic_, bytes))) {
    return;
  }
  outboxes_[to].waiting[k].push_back(std::move(bytes));
  if (std::exchange(posts_again_, true)) return;
  mailbox_.DoAt(clock_.NowNs() + kPostAgainNs, [this] { PostAgain(); });
}

void LiveService::PostAgain() {
  posts_again_ = false;
  for (auto outbox = outboxes_.begin(); outbox != outboxes_.end();) {
    bool empty = true;
    for (const MailKind kind : {MailKind::kMessage, MailKind::kParcel}) {
      std::deque<std::string>& waiting = outbox->second.waiting[static_cast<size_t>(kind)];
      while (!waiting.empty() && !absl::IsResourceExhausted(
                                     mailbox_.Send(outbox->first, kind, topic_, waiting.front()))) {
        waiting.pop_front();
      }
      empty = empty && waiting.empty();
    }
    outbox = empty ? outboxes_.erase(outbox) : std::next(outbox);
  }
  if (outboxes_.empty()) return;
  posts_again_ = true;
  mailbox_.DoAt(clock_.NowNs() + kPostAgainNs, [this] { PostAgain(); });
}

void LiveService::Carry(services::Answered& command) {
  const Answered answered = TakeAnswered(command.tag);
  if (!answered) return;
  if (command.code == absl::StatusCode::kOk) return answered(std::move(command.bytes));
  answered(WithBlast(At(absl::StrCat("service ", name_), absl::Status(command.code, command.bytes)),
                     BlastRadius::kOperation));
}

void LiveService::Carry(services::ReportWanted& command) {
  host_->GiveReports(command.incarnation, {report_ ? report_() : std::string()}, clock_.NowNs());
}

void LiveService::Carry(services::MayLeave& /*command*/) {
  MutexLock lock(&mutex_);
  may_leave_ = true;
  changed_.SignalAll();
}

void LiveService::Carry(services::EndJob& command) {
  Close(WithBlast(At(absl::StrCat("service ", name_), command.status), BlastRadius::kJob));
}

void LiveService::Carry(services::Remark& command) {
  Log(command.important ? LogLevel::kWarn : LogLevel::kTrace, "services: ", command.text);
}

}  // namespace syncopate::worker
