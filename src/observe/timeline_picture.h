// A picture of a few iterations of all workers: what their training threads did and how their
// transfers went. Pure.
#ifndef SYNCOPATE_OBSERVE_TIMELINE_PICTURE_H_
#define SYNCOPATE_OBSERVE_TIMELINE_PICTURE_H_

#include <string>
#include <vector>

#include "model/trace.h"
#include "observe/breakdown.h"

namespace syncopate::observe {

struct TimelinePicture {
  std::string svg;  // empty: there is no iteration to show
  int first_iteration = 0;
  int iterations = 0;
  size_t workers_shown = 0;  // the first ones, if there are more than can be seen
};

// Two iterations that took about as long as most did.
TimelinePicture DrawTimeline(const std::vector<WorkerTrace>& traces, const Breakdown& breakdown);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_TIMELINE_PICTURE_H_
