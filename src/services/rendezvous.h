// The rendezvous of a job's workers as a pure step function: each comes with its rank and a payload
// for the others, and when all have come everybody is told everything. It decides about workers that
// must not come, come twice or too late, leave early or never come; sockets, threads and clocks are
// elsewhere (rendezvous_server.h).
#ifndef SYNCOPATE_SERVICES_RENDEZVOUS_H_
#define SYNCOPATE_SERVICES_RENDEZVOUS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncopate::services {

// The name of one worker's call, chosen by the caller; never used twice.
using CallId = uint64_t;

// One meeting. Filled in by NewRendezvous(), changed by Step() only.
struct RendezvousState {
  enum class Phase { kGathering, kComplete, kFailed };
  struct Seat {
    bool taken = false;
    CallId call = 0;
    std::string host;  // of the worker; before it comes: where it is expected, empty if unknown
    std::string payload;
    int64_t deadline_ns = INT64_MAX;  // it waits until then
  };

  std::string job;
  int round = 0;            // the workers of a job may meet again when they have met
  std::vector<Seat> seats;  // by rank
  int taken = 0;
  Phase phase = Phase::kGathering;
  std::string reason;  // why the phase is what it is
  // The last worker that was turned away: likely one of those that are missing.
  std::string turned_away;
};

// `hosts` says where each rank is expected; empty if that is not known. 1 <= size <= kWorkersMax.
absl::StatusOr<RendezvousState> NewRendezvous(std::string job, int size,
                                              std::vector<std::string> hosts);

// A caller that has proved that it knows the key wants to take part.
struct JoinEvent {
  CallId call = 0;
  std::string job;
  int rank = 0;
  int size = 0;
  int round = 0;
  std::string host;
  std::string payload;
  int64_t deadline_ns = INT64_MAX;
};
// The caller of `call` does not wait any more (it died, or lost its patience).
struct LeaveEvent {
  CallId call = 0;
};
// Time has passed.
struct TimeEvent {};
using RendezvousEvent = std::variant<JoinEvent, LeaveEvent, TimeEvent>;

// Tell the caller of `call` this. OK means: all have come, and the seats hold what they brought.
struct RendezvousAnswer {
  CallId call = 0;
  absl::Status status;
};
struct RendezvousStep {
  std::vector<RendezvousAnswer> answers;
  std::string reason;  // one readable line; empty if nothing happened
};

RendezvousStep Step(int64_t now_ns, const RendezvousEvent& event, RendezvousState& state);

// When Step() wants a TimeEvent; INT64_MAX if nobody waits.
int64_t NextDeadlineNs(const RendezvousState& state);

// "rank 2 on h1, rank 5 on h3", "ranks 4-9": those that have not come. Of many, the first ones.
std::string DescribeMissing(const RendezvousState& state);

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_RENDEZVOUS_H_
