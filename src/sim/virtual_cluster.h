// Runs one strategy for each of several workers in virtual time.
//
// Workers compute for the times of a tensor table or by a line, times factors of their own; transfers
// take what a cost model or a topology says, from the moment at which the last member has started them.
// Each tensor has one number as its parameter and each gradient is a seeded number, so that what a
// strategy does to the parameters can be checked as well as when; or all elements have, with real
// gradients.
//
// The same seed gives the same run. Events that fall on the same moment come in seeded order.
#ifndef SYNCOPATE_SIM_VIRTUAL_CLUSTER_H_
#define SYNCOPATE_SIM_VIRTUAL_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "sim/virtual_options.h"
#include "strategy/strategy.h"

namespace syncopate::sim {

using StrategyFactory =
    std::function<std::unique_ptr<strategy::Strategy>(const strategy::WorkerInfo&)>;

// Runs until all workers have ended. InvalidArgument if the options do not fit each other. Other errors are
// faults of the strategy: a command that makes no sense (FailedPrecondition), or a state in which nothing
// can happen any more (Aborted, names who waits for what).
absl::StatusOr<VirtualResult> RunVirtually(const VirtualOptions& options,
                                           const StrategyFactory& make);

// The gradient that worker `rank` has for `tensor` in `iteration`, and the parameter that all begin
// with.
double GradientOf(uint64_t seed, int rank, int64_t iteration, int tensor);
double FirstParameter(uint64_t seed, int tensor);

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_VIRTUAL_CLUSTER_H_
