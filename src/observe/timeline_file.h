// The timeline of one worker, written while it runs and readable after a crash.
//
// Three files of bounded size: the first holds the beginning of the run; when it is full, the other
// two take turns, each emptied when its turn comes, so that together they hold the last iterations.
// Every one of them is a Chrome trace by itself.
#ifndef SYNCOPATE_OBSERVE_TIMELINE_FILE_H_
#define SYNCOPATE_OBSERVE_TIMELINE_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/trace.h"
#include "observe/append_file.h"
#include "observe/chrome_trace.h"

namespace syncopate::observe {

// Not thread-safe.
class TimelineFile {
 public:
  static constexpr uint64_t kBytesMaxDefault = uint64_t{8} << 20;

  // `stem` is the path without ".json"; what an earlier run left there is deleted. Of `worker` all
  // but its spans is used: its clock offset must be known. `origin_ns`: the moment of rank 0's
  // clock from which times count; the same for all workers, 0 will do.
  static absl::StatusOr<TimelineFile> Create(const std::string& stem, const WorkerTrace& worker,
                                             int64_t origin_ns,
                                             uint64_t bytes_max = kBytesMaxDefault);

  // Files change only between calls: append the spans of whole iterations, as Recorder::TakeNew()
  // gives them at the end of an iteration.
  absl::Status Append(const std::vector<Span>& spans);
  // Makes the files complete JSON. Nothing can be appended afterwards.
  absl::Status Close();

  // All files that a timeline of this stem can have.
  static std::vector<std::string> PathsOf(const std::string& stem);

 private:
  TimelineFile(std::string stem, const WorkerTrace& worker, int64_t origin_ns, uint64_t bytes_max)
      : stem_(std::move(stem)), bytes_max_(bytes_max), writer_(worker, origin_ns) {}
  absl::Status Begin(int part);

  std::string stem_;
  uint64_t bytes_max_;
  ChromeTraceWriter writer_;
  int part_ = 0;  // 0: the beginning; 1, 2: the end
  AppendFile file_;
};

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_TIMELINE_FILE_H_
