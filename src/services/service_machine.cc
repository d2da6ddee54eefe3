#include "services/service_machine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/status.h"
#include "services/service_state.h"

namespace syncopate::services {

ServiceMachine::ServiceMachine(Services services) : services_(std::move(services)) {}

// Most workers of a job step no service, so they need not know what a new one's state is.
void ServiceMachine::KeepFirstStates() {
  if (!first_states_.empty()) return;
  for (const auto& service : services_) first_states_.push_back(service->State());
}

void ServiceMachine::Take(uint16_t service, ServiceStep step, Step& into) {
  for (Answer& answer : step.answers) {
    Close(service, services_[service]->name(), std::move(answer), into);
  }
  if (step.reason.empty()) return;
  into.service = service;
  into.reason = std::move(step.reason);
}

void ServiceMachine::Close(uint16_t number, absl::string_view name, Answer answer, Step& into) {
  if (answer.bytes.size() > limits::kServiceBytesMax) {
    answer = Refusal(answer.to, answer.ticket,
                     absl::ResourceExhaustedError(
                         absl::StrCat("service ", name, " answers with ", answer.bytes.size(),
                                      " bytes; the limit is ", limits::kServiceBytesMax)));
  }
  if (book_.Close(number, answer)) into.answers.push_back(std::move(answer));
}

void ServiceMachine::AnswerItself(uint64_t incarnation, const LoggedRequest& logged, Step& into) {
  const uint16_t number = logged.request.service;
  const size_t index = number ^ kStateOfService;
  if (index >= services_.size()) {
    return Close(number, "",
                 Refusal(logged.from, logged.request.ticket,
                         absl::NotFoundError(absl::StrCat("there is no service ", number))),
                 into);
  }
  const Service& service = *services_[index];
  ServiceState state = {.moment = {.incarnation = incarnation, .sequence = sequence_}};
  if (service.CanResume()) state.state = service.State();
  Close(number, service.name(),
        {.to = logged.from,
         .ticket = logged.request.ticket,
         .bytes = EncodeServiceState(state),
         .kept = false},
        into);
}

ServiceMachine::Step ServiceMachine::Apply(uint64_t incarnation, const EventMessage& message) {
  KeepFirstStates();
  sequence_ = message.sequence;
  now_ns_ = std::max(now_ns_, message.now_ns);
  const ServiceContext context = {.now_ns = now_ns_, .incarnation = incarnation};
  Step step;
  if (const auto* logged = std::get_if<LoggedRequest>(&message.event)) {
    const RequestMessage& request = logged->request;
    switch (book_.Enter(logged->from, request.ticket, request.service, request.open)) {
      case TicketBook::Found::kNew:
        if (request.service < services_.size()) {
          Take(request.service,
               services_[request.service]->Step(context,
                                                Asked{logged->from, request.ticket, request.bytes}),
               step);
        } else {
          AnswerItself(incarnation, *logged, step);
        }
        break;
      case TicketBook::Found::kAnswered:
        step.answers.push_back(book_.kept());
        break;
      case TicketBook::Found::kOpen:
      case TicketBook::Found::kOld:
        break;
    }
  } else if (const auto* change = std::get_if<Change>(&message.event)) {
    changes_ = change->order;
    const bool joins = change->kind == Change::Kind::kJoined;
    // Answers to one that is gone go nowhere from here on.
    if (!joins) book_.Forget(change->rank);
    for (uint16_t i = 0; i < services_.size(); ++i) {
      const ServiceEvent event =
          joins ? ServiceEvent(Joined{change->rank})
                : ServiceEvent(Departed{change->rank, change->kind == Change::Kind::kLeft});
      Take(i, services_[i]->Step(context, event), step);
    }
  } else if (const auto* tick = std::get_if<LoggedTick>(&message.event)) {
    if (tick->service < services_.size()) {
      Take(tick->service, services_[tick->service]->Step(context, TimePassed{}), step);
    }
  }
  std::string decided;
  Append(decided, digest_);
  Append(decided, sequence_);
  for (const Answer& answer : step.answers) {
    AppendRank(decided, answer.to);
    Append(decided, answer.ticket);
    Append(decided, static_cast<uint8_t>(answer.code));
    // Large answers are values, which carry digests of their own.
    AppendSized(decided, absl::string_view(answer.bytes).substr(0, limits::kMailBytesMax));
  }
  digest_ = DigestOf(decided).low;
  return step;
}

std::pair<uint16_t, int64_t> ServiceMachine::NextDeadline() const {
  std::pair<uint16_t, int64_t> next = {0, INT64_MAX};
  for (uint16_t i = 0; i < services_.size(); ++i) {
    const int64_t deadline_ns = services_[i]->NextDeadlineNs();
    if (deadline_ns < next.second) next = {i, deadline_ns};
  }
  return next;
}

std::string ServiceMachine::State() const {
  std::string out;
  Append(out, sequence_);
  Append(out, now_ns_);
  Append(out, changes_);
  Append(out, digest_);
  book_.AppendTo(out);
  Append(out, static_cast<uint32_t>(services_.size()));
  for (const auto& service : services_) {
    AppendSized(out, service->name());
    AppendSized(out, service->State());
  }
  return out;
}

absl::Status ServiceMachine::Load(absl::string_view state) {
  KeepFirstStates();
  ByteReader reader(state);
  sequence_ = reader.Read<uint64_t>();
  now_ns_ = reader.Read<int64_t>();
  changes_ = reader.Read<uint64_t>();
  digest_ = reader.Read<uint64_t>();
  SYNCOPATE_RETURN_IF_ERROR(book_.Load(reader));
  const uint32_t count = ReadCount(reader, limits::kServicesMax, 2 * sizeof(uint32_t));
  if (reader.ok() && count != services_.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the host has ", count, " services, and this worker ", services_.size()));
  }
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    const std::string name = ReadSized(reader, limits::kMailBytesMax);
    const std::string bytes = ReadSized(reader, limits::kParcelBytesMax);
    if (!reader.ok()) break;
    if (name != services_[i]->name()) {
      return absl::FailedPreconditionError(absl::StrCat("service ", i, " is ", name,
                                                        " at the host, and ", services_[i]->name(),
                                                        " at this worker"));
    }
    SYNCOPATE_RETURN_IF_ERROR(services_[i]->Load(bytes));
  }
  if (!reader.AtEnd()) return absl::DataLossError("a service state cannot be read");
  return absl::OkStatus();
}

std::string ServiceMachine::ThoseThatCannotRebuild() const {
  std::vector<absl::string_view> names;
  for (const auto& service : services_) {
    if (!service->CanRebuild()) names.push_back(service->name());
  }
  return absl::StrJoin(names, ", ");
}

bool ServiceMachine::CanRebuild() const { return ThoseThatCannotRebuild().empty(); }

absl::StatusOr<std::string> ServiceMachine::Rebuild(
    uint64_t incarnation, uint64_t changes, int64_t now_ns,
    const std::vector<std::pair<int, ReportMessage>>& reports) {
  KeepFirstStates();
  book_.Clear();
  changes_ = changes;
  now_ns_ = now_ns;
  digest_ = 0;
  std::vector<std::string> repeats;
  for (size_t i = 0; i < services_.size(); ++i) {
    std::vector<ServiceReport> of_service;
    for (const auto& [from, report] : reports) {
      if (i < report.reports.size()) of_service.push_back({from, report.reports[i]});
    }
    SYNCOPATE_RETURN_IF_ERROR(services_[i]->Load(first_states_[i]));
    SYNCOPATE_ASSIGN_OR_RETURN(
        const std::string repeat,
        services_[i]->Rebuild({.now_ns = now_ns_, .incarnation = incarnation}, of_service));
    if (!repeat.empty()) repeats.push_back(absl::StrCat(services_[i]->name(), ": ", repeat));
  }
  return absl::StrJoin(repeats, "; ");
}

}  // namespace syncopate::services
