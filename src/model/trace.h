// What one worker did and when: the spans of its training thread and of its transfers.
//
// A trace is made by a recorder while a job runs, may be gathered over a collective in its compact
// form, and is all that the breakdown of a run ("where did the time go, who was late") needs.
#ifndef SYNCOPATE_MODEL_TRACE_H_
#define SYNCOPATE_MODEL_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"

namespace syncopate {

// All but kTransfer happen on the worker's training thread. There a span may lie inside another
// (packing and waiting inside backward, say); the inner one then owns its time.
enum class SpanKind : uint8_t {
  kLoad,        // the next batch
  kForward,     // id: the tensor or layer, -1: the whole pass
  kBackward,    // id: the tensor or layer, -1: the whole pass
  kPack,        // gradients into a bucket or out of it; id: the transfer
  kTransfer,    // from the moment this worker started it to its end here; id: the transfer
  kWait,        // the training thread can go on only when transfers end; id: which, -1: all
  kUpdate,      // the optimizer's step
  kEvaluate,    // not part of an iteration's time
  kCheckpoint,  // not part of an iteration's time
  kMeasure,     // communication costs, while training stands still: not part of an iteration's time
};
inline constexpr int kSpanKinds = 10;

// Evaluation, checkpoints and measuring happen between iterations and are no part of their time.
constexpr bool IsOutsideOfIterations(SpanKind kind) {
  return kind == SpanKind::kEvaluate || kind == SpanKind::kCheckpoint || kind == SpanKind::kMeasure;
}

// "load", "forward", ...
absl::string_view Name(SpanKind kind);
absl::StatusOr<SpanKind> ParseSpanKind(absl::string_view name);

struct Span {
  SpanKind kind = SpanKind::kForward;
  int iteration = 0;  // from 0; of a transfer the iteration that made its gradients
  // Of a transfer: the same for all of its participants, and another for every other transfer of
  // the iteration. -1: none.
  int id = -1;
  int64_t begin_ns = 0;  // of the worker's steady clock
  int64_t end_ns = 0;
  uint64_t bytes = 0;  // of a transfer: what this worker sent for it

  friend bool operator==(const Span&, const Span&) = default;
};

struct WorkerTrace {
  int rank = 0;
  std::string host;
  // Added to a time of this worker it gives the time of rank 0's clock, wrong by at most
  // clock_error_ns.
  int64_t clock_offset_ns = 0;
  int64_t clock_error_ns = 0;
  std::vector<Span> spans;  // in any order
  // A recorder's memory is bounded: it keeps whole iterations of the beginning and of the end, and
  // drops the spans of those between.
  uint64_t dropped = 0;        // number of spans that were dropped
  uint64_t dropped_bytes = 0;  // bytes that the dropped transfers sent
  // The first and the last iteration of which spans were dropped; -1: nothing was dropped.
  int dropped_first = -1;
  int dropped_last = -1;

  friend bool operator==(const WorkerTrace&, const WorkerTrace&) = default;
};

// InvalidArgument names the field or span that is out of its range.
absl::Status Validate(const WorkerTrace& trace);

// A compact form, about ten bytes a span, for valid traces. Decode() takes just that back and
// validates it; what it allocates is bounded by the size of `bytes`.
std::string Encode(const WorkerTrace& trace);
absl::StatusOr<WorkerTrace> DecodeTrace(absl::string_view bytes);

Digest DigestOf(const WorkerTrace& trace);

// One fact a line, for people and for tests that compare; ParseTrace() reads it back.
std::string ToText(const WorkerTrace& trace);
absl::StatusOr<WorkerTrace> ParseTrace(absl::string_view text);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_TRACE_H_
