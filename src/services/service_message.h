// The messages of the service hosts of a job to each other, and their bytes (docs/services.md has the
// grammar).
#ifndef SYNCOPATE_SERVICES_SERVICE_MESSAGE_H_
#define SYNCOPATE_SERVICES_SERVICE_MESSAGE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/host_order.h"

namespace syncopate::services {

// Instead of a request to service number i a request with this number + i asks for its state
// (service_state.h). It has no bytes.
inline constexpr uint16_t kStateOfService = 0x8000;

// A worker asks service number `service`.
struct RequestMessage {
  uint64_t ticket = 0;
  std::vector<uint64_t> open;  // tickets that the asker waits for, growing, with this one
  uint16_t service = 0;
  std::string bytes;
};

struct AnswerMessage {
  uint64_t ticket = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string bytes;
};

// One event of the services, as the host steps it and its standby after it.
struct LoggedRequest {
  int from = -1;
  RequestMessage request;
};
struct LoggedTick {
  uint16_t service = 0;
};
struct EventMessage {
  uint64_t sequence = 0;  // from 1, without gaps
  int64_t now_ns = 0;     // the services' time
  std::variant<LoggedRequest, Change, LoggedTick> event;
};

// The standby has stepped all events up to `sequence`; `digest` is of all that it decided.
struct AckMessage {
  uint64_t sequence = 0;
  uint64_t digest = 0;
};

// The state of the services, for a new standby (service_machine.h).
struct StateMessage {
  std::string bytes;
};

// Host and standby are lost together: tell what you know; and the answer, by service.
struct ReportWantedMessage {};
struct ReportMessage {
  std::vector<std::string> reports;
};

// A worker wants to leave in good order; it may.
struct LeavingMessage {};
struct MayLeaveMessage {};

// The services cannot go on, and the job with them.
struct EndedMessage {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  std::string reason;
};

struct ServiceMessage {
  uint64_t incarnation = 0;  // of the host that sends it or that it is meant for
  std::variant<RequestMessage, AnswerMessage, EventMessage, AckMessage, StateMessage,
               ReportWantedMessage, ReportMessage, LeavingMessage, MayLeaveMessage, EndedMessage>
      body;
};

std::string EncodeMessage(const ServiceMessage& message);
absl::StatusOr<ServiceMessage> DecodeMessage(absl::string_view bytes);

// "request", "state", ...
absl::string_view NameOf(const ServiceMessage& message);

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SERVICE_MESSAGE_H_
