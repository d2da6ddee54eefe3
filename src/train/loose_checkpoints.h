// A worker's part in the checkpoints of a job without lockstep (checkpoint_marks.h says who does what when).
//
//   loop: an iteration; AtBoundary(how far the job is, capture)
//   End(where it ended, capture)
//
// Files are written on the training thread, at boundaries; nobody waits for another worker before its end.
#ifndef SYNCOPATE_TRAIN_LOOSE_CHECKPOINTS_H_
#define SYNCOPATE_TRAIN_LOOSE_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "syncopate/syncopate.h"
#include "train/checkpoint.h"
#include "train/checkpoint_marks.h"
#include "train/options/checkpoint_note.h"
#include "train/options/disk.h"

namespace syncopate::train {

// Not thread-safe: the training thread alone uses it.
class LooseCheckpoints {
 public:
  struct Options {
    std::string folder;
    int64_t every = 1;  // iterations of the job's batch between two marks
    // The set that the job went on from; iteration -1: it began anew.
    CheckpointNote resumed = {.iteration = -1, .workers = 0};
    Disk* disk = &RealDisk();
  };
  // This worker as it is between two iterations, with nothing of its own in flight.
  using Capture = std::function<absl::StatusOr<Checkpoint>()>;

  // By every worker of the job, once. `worker` must outlive it.
  static absl::StatusOr<std::unique_ptr<LooseCheckpoints>> Start(Worker& worker,
                                                                 const Options& options);
  LooseCheckpoints(const LooseCheckpoints&) = delete;

  // Between two iterations: `position` is how many iterations of the job's batch all workers together have
  // done, as far as this one knows. Writes what is to be written. A worker that cannot write gets an error;
  // if it ends because of that, the others go on without it.
  absl::Status AtBoundary(int64_t position, const Capture& capture);
  // After the last iteration: takes part until all live workers have come to their end and a last set of
  // all counts, which is what a job goes on from that is asked for more. DeadlineExceeded if the others take
  // longer.
  absl::Status End(int64_t position, const Capture& capture, absl::Duration timeout);

  // The last set that counts, as far as this worker knows; -1: none.
  int64_t noted() const;

 private:
  class Line;
  LooseCheckpoints(Worker& worker, const Options& options, std::shared_ptr<Line> line);
  absl::Status Work(const Capture& capture);
  absl::Status Note(const CheckpointView& view);

  Worker& worker_;
  const Options options_;
  const std::shared_ptr<Line> line_;
  CheckpointStatus status_;
  // The note that was there at the start, of this run or of an older one; none: there was none.
  const std::optional<CheckpointNote> first_note_;
  int64_t removed_ = -1;  // sets before this one, and the one before it, have been removed
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_LOOSE_CHECKPOINTS_H_
