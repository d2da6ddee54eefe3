// The strategies by name, and what the rest of a job must know of each.
//
//   auto strategy = MakeStrategy("bsp", options);
//
// A strategy of this library is a row of the table in registry.cc; one from elsewhere is added with
// AddStrategy() before a job starts.
#ifndef SYNCOPATE_STRATEGY_REGISTRY_H_
#define SYNCOPATE_STRATEGY_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/schedule.h"
#include "model/tensor_table.h"
#include "model/topology.h"
#include "strategy/strategy.h"

namespace syncopate::strategy {

// What a rank does in the job.
enum class Role : uint8_t { kTrains, kServes };

// What a strategy may be made from. All of it are values, the same on all workers but for the rank.
struct StrategyOptions {
  int rank = 0;
  int size = 1;
  TensorTable table = {};
  std::shared_ptr<const Topology> topology = nullptr;  // null: not known
  // By rank: the host that it is on, as a number; empty: not known.
  std::vector<int> placement = {};
  std::vector<Role> roles = {};  // by rank; empty: all train
  uint64_t seed = 0;
  // Which gradients travel together and when, of strategies that average gradients.
  std::shared_ptr<const Schedule> schedule = nullptr;
  // Updates wait until all gradients of the iteration are averaged.
  bool update_together = false;
};

// What travels.
enum class Moves : uint8_t { kGradients, kParameters, kBoth };
// Where a worker's samples come from.
enum class DataMode : uint8_t {
  kInStep,       // one order of all samples, of which every iteration takes the batches of all
  kIndependent,  // every worker draws its own
  kRanges,       // ranges that a service hands out: exact epochs at unequal speed
};
// What the model of a run is, that is evaluated and saved.
enum class ModelIs : uint8_t {
  kParameters,  // every worker's parameters: they are all the same
  kMean,        // the mean of all workers' parameters
  kShards,      // what the servers hold
};

struct StrategyEntry {
  std::string name = {};
  std::string about = {};  // one line for people
  bool lockstep = true;    // all workers are in the same iteration
  bool survives = false;   // goes on without workers that are lost or leave
  Moves moves = Moves::kGradients;
  std::string service = {};  // the name of the one that it asks; empty: none
  bool sends = false;        // messages to the strategies of other workers
  // It sets batches. Where samples are dealt out in step, the batches of all change together, from an
  // iteration on that all workers agree on.
  bool sets_batches = false;
  DataMode data = DataMode::kInStep;
  ModelIs model = ModelIs::kParameters;
  // InvalidArgument says which option is missing or wrong.
  std::function<absl::StatusOr<std::unique_ptr<Strategy>>(const StrategyOptions&)> make = {};

  // Whether the strategy updates parameters itself, beside the optimizer's step with a mean gradient.
  bool moves_parameters() const { return moves != Moves::kGradients; }
  bool moves_gradients() const { return moves != Moves::kParameters; }
};

// All of them, by name.
std::vector<std::string> StrategyNames();
// "a, b, c", for messages and help.
std::string StrategyList();

// InvalidArgument names those that there are. The entry stays valid.
absl::StatusOr<const StrategyEntry*> FindStrategy(absl::string_view name);
absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(absl::string_view name,
                                                       const StrategyOptions& options);

// Before any of the functions above is used on another thread. AlreadyExists if there is one of
// that name.
absl::Status AddStrategy(StrategyEntry entry);

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_REGISTRY_H_
