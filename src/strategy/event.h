// What a strategy is told: everything that happens to its worker.
//
// Each event is a struct with a name and its fields, by which it is written as text and as JSON
// (record.h).
#ifndef SYNCOPATE_STRATEGY_EVENT_H_
#define SYNCOPATE_STRATEGY_EVENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/schedule.h"
#include "model/strategy_message.h"
#include "model/topology.h"

namespace syncopate::strategy {

// A new iteration: this worker's batch has `samples`, the batches of all workers together
// `all_samples` if what runs it knows it; 0: it does not.
struct IterationBegan {
  int64_t iteration = 0;
  uint64_t samples = 1;
  uint64_t all_samples = 0;

  static constexpr absl::string_view kName = "iteration-began";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("iteration", e.iteration);
    field("samples", e.samples);
    field("all_samples", e.all_samples, uint64_t{0});
  }
};

// The forward pass is about to use the tensor's parameters. It waits for Proceed.
struct ForwardNeeds {
  int tensor = 0;

  static constexpr absl::string_view kName = "forward-needs";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("tensor", e.tensor);
  }
};

// The gradient of this worker's batch is ready.
struct GradientReady {
  int tensor = 0;

  static constexpr absl::string_view kName = "gradient-ready";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("tensor", e.tensor);
  }
};

// The backward pass is over. Tensors without GradientReady had no part in it: their gradient is 0.
struct BackwardEnded {
  static constexpr absl::string_view kName = "backward-ended";
  template <typename Self, typename Field>
  static void Fields(Self&, const Field&) {}
};

// A transfer that the strategy started has ended here, and ApplyUpdate may take what it brought.
// Its bytes moved between the two times, in seconds as `now` of Step(). `first_byte` is when the last
// member had come and bytes could move, so that the time between the two does not contain the wait for
// others. Gradients that are added up between hosts begin without a word of all members: there it is when
// those with which this worker exchanges data had come (docs/strategy.md).
struct TransferDone {
  int64_t transfer = 0;
  double first_byte = 0;
  double last_byte = 0;
  uint64_t bytes = 0;

  static constexpr absl::string_view kName = "transfer-done";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("transfer", e.transfer);
    field("first_byte", e.first_byte);
    field("last_byte", e.last_byte);
    field("bytes", e.bytes);
  }
};

// A transfer that the strategy started has brought nothing and never will: the parameters and
// gradients of this worker are as they were. If a member is gone, the strategy was told that first.
struct TransferFailed {
  int64_t transfer = 0;
  absl::Status why = {};

  static constexpr absl::string_view kName = "transfer-failed";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("transfer", e.transfer);
    field("why", e.why);
  }
};

// A worker is dead or stuck and will not come back. Each loss is told once, in an order that is the
// same for all survivors, if not at the same moment; before the transfers that it breaks, and also
// to a worker that waits for nothing. A worker that is only late is not lost.
struct WorkerLost {
  int rank = 0;
  absl::Status why = {};

  static constexpr absl::string_view kName = "worker-lost";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("rank", e.rank);
    field("why", e.why);
  }
};

// A worker has left in good order: it brought to an end what it had begun, and begins nothing more.
struct WorkerLeft {
  int rank = 0;

  static constexpr absl::string_view kName = "worker-left";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("rank", e.rank);
  }
};

// A worker takes part from now on. Ranks are never given twice.
struct WorkerJoined {
  int rank = 0;

  static constexpr absl::string_view kName = "worker-joined";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("rank", e.rank);
  }
};

// A service answers AskService; one answer a ticket, whatever becomes of its host.
struct Answered {
  std::string service = {};
  int64_t ticket = 0;
  StrategyMessage message = {};

  static constexpr absl::string_view kName = "answered";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("service", e.service);
    field("ticket", e.ticket);
    field("message", e.message);
  }
};

// Another worker's SendMessage; exactly once, and in order from each worker.
struct MessageArrived {
  int from = 0;
  StrategyMessage message = {};

  static constexpr absl::string_view kName = "message-arrived";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("from", e.from);
    field("message", e.message);
  }
};

// A value on which all workers have agreed counts from iteration `from` on. Every worker is told
// the same before it begins that iteration.
using Value = std::variant<std::shared_ptr<const Schedule>, std::shared_ptr<const Topology>>;
struct NewValue {
  Value value = {};
  int64_t from = 0;

  static constexpr absl::string_view kName = "new-value";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("value", e.value);
    field("from", e.from);
  }
};

// An ApplyUpdate that asked for it was carried out: the square of the distance between the
// parameters before and after it, or of what it added.
struct Updated {
  int64_t transfer = 0;
  double squared_distance = 0;

  static constexpr absl::string_view kName = "updated";
  template <typename Self, typename Field>
  static void Fields(Self& e, const Field& field) {
    field("transfer", e.transfer);
    field("squared_distance", e.squared_distance);
  }
};

// The moment of WakeAt has come.
struct TimePassed {
  static constexpr absl::string_view kName = "time-passed";
  template <typename Self, typename Field>
  static void Fields(Self&, const Field&) {}
};

// There is no next iteration for now: whatever is under way is to be brought to its end.
struct Drain {
  static constexpr absl::string_view kName = "drain";
  template <typename Self, typename Field>
  static void Fields(Self&, const Field&) {}
};

using Event = std::variant<IterationBegan, ForwardNeeds, GradientReady, BackwardEnded, TransferDone,
                           TransferFailed, WorkerLost, WorkerLeft, WorkerJoined, Answered,
                           MessageArrived, NewValue, Updated, TimePassed, Drain>;

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_EVENT_H_
