// The interface of every synchronization method: which workers synchronize what, and when.
//
// A strategy is a pure state machine, one for each worker. It is told what happens (events) and
// answers with what is to be done (commands). It owns no thread, socket, clock or random device:
// time comes in with every event, seeds with its options. So the same object runs live on the
// engine, in virtual time over a cost model, and in tests under any order of events.
//
// One iteration of a worker, as what runs it sees it:
//
//   IterationBegan
//   for each tensor, first to last:  ForwardNeeds, and nothing before Proceed for that tensor
//   for each tensor, last to first:  GradientReady
//   BackwardEnded
//   ForwardNeeds of the next iteration, or Drain after the last one
//
// Everything else (a transfer done, a group or a permission from a service, a lost worker, time
// passed, a new schedule) may come at any moment between these.
//
// Tensors are numbered as in a TensorTable: 0 is the first that the forward pass uses.
#ifndef SYNCOPATE_STRATEGY_STRATEGY_H_
#define SYNCOPATE_STRATEGY_STRATEGY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "model/schedule.h"

namespace syncopate::strategy {

// ---- events

// A new iteration: this worker's batch has `samples`, the batches of all workers together
// `all_samples` if what runs it knows it; 0: it does not.
struct IterationBegan {
  int64_t iteration = 0;
  uint64_t samples = 1;
  uint64_t all_samples = 0;
};
// The forward pass is about to use the tensor's parameters. It waits for Proceed.
struct ForwardNeeds {
  int tensor = 0;
};
// The gradient of this worker's batch is ready.
struct GradientReady {
  int tensor = 0;
};
// The backward pass is over. Tensors without GradientReady had no part in it: their gradient is 0.
struct BackwardEnded {};
// A transfer that the strategy started has ended here.
struct TransferDone {
  int64_t transfer = 0;
};
// A service answers AskService: these workers average together next (Prague), or this worker may go
// on with this batch (R2SP, SSP). 0 samples: as before.
struct GroupAssigned {
  int64_t ticket = 0;
  std::vector<int> members;
};
struct PermissionGranted {
  int64_t ticket = 0;
  uint64_t samples = 0;
};
// All survivors are told the same rank, if not at the same moment.
struct WorkerLost {
  int rank = 0;
  absl::Status why;
};
// The schedule of transfers from iteration `from` on; all workers are told the same, before any of
// them begins that iteration.
struct NewSchedule {
  std::shared_ptr<const Schedule> schedule;
  int64_t from = 0;
};
// The transfer rate of a peer, measured anew; bytes/s.
struct LinkMeasured {
  int rank = 0;
  double bandwidth = 0;
};
// The moment of WakeAt has come.
struct TimePassed {};
// There is no next iteration: whatever is under way is to be brought to its end.
struct Drain {};

using Event = std::variant<IterationBegan, ForwardNeeds, GradientReady, BackwardEnded, TransferDone,
                           GroupAssigned, PermissionGranted, WorkerLost, NewSchedule, LinkMeasured,
                           TimePassed, Drain>;

// ---- commands, to be carried out in their order

// Which value of a tensor a transfer moves.
enum class Content : uint8_t { kGradients, kParameters };
// What a transfer does with the values of its members.
enum class Movement : uint8_t {
  kAverage,  // all members get the mean of what they bring, weighted with `weight`
  kPush,     // `target` gets what this worker brings, added up there
  kPull,     // this worker gets what `target` holds
};
// Starts a transfer of tensors first..last among `members` (ranks of the job, sorted; empty:
// everybody). The members start transfers with the same id for it, and transfers that have members
// in common in the same order.
struct StartTransfer {
  int64_t transfer = 0;  // not used before
  Movement movement = Movement::kAverage;
  Content content = Content::kGradients;
  int first = 0;
  int last = 0;
  std::vector<int> members = {};
  double weight = 1;  // of this worker's part; what runs it may divide by the known sum of all
  int target = -1;    // kPush, kPull
  int priority = 0;   // higher goes first
};
// Updates the parameters of tensors first..last.
enum class Update : uint8_t {
  kStepAveraged,  // the optimizer's step with the gradient that transfer `transfer` brought
  kStepLocal,     // the optimizer's step with this worker's own gradient
  kAdopt,         // the parameters become what transfer `transfer` brought
};
struct ApplyUpdate {
  Update update = Update::kStepAveraged;
  int first = 0;
  int last = 0;
  int64_t transfer = -1;
};
// The forward pass may use the tensor now. The command comes after the updates that it must see.
struct Proceed {
  int tensor = 0;
};
// A request to a service, which answers with `ticket`: the worker wants a group, wants permission
// to go on, or only tells that its group is done.
enum class Request : uint8_t { kGroup, kPermission, kGroupDone };
struct AskService {
  int64_t ticket = 0;
  Request request = Request::kGroup;
  int64_t iteration = 0;
};
// From the next batch on, each batch of this worker has this many samples.
struct SetBatch {
  uint64_t samples = 0;
};
// TimePassed is wanted at this time (seconds, as `now` of Step).
struct WakeAt {
  double seconds = 0;
};
// The end of everything that Drain waited for.
struct Drained {};
// The worker cannot go on.
struct Fail {
  absl::Status status;
};

using Command =
    std::variant<StartTransfer, ApplyUpdate, Proceed, AskService, SetBatch, WakeAt, Drained, Fail>;

// ---- the machine

struct WorkerInfo {
  int rank = 0;
  int size = 1;
  int tensors = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // The name for reports, as "bsp".
  virtual std::string name() const = 0;

  // What is to be done because of `event`, at `now` seconds since any fixed moment; appended to
  // `commands`. Must not be called from two threads at once.
  virtual void Step(double now, const Event& event, std::vector<Command>& commands) = 0;
};

// The text form for logs and tests: "gradient-ready 3", "start 7: average gradients 2-5 weight 32".
std::string ToText(const Event& event);
std::string ToText(const Command& command);

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_STRATEGY_H_
