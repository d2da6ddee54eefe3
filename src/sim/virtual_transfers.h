// Transfers in virtual time: who has started what, which of them move, and how long the bytes take.
//
// A transfer moves from the moment at which everybody that it needs has started it: first its
// start-up, in which no bandwidth is used, then its bytes. Those that have a member in common share
// bandwidth by the gamma of the cost model.
#ifndef SYNCOPATE_SIM_VIRTUAL_TRANSFERS_H_
#define SYNCOPATE_SIM_VIRTUAL_TRANSFERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cost/communication_costs.h"
#include "model/tensor_layout.h"
#include "model/tensor_table.h"
#include "strategy/command.h"

namespace syncopate::sim {

// What transfers of these members (sorted) cost.
using GroupCosts =
    std::function<absl::StatusOr<cost::CommunicationCosts>(const std::vector<int>& members)>;

// A transfer that at least one of its members has started. Each tensor has one number.
struct Moving {
  strategy::StartTransfer start;  // of the first that started it
  std::vector<int> members;       // who move bytes for it, sorted
  std::vector<int> tensors;
  std::vector<double> fractions;  // by tensor: which part of it this transfer moves
  uint64_t bytes = 0;
  cost::CommunicationCosts costs;  // of its members
  struct Part {
    strategy::StartTransfer start;
    int64_t iteration = 0;  // that made what it brings
    double begin = 0;       // when this worker started it
    double weight = 1;
    bool keep_sent = false;
    std::vector<double> values;  // by tensor
  };
  std::map<int, Part> parts;  // by rank, of those who have started it
  bool flows = false;         // all that it needs have started it
  double start_up_left = 0;   // seconds
  double bytes_left = 0;
  double first_byte = 0;  // when its start-up was over
  bool done = false;
  bool dead = false;           // a member died before it was done
  std::set<int> failed_at;     // ranks that were told that it failed
  std::vector<double> result;  // by tensor, once it is done
  std::map<int, int> untaken;  // by rank: tensors that were not applied there
};

class VirtualTransfers {
 public:
  // Transfers cost what `group_costs` says of their members; if it is empty, all of them `costs`.
  VirtualTransfers(const TensorTable& table, cost::CommunicationCosts costs,
                   GroupCosts group_costs = {})
      : layout_(table), costs_(std::move(costs)), group_costs_(std::move(group_costs)) {}

  // `iteration`: that made what this worker brings. `members` of an average are resolved: no list
  // means nobody. `value` reads what this worker brings of a tensor. FailedPrecondition if the command
  // makes no sense.
  absl::Status Start(double now, int rank, int64_t iteration, const strategy::StartTransfer& start,
                     const std::vector<int>& members, const std::function<double(int)>& value);

  // The first moment at which the rates change by themselves: a start-up or a transfer ends.
  double NextEnd(double now) const;
  // Moves all transfers on to time `to`, which is at most NextEnd().
  void Advance(double now, double to);
  // Those that have ended since; they are done.
  std::vector<Moving*> TakeEnded();

  // Whatever this worker has a part in does not move any more.
  void Lose(int rank);
  // The worker is gone, and starts nothing any more.
  void Leave(int rank) { gone_.insert(rank); }
  // The ids of transfers that `rank` started and that need one of `gone`, each once.
  std::vector<int64_t> TakeBroken(int rank, const std::set<int>& gone);

  // What one worker may tell of a transfer that it started.
  struct Record {
    strategy::StartTransfer start;
    int64_t iteration = 0;
    uint64_t bytes = 0;
    double begin = 0;
  };
  static Record RecordOf(const Moving& moving, int rank);
  std::optional<Record> RecordOf(int rank, int64_t id) const;

  // What an update takes from a transfer.
  struct Taken {
    int tensor = 0;
    double value = 0;
    double sent = 0;
  };
  absl::StatusOr<std::vector<Taken>> Take(int rank, const strategy::ApplyUpdate& apply);

 private:
  // Whose it is (-1: that of all its members), id, members.
  using Key = std::tuple<int, int64_t, std::vector<int>>;

  void Cut(const strategy::StartTransfer& start, Moving& moving) const;
  void Begin(Moving& moving);
  void BeginExchanges(int64_t id);
  int Beside(const Moving& moving) const;
  double SecondsLeft(const Moving& moving) const;
  Moving* DoneOf(int rank, int64_t id);

  const TensorLayout layout_;
  const cost::CommunicationCosts costs_;
  const GroupCosts group_costs_;
  std::map<Key, Moving> transfers_;
  std::set<int> dead_;
  std::set<int> gone_;  // the dead among them
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_VIRTUAL_TRANSFERS_H_
