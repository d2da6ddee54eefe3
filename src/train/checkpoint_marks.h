// The service that has workers without lockstep write sets of checkpoints together: when a set begins, and
// when it counts.
//
//   a worker passes a mark     it says so; if no set is open, one begins, with the number of the mark
//   all live workers learn it  each writes its part at its next boundary, and says so
//   all live ones have written the first of them writes the note on all of these, and says so
//   the set counts             all learn it and remove older ones; the next set may begin
//   all live ones have ended   a last set, if there was a mark since the last one; then it is over
//
// A worker that is lost holds up nothing: a set is one of those that live. There is one open set at a time, so
// a worker that is quick cannot be a set ahead.
//
// What a worker tells is all that it has done so far, and what it is told is all that there is to know, so
// nothing depends on how messages meet. Its request is answered as soon as there is something new.
#ifndef SYNCOPATE_TRAIN_CHECKPOINT_MARKS_H_
#define SYNCOPATE_TRAIN_CHECKPOINT_MARKS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "syncopate/service.h"

namespace syncopate::train {

// What a worker has done. Sets and marks are numbers of iterations of the job's batch; -1: none.
struct CheckpointStatus {
  int64_t passed = -1;   // the last mark that it has passed
  int64_t written = -1;  // the last set that its part of is on disk
  int64_t noted = -1;    // the last set that it has written the note on
  int64_t end = -1;      // where it has come to its end

  friend bool operator==(const CheckpointStatus&, const CheckpointStatus&) = default;
};

// What all workers are told.
struct CheckpointView {
  uint64_t version = 0;
  int64_t open = -1;  // the set that is being written
  std::vector<int> ranks =
      {};              // not empty: all live workers, these, have written it; the first notes that
  int64_t noted = -1;  // the last set that counts
  int64_t previous = -1;  // the one before it, which is kept
  bool over = false;      // all live workers have ended, and their last set counts

  friend bool operator==(const CheckpointView&, const CheckpointView&) = default;
};

// A request: what the worker has done, and the version that it knows.
std::string EncodeStatus(const CheckpointStatus& status, uint64_t seen);
// An answer.
std::string EncodeView(const CheckpointView& view);
absl::StatusOr<CheckpointView> DecodeView(absl::string_view bytes);
// What a worker reports when the service has to be rebuilt.
std::string EncodeReport(const CheckpointStatus& status, const CheckpointView& view);

class CheckpointMarks : public Service {
 public:
  static constexpr char kName[] = "checkpoints";

  // `noted` and `previous`: the sets that the job went on from.
  CheckpointMarks(int workers, int64_t noted, int64_t previous);

  absl::string_view name() const override { return kName; }
  ServiceStep Step(const ServiceContext& context, const ServiceEvent& event) override;
  std::string State() const override;
  absl::Status Load(absl::string_view state) override;
  bool CanRebuild() const override { return true; }
  absl::StatusOr<std::string> Rebuild(const ServiceContext& context,
                                      const std::vector<ServiceReport>& reports) override;

 private:
  struct Waiting {
    uint64_t ticket = 0;
    uint64_t seen = 0;
  };

  void Tell(int rank, const CheckpointStatus& status);
  // Does what follows from what the live workers have done.
  void Update(ServiceStep& step);
  // Whether there is something to open, to complete, or to end; one step of it.
  bool UpdateOnce(ServiceStep& step);
  void Answer(ServiceStep& step);

  CheckpointView view_;
  std::map<int, CheckpointStatus> live_;
  std::map<int, Waiting> waiting_;  // by rank: a newer request takes the place of an older one
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_CHECKPOINT_MARKS_H_
