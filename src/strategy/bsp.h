// Bulk-synchronous training: every iteration all workers average their gradients, by a schedule
// that says which tensors go together and which transfers may run at once (the WFBP family: none,
// wfbp, mg-wfbp, buckets, asc-wfbp, search). The result is that of one worker with the batches of
// all.
#ifndef SYNCOPATE_STRATEGY_BSP_H_
#define SYNCOPATE_STRATEGY_BSP_H_

#include <memory>
#include <vector>

#include "model/schedule.h"
#include "strategy/strategy.h"

namespace syncopate::strategy {

struct BspOptions {
  // Updates wait until all gradients of the iteration are averaged: for what needs all of them at
  // once, such as clipping by the norm of the whole gradient.
  bool update_together = false;
};

// `schedule` is valid for info.tensors. A lost worker ends it: the mean of all needs all.
std::unique_ptr<Strategy> MakeBsp(const WorkerInfo& info, std::shared_ptr<const Schedule> schedule,
                                  const BspOptions& options = {});

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_BSP_H_
