#include "observe/trace_parts.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <utility>

#include "observe/chrome_trace.h"

namespace syncopate::observe {
namespace {

// The first iteration that the part did. Evaluations and checkpoints count with the iteration before
// them, which may be of an earlier part.
int FirstIteration(const std::vector<WorkerTrace>& part) {
  int first = INT_MAX;
  for (const WorkerTrace& trace : part) {
    for (const Span& span : trace.spans) {
      if (span.kind == SpanKind::kEvaluate || span.kind == SpanKind::kCheckpoint) continue;
      first = std::min(first, span.iteration);
    }
  }
  return first;
}

// Without what it did from that iteration on.
void CutOff(int iteration, WorkerTrace& trace) {
  std::erase_if(trace.spans, [&](const Span& span) { return span.iteration >= iteration; });
  if (trace.dropped == 0) return;
  if (trace.dropped_first < iteration) {
    trace.dropped_last = std::min(trace.dropped_last, iteration - 1);
  } else {
    trace.dropped = 0;
    trace.dropped_bytes = 0;
    trace.dropped_first = trace.dropped_last = -1;
  }
}

// Moves all spans to a clock that differs from rank 0's by `offset_ns`, after they were moved by
// `shift_ns` on rank 0's.
void MoveTo(int64_t offset_ns, int64_t shift_ns, WorkerTrace& trace) {
  const int64_t move_ns = trace.clock_offset_ns + shift_ns - offset_ns;
  for (Span& span : trace.spans) {
    span.begin_ns += move_ns;
    span.end_ns += move_ns;
  }
  trace.clock_offset_ns = offset_ns;
}

// Puts a later trace of the same rank to `joined`.
void Append(WorkerTrace later, std::vector<WorkerTrace>& joined) {
  for (WorkerTrace& trace : joined) {
    if (trace.rank != later.rank) continue;
    trace.clock_error_ns = std::max(trace.clock_error_ns, later.clock_error_ns);
    if (later.dropped > 0) {
      trace.dropped_first = trace.dropped > 0 ? trace.dropped_first : later.dropped_first;
      trace.dropped_last = later.dropped_last;
      trace.dropped += later.dropped;
      trace.dropped_bytes += later.dropped_bytes;
    }
  }
  MergeTrace(std::move(later), &joined);
}

}  // namespace

std::vector<WorkerTrace> JoinParts(std::vector<std::vector<WorkerTrace>> parts) {
  std::vector<WorkerTrace> joined;
  for (std::vector<WorkerTrace>& part : parts) {
    const int first = FirstIteration(part);
    int64_t joined_end_ns = INT64_MIN, part_begin_ns = INT64_MAX;
    for (WorkerTrace& trace : joined) {
      CutOff(first, trace);
      for (const Span& span : trace.spans) {
        joined_end_ns = std::max(joined_end_ns, span.end_ns + trace.clock_offset_ns);
      }
    }
    for (const WorkerTrace& trace : part) {
      for (const Span& span : trace.spans) {
        part_begin_ns = std::min(part_begin_ns, span.begin_ns + trace.clock_offset_ns);
      }
    }
    const bool both = joined_end_ns != INT64_MIN && part_begin_ns != INT64_MAX;
    const int64_t shift_ns = both ? joined_end_ns - part_begin_ns : 0;
    for (WorkerTrace& trace : part) {
      const auto same = std::find_if(joined.begin(), joined.end(), [&](const WorkerTrace& each) {
        return each.rank == trace.rank;
      });
      MoveTo(same == joined.end() ? 0 : same->clock_offset_ns, shift_ns, trace);
      // Of a damaged file, times may lie outside of all time now.
      if (Validate(trace).ok()) Append(std::move(trace), joined);
    }
  }
  return joined;
}

}  // namespace syncopate::observe
