// One end of the pings between two workers: a small message goes there and back, several times, and
// the quickest round counts. Slower rounds have met something on the way, if only a busy processor.
#ifndef SYNCOPATE_PROBE_PING_END_H_
#define SYNCOPATE_PROBE_PING_END_H_

#include <cstdint>

#include "base/clock.h"
#include "probe/measure_protocol.h"
#include "probe/outbox.h"
#include "transport/transport.h"

namespace syncopate::probe {

class PingEnd {
 public:
  // `first_step` is the step of the first message, at both ends, and `offset` the place of the
  // bytes to send.
  PingEnd(const Clock& clock, uint32_t first_step, uint64_t offset)
      : clock_(clock), first_step_(first_step), offset_(offset) {}

  // True when the last round is over, or if this worker has no part in them. Sets `moved` if
  // anything moved. `now_ns` is when the caller began to poll.
  bool Poll(transport::Session& session, Outbox& outbox, const Instruction& instruction, int rank,
            int64_t now_ns, bool& moved);
  // Half of the quickest round.
  double latency_seconds() const { return static_cast<double>(best_ns_) * 1e-9 / 2; }

 private:
  const Clock& clock_;
  const uint32_t first_step_;
  const uint64_t offset_;
  uint32_t rounds_ = 0;
  bool sent_ = false;
  int64_t sent_ns_ = 0;
  int64_t best_ns_ = INT64_MAX;
};

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_PING_END_H_
