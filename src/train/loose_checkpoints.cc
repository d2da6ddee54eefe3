#include "train/loose_checkpoints.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "train/checkpoint_files.h"

namespace syncopate::train {
namespace {

std::optional<CheckpointNote> NoteIn(const std::string& folder, Disk& disk) {
  absl::StatusOr<CheckpointNote> note = ReadCheckpointNote(folder, disk);
  return note.ok() ? std::optional(*std::move(note)) : std::nullopt;
}

}  // namespace

// What goes between this worker and the service. One request is open all the time, so that news come by
// themselves; answers may come until the worker ends, so the requests keep it alive. Thread-safe.
class LooseCheckpoints::Line : public std::enable_shared_from_this<Line> {
 public:
  explicit Line(Worker& worker) : worker_(worker) {}

  void Tell(const CheckpointStatus& status) {
    {
      MutexLock lock(&mutex_);
      status_ = status;
    }
    Ask();
  }
  absl::StatusOr<CheckpointView> view() const {
    MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    return view_;
  }
  // Waits for news after `version`, at most until the deadline; returns whether there are some.
  bool WaitForNews(uint64_t version, int64_t deadline_ns) {
    MutexLock lock(&mutex_);
    while (failure_.ok() && view_.version <= version) {
      const int64_t left_ns = deadline_ns - MonotonicClock().NowNs();
      if (left_ns <= 0) return false;
      changed_.WaitFor(&mutex_, std::chrono::nanoseconds(left_ns));
    }
    return true;
  }
  std::string Report() const {
    MutexLock lock(&mutex_);
    return EncodeReport(status_, view_);
  }

 private:
  void Ask() {
    std::string request;
    {
      MutexLock lock(&mutex_);
      request = EncodeStatus(status_, view_.version);
      ++open_;
    }
    const absl::Status asked =
        worker_.StartAsking(CheckpointMarks::kName, std::move(request),
                            [self = shared_from_this()](const absl::StatusOr<std::string>& answer) {
                              self->Answered(answer);
                            });
    if (!asked.ok()) Answered(asked);
  }
  void Answered(const absl::StatusOr<std::string>& answer) {
    {
      MutexLock lock(&mutex_);
      --open_;
      absl::StatusOr<CheckpointView> view =
          answer.ok() ? DecodeView(*answer) : absl::StatusOr<CheckpointView>(answer.status());
      if (!view.ok()) {
        if (failure_.ok()) failure_ = view.status();
      } else if (view->version > view_.version) {
        view_ = *std::move(view);
      }
      changed_.SignalAll();
      if (open_ > 0 || !failure_.ok() || view_.over) return;
    }
    Ask();
  }

  Worker& worker_;
  mutable Mutex mutex_;
  CondVar changed_;
  CheckpointStatus status_ ABSL_GUARDED_BY(mutex_);
  CheckpointView view_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  int open_ ABSL_GUARDED_BY(mutex_) = 0;  // requests
};

LooseCheckpoints::LooseCheckpoints(Worker& worker, const Options& options,
                                   std::shared_ptr<Line> line)
    : worker_(worker),
      options_(options),
      line_(std::move(line)),
      first_note_(NoteIn(options.folder, *options.disk)) {}

absl::StatusOr<std::unique_ptr<LooseCheckpoints>> LooseCheckpoints::Start(Worker& worker,
                                                                          const Options& options) {
  auto line = std::make_shared<Line>(worker);
  SYNCOPATE_RETURN_IF_ERROR(
      worker.AddService(std::make_unique<CheckpointMarks>(worker.size(), options.resumed.iteration,
                                                          options.resumed.previous),
                        [line] { return line->Report(); }));
  line->Tell({});
  return std::unique_ptr<LooseCheckpoints>(new LooseCheckpoints(worker, options, std::move(line)));
}

int64_t LooseCheckpoints::noted() const {
  const absl::StatusOr<CheckpointView> view = line_->view();
  return view.ok() ? view->noted : -1;
}

absl::Status LooseCheckpoints::AtBoundary(int64_t position, const Capture& capture) {
  const int64_t mark = position / options_.every * options_.every;
  if (mark > 0 && mark > std::max(status_.passed, options_.resumed.iteration)) {
    status_.passed = mark;
    line_->Tell(status_);
  }
  return Work(capture);
}

absl::Status LooseCheckpoints::End(int64_t position, const Capture& capture,
                                   absl::Duration timeout) {
  status_.end = std::max<int64_t>(0, position);
  line_->Tell(status_);
  const int64_t deadline_ns = MonotonicClock().NowNs() + absl::ToInt64Nanoseconds(timeout);
  for (;;) {
    SYNCOPATE_ASSIGN_OR_RETURN(const CheckpointView view, line_->view());
    SYNCOPATE_RETURN_IF_ERROR(Work(capture));
    if (view.over) return absl::OkStatus();
    if (!line_->WaitForNews(view.version, deadline_ns)) {
      return absl::DeadlineExceededError(
          absl::StrCat("other workers did not come to their end within ",
                       absl::FormatDuration(timeout), " after this one"));
    }
  }
}

// A worker that was stopped for long has been given up: others have noted newer sets, and what this one believes
// to be open is not. It may not know of it yet, so it looks at the note, too. An old run may have left one that is
// newer, but that was there from the start.
absl::Status LooseCheckpoints::Note(const CheckpointView& view) {
  const int rank = worker_.rank();
  Disk& disk = *options_.disk;
  CheckpointNote note = {.iteration = view.open,
                         .workers = static_cast<int>(view.ranks.size()),
                         .previous = view.noted,
                         .ranks = view.ranks};
  // The files of the set before may have the numbers that ranks had before the job went on.
  for (const int each : view.ranks) {
    const auto index = static_cast<size_t>(each);
    const CheckpointNote& before = options_.resumed;
    note.previous_ranks.push_back(
        view.noted == before.iteration && index < before.ranks.size() ? before.ranks[index] : each);
  }
  const std::optional<CheckpointNote> now = NoteIn(options_.folder, disk);
  const bool newer = now && now->iteration > note.iteration && now != first_note_;
  const std::vector<int> lost = worker_.Lost();
  if (newer || std::find(lost.begin(), lost.end(), rank) != lost.end()) {
    return absl::UnavailableError(
        absl::StrCat("rank ", rank, " has been given up by the others, and does not note that ",
                     "checkpoint ", view.open, " counts"));
  }
  SYNCOPATE_RETURN_IF_ERROR(WriteCheckpointNote(options_.folder, note, disk));
  status_.noted = view.open;
  line_->Tell(status_);
  return absl::OkStatus();
}

absl::Status LooseCheckpoints::Work(const Capture& capture) {
  SYNCOPATE_ASSIGN_OR_RETURN(const CheckpointView view, line_->view());
  const int rank = worker_.rank();
  Disk& disk = *options_.disk;
  if (view.open > status_.written) {
    SYNCOPATE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, capture());
    SYNCOPATE_RETURN_IF_ERROR(SavePart(options_.folder, view.open, rank, checkpoint, disk));
    status_.written = view.open;
    line_->Tell(status_);
  }
  if (!view.ranks.empty() && view.ranks.front() == rank && view.open > status_.noted) {
    SYNCOPATE_RETURN_IF_ERROR(Note(view));
  }
  if (view.noted > removed_) {
    RemoveOlder(options_.folder, view.noted, view.previous, disk);
    removed_ = view.noted;
  }
  return absl::OkStatus();
}

}  // namespace syncopate::train
