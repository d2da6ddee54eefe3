// What a worker does as the host of the services: taking over, stepping, replicating, answering,
// letting others leave, and rebuilding what was lost with the host before and its standby.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/service_host.h"

namespace syncopate::services {

int64_t ServiceHost::ServiceNow(int64_t now_ns) const {
  return std::max(machine_.now_ns(), now_ns + clock_offset_ns_);
}

void ServiceHost::TakeOver() {
  if (loaded_) {
    // Events with a gap before them were not acknowledged, so nobody has seen what they led to.
    early_.clear();
    for (const Change& change : order_.changes()) {
      if (change.order > machine_.changes()) inbox_.push_back(change);
    }
    return BeginHosting();
  }
  if (!machine_.CanRebuild()) {
    return End(absl::UnavailableError(
        absl::StrCat("the host of the services and its standby were lost together, and what they "
                     "knew with them; "
                     "rank ",
                     rank_, " cannot rebuild: ", machine_.ThoseThatCannotRebuild())));
  }
  role_ = Role::kRebuilding;
  early_.clear();
  for (const int rank : order_.LiveRanks()) {
    reports_missing_.insert(rank);
    Post(rank, order_.incarnation(), ReportWantedMessage{});
  }
}

void ServiceHost::TryRebuild(int64_t now_ns) {
  if (role_ != Role::kRebuilding || !reports_missing_.empty()) return;
  const std::vector<std::pair<int, ReportMessage>> reports(reports_.begin(), reports_.end());
  reports_.clear();
  const absl::StatusOr<std::string> repeats =
      machine_.Rebuild(order_.incarnation(), order_.changes().size(), ServiceNow(now_ns), reports);
  if (!repeats.ok()) return End(repeats.status());
  const std::vector<int> live = order_.LiveRanks();
  // At the end of a job all go at once, which nobody need hear of.
  const bool all_go = leaving_ && std::all_of(live.begin(), live.end(), [&](int rank) {
                        return rank == rank_ || kept_leaving_.contains(rank);
                      });
  commands_.push_back(Remark{
      .text = absl::StrCat("the host of the services and its standby were lost together; rank ",
                           rank_, " has rebuilt them", repeats->empty() ? "" : ": ", *repeats),
      .important = !all_go});
  loaded_ = true;
  BeginHosting();
}

void ServiceHost::BeginHosting() {
  role_ = Role::kHost;
  machine_incarnation_ = order_.incarnation();
  if (order_.standby() >= 0) {
    if (order_.changes().empty()) {
      // The first standby of a job has the state of new services by itself.
      replicas_.Add(order_.standby(), machine_.sequence(), machine_.digest(), /*loaded=*/true);
    } else {
      AddReplica(order_.standby());
    }
  }
  for (auto& [from, requests] : kept_) {
    for (RequestMessage& request : requests) {
      inbox_.push_back(LoggedRequest{from, std::move(request)});
    }
  }
  kept_.clear();
  leavers_.merge(kept_leaving_);
  kept_leaving_.clear();
}

void ServiceHost::AddReplica(int rank) {
  replicas_.Add(rank, machine_.sequence(), machine_.digest(), /*loaded=*/false);
  Post(rank, order_.incarnation(), StateMessage{.bytes = machine_.State()});
}

void ServiceHost::StepInbox(int64_t now_ns) {
  while (!inbox_.empty() && !leaving_ && replicas_.HasRoom()) {
    ServiceMessage message = {.incarnation = order_.incarnation(),
                              .body = EventMessage{.sequence = machine_.sequence() + 1,
                                                   .now_ns = ServiceNow(now_ns),
                                                   .event = std::move(inbox_.front())}};
    inbox_.pop_front();
    const auto& event = std::get<EventMessage>(message.body);
    ServiceMachine::Step step = machine_.Apply(order_.incarnation(), event);
    for (Answer& answer : step.answers) held_.emplace_back(event.sequence, std::move(answer));
    if (!step.reason.empty()) {
      commands_.push_back(
          Remark{.text = absl::StrCat(machine_.service(step.service).name(), ": ", step.reason)});
    }
    if (replicas_.empty()) continue;
    const std::string bytes = EncodeMessage(message);
    replicas_.Sent(event.sequence, machine_.digest(), bytes.size());
    for (const int rank : replicas_.ranks()) PostEncoded(rank, bytes);
    if (role_ != Role::kHost) return;
  }
}

void ServiceHost::ReleaseAnswers() {
  const uint64_t acked = replicas_.AckedByAll(machine_.sequence());
  while (!held_.empty() && held_.front().first <= acked) {
    Answer& answer = held_.front().second;
    if (order_.IsLive(answer.to)) {
      Post(answer.to, order_.incarnation(),
           AnswerMessage{
               .ticket = answer.ticket, .code = answer.code, .bytes = std::move(answer.bytes)});
    }
    held_.pop_front();
  }
}

void ServiceHost::Permit(int rank) {
  if (permitted_.insert(rank).second) Post(rank, order_.incarnation(), MayLeaveMessage{});
}

void ServiceHost::PermitLeaving() {
  if (leavers_.empty()) return;
  const std::vector<int> live = order_.LiveRanks();
  if (std::all_of(live.begin(), live.end(), [&](int rank) { return leavers_.contains(rank); })) {
    for (const int rank : live) Permit(rank);  // the job is over
    return;
  }
  for (const int rank : leavers_) {
    if (!permitted_.contains(rank) && MayReplicaLeave(rank)) Permit(rank);
  }
}

// Whether what the services know stays with somebody when `rank` leaves; if not, somebody gets it.
bool ServiceHost::MayReplicaLeave(int rank) {
  if (rank != rank_ && !replicas_.Contains(rank)) return true;
  // The host itself first finishes what it has begun.
  if (rank == rank_ &&
      (!held_.empty() || replicas_.AckedByAll(machine_.sequence()) != machine_.sequence())) {
    return false;
  }
  bool on_its_way = false;
  for (const int other : replicas_.ranks()) {
    if (other == rank || permitted_.contains(other)) continue;
    if (replicas_.IsLoaded(other)) return true;
    on_its_way = true;
  }
  if (on_its_way) return false;
  for (const int other : order_.candidates()) {
    if (!order_.IsLive(other) || other == rank_ || other == rank || permitted_.contains(other) ||
        replicas_.Contains(other)) {
      continue;
    }
    AddReplica(other);
    return false;
  }
  return true;  // nobody else may have it
}

}  // namespace syncopate::services
