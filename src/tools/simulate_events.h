// What happens to workers in a simulated run, as `syncopate simulate --event` takes it:
//
//     TIME:kill:RANKS      they die; the others know after the time to detect it
//     TIME:leave:RANKS     they leave in good order after the iteration that they are in
//     TIME:join:RANKS      they are not there before
//     TIME:slow:RANKS:Kx   from then on their computing takes K times as long as their pace says
//
// TIME has a unit, as 2.5s or 300ms; RANKS are one or several, as 3 or 0-3,6.
#ifndef SYNCOPATE_TOOLS_SIMULATE_EVENTS_H_
#define SYNCOPATE_TOOLS_SIMULATE_EVENTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sim/virtual_options.h"

namespace syncopate::tools {

// Of one run. An event may name many ranks.
inline constexpr size_t kSimulatedEventsMax = 4096;

// Puts the events into `options`, which has its workers and their slowness already. `detection`: seconds
// until the others know that a worker died. InvalidArgument names the event.
absl::Status AddEvents(const std::vector<std::string>& events, double detection,
                       sim::VirtualOptions& options);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_SIMULATE_EVENTS_H_
