// When a call moved its bytes at this worker, without the time for which it waited for others to come.
#ifndef SYNCOPATE_WORKER_CALL_TIMES_H_
#define SYNCOPATE_WORKER_CALL_TIMES_H_

#include <cstdint>

#include "syncopate/syncopate.h"

namespace syncopate::worker {

// By the monotonic clock (base/clock.h).
//
// Where members wait for each other at the start of a call, `first_ns` is when all had come: in every call
// of a group on one host, and between hosts in averages with weights. All other calls between hosts begin
// without waiting, since their messages say what they belong to. There `first_ns` is when this worker had a
// sign of the last member with which it exchanges data directly: of each that sends to it, and of each to
// which it sends more than a little, which it does not do before it has one. So the time from first to last
// does not contain the wait for the other end of a pair, but that for a member of a sum that is further away.
struct CallTimes {
  int64_t first_ns = 0;  // bytes could move
  int64_t last_ns = 0;   // it ended
};

// Of a call with `ended` that has gone well, once that was called.
CallTimes TimesOf(const Handle& handle);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_CALL_TIMES_H_
