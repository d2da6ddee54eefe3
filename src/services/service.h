// What a service is: a machine that answers requests of workers while a job runs. It has no thread,
// socket, clock or random device. The service host (service_host.h) runs it on one worker, and on a
// second one that takes over; both must decide the same for the same events.
#ifndef SYNCOPATE_SERVICES_SERVICE_H_
#define SYNCOPATE_SERVICES_SERVICE_H_

#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/fields.h"

namespace syncopate::services {

// The name of something that a service made. The incarnation is that of the host at that moment, so
// no id is made twice in a job, whatever is lost.
struct ServiceId {
  uint64_t incarnation = 0;
  uint64_t number = 0;

  friend auto operator<=>(const ServiceId&, const ServiceId&) = default;
};

inline void AppendId(std::string& out, const ServiceId& id) {
  Append(out, id.incarnation);
  Append(out, id.number);
}
inline ServiceId ReadId(ByteReader& reader) {
  ServiceId id;
  id.incarnation = reader.Read<uint64_t>();
  id.number = reader.Read<uint64_t>();
  return id;
}

// A worker asks. Every ticket is answered once, in this step or in a later one.
struct Asked {
  int from = -1;
  uint64_t ticket = 0;
  std::string request;
};
// A worker is lost or has left in good order: its open tickets are forgotten, and nothing more comes
// from it.
struct Departed {
  int rank = -1;
  bool in_good_order = false;
};
// A worker takes part from now on.
struct Joined {
  int rank = -1;
};
// The moment of NextDeadlineNs() has come.
struct TimePassed {};
using ServiceEvent = std::variant<Asked, Departed, Joined, TimePassed>;

struct ServiceContext {
  // Never goes back, also when the host moves; not related to any worker's clock.
  int64_t now_ns = 0;
  uint64_t incarnation = 0;  // for ids
};

struct Answer {
  int to = -1;
  uint64_t ticket = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string bytes = {};  // at most limits::kServiceBytesMax; the text of an error, if it is one
  // Whether the answer is kept until the asker has it. Else a request whose answer was lost with the
  // host is stepped again: for large answers to requests that change nothing, or the same again.
  bool kept = true;
};

struct ServiceStep {
  std::vector<Answer> answers;
  std::string reason;  // one readable line; empty if nothing was decided
};

// What a live worker knew of the service when its host and standby were lost together.
struct ServiceReport {
  int from = -1;
  std::string bytes;
};

class Service {
 public:
  virtual ~Service() = default;

  // A word that all workers of the job know it by.
  virtual absl::string_view name() const = 0;

  // Takes at most a millisecond. Anything may be in a request.
  virtual ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) = 0;
  // When Step() wants a TimePassed; INT64_MAX: never.
  virtual int64_t NextDeadlineNs() const { return INT64_MAX; }

  // All that its decisions depend on. A service that has loaded these bytes decides as this one.
  virtual std::string State() const = 0;
  virtual absl::Status Load(absl::string_view state) = 0;

  // Whether the service can go on from what the live workers report. If not, the loss of host and
  // standby together ends the job.
  virtual bool CanRebuild() const { return false; }
  // Called in the state that a new service has, with a report of every live worker. Returns what may
  // happen twice, or be missing, in words; empty if nothing.
  virtual absl::StatusOr<std::string> Rebuild(const ServiceContext& context,
                                              const std::vector<ServiceReport>& reports);
};

// An answer that is an error.
Answer Refusal(int to, uint64_t ticket, const absl::Status& status);

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SERVICE_H_
