// How Syncopate uses gRPC: it is up only while something needs it, and deadlines are spans of time.
#ifndef SYNCOPATE_CONTROL_GRPC_SETUP_H_
#define SYNCOPATE_CONTROL_GRPC_SETUP_H_

#include <grpc/grpc.h>
#include <grpc/support/time.h>

#include <algorithm>
#include <cstdint>

namespace syncopate::control {

// Holds gRPC up. When the last lease goes, gRPC has ended all its threads, so that a worker whose
// rendezvous is over has none of them.
class GrpcLease {
 public:
  GrpcLease() { grpc_init(); }
  ~GrpcLease() { grpc_shutdown_blocking(); }
  GrpcLease(const GrpcLease&) = delete;
};

// A span of time from now, as gRPC's calls take it. A negative one counts as none.
inline gpr_timespec GrpcTimeout(int64_t ns) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(std::max<int64_t>(ns, 0), GPR_TIMESPAN));
}
inline gpr_timespec GrpcForever() { return gpr_inf_future(GPR_CLOCK_MONOTONIC); }

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_GRPC_SETUP_H_
