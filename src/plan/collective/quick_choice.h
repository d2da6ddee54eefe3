// The choice for calls between hosts that cannot wait for SelectProgram(): by a formula, in less time than
// a call takes, from two numbers that stand for the whole network. Planners say how many messages follow
// each other in their programs and how much the busiest worker sends (PlannerInfo::by_messages); where
// none of a collective does, the first of its list is taken, which is a sound choice where nothing is
// known. Writing and compiling a program takes time by its steps, so one of very many is chosen only where
// no planner with such a formula has fewer. It is a pure function: workers with the same topology choose the same program.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_QUICK_CHOICE_H_
#define SYNCOPATE_PLAN_COLLECTIVE_QUICK_CHOICE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/topology.h"
#include "plan/collective/request.h"

namespace syncopate::plan {

// Steps of all workers together, above which a program is not chosen unless all others have more, too. Up to
// 128 workers they take about half a millisecond; a ring of 45 has fewer, one of 46 has not.
uint64_t QuickStepsMax(int workers);

// A network in two numbers.
struct NetworkFigures {
  double message_seconds = 0;  // of a small message on the longest way
  double bandwidth = 0;        // bytes/s of the slowest link
};
NetworkFigures FiguresOf(const Topology& topology);

// A number for the machine that a device is on. A device that names no host is one by itself.
int HostOf(const Topology& topology, int device);

// `hosts` has for each worker a number of the host that it is on (HostOf); those of one host become neighbours
// where the planner has any.
absl::StatusOr<Program> PlanQuickly(const CollectiveRequest& request, uint64_t bytes_per_element,
                                    const NetworkFigures& network, absl::Span<const int> hosts);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_QUICK_CHOICE_H_
