// The transfers of a synchronizer, each from its start until all that it brought has been applied.
//
// A transfer runs as collectives, one for each type of element that it moves: an average as an
// all-reduce; a push or a pull as a send-receive with its target, which a message asks for
// (sync/serving.h); an exchange as a send-receive with each neighbour, in the order in which both have
// started exchanges with each other. A worker that is its own target uses its store directly. Each of
// these leaves a note in the inbox when it ends, on the thread that drives the engine; whoever takes
// the note gives it to CallEnded(), which says what has become of the transfer. A transfer that failed
// is known no more, and its group is made anew when the next transfer needs it.
//
// Not thread-safe.
#ifndef SYNCOPATE_SYNC_LIVE_TRANSFERS_H_
#define SYNCOPATE_SYNC_LIVE_TRANSFERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "model/iteration_times.h"
#include "observe/recorder.h"
#include "strategy/command.h"
#include "sync/call_queue.h"
#include "sync/group_cache.h"
#include "sync/long_work.h"
#include "sync/packed_values.h"
#include "sync/pair_groups.h"
#include "sync/parameter_store.h"
#include "sync/staging_memory.h"
#include "sync/transfer_inbox.h"
#include "syncopate/syncopate.h"

namespace syncopate::sync {

class LiveTransfers {
 public:
  struct Options {
    // Gradients and parameters both move, so that they need groups of their own.
    bool both = false;
    observe::Recorder* recorder = nullptr;
    ParameterStore* store = nullptr;  // this worker's own, if it has one
    std::vector<int> servers = {};    // ranks that are no training ranks
    std::string serving_topic = {};   // of requests to other workers' stores
    // Has StartHeld() called (CallQueue).
    std::function<void()> start_later = {};
    absl::Duration timeout = absl::Minutes(5);  // of calls that are held
    LongWork* work = nullptr;                   // does what its own store has to do
  };
  // All of them must outlive it.
  LiveTransfers(Worker& worker, PackedValues& values, TransferInbox& inbox, const Clock& clock,
                const Options& options)
      : worker_(worker),
        values_(values),
        inbox_(inbox),
        clock_(clock),
        options_(options),
        groups_(worker, options.servers),
        pairs_(worker),
        calls_(options.start_later, options.timeout, clock) {}
  // Waits for what is under way, within its timeouts: it uses the packed values.
  ~LiveTransfers();
  LiveTransfers(const LiveTransfers&) = delete;

  // Makes the group of all training ranks' parameters, where they move beside gradients. To be called by
  // all of them at the same point among their groups of everybody.
  absl::Status MakeGroups();

  // What a transfer is made with, beside its command.
  struct Made {
    int64_t iteration = 0;  // that made what it moves
    // What gradients were multiplied with when they were packed, where their type bears it; 0: nothing.
    double share = 0;
  };
  // Does a piece of what takes long in Start(), beside packing; true: that was the last one.
  static bool Prepare(Worker& worker, const PackedValues& values,
                      const strategy::StartTransfer& start);
  // The values are packed. What goes wrong is told as its end.
  void Start(const strategy::StartTransfer& start, const Made& made);
  // Calls that could not start without waiting are tried again.
  void StartHeld() { calls_.StartHeld(); }

  struct Transfer {
    strategy::StartTransfer start = {};
    std::vector<int> tensors = {};  // of which it moves at least a part
    int64_t iteration = 0;
    uint64_t bytes = 0;
    int64_t begin_ns = 0;
    // When all whose data it needs had come, so that bytes could move (worker/call_times.h).
    int64_t first_ns = 0;
    int64_t end_ns = 0;
    absl::Status status = {};  // the first error of a call
  };
  // If this is the last call of an exchange that goes well: what adds up the values that came, piece by
  // piece (LongWork), without a lock. To be run before CallEnded(); else null.
  LongWork::Piece LastStep(const EndedCall& ended) const;
  // The transfer that has ended by this, well or not; nothing if other calls of it are under way.
  std::optional<Transfer> CallEnded(const EndedCall& ended);

  // One that has brought what it should and was not applied in full; null if there is none.
  const Transfer* BroughtBy(int64_t id) const;
  // What these tensors had got by transfers of `content` has been applied. A transfer whose tensors
  // have all been applied is known no more.
  void Applied(strategy::Content content, const std::vector<int>& tensors);
  // The transfer that this tensor is part of, or -1 if there is none.
  int Of(int tensor) const;

  // The worker is no member of anything from now on. False if that was known.
  bool Lose(int rank);

  // Those that ended well since the last call. If they are very many, only the newest are kept.
  std::vector<EndedTransfer> TakeEnded();
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  // One collective of a transfer.
  struct Part {
    std::shared_ptr<CallQueue::Started> call;
    std::optional<Pair> pair = {};  // whose group it runs in, if it is one of a pair
    uint64_t group = 0;             // of which number
    // An exchange does not need those to whom it only sends.
    bool needed = true;
    int64_t first_ns = 0;  // of a call that has gone well
  };
  // What an exchange gets from one neighbour, for each range.
  struct Received {
    double weight = 0;
    std::vector<StagingMemory> memory = {};
  };
  struct Running {
    Transfer transfer = {};
    std::optional<Group> group = {};  // of an average
    std::vector<Part> parts = {};
    std::shared_ptr<const std::vector<Received>> received = {};
    size_t calls_left = 0;
    bool done = false;
    size_t unapplied = 0;  // tensors that no update has taken yet
  };
  using Ranges = std::vector<TensorLayout::Range>;
  absl::Status StartAverage(Running& running, const Ranges& ranges, const Made& made);
  absl::Status StartServed(Running& running, const Ranges& ranges, const Made& made);
  absl::Status StartExchange(Running& running, const Ranges& ranges, const Made& made);
  void ServeSelf(Running& running, const Ranges& ranges, const Made& made);
  void AddCall(Running& running, Group& group, Call call, std::optional<Pair> pair = {},
               bool needed = true);
  static absl::Status StatusOf(const Running& running, const EndedCall& ended);
  static int64_t FirstNs(const Running& running);
  void Note(const Transfer& transfer);

  Worker& worker_;
  PackedValues& values_;
  TransferInbox& inbox_;
  const Clock& clock_;
  const Options options_;
  GroupCache groups_;
  PairGroups pairs_;
  CallQueue calls_;
  std::map<int64_t, Running> running_;
  uint64_t bytes_sent_ = 0;
  std::vector<EndedTransfer> ended_;
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_LIVE_TRANSFERS_H_
