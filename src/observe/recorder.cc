// The memory of a recorder is one array: its first half keeps the first spans for ever, the second
// is a ring of the newest. What was overwritten is remembered as a range of iterations, and Trace()
// leaves out all spans of these: half an iteration would look like one with gaps.
#include "observe/recorder.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace syncopate::observe {

Recorder::Recorder(const Clock& clock, int rank, std::string host, size_t spans_max)
    : clock_(clock),
      rank_(rank),
      host_(std::move(host)),
      head_(std::clamp<size_t>(spans_max, 2, limits::kTraceSpansMax) / 2),
      slots_(std::clamp<size_t>(spans_max, 2, limits::kTraceSpansMax)) {}

size_t Recorder::SlotOf(uint64_t number) const {
  const size_t tail = slots_.size() - head_;
  return number < head_ ? number : head_ + (number - head_) % tail;
}

void Recorder::Record(const Span& span) {
  MutexLock lock(&mutex_);
  Span& slot = slots_[SlotOf(count_)];
  if (count_ >= slots_.size()) {
    if (dropped_first_ < 0 || slot.iteration < dropped_first_) dropped_first_ = slot.iteration;
    dropped_last_ = std::max(dropped_last_, slot.iteration);
  }
  slot = span;
  ++count_;
  total_ns_[static_cast<size_t>(span.kind)] += span.end_ns - span.begin_ns;
  if (span.kind == SpanKind::kTransfer) bytes_sent_ += span.bytes;
}

void Recorder::SetClockOffset(int64_t offset_ns, int64_t error_ns) {
  MutexLock lock(&mutex_);
  offset_ns_ = offset_ns;
  error_ns_ = error_ns;
}

// What is dropped is counted as what was sent in all less what is kept, so bytes add up whatever
// was overwritten.
WorkerTrace Recorder::Trace() const {
  WorkerTrace trace;
  trace.rank = rank_;
  trace.host = host_;
  {
    MutexLock lock(&mutex_);
    trace.clock_offset_ns = offset_ns_;
    trace.clock_error_ns = error_ns_;
    trace.dropped_first = dropped_first_;
    trace.dropped_last = dropped_last_;
    trace.dropped_bytes = bytes_sent_;
    const size_t kept = std::min<uint64_t>(count_, slots_.size());
    trace.spans.reserve(kept);
    for (size_t i = 0; i < kept; ++i) {
      const Span& span = slots_[i];
      if (dropped_first_ >= 0 && span.iteration >= dropped_first_ &&
          span.iteration <= dropped_last_) {
        continue;  // others of its iteration are gone, so it would mislead
      }
      trace.spans.push_back(span);
      if (span.kind == SpanKind::kTransfer) trace.dropped_bytes -= span.bytes;
    }
    trace.dropped = count_ - trace.spans.size();
  }
  std::stable_sort(trace.spans.begin(), trace.spans.end(),
                   [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  return trace;
}

std::vector<Span> Recorder::TakeNew() {
  std::vector<Span> spans;
  MutexLock lock(&mutex_);
  // Behind the head only the last ones are there.
  const uint64_t oldest = count_ - std::min<uint64_t>(count_, slots_.size() - head_);
  spans.reserve(std::min<uint64_t>(count_ - taken_, slots_.size()));
  for (uint64_t number = taken_; number < count_; ++number) {
    if (number >= head_) number = std::max(number, oldest);
    spans.push_back(slots_[SlotOf(number)]);
  }
  taken_ = count_;
  return spans;
}

int64_t Recorder::TotalNs(SpanKind kind) const {
  MutexLock lock(&mutex_);
  return total_ns_[static_cast<size_t>(kind)];
}

uint64_t Recorder::BytesSent() const {
  MutexLock lock(&mutex_);
  return bytes_sent_;
}

}  // namespace syncopate::observe
