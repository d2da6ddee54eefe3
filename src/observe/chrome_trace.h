// Traces in the form that Chrome and Perfetto show: the JSON array format with one event a line.
//
// A process is a worker, with a track for its training thread ("compute"), one for its waits and
// one for each transfer that runs beside others. On every track events are strictly nested. Times
// are of rank 0's clock. The format allows the closing bracket to be missing, so a file to which
// lines are appended is valid at any moment, and of one that was cut in the middle of a line only
// that line is lost. Pure.
#ifndef SYNCOPATE_OBSERVE_CHROME_TRACE_H_
#define SYNCOPATE_OBSERVE_CHROME_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/trace.h"

namespace syncopate::observe {

// Writes the events of one worker, all at once or in pieces. Not thread-safe.
class ChromeTraceWriter {
 public:
  // Of `worker` all but its spans is used. Event times count from `origin_ns` of rank 0's clock.
  ChromeTraceWriter(const WorkerTrace& worker, int64_t origin_ns);

  // What stands before the worker's first event: its name and how to read its times back.
  std::string Head();
  // The events of these spans and the names of the tracks that are new. Every line ends with a
  // comma and an end of line.
  std::string Events(std::vector<Span> spans);

 private:
  int TrackOf(const Span& span);

  WorkerTrace worker_;
  int64_t origin_ns_;
  std::vector<int64_t> lane_ends_;  // when the last transfer of each lane ended
};

inline constexpr absl::string_view kChromeTraceBegin = "[\n";
// Instead of the last comma and end of line.
inline constexpr absl::string_view kChromeTraceEnd = "\n]\n";

// A whole file of at most about `bytes_max`. If that is not enough, whole iterations of the
// beginning and of the end are kept, the same of all workers, and the worker's heads say which were
// left out.
std::string ToChromeTrace(std::vector<WorkerTrace> traces, uint64_t bytes_max);

struct ChromeTraceContents {
  std::vector<WorkerTrace> traces;  // by rank, each valid
  std::vector<std::string> notes;   // what could not be read, for people
};

// Reads what the functions above write, whole or cut off at any place. Events of others are counted
// in a note.
ChromeTraceContents ReadChromeTrace(absl::string_view text);

// Puts the spans of `more` to the worker of the same rank in `traces`, or adds it.
void MergeTrace(WorkerTrace more, std::vector<WorkerTrace>* traces);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_CHROME_TRACE_H_
