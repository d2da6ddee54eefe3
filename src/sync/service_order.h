// Who hosts the services of a job, in which order, for whoever trains and lets the same workers do
// what one worker of the job does.
#ifndef SYNCOPATE_SYNC_SERVICE_ORDER_H_
#define SYNCOPATE_SYNC_SERVICE_ORDER_H_

#include <vector>

#include "syncopate/syncopate.h"
#include "worker/job_services.h"

namespace syncopate::sync {

// The first live one of these ranks hosts: SYNCOPATE_SERVICE_RANKS, else all that are no servers by
// number. The same on all workers.
inline const std::vector<int>& ServiceOrder(Worker& worker) {
  return worker::ServicesOf(worker).host_order();
}

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_SERVICE_ORDER_H_
