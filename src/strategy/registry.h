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
#include "syncopate/service.h"

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
  // Without lockstep: workers meet each other by a rule that goes by the number of their iterations, so all
  // must end after the same one, though the faster then wait and the slower train on. False where nobody
  // waits for a certain iteration of another (a service says who meets whom, a server answers anybody,
  // pairs are drawn): each ends when it hears that the job does, however many iterations it has done.
  bool ends_together = true;
  Moves moves = Moves::kGradients;
  std::string service = {};  // the name of the one that it asks; empty: none
  // Makes it, the same on all workers; null: whoever starts the job adds it.
  std::function<std::unique_ptr<Service>(const StrategyOptions&)> make_service = {};
  // The rank that serves: it holds the parameters for all. It hosts no services, and averages of all
  // training ranks are without it; what its training loop does goes through what it holds. -1: none.
  int server = -1;
  // What the training loop of that rank does: it trains as well, or nothing (in virtual time only so far).
  Role server_role = Role::kTrains;
  bool sends = false;  // messages to the strategies of other workers
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
  // The ranks that serve.
  std::vector<int> servers() const {
    return server < 0 ? std::vector<int>() : std::vector<int>{server};
  }
  // StrategyOptions::roles of a job of `size` workers, which has these servers.
  std::vector<Role> RolesAmong(int size) const;
  // What their training loops do, by rank; empty: all train. InvalidArgument if nobody is there to serve, or to
  // train.
  absl::StatusOr<std::vector<Role>> RolesOfLoops(int size) const;
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
// that name, InvalidArgument if it lacks what every strategy has, or says that workers in lockstep go on
// after a loss: what they do together beside the strategy takes all of them.
absl::Status AddStrategy(StrategyEntry entry);

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_REGISTRY_H_
