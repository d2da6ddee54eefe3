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
// is the one that the worker knows, unless one is given. What a registry entry says of the strategy
// sets the options of the same meaning. InvalidArgument if there is no such strategy or it lacks
// something.
absl::StatusOr<std::unique_ptr<Synchronizer>> MakeSynchronizer(
    Worker& worker, const TensorTable& table, Replica& replica, const std::string& strategy,
    strategy::StrategyOptions values, SynchronizerOptions options);

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_ASSEMBLE_H_
