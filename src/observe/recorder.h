// Records the spans of one worker while it trains.
//
// Memory is taken once, at the start. When it is full, the first half stays as it is and the second
// half holds what came last, so a trace shows how a job began and how it ended; what was left out
// is counted. A span costs two readings of the clock and about 30 ns.
//
// Thread-safe: the training thread and the threads on which transfers complete may record at once.
#ifndef SYNCOPATE_OBSERVE_RECORDER_H_
#define SYNCOPATE_OBSERVE_RECORDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "model/trace.h"

namespace syncopate::observe {

class Recorder {
 public:
  static constexpr size_t kSpansMaxDefault = size_t{1} << 17;  // 5 MiB

  // `clock` must outlive the recorder. `spans_max` is at most limits::kTraceSpansMax, at least 2.
  Recorder(const Clock& clock, int rank, std::string host, size_t spans_max = kSpansMaxDefault);
  Recorder(const Recorder&) = delete;

  int64_t NowNs() const { return clock_.NowNs(); }

  // A span that has ended.
  void Record(const Span& span) ABSL_LOCKS_EXCLUDED(mutex_);
  // A span that ends now.
  void RecordUntilNow(SpanKind kind, int iteration, int id, int64_t begin_ns, uint64_t bytes = 0) {
    Record({kind, iteration, id, begin_ns, NowNs(), bytes});
  }

  void SetClockOffset(int64_t offset_ns, int64_t error_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // All that is kept so far, sorted by begin; only iterations of which nothing was dropped. The
  // iteration that is running is part of it as far as it has come.
  WorkerTrace Trace() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The spans that were recorded since the last call, in order of their end, for a caller that
  // writes them while the job runs. What was overwritten before it was taken is missing.
  std::vector<Span> TakeNew() ABSL_LOCKS_EXCLUDED(mutex_);

  // How long all spans of a kind took so far, dropped ones included.
  int64_t TotalNs(SpanKind kind) const ABSL_LOCKS_EXCLUDED(mutex_);
  // What all transfers so far sent, dropped ones included.
  uint64_t BytesSent() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Where the span with that number (from 0) is or was kept.
  size_t SlotOf(uint64_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const int rank_;
  const std::string host_;
  const size_t head_;  // slots that are never overwritten
  mutable Mutex mutex_;
  std::vector<Span> slots_ ABSL_GUARDED_BY(mutex_);  // of fixed size
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;       // recorded since the start
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;       // number of the first that is new
  uint64_t bytes_sent_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<int64_t, kSpanKinds> total_ns_ ABSL_GUARDED_BY(mutex_) = {};
  int dropped_first_ ABSL_GUARDED_BY(mutex_) = -1;  // iterations of what was overwritten
  int dropped_last_ ABSL_GUARDED_BY(mutex_) = -1;
  int64_t offset_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t error_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A span from here to the end of the block. A null recorder records nothing.
class ScopedSpan {
 public:
  ScopedSpan(Recorder* recorder, SpanKind kind, int iteration, int id = -1)
      : recorder_(recorder),
        kind_(kind),
        iteration_(iteration),
        id_(id),
        begin_ns_(recorder == nullptr ? 0 : recorder->NowNs()) {}
  ScopedSpan(const ScopedSpan&) = delete;
  ~ScopedSpan() {
    if (recorder_ != nullptr) recorder_->RecordUntilNow(kind_, iteration_, id_, begin_ns_);
  }

 private:
  Recorder* const recorder_;
  const SpanKind kind_;
  const int iteration_;
  const int id_;
  const int64_t begin_ns_;
};

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_RECORDER_H_
