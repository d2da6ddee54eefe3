// A worker's side of the rendezvous.
#ifndef SYNCOPATE_CONTROL_RENDEZVOUS_CLIENT_H_
#define SYNCOPATE_CONTROL_RENDEZVOUS_CLIENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "control/meeting.h"

namespace syncopate::control {

// Comes to the rendezvous at one of `addresses` ("host:port" each) and waits for the others. The
// first that proves to know options.key is taken; until options.deadline_ns they are tried in turn,
// since the server may start after us. options.rendezvous is not looked at.
absl::StatusOr<Meeting> JoinMeeting(const MeetingOptions& options,
                                    const std::vector<std::string>& addresses, const Clock& clock);

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_RENDEZVOUS_CLIENT_H_
