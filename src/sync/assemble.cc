#include "sync/assemble.h"

#include <utility>

#include "base/status.h"
#include "sync/live_messenger.h"

namespace syncopate::sync {

absl::StatusOr<std::unique_ptr<Synchronizer>> MakeSynchronizer(
    Worker& worker, const TensorTable& table, Replica& replica, const std::string& strategy,
    strategy::StrategyOptions values, SynchronizerOptions options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const strategy::StrategyEntry* entry,
                             strategy::FindStrategy(strategy));
  values.rank = worker.rank();
  values.size = worker.size();
  values.table = table;
  if (values.topology == nullptr) {
    // On one host there is none.
    const std::string known = worker.Network().topology_json;
    if (!known.empty()) {
      SYNCOPATE_ASSIGN_OR_RETURN(Topology topology, ParseTopology(known));
      values.topology = std::make_shared<const Topology>(std::move(topology));
    }
  }
  SYNCOPATE_ASSIGN_OR_RETURN(auto machine, strategy::MakeStrategy(strategy, values));
  options.moves_gradients = entry->moves_gradients();
  options.moves_parameters = entry->moves_parameters();
  options.watches_losses = entry->survives;
  options.agrees_on_batches =
      entry->sets_batches && entry->data == strategy::DataMode::kInStep && worker.size() > 1;
  if (options.witness != nullptr) {
    options.witness->Began(
        {.name = strategy, .values = values, .first_iteration = options.first_iteration});
  }
  // A strategy that says nothing costs nothing.
  std::unique_ptr<LiveMessenger> messenger;
  if (options.messenger == nullptr && (entry->sends || !entry->service.empty())) {
    messenger = std::make_unique<LiveMessenger>(worker);
    options.messenger = messenger.get();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(
      auto synchronizer, Synchronizer::Make(worker, table, replica, std::move(machine), options));
  if (messenger != nullptr) {
    LiveMessenger& kept = *messenger;
    synchronizer->Keep(std::move(messenger));
    SYNCOPATE_RETURN_IF_ERROR(kept.Begin(
        [to = synchronizer.get()](strategy::Event event) { to->Deliver(std::move(event)); }));
  }
  return synchronizer;
}

}  // namespace syncopate::sync
