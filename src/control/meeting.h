// How the workers of a job on many hosts meet: each brings a payload (say, its network addresses)
// and learns everybody's, and all get a key that nobody else has.
#ifndef SYNCOPATE_CONTROL_MEETING_H_
#define SYNCOPATE_CONTROL_MEETING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/environment.h"

namespace syncopate::control {

struct MeetingOptions {
  std::string job;
  int rank = 0;
  int size = 1;
  // The job's key, raw bytes; empty: the one that the user gave (job_key.h), else exchanged or
  // derived (docs/launch.md).
  std::string key;
  // The setting that forbids a key of public values, as "SYNCOPATE_REQUIRE_KEY=1". Where the key
  // would be one, the meeting is refused with an error that names it. Empty: it may be one.
  std::string secret_for = {};
  // Where the rendezvous is, "host:port"; empty: SYNCOPATE_RENDEZVOUS, else rank 0 makes one.
  std::string rendezvous;
  std::string host;     // this host's name, for messages
  std::string payload;  // for the others; at most limits::kMeetingPayloadBytesMax
  int64_t deadline_ns = 0;
  int round = -1;  // how often this worker has met in this job before; -1: Meet() counts
};

struct Meeting {
  std::string key;                    // 32 bytes, the same for all, new for each meeting
  std::vector<std::string> payloads;  // by rank
  std::vector<std::string> hosts;     // by rank
  bool key_is_public = false;         // it was made of values that others may know
};

// Returns when all workers have come, or at the deadline with an error that names the missing ones.
// Where no rendezvous was started for the job, rank 0 runs one in its own process until all have
// met, and the others learn of it through what started them: PMIx (Open MPI, srun --mpi=pmix), PMI
// (MPICH), torchrun's MASTER_ADDR, or Slurm's list of nodes.
absl::StatusOr<Meeting> Meet(const MeetingOptions& options, const Clock& clock,
                             const Environment& environment);

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_MEETING_H_
