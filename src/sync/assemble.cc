#include "sync/assemble.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/tensor_layout.h"
#include "sync/live_messenger.h"
#include "sync/parameter_store.h"
#include "sync/service_order.h"

namespace syncopate::sync {
namespace {

// Who may host services is fixed when a worker starts, and only its caller knows by then which strategy
// it will run.
absl::Status CheckHosts(Worker& worker, const strategy::StrategyEntry& entry) {
  const std::vector<int>& order = ServiceOrder(worker);
  if (worker.size() == 1 || std::find(order.begin(), order.end(), entry.server) == order.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "strategy ", entry.name, ": rank ", entry.server,
      " is its server, which hosts no services; start the workers with Options::server_ranks = {",
      entry.server, "}, or with SYNCOPATE_SERVICE_RANKS without it"));
}

absl::StatusOr<std::unique_ptr<ParameterStore>> MakeStore(const TensorTable& table,
                                                          Replica& replica, double rate) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(table));
  const TensorLayout layout(table);
  std::vector<std::byte> parameters(layout.bytes());
  for (int tensor = 0; tensor < table.size(); ++tensor) {
    const TensorInfo& info = table.tensors[static_cast<size_t>(tensor)];
    if (!IsFloating(info.type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a server holds no parameters of ", Name(info.type), ", as ", info.name));
    }
    replica.Pack(strategy::Content::kParameters, tensor, 1,
                 parameters.data() + layout.Offset(tensor));
  }
  return std::make_unique<SgdStore>(std::move(parameters), rate);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Synchronizer>> MakeSynchronizer(
    Worker& worker, const TensorTable& table, Replica& replica, const std::string& strategy,
    strategy::StrategyOptions values, SynchronizerOptions options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const strategy::StrategyEntry* entry,
                             strategy::FindStrategy(strategy));
  if (entry->server >= 0 && entry->server_role == strategy::Role::kServes) {
    return absl::UnimplementedError(
        absl::StrCat("strategy ", strategy, ": rank ", entry->server,
                     " would serve and not train, which is only simulated so far (syncopate "
                     "simulate)"));
  }
  values.rank = worker.rank();
  values.size = worker.size();
  values.table = table;
  values.roles = entry->RolesAmong(worker.size());
  if (values.topology == nullptr) {
    // On one host there is none.
    const std::string known = worker.Network().topology_json;
    if (!known.empty()) {
      SYNCOPATE_ASSIGN_OR_RETURN(Topology topology, ParseTopology(known));
      values.topology = std::make_shared<const Topology>(std::move(topology));
    }
  }
  SYNCOPATE_ASSIGN_OR_RETURN(auto machine, strategy::MakeStrategy(strategy, values));
  options.servers = entry->servers();
  SYNCOPATE_RETURN_IF_ERROR(CheckHosts(worker, *entry));
  options.moves_gradients = entry->moves_gradients();
  options.moves_parameters = entry->moves_parameters();
  options.watches_losses = entry->survives;
  options.agrees_on_batches =
      entry->sets_batches && entry->data == strategy::DataMode::kInStep && worker.size() > 1;
  if (options.witness != nullptr) {
    options.witness->Began({.name = strategy,
                            .values = values,
                            .first_iteration = options.first_iteration,
                            .state = options.resumed.strategy});
  }
  std::unique_ptr<ParameterStore> store;
  if (entry->server == worker.rank() && options.store == nullptr) {
    absl::StatusOr<std::unique_ptr<ParameterStore>> made =
        MakeStore(table, replica, options.store_rate);
    if (!made.ok()) return At(absl::StrCat("strategy ", strategy), made.status());
    store = *std::move(made);
    options.store = store.get();
  }
  // A strategy that says nothing costs nothing.
  std::unique_ptr<LiveMessenger> messenger;
  if (options.messenger == nullptr && (entry->sends || !entry->service.empty())) {
    messenger = std::make_unique<LiveMessenger>(worker);
    options.messenger = messenger.get();
    if (entry->make_service) {
      std::unique_ptr<Service> service = entry->make_service(values);
      if (service->CanResume() && !options.resumed.ranks.empty()) {
        SYNCOPATE_RETURN_IF_ERROR(
            At(absl::StrCat("the state of service ", service->name()),
               service->Resume(options.resumed.service, options.resumed.ranks)));
      }
      SYNCOPATE_RETURN_IF_ERROR(messenger->AddService(std::move(service)));
      options.own_service = messenger->NameOf(entry->service);
    }
  }
  SYNCOPATE_ASSIGN_OR_RETURN(
      auto synchronizer, Synchronizer::Make(worker, table, replica, std::move(machine), options));
  if (store != nullptr) synchronizer->Keep(std::move(store));
  if (messenger != nullptr) {
    LiveMessenger& kept = *messenger;
    synchronizer->Keep(std::move(messenger));
    SYNCOPATE_RETURN_IF_ERROR(kept.Begin(
        [to = synchronizer.get()](strategy::Event event) { to->Deliver(std::move(event)); },
        [to = synchronizer.get()](absl::Status why) { to->End(std::move(why)); }));
  }
  return synchronizer;
}

}  // namespace syncopate::sync
