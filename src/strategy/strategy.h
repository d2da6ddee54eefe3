// The interface of every synchronization method: which workers synchronize what, and when.
//
// A strategy is a pure state machine, one for each worker. It is told what happens (event.h) and
// answers with what is to be done (command.h). It owns no thread, socket, clock or random device:
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
// Everything else (a transfer that ended, an answer or a message, a worker that is gone, a new
// value, time passed) may come at any moment between these.
//
// Tensors are numbered as in a TensorTable: 0 is the first that the forward pass uses.
#ifndef SYNCOPATE_STRATEGY_STRATEGY_H_
#define SYNCOPATE_STRATEGY_STRATEGY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "strategy/command.h"
#include "strategy/event.h"

namespace syncopate::limits {
inline constexpr uint64_t kStrategyStateBytesMax = uint64_t{1} << 20;  // of one worker
}  // namespace syncopate::limits

namespace syncopate::strategy {

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

  // What it has to know if its job is stopped here and goes on later, at most
  // limits::kStrategyStateBytesMax; empty: nothing. Called at rest, after Drained, between two
  // iterations; messages and answers that are on their way then are lost with the job.
  virtual std::string State() const { return ""; }
  // Goes on from that; before any event. `ranks` has for each worker of this job the rank that it had in
  // the one before, which may have had more, and iterations may go on at a later number. DataLoss if the
  // state cannot be read.
  virtual absl::Status Resume(absl::string_view state, const std::vector<int>& /*ranks*/) {
    if (state.empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(name(), " keeps no state"));
  }
};

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_STRATEGY_H_
