// Finds the shape of a network by asking an Oracle: who stands in one rack, what NICs and uplinks
// can carry. docs/probe.md describes the procedure and why it is right.
//
// The number of measured flows grows with N log N for N hosts, that of experiments (flows that run
// at the same time) with log N and the size and number of racks.
#ifndef SYNCOPATE_PROBE_INFER_H_
#define SYNCOPATE_PROBE_INFER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "probe/disturbance.h"
#include "probe/oracle.h"
#include "probe/shape.h"

namespace syncopate::probe {

struct InferOptions {
  // What it may take; 0: DefaultBudgetSeconds(). Steps that only make the result surer are left out
  // when the time is short.
  double budget_seconds = 0;
  uint64_t seed = 1;  // of the order in which hosts are paired
  // Told before each experiment: what is being done, and how much of the budget is spent (0 to 1).
  std::function<void(absl::string_view step, double part)> progress = nullptr;
};

// 25 s for up to 12 hosts, then in proportion.
double DefaultBudgetSeconds(int hosts);

struct Inference {
  NetworkShape shape;
  int experiments = 0;
  int flows = 0;  // measured ones, all experiments together
  double seconds = 0;
  bool complete = true;  // false: the budget ended before the result was sure
  Disturbance disturbance;
};

absl::StatusOr<Inference> InferNetwork(Oracle& oracle, const InferOptions& options);

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_INFER_H_
