#include "services/service_host.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"

namespace syncopate::services {

absl::StatusOr<std::unique_ptr<ServiceHost>> ServiceHost::Make(ServiceHostOptions options,
                                                               Services services, int64_t now_ns) {
  if (services.size() > limits::kServicesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(services.size(), " services; the limit is ", limits::kServicesMax));
  }
  if (!options.order.has_value()) {
    SYNCOPATE_ASSIGN_OR_RETURN(options.order,
                               HostOrder::Make(options.size, std::move(options.candidates)));
  }
  HostOrder order = *std::move(options.order);
  for (const Change& change : options.history) SYNCOPATE_RETURN_IF_ERROR(order.Apply(change));
  if (!order.IsLive(options.rank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, " is not a live worker of the job"));
  }
  const bool first = options.history.empty();
  auto host =
      std::unique_ptr<ServiceHost>(new ServiceHost(options, std::move(order), std::move(services)));
  // At the beginning every worker has the state of host and standby: that of new services.
  host->loaded_ =
      first && (host->order_.host() == options.rank || host->order_.standby() == options.rank);
  if (host->order_.host() == options.rank) host->TakeOver();
  host->Settle(now_ns);
  return host;
}

ServiceHost::ServiceHost(const ServiceHostOptions& options, HostOrder order, Services services)
    : rank_(options.rank), order_(std::move(order)), machine_(std::move(services)) {}

absl::StatusOr<uint64_t> ServiceHost::Ask(uint16_t service, uint64_t tag, std::string request,
                                          int64_t now_ns) {
  if (role_ == Role::kEnded) return absl::FailedPreconditionError("the services have ended");
  if ((service & ~kStateOfService) >= static_cast<int>(machine_.services())) {
    return absl::NotFoundError(absl::StrCat("there is no service ", service));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(
      const uint64_t ticket,
      tickets_.Open({.service = service, .tag = tag, .bytes = std::move(request)}));
  SendTo(ticket);
  Settle(now_ns);
  return ticket;
}

void ServiceHost::GiveReports(uint64_t incarnation, std::vector<std::string> reports,
                              int64_t now_ns) {
  if (role_ == Role::kEnded || incarnation != order_.incarnation()) return;
  Post(order_.host(), incarnation, ReportMessage{.reports = std::move(reports)});
  Settle(now_ns);
}

void ServiceHost::Leave(int64_t now_ns) {
  if (role_ == Role::kEnded || leaving_) return;
  leaving_ = true;
  if (order_.host() >= 0) {
    Post(order_.host(), order_.incarnation(), LeavingMessage{});
  } else {
    commands_.push_back(MayLeave{});
  }
  Settle(now_ns);
}

void ServiceHost::Arrived(int from, absl::string_view bytes, int64_t now_ns) {
  if (role_ == Role::kEnded || !order_.IsLive(from)) return;
  absl::StatusOr<ServiceMessage> message = DecodeMessage(bytes);
  if (!message.ok()) {
    ++dropped_;
    commands_.push_back(Remark{
        .text = absl::StrCat("rank ", from, ": ", message.status().message()), .important = true});
    return;
  }
  Handle(from, *std::move(message), now_ns);
  Settle(now_ns);
}

void ServiceHost::Changed(const Change& change, int64_t now_ns) {
  if (role_ == Role::kEnded) return;
  if (change.rank == rank_) return Finish(absl::AbortedError("this worker is lost to the job"));
  const int host_before = order_.host();
  const absl::Status applied = order_.Apply(change);
  if (!applied.ok()) return End(applied);
  if (change.kind != Change::Kind::kJoined) {
    kept_.erase(change.rank);
    kept_leaving_.erase(change.rank);
    leavers_.erase(change.rank);
    permitted_.erase(change.rank);
    replicas_.Remove(change.rank);
    reports_missing_.erase(change.rank);
    reports_.erase(change.rank);
  }
  if (role_ == Role::kHost) {
    inbox_.push_back(change);
    if (order_.standby() >= 0 && !replicas_.Contains(order_.standby())) {
      AddReplica(order_.standby());
    }
  } else if (role_ == Role::kRebuilding) {
    if (change.kind == Change::Kind::kJoined) {
      reports_missing_.insert(change.rank);
      Post(change.rank, order_.incarnation(), ReportWantedMessage{});
    }
    TryRebuild(now_ns);
  } else if (order_.host() != host_before) {
    if (order_.host() == rank_) {
      TakeOver();
    } else if (order_.standby() != rank_ && machine_incarnation_ < order_.incarnation()) {
      // From here on the new host and its standby may answer without this worker's word.
      loaded_ = false;
    }
    FollowHost();
  }
  Settle(now_ns);
}

void ServiceHost::Tick(int64_t now_ns) {
  if (role_ == Role::kHost && inbox_.empty()) {
    // Each service at most once in a call, whatever it says next.
    for (uint16_t i = 0; i < machine_.services(); ++i) {
      if (machine_.service(i).NextDeadlineNs() <= ServiceNow(now_ns)) {
        inbox_.push_back(LoggedTick{.service = i});
      }
    }
  }
  Settle(now_ns);
}

int64_t ServiceHost::NextTickNs() const {
  if (role_ != Role::kHost || !inbox_.empty() || leaving_) return INT64_MAX;
  const int64_t deadline_ns = machine_.NextDeadline().second;
  return deadline_ns == INT64_MAX ? INT64_MAX : deadline_ns - clock_offset_ns_;
}

std::vector<ServiceCommand> ServiceHost::TakeCommands() { return std::exchange(commands_, {}); }

void ServiceHost::Post(int to, uint64_t incarnation, decltype(ServiceMessage::body) body) {
  ServiceMessage message = {.incarnation = incarnation, .body = std::move(body)};
  if (to == rank_) {
    own_mail_.push_back(std::move(message));
  } else if (to >= 0) {
    PostEncoded(to, EncodeMessage(message));
  }
}

void ServiceHost::PostEncoded(int to, std::string bytes) {
  if (bytes.size() <= limits::kMailBytesMax) {
    commands_.push_back(Send{to, std::move(bytes)});
  } else if (bytes.size() <= limits::kParcelBytesMax) {
    commands_.push_back(SendParcel{to, std::move(bytes)});
  } else {
    End(absl::ResourceExhaustedError(absl::StrCat("the services have ", bytes.size(),
                                                  " bytes for rank ", to, "; the limit is ",
                                                  limits::kParcelBytesMax)));
  }
}

void ServiceHost::Handle(int from, ServiceMessage message, int64_t now_ns) {
  std::visit([&](auto& body) { On(from, message.incarnation, std::move(body), now_ns); },
             message.body);
}

// Does what follows from the call before: mail to oneself, steps, answers, leave to go.
void ServiceHost::Settle(int64_t now_ns) {
  do {
    while (!own_mail_.empty() && role_ != Role::kEnded) {
      ServiceMessage message = std::move(own_mail_.front());
      own_mail_.pop_front();
      Handle(rank_, std::move(message), now_ns);
    }
    if (role_ == Role::kHost) StepInbox(now_ns);
    if (role_ == Role::kHost) ReleaseAnswers();
    if (role_ == Role::kHost) PermitLeaving();
  } while (!own_mail_.empty() && role_ != Role::kEnded);
}

// The services cannot go on: everybody must know.
void ServiceHost::End(const absl::Status& status) {
  if (role_ == Role::kEnded) return;
  const EndedMessage ended = {
      .code = status.code(),
      .reason = std::string(status.message().substr(0, limits::kServiceErrorBytesMax))};
  for (const int rank : order_.LiveRanks()) {
    if (rank != rank_) Post(rank, order_.incarnation(), ended);
  }
  Finish(status);
}

void ServiceHost::Finish(const absl::Status& status) {
  role_ = Role::kEnded;
  own_mail_.clear();
  commands_.push_back(EndJob{status});
}

void ServiceHost::SendTo(uint64_t ticket) {
  if (order_.host() >= 0) {
    Post(order_.host(), order_.incarnation(), tickets_.MessageOf(ticket));
  } else {
    own_mail_.push_back(
        {.incarnation = order_.incarnation(),
         .body = AnswerMessage{.ticket = ticket,
                               .code = absl::StatusCode::kUnavailable,
                               .bytes = "no worker is left that may host services"}});
  }
}

void ServiceHost::FollowHost() {
  for (const uint64_t ticket : tickets_.numbers()) SendTo(ticket);
  if (leaving_) {
    if (order_.host() >= 0) {
      Post(order_.host(), order_.incarnation(), LeavingMessage{});
    } else {
      own_mail_.push_back({.incarnation = order_.incarnation(), .body = MayLeaveMessage{}});
    }
  }
  AnswerReportWanted();
}

void ServiceHost::AnswerReportWanted() {
  if (report_wanted_ == 0 || report_wanted_ > order_.incarnation()) return;
  if (report_wanted_ == order_.incarnation()) {
    commands_.push_back(ReportWanted{.incarnation = report_wanted_});
  }
  report_wanted_ = 0;
}

void ServiceHost::On(int from, uint64_t incarnation, RequestMessage body, int64_t /*now_ns*/) {
  if (role_ == Role::kHost) {
    // A host that leaves takes nothing more on: askers send it again to the next one.
    if (leaving_) return;
    inbox_.push_back(LoggedRequest{from, std::move(body)});
  } else if (role_ == Role::kRebuilding || incarnation > order_.incarnation()) {
    std::vector<RequestMessage>& of_asker = kept_[from];
    if (of_asker.size() >= limits::kTicketsOpenMax) {
      ++dropped_;
    } else {
      of_asker.push_back(std::move(body));
    }
  } else {
    ++dropped_;
  }
}

void ServiceHost::On(int /*from*/, uint64_t /*incarnation*/, AnswerMessage body,
                     int64_t /*now_ns*/) {
  std::optional<OpenTickets::Ticket> ticket = tickets_.Close(body.ticket);
  if (!ticket.has_value()) {
    ++dropped_;
    return;
  }
  commands_.push_back(Answered{.service = ticket->service,
                               .tag = ticket->tag,
                               .ticket = body.ticket,
                               .code = body.code,
                               .bytes = std::move(body.bytes)});
}

void ServiceHost::On(int from, uint64_t incarnation, EventMessage body, int64_t now_ns) {
  if (role_ != Role::kFollower || incarnation < machine_incarnation_ ||
      incarnation < early_incarnation_ || early_.size() >= limits::kReplicationBytesMax / 16) {
    ++dropped_;
    return;
  }
  if (incarnation > early_incarnation_) {
    early_.clear();
    early_incarnation_ = incarnation;
  }
  const uint64_t sequence = body.sequence;
  early_.emplace(sequence, std::move(body));
  // Else the state, which comes as a parcel, is on its way.
  if (loaded_ && machine_incarnation_ == incarnation) StepEarly(from, now_ns);
}

void ServiceHost::On(int from, uint64_t incarnation, StateMessage body, int64_t now_ns) {
  if (role_ != Role::kFollower || incarnation < machine_incarnation_ ||
      (loaded_ && incarnation == machine_incarnation_)) {
    ++dropped_;
    return;
  }
  const absl::Status loaded = machine_.Load(body.bytes);
  if (!loaded.ok()) return End(At(absl::StrCat("the services' state from rank ", from), loaded));
  loaded_ = true;
  machine_incarnation_ = incarnation;
  clock_offset_ns_ = machine_.now_ns() - now_ns;
  if (early_incarnation_ < incarnation) early_.clear();
  early_incarnation_ = incarnation;
  StepEarly(from, now_ns);
}

void ServiceHost::StepEarly(int from, int64_t now_ns) {
  const uint64_t before = machine_.sequence();
  early_.erase(early_.begin(), early_.upper_bound(before));
  while (!early_.empty() && early_.begin()->first == machine_.sequence() + 1) {
    const EventMessage& event = early_.begin()->second;
    machine_.Apply(machine_incarnation_, event);
    clock_offset_ns_ = machine_.now_ns() - now_ns;
    early_.erase(early_.begin());
  }
  Post(from, machine_incarnation_,
       AckMessage{.sequence = machine_.sequence(), .digest = machine_.digest()});
}

void ServiceHost::On(int from, uint64_t incarnation, AckMessage body, int64_t /*now_ns*/) {
  if (role_ != Role::kHost || incarnation != order_.incarnation()) {
    ++dropped_;
    return;
  }
  const absl::Status acked = replicas_.Acked(from, body);
  if (!acked.ok()) End(acked);
}

void ServiceHost::On(int from, uint64_t incarnation, LeavingMessage /*body*/, int64_t /*now_ns*/) {
  if (role_ == Role::kHost) {
    leavers_.insert(from);
  } else if (role_ == Role::kRebuilding || incarnation > order_.incarnation()) {
    kept_leaving_.insert(from);
  }
}

void ServiceHost::On(int /*from*/, uint64_t /*incarnation*/, MayLeaveMessage /*body*/,
                     int64_t /*now_ns*/) {
  if (!leaving_ || may_leave_) return;
  may_leave_ = true;
  commands_.push_back(MayLeave{});
}

void ServiceHost::On(int from, uint64_t incarnation, EndedMessage body, int64_t /*now_ns*/) {
  // Passed on, since the one that says it may be lost before it has told everybody.
  for (const int rank : order_.LiveRanks()) {
    if (rank != rank_ && rank != from) Post(rank, incarnation, body);
  }
  Finish(At(absl::StrCat("rank ", from), absl::Status(body.code, body.reason)));
}

void ServiceHost::On(int /*from*/, uint64_t incarnation, ReportWantedMessage /*body*/,
                     int64_t /*now_ns*/) {
  // What this worker knows is complete once it knows of all the losses before that host.
  report_wanted_ = std::max(report_wanted_, incarnation);
  AnswerReportWanted();
}

void ServiceHost::On(int from, uint64_t incarnation, ReportMessage body, int64_t now_ns) {
  if (role_ != Role::kRebuilding || incarnation != order_.incarnation() ||
      reports_missing_.erase(from) == 0) {
    ++dropped_;
    return;
  }
  reports_[from] = std::move(body);
  TryRebuild(now_ns);
}

}  // namespace syncopate::services
