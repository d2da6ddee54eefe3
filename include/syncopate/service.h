// A service of one's own: it answers requests of workers while a job runs, on one worker of the job,
// and another one goes on with it when that worker is lost (docs/services.md).
//
//   class Tally : public syncopate::Service { ... };
//   worker->AddService(std::make_unique<Tally>());             // by every worker of the job
//   absl::StatusOr<std::string> answer = worker->Ask("tally", request);
//
// A service is a machine without thread, socket, clock or random device: time comes with its events,
// and the same events lead to the same answers. So its host and its standby, which steps the same
// events, are always of one mind.
#ifndef SYNCOPATE_SERVICE_H_
#define SYNCOPATE_SERVICE_H_

#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate {

// The name of something that a service made. No id is made twice in a job, whatever is lost.
struct ServiceId {
  uint64_t incarnation = 0;  // ServiceContext::incarnation at that moment
  uint64_t number = 0;       // the service's own

  // By incarnation, then by number.
  friend auto operator<=>(const ServiceId&, const ServiceId&) = default;
};

// A worker asks. Every ticket is answered once, in this step or in a later one.
struct ServiceAsked {
  int from = -1;        // the rank that asks
  uint64_t ticket = 0;  // names the request among those of that rank
  std::string request;  // as it was given to Worker::Ask(); anything may be in it
};
// A worker is lost or has left: its open tickets are forgotten, and nothing more comes from it. All
// workers' services hear of the same departures in the same order.
struct ServiceDeparted {
  int rank = -1;               // that is gone
  bool in_good_order = false;  // it has left; else it is dead, stuck or cut off
};
// A worker takes part from now on.
struct ServiceJoined {
  int rank = -1;  // that is new
};
// The moment of Service::NextDeadlineNs() has come.
struct ServiceTimePassed {};
// What a service is told.
using ServiceEvent = std::variant<ServiceAsked, ServiceDeparted, ServiceJoined, ServiceTimePassed>;

// When an event is stepped.
struct ServiceContext {
  int64_t now_ns = 0;        // never goes back, also when the host moves; no worker's clock
  uint64_t incarnation = 0;  // of the host, for ids; a later host has a higher one
};

// What a worker gets for its ticket.
struct ServiceAnswer {
  int to = -1;                                    // the rank that asked
  uint64_t ticket = 0;                            // with which it asked
  absl::StatusCode code = absl::StatusCode::kOk;  // else the answer is an error
  std::string bytes = {};  // at most 20 MiB; the text of an error, if it is one
  // Whether the answer is kept until the asker has it. Else a request whose answer was lost with the
  // host is stepped again: for large answers to requests that change nothing, or the same again.
  bool kept = true;
};

// What follows from an event.
struct ServiceStep {
  std::vector<ServiceAnswer> answers;  // to this request or to earlier ones
  std::string reason;  // one readable line for the log; empty if nothing was decided
};

// What a live worker knew of the service when its host and standby were lost together.
struct ServiceReport {
  int from = -1;      // the rank that reports
  std::string bytes;  // what its `report` of Worker::AddService() returned
};

// The machine of one service.
class Service {
 public:
  virtual ~Service() = default;

  // A word that all workers of the job know it by, of 1 to 32 bytes.
  virtual absl::string_view name() const = 0;

  // Takes at most a millisecond: it runs on the thread that sends the worker's heartbeats. Anything
  // may be in a request.
  virtual ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) = 0;
  // When Step() wants a ServiceTimePassed; INT64_MAX: never.
  virtual int64_t NextDeadlineNs() const { return INT64_MAX; }

  // All that its decisions depend on, at most 64 MiB.
  virtual std::string State() const = 0;
  // A service that has loaded the State() of another one decides as that one.
  virtual absl::Status Load(absl::string_view state) = 0;

  // Whether the service can go on from what the live workers report. If not, the loss of host and
  // standby together ends it, and every later request is answered with an error that says so.
  virtual bool CanRebuild() const { return false; }
  // Called in the state that a new service has, with a report of every live worker. Returns what may
  // happen twice, or be missing, in words; empty if nothing.
  virtual absl::StatusOr<std::string> Rebuild(const ServiceContext& context,
                                              const std::vector<ServiceReport>& reports);

  // Whether a job that goes on from a checkpoint goes on with this service as it was when the
  // checkpoint was written; if not, with a new one. Checkpoints have the services of strategies.
  virtual bool CanResume() const { return false; }
  // Called in the state that a new service has, before it is added, and with the same values on every
  // worker: `state` is the State() of a service of the job before, and `ranks` has for each worker of
  // this job the rank that it had in that one. What was open there is to be dissolved: no request waits
  // for an answer any more, nobody holds anything or is in a group, and times are those of another
  // clock. An error says that the state cannot be read.
  virtual absl::Status Resume(absl::string_view state, const std::vector<int>& ranks);
};

// An answer that is an error.
ServiceAnswer Refusal(int to, uint64_t ticket, const absl::Status& status);

}  // namespace syncopate

#endif  // SYNCOPATE_SERVICE_H_
