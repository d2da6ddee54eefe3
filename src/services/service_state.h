// The state of a service as a worker may ask for it while the job runs, for a checkpoint: with its place
// among all that the service has been in, so that of several the newest is known.
//
//   service state = incarnation:u64 sequence:u64 state:sized       of a service that cannot resume: empty
#ifndef SYNCOPATE_SERVICES_SERVICE_STATE_H_
#define SYNCOPATE_SERVICES_SERVICE_STATE_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::services {

// When a state was: after event number `sequence`, which the host of that incarnation numbered. A
// service that was rebuilt may number its events anew, in a later incarnation.
struct StateMoment {
  uint64_t incarnation = 0;
  uint64_t sequence = 0;

  friend auto operator<=>(const StateMoment&, const StateMoment&) = default;
};

struct ServiceState {
  StateMoment moment = {};
  std::string state = {};  // Service::State()
};

std::string EncodeServiceState(const ServiceState& state);
// DataLoss if it is none.
absl::StatusOr<ServiceState> DecodeServiceState(absl::string_view bytes);

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_SERVICE_STATE_H_
