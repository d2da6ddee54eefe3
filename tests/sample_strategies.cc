// Registers strategies of src/strategy/sample_strategies_testing.h, before main(), in programs that are
// otherwise `syncopate` and `syncopate-train`: training without lockstep is tested with them as a user
// would run it.
#include <memory>
#include <utility>

#include "model/strategy_message.h"
#include "strategy/registry.h"
#include "strategy/sample_strategies_testing.h"
#include "syncopate/service.h"
#include "tests/pair_groups.h"

namespace syncopate::strategy {
namespace {

constexpr uint64_t kBatch = 16;  // of each worker

// Gives everybody a turn at once.
class Turns : public Service {
 public:
  absl::string_view name() const override { return PermittedServer::kService; }
  ServiceStep Step(const ServiceContext&, const ServiceEvent& event) override {
    const auto* asked = std::get_if<ServiceAsked>(&event);
    if (asked == nullptr) return {};
    return {.answers = {{.to = asked->from,
                         .ticket = asked->ticket,
                         .bytes = Encode(StrategyMessage(TurnGiven{.samples = kBatch}))}},
            .reason = ""};
  }
  std::string State() const override { return ""; }
  absl::Status Load(absl::string_view) override { return absl::OkStatus(); }
};

WorkerInfo InfoOf(const StrategyOptions& options) {
  return {options.rank, options.size, options.table.size()};
}

const bool registered = [] {
  StrategyEntry groups;
  groups.name = "sample-groups";
  groups.about = "steps locally and averages parameters with one neighbour, then with the other";
  groups.lockstep = false;
  groups.survives = true;
  groups.moves = Moves::kParameters;
  groups.data = DataMode::kIndependent;
  groups.model = ModelIs::kMean;
  groups.make = [](const StrategyOptions& options) -> absl::StatusOr<std::unique_ptr<Strategy>> {
    return std::make_unique<GroupAverage>(InfoOf(options));
  };
  StrategyEntry server;
  server.name = "sample-server";
  server.about = "pushes gradients to rank 0, asks for a turn and pulls its parameters";
  server.lockstep = false;
  server.survives = true;
  server.ends_together = false;
  server.moves = Moves::kBoth;
  server.service = PermittedServer::kService;
  server.make_service = [](const StrategyOptions&) { return std::make_unique<Turns>(); };
  server.server = 0;
  server.data = DataMode::kIndependent;
  server.model = ModelIs::kParameters;
  server.make = [](const StrategyOptions& options) -> absl::StatusOr<std::unique_ptr<Strategy>> {
    return std::make_unique<PermittedServer>(InfoOf(options));
  };
  StrategyEntry asked;
  asked.name = "sample-asked";
  asked.about =
      "steps locally and averages parameters with whom a service says, beside the next iteration";
  asked.lockstep = false;
  asked.survives = true;
  asked.ends_together = false;
  asked.moves = Moves::kParameters;
  asked.service = AskedGroups::kService;
  asked.make_service = [](const StrategyOptions&) { return std::make_unique<PairGroups>(); };
  asked.sends = true;
  asked.data = DataMode::kIndependent;
  asked.model = ModelIs::kMean;
  asked.make = [](const StrategyOptions& options) -> absl::StatusOr<std::unique_ptr<Strategy>> {
    return std::make_unique<AskedGroups>(InfoOf(options));
  };
  return AddStrategy(std::move(groups)).ok() && AddStrategy(std::move(server)).ok() &&
         AddStrategy(std::move(asked)).ok();
}();

}  // namespace
}  // namespace syncopate::strategy
