// What the inference may ask of a network: how long a message takes, and what flows achieve that
// run at the same time. A live job answers (probe/live_oracle.h), or a simulation in tests.
#ifndef SYNCOPATE_PROBE_ORACLE_H_
#define SYNCOPATE_PROBE_ORACLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace syncopate::probe {

// Not thread-safe.
class Oracle {
 public:
  struct Flow {
    int from = 0;  // workers
    int to = 0;

    friend bool operator==(const Flow&, const Flow&) = default;
    friend auto operator<=>(const Flow&, const Flow&) = default;
  };

  virtual ~Oracle() = default;
  // How many workers there are.
  virtual int size() const = 0;
  // The name of a worker's host. Workers of the same host share its NIC and its memory.
  virtual std::string HostOf(int worker) const = 0;
  // Seconds that a small message takes from one worker to another.
  virtual absl::StatusOr<double> Latency(int from, int to) = 0;
  // Bytes/s that each flow achieves while all of them run, measured for about `seconds`.
  virtual absl::StatusOr<std::vector<double>> Rates(absl::Span<const Flow> flows,
                                                    double seconds) = 0;
  // The part of its processors' time (0 to 1) that a worker's host lost to its hypervisor during
  // the last Rates(), if the worker had a flow in it; else 0.
  virtual double Stolen(int worker) const = 0;
  // Returns after `seconds`.
  virtual void Wait(double seconds) = 0;
  // Seconds since the probe began.
  virtual double Elapsed() const = 0;
};

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_ORACLE_H_
