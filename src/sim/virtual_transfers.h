// Transfers in virtual time: who has started what, which of them move, and what they bring.
//
// A transfer moves from the moment at which everybody that it needs has started it: first its start-up,
// in which no bandwidth is used, then its bytes, which share the network by the rule of a Bandwidth.
//
// What a step costs depends on the transfers and members that it concerns, never on all there are: each
// rank has lists of what it has to do with. A transfer is forgotten as soon as everybody who started it
// has applied it, was told that it failed, or has ended; an exchange when its receivers have read it, too.
#ifndef SYNCOPATE_SIM_VIRTUAL_TRANSFERS_H_
#define SYNCOPATE_SIM_VIRTUAL_TRANSFERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/tensor_layout.h"
#include "model/tensor_table.h"
#include "sim/bandwidth.h"
#include "sim/member_list.h"
#include "sim/tensor_numbers.h"
#include "strategy/command.h"

namespace syncopate::sim {

// A transfer that at least one of its members has started.
struct Moving {
  strategy::StartTransfer start;  // of the first that started it
  int owner = -1;                 // whose it is; -1: that of all its members, an average
  Members members;                // who move bytes for it
  std::vector<TensorCut> cuts;    // which numbers it moves, sorted by tensor
  size_t numbers = 0;             // of all cuts
  uint64_t bytes = 0;
  uint64_t serial = 0;  // no other transfer has it

  struct Part {
    strategy::StartTransfer start;
    int64_t iteration = 0;  // that made what it brings
    double begin = 0;       // when this worker started it
    bool started = false;
    bool open = false;           // its worker may still apply it or be told that it failed
    bool failed = false;         // its worker was told so
    int untaken = 0;             // tensors that were not applied
    std::vector<double> values;  // by cut and number
  };
  // Of an average by place in `members`; else one, the owner's.
  std::vector<Part> parts;
  int started = 0;
  int open = 0;
  int failed = 0;

  enum class State : uint8_t {
    kWaits,    // for somebody to start it
    kStartUp,  // all that it needs have started it
    kMoves,    // bytes
    kDone,
    kDead,  // a member died before it was done
  };
  State state = State::kWaits;
  double start_up = 0;         // seconds
  double first_byte = 0;       // when its start-up was over
  std::vector<double> result;  // by cut and number, once it is done
  int unread = 0;              // exchanges: receivers that have not read it

  bool ended() const { return state == State::kDone || state == State::kDead; }
  bool flows() const { return state == State::kStartUp || state == State::kMoves; }
  // Of a worker that has one.
  Part& PartOf(int rank) {
    return parts[owner >= 0 ? 0 : static_cast<size_t>(members->PositionOf(rank))];
  }
};

class VirtualTransfers {
 public:
  // `numbers` must outlive this.
  VirtualTransfers(const TensorTable& table, const TensorNumbers& numbers,
                   std::unique_ptr<Bandwidth> bandwidth, int workers)
      : layout_(table),
        numbers_(numbers),
        bandwidth_(std::move(bandwidth)),
        ranks_(static_cast<size_t>(workers)) {}

  // `iteration`: that made what this worker brings. `members` of an average are resolved; those of other
  // transfers are ignored. `values`: all numbers of this worker's gradients or parameters.
  // FailedPrecondition if the command makes no sense.
  absl::Status Start(double now, int rank, int64_t iteration, const strategy::StartTransfer& start,
                     const Members& members, absl::Span<const double> values);

  // The first moment at which something happens by itself: a start-up or a transfer ends.
  double NextEnd();
  // Ends the start-ups that are over at `now`, which is at most NextEnd().
  void Advance(double now);
  // Those that end at `now`; they are done. Each is given back by Close() once it has been looked at.
  std::vector<Moving*> TakeEnded(double now);
  void Close(Moving& moving);

  // Whatever this worker has a part in does not move any more.
  void Lose(double now, int rank);
  // The worker is gone, and starts nothing any more.
  void Leave(int rank);
  // The worker takes nothing any more, whatever the reason; what it has begun goes on without it.
  void End(int rank);

  // What one worker may tell of a transfer that it started.
  struct Record {
    strategy::StartTransfer start;
    int64_t iteration = 0;
    uint64_t bytes = 0;
    double begin = 0;
    int missing = -1;  // of a broken one: a member that is gone
  };
  static Record RecordOf(Moving& moving, int rank);
  // The transfers that `rank` started and that need one of `gone`, each once, by their id.
  std::vector<Record> TakeBroken(int rank, const std::set<int>& gone);

  // What an update takes from transfers: all numbers of the tensors first..last, and what was sent.
  struct Taken {
    std::vector<double> values;
    std::vector<double> sent;
  };
  absl::Status Take(int rank, const strategy::ApplyUpdate& apply, Taken& taken);

  // The most transfers that were not forgotten at one time.
  size_t kept_max() const { return kept_max_; }
  std::vector<double> LinkBytes() const { return bandwidth_->LinkBytes(); }

 private:
  struct Key {
    int owner;
    int64_t id;
    Members members;  // null unless it is an average

    friend bool operator==(const Key& one, const Key& two) {
      return one.owner == two.owner && one.id == two.id &&
             (one.owner >= 0 || Same(one.members, two.members));
    }
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.owner, key.id, key.owner >= 0 ? 0 : key.members->hash);
    }
  };
  // What a rank has to do with, as numbers of transfers.
  struct Rank {
    std::vector<int> started;  // it has an open part, in the order of its starts
    std::vector<int> needed;   // it moves bytes for it, and it has not ended
    std::vector<int> unread;   // exchanges to it that it has not read
    bool dead = false;
    bool gone = false;
    bool ended = false;
  };
  struct StartUp {
    double end;
    uint64_t serial;
    int transfer;
    bool operator>(const StartUp& other) const {
      return std::pair(end, serial) > std::pair(other.end, other.serial);
    }
  };

  Moving& At(int transfer) { return *transfers_[static_cast<size_t>(transfer)]; }
  Rank& RankOf(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  static Key KeyOf(const Moving& moving);
  // The transfer of that owner and id, or -1.
  int FindOwned(int owner, int64_t id) const;

  absl::StatusOr<int> Create(double now, int rank, const strategy::StartTransfer& start,
                             const Key& key);
  // Fails if a member takes part in another average of this id, with nobody gone who would explain it.
  absl::Status CheckAgreement(const Moving& moving, const strategy::StartTransfer& start);
  void Begin(double now, int transfer);
  void BeginBytes(double now, int transfer);
  absl::Status BeginExchanges(double now, int transfer);
  absl::Status TryExchange(double now, int transfer);
  void MarkRead(int transfer, int reader);
  void Finish(int transfer);
  // Of Take(): `first` is the number of the update's first tensor.
  void AddCut(Moving& moving, int rank, const TensorCut& cut, size_t first, Taken& taken) const;
  absl::Status TakeTensor(int rank, int tensor, Moving& named, size_t first, Taken& taken);
  void StopNeeding(int transfer);
  void ClosePart(int transfer, int rank);
  void ForgetIfOver(int transfer);

  const TensorLayout layout_;
  const TensorNumbers& numbers_;
  const std::unique_ptr<Bandwidth> bandwidth_;
  std::vector<Rank> ranks_;
  std::vector<int> dead_, gone_;  // the dead are gone, too
  std::vector<std::unique_ptr<Moving>> transfers_;
  std::vector<int> free_;  // of these
  absl::flat_hash_map<Key, int> index_;
  std::priority_queue<StartUp, std::vector<StartUp>, std::greater<StartUp>> start_ups_;
  uint64_t serials_ = 0;
  size_t kept_max_ = 0;
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_VIRTUAL_TRANSFERS_H_
