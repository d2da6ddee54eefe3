// The folder of a run: what it was, how it went and where its time went.
//
//   config.json       what was asked for
//   metrics.jsonl     the course of the run, a JSON object a line (observe/metrics.h)
//   metrics-R.jsonl   what rank R wrote of it after the worker that wrote before was lost
//   metrics.prom      how it stands, for Prometheus, replaced as a whole
//   timeline-R.json   what rank R did, written as it happens (observe/timeline_file.h)
//   timeline.json     the same of all ranks, written at the end by the rank that has all traces
//   summary.json      the end of the run in one object (observe/summary.h)
//   partP-NAME        timelines and summary of part P of a run that was resumed, the first being 1
//   checkpoint*, model.*   what training goes on from, and what it has learnt (src/train)
//   run.lock          there while a run is under way (observe/run_lock.h)
//
// Every file can be read at any moment, also after a crash. One worker makes the folder and writes
// all files but the timelines of other ranks; another one goes on with that if it is lost. Workers on
// other hosts may write into folders of their own; files of several of these, put together, are one
// run's.
#ifndef SYNCOPATE_OBSERVE_RUN_DIRECTORY_H_
#define SYNCOPATE_OBSERVE_RUN_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/trace.h"
#include "observe/append_file.h"
#include "observe/metrics.h"
#include "observe/prometheus.h"
#include "observe/summary.h"
#include "observe/timeline_file.h"

namespace syncopate::observe {

// The folder, below the working directory, of runs that are given by name.
inline constexpr char kRunsFolder[] = "runs";

// A name becomes runs/NAME; what has a '/' in it is a path and stays as it is.
std::string RunPath(absl::string_view name_or_path);

enum class ExistingRun {
  kRefuse,    // an error that says what to do
  kReplace,   // its files are deleted; nothing else in the folder is touched
  kContinue,  // for runs that resume: metrics are appended, the rest becomes an earlier part's
};

// What a run has behind it when it is resumed.
struct EarlierParts {
  double seconds = 0;               // that they took together, as far as metrics tell
  std::vector<int64_t> resumed_at;  // after which iterations they went on, without the one to come
};

// Not thread-safe.
class RunDirectory {
 public:
  static constexpr uint64_t kTimelineBytesMax = uint64_t{64} << 20;

  // Makes the folder and those above it.
  static absl::StatusOr<RunDirectory> Create(const std::string& path, ExistingRun existing);
  // For rank `rank`, which goes on after the worker that wrote before: makes the folder if need be, and
  // touches nothing that the other wrote.
  static absl::StatusOr<RunDirectory> TakeOver(const std::string& path, int rank);
  // For the timeline of another worker: makes the folder if need be, touches nothing in it.
  static absl::StatusOr<TimelineFile> CreateTimeline(
      const std::string& path, const WorkerTrace& worker, int64_t origin_ns,
      uint64_t bytes_max = TimelineFile::kBytesMaxDefault);

  const std::string& path() const { return path_; }
  // Nothing but for kContinue.
  const EarlierParts& earlier() const { return earlier_; }

  absl::Status WriteConfig(absl::string_view json);
  absl::Status Append(const Metric& metric);
  absl::Status WritePrometheus(const RunState& state);
  absl::Status WriteSummary(const Summary& summary);
  // timeline.json of all these traces; the timelines of these ranks alone are deleted then, if all
  // went well.
  absl::Status WriteTimeline(const std::vector<WorkerTrace>& traces,
                             uint64_t bytes_max = kTimelineBytesMax);

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  std::string File(absl::string_view name) const;
  absl::Status SetEarlierAside(const std::vector<std::string>& files);

  std::string path_;
  EarlierParts earlier_;
  AppendFile metrics_;
};

// The path of a worker's timeline without ".json".
std::string TimelineStem(const std::string& run_path, int rank);

// The names of all runs in the folder `runs_path`, the one that was written last first.
std::vector<std::string> RunNames(const std::string& runs_path);

// The names of all files and folders in `run_path` that belong to a run, sorted. Nothing if it is no
// folder.
std::vector<std::string> RunFiles(const std::string& run_path);

// InvalidArgument, with what to do, if the folder holds a run.
absl::Status CheckHoldsNoRun(const std::string& run_path);

// The part that a file belongs to, of its name: "part2-timeline.json" gives 2 and leaves
// "timeline.json"; 0 if it is of no earlier part.
int TakePart(absl::string_view& name);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_RUN_DIRECTORY_H_
