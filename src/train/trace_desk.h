// The traces of all workers at the end of a run, by parcels to the one that writes it.
#ifndef SYNCOPATE_TRAIN_TRACE_DESK_H_
#define SYNCOPATE_TRAIN_TRACE_DESK_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "model/trace.h"
#include "syncopate/syncopate.h"

namespace syncopate::train {

class TraceDesk {
 public:
  // The worker must outlive it.
  static absl::StatusOr<std::unique_ptr<TraceDesk>> Open(Worker& worker);
  ~TraceDesk();
  TraceDesk(const TraceDesk&) = delete;

  // Sends this worker's to the one that writes. It may be gone, which the caller hears elsewhere.
  absl::Status Send(int writer, const WorkerTrace& trace);
  // Those of all members, by rank, without those that are gone by then. Waits until the deadline at
  // most.
  absl::StatusOr<std::vector<WorkerTrace>> Gather(const std::vector<int>& members,
                                                  const WorkerTrace& own, int64_t deadline_ns);

 private:
  explicit TraceDesk(Worker& worker) : worker_(worker) {}

  Worker& worker_;
  Mutex mutex_;
  CondVar changed_;
  std::map<int, std::string> texts_ ABSL_GUARDED_BY(mutex_);  // by rank
  std::set<int> gone_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_TRACE_DESK_H_
