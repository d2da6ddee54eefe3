// Makes a synchronizer for a strategy's name: the one place where a strategy of the registry, a
// worker and a training loop are put together.
#ifndef SYNCOPATE_SYNC_ASSEMBLE_H_
#define SYNCOPATE_SYNC_ASSEMBLE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/tensor_table.h"
#include "strategy/registry.h"
#include "sync/replica.h"
#include "sync/synchronizer.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

// `values`: what the strategy is made from. Rank, size and table are those of the job; the topology
// is the one that the worker knows, unless one is given; roles, and options of the same meaning, are
// as the registry entry of the strategy says. InvalidArgument if there is no such strategy, if it lacks
// something, or if its server may host services.
//
// What the strategy needs beside it is made here, for this synchronizer alone, unless the options bring it: the
// messenger, with the service that the entry makes; and on the worker that serves the others the store, which begins
// with the parameters of the replica. So a job may have several synchronizers of a strategy, at a time or one after
// the other, and each begins with a new service and a new store on all workers, which make them in the same order.
absl::StatusOr<std::unique_ptr<Synchronizer>> MakeSynchronizer(
    Worker& worker, const TensorTable& table, Replica& replica, const std::string& strategy,
    strategy::StrategyOptions values, SynchronizerOptions options);

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_ASSEMBLE_H_
