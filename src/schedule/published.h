// What the ASC-WFBP paper gives: the costs of its cluster, and the times of an iteration that its
// table 4 states. docs/asc-wfbp.md compares them with the model's.
#ifndef SYNCOPATE_SCHEDULE_PUBLISHED_H_
#define SYNCOPATE_SCHEDULE_PUBLISHED_H_

#include "absl/strings/string_view.h"
#include "cost/communication_costs.h"

namespace syncopate::schedule {

// 32 GPUs, 10 Gbit/s Ethernet.
inline cost::CommunicationCosts PublishedCosts() { return {1.4e-3, 1.7e-9, {1, 1.5}, "published"}; }

// Seconds of an iteration by planner.
struct PublishedIteration {
  absl::string_view model;
  double wfbp;
  double mg_wfbp;
  double asc_wfbp;
};
inline constexpr PublishedIteration kPublishedIterations[] = {
    {"resnet-152", 0.956, 0.710, 0.524},
    {"densenet-201", 0.778, 0.375, 0.314},
    {"inception-v4", 0.719, 0.510, 0.377},
    {"bert-base", 1.010, 1.062, 0.924},
};

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_PUBLISHED_H_
