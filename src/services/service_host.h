// One worker's part in the services of a job, as a pure state machine: it asks, and it is host,
// standby or neither, as the agreed order of losses says (host_order.h).
//
//   asker ──request──► host ──event──► standby
//     ▲                  ▲ ◄───ack────────┘
//     └────answer────────┘ when the standby has stepped the event
//
// What it promises, whatever is lost:
//   * Every request of a live worker is answered once, and what was answered is never taken back.
//   * The host is the first live worker of an agreed order. When it is lost its standby goes on from
//     the same state; when it leaves it hands over first.
//   * If host and standby are lost together, services that can are rebuilt from what the live workers
//     know; else the job ends with an error that says so.
//
// The caller carries its messages: exactly once and in order between two workers as long as both
// live, messages (at most limits::kMailBytesMax) and parcels each for themselves. Of a worker that is
// gone nothing comes after Changed() has told so. docs/services.md has the reasons and the grammar.
//
// Not thread-safe. Times are the caller's and never go back.
#ifndef SYNCOPATE_SERVICES_SERVICE_HOST_H_
#define SYNCOPATE_SERVICES_SERVICE_HOST_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/host_order.h"
#include "services/open_tickets.h"
#include "services/replica_set.h"
#include "services/service_machine.h"
#include "services/service_message.h"

namespace syncopate::services {

// The topic of all its messages and parcels.
inline constexpr uint16_t kServiceTopic = 1;

struct ServiceHostOptions {
  int rank = 0;
  int size = 1;                 // of the job when it began
  std::vector<int> candidates;  // that may host, first choice first
  // The changes before this worker took part; empty if it was there from the beginning.
  std::vector<Change> history;
  // The order before these changes, if it was made before: `size` and `candidates` are not read.
  std::optional<HostOrder> order = std::nullopt;
};

// What the caller has to do.
struct Send {
  int to = -1;
  std::string bytes;  // at most limits::kMailBytesMax
};
struct SendParcel {
  int to = -1;
  std::string bytes;  // at most limits::kParcelBytesMax
};
// A request of this worker is answered.
struct Answered {
  uint16_t service = 0;
  uint64_t tag = 0;  // of Ask()
  uint64_t ticket = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string bytes;  // the text of an error, if it is one
};
// Call GiveReports() with what this worker knows of each service.
struct ReportWanted {
  uint64_t incarnation = 0;
};
// The worker may leave, and must: if it hosts it takes nothing more on.
struct MayLeave {};
// The job cannot go on.
struct EndJob {
  absl::Status status;
};
// A line for the log: what was decided and why; or what may happen twice after a double loss.
struct Remark {
  std::string text;
  bool important = false;
};
using ServiceCommand =
    std::variant<Send, SendParcel, Answered, ReportWanted, MayLeave, EndJob, Remark>;

class ServiceHost {
 public:
  static absl::StatusOr<std::unique_ptr<ServiceHost>> Make(ServiceHostOptions options,
                                                           Services services, int64_t now_ns);

  // Asks service number `service`, or for its state with kStateOfService + its number; the ticket. The
  // answer comes as a command, with `tag`.
  absl::StatusOr<uint64_t> Ask(uint16_t service, uint64_t tag, std::string request, int64_t now_ns);
  // Answers ReportWanted; by service.
  void GiveReports(uint64_t incarnation, std::vector<std::string> reports, int64_t now_ns);
  // This worker wants to leave in good order. Its open requests need no answer any more.
  void Leave(int64_t now_ns);

  // A message or a parcel with kServiceTopic.
  void Arrived(int from, absl::string_view bytes, int64_t now_ns);
  void Changed(const Change& change, int64_t now_ns);
  void Tick(int64_t now_ns);
  // When Tick() should be called, at the latest.
  int64_t NextTickNs() const;

  // What to do now; call it after each of the calls above, and do it in this order.
  std::vector<ServiceCommand> TakeCommands();

  bool hosts() const { return role_ == Role::kHost; }
  const HostOrder& order() const { return order_; }
  const ServiceMachine& machine() const { return machine_; }
  std::vector<uint64_t> open_tickets() const { return tickets_.numbers(); }
  uint64_t dropped() const { return dropped_; }  // messages that nobody could use

 private:
  enum class Role {
    kFollower,  // standby, or nothing in particular
    kHost,
    kRebuilding,  // host, as soon as all live workers have reported
    kEnded,
  };
  using LoggedEvent = decltype(EventMessage::event);

  ServiceHost(const ServiceHostOptions& options, HostOrder order, Services services);

  // Sends to another worker or to this one itself.
  void Post(int to, uint64_t incarnation, decltype(ServiceMessage::body) body);
  void PostEncoded(int to, std::string bytes);
  void Handle(int from, ServiceMessage message, int64_t now_ns);
  void Settle(int64_t now_ns);
  void End(const absl::Status& status);
  void Finish(const absl::Status& status);

  void On(int from, uint64_t incarnation, RequestMessage body, int64_t now_ns);
  void On(int from, uint64_t incarnation, AnswerMessage body, int64_t now_ns);
  void On(int from, uint64_t incarnation, EventMessage body, int64_t now_ns);
  void On(int from, uint64_t incarnation, AckMessage body, int64_t now_ns);
  void On(int from, uint64_t incarnation, StateMessage body, int64_t now_ns);
  void On(int from, uint64_t incarnation, ReportWantedMessage body, int64_t now_ns);
  void On(int from, uint64_t incarnation, ReportMessage body, int64_t now_ns);
  void On(int from, uint64_t incarnation, LeavingMessage body, int64_t now_ns);
  void On(int from, uint64_t incarnation, MayLeaveMessage body, int64_t now_ns);
  void On(int from, uint64_t incarnation, EndedMessage body, int64_t now_ns);

  // As asker.
  void SendTo(uint64_t ticket);
  void FollowHost();  // everything that a new host has to know from this worker
  void AnswerReportWanted();

  // As standby.
  void StepEarly(int from, int64_t now_ns);

  // As host.
  void TakeOver();
  void BeginHosting();
  void AddReplica(int rank);
  void StepInbox(int64_t now_ns);
  void ReleaseAnswers();
  void PermitLeaving();
  void Permit(int rank);
  bool MayReplicaLeave(int rank);
  void TryRebuild(int64_t now_ns);
  int64_t ServiceNow(int64_t now_ns) const;

  const int rank_;
  HostOrder order_;
  ServiceMachine machine_;
  Role role_ = Role::kFollower;
  std::vector<ServiceCommand> commands_;
  std::deque<ServiceMessage> own_mail_;  // of this worker to itself
  uint64_t dropped_ = 0;

  // As asker.
  OpenTickets tickets_;
  bool leaving_ = false;
  bool may_leave_ = false;
  uint64_t report_wanted_ = 0;  // incarnation of a host that wants a report; 0: none

  // As standby. A loaded machine has stepped every event that an answer has followed from.
  bool loaded_ = false;
  uint64_t machine_incarnation_ = 0;  // of the host that the machine follows
  uint64_t early_incarnation_ = 0;
  std::map<uint64_t, EventMessage> early_;  // events that the machine cannot step yet
  int64_t clock_offset_ns_ = 0;             // the services' time less this worker's

  // What came for the host before this worker knew that it is the host.
  std::map<int, std::vector<RequestMessage>> kept_;  // by asker
  std::set<int> kept_leaving_;

  // As host.
  std::deque<LoggedEvent> inbox_;
  ReplicaSet replicas_;
  std::deque<std::pair<uint64_t, Answer>> held_;  // answers with the event that they follow from
  std::set<int> leavers_;
  std::set<int> permitted_;
  std::set<int> reports_missing_;
  std::map<int, ReportMessage> reports_;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SERVICE_HOST_H_
