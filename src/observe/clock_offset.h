// How far a worker's clock is from rank 0's, from small exchanges between the two. Pure.
//
// A worker sends at t0 (its clock), rank 0 receives at t1 and answers at t2 (rank 0's clock), the
// worker has the answer at t3. Both clocks run at the same rate over the exchange, so the offset
// lies in [t2 - t3, t1 - t0]; the middle is wrong by at most half of the time that the two messages
// were on their way. The exchange with the shortest way is the best: others met with a queue.
#ifndef SYNCOPATE_OBSERVE_CLOCK_OFFSET_H_
#define SYNCOPATE_OBSERVE_CLOCK_OFFSET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace syncopate::observe {

struct ClockExchange {
  int64_t sent_ns = 0;      // t0, the worker's clock
  int64_t received_ns = 0;  // t1, rank 0's clock
  int64_t answered_ns = 0;  // t2, rank 0's clock; may be t1
  int64_t returned_ns = 0;  // t3, the worker's clock
};

struct ClockOffset {
  int64_t offset_ns = 0;  // added to a time of the worker it gives rank 0's time
  int64_t error_ns = 0;   // it is wrong by at most this
};

// InvalidArgument if there is no exchange, or none whose times can be.
absl::StatusOr<ClockOffset> EstimateClockOffset(const std::vector<ClockExchange>& exchanges);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_CLOCK_OFFSET_H_
