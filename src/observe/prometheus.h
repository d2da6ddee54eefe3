// How a run stands, in Prometheus' text exposition format, for the node exporter's textfile
// collector or anything else that reads it. Pure.
#ifndef SYNCOPATE_OBSERVE_PROMETHEUS_H_
#define SYNCOPATE_OBSERVE_PROMETHEUS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace syncopate::observe {

struct RunState {
  std::string run;  // becomes the label of every sample
  int workers = 0;
  uint64_t iterations = 0;
  uint64_t bytes_sent = 0;                  // by all workers
  double seconds = 0;                       // since the run began
  std::optional<double> iteration_seconds;  // mean since the last state
  std::optional<double> loss;
  std::optional<double> accuracy;  // of the last evaluation
};

std::string ToPrometheus(const RunState& state);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_PROMETHEUS_H_
