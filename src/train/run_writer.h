// Writes the folder of a run while it lasts, and speaks to people: done by one worker of the job, and
// by the next one when that is lost. What it writes comes from the job's ledger (ledger/ledger.h).
#ifndef SYNCOPATE_TRAIN_RUN_WRITER_H_
#define SYNCOPATE_TRAIN_RUN_WRITER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "observe/run_directory.h"
#include "train/ledger/ledger_message.h"
#include "train/options/train_options.h"
#include "train/run_clock.h"

namespace syncopate::train {

// Used by the training thread alone.
class RunWriter {
 public:
  using Say = std::function<void(absl::string_view)>;
  // What it is given must outlive it. `rank`, `workers`: this worker, and how many the job began with.
  RunWriter(const TrainOptions& options, int rank, int workers, const Say& say,
            const RunClock& clock)
      : options_(options), rank_(rank), workers_(workers), say_(say), clock_(clock) {}

  // This worker writes from the start: makes the folder, if the run has one. `iteration`: after which
  // a run that is resumed goes on.
  absl::Status Begin(int64_t iteration);
  // This worker writes from now on, in the place of one that is gone.
  absl::Status TakeOver();

  // The iterations begin now, at `begin.iteration`, and end after `iterations`.
  void BeginLoop(const Mark& begin, int64_t iterations);
  // This worker has done an iteration of which there will be a line.
  void Reached(const Mark& mark) { marks_[mark.iteration] = mark; }
  // Writes those lines that are not written yet. Returns at once where the run has no folder.
  absl::Status Write(const std::vector<LedgerLine>& lines);
  // A line of progress, if the last one was long ago.
  void BreakSilence(int64_t iteration);
  // A metric that comes by no line.
  absl::Status Append(observe::Metric metric);

  void Speak(absl::string_view line) { say_(line); }
  uint64_t written() const { return written_; }  // the number of the last line
  // Null if the run has none.
  observe::RunDirectory* folder() { return folder_ ? &*folder_ : nullptr; }
  const observe::EarlierParts& earlier() const { return earlier_; }
  void SetEarlier(observe::EarlierParts earlier) { earlier_ = std::move(earlier); }
  // How the run stands, for Prometheus. `bytes_sent`: by all workers.
  absl::Status WriteState(int64_t iteration, uint64_t bytes_sent, std::optional<double> accuracy);

 private:
  // `more`: what is known besides how far it has come.
  void SayProgress(int64_t iteration, absl::string_view more);
  absl::Status WriteTraining(const LedgerLine& line);

  const TrainOptions& options_;
  const int rank_;
  const int workers_;
  const Say& say_;
  const RunClock& clock_;

  std::optional<observe::RunDirectory> folder_;
  observe::EarlierParts earlier_;
  observe::RunState state_;
  uint64_t written_ = 0;
  int64_t iterations_ = 0;         // in all
  int64_t said_ns_ = 0;            // when the last line of progress was said
  int64_t line_ns_ = 0;            // LedgerLine::at_ns of the last line
  Mark begin_, reported_;          // of the iterations, of the last line
  std::map<int64_t, Mark> marks_;  // by iteration
  double appended_seconds_ = 0;    // of the last line of metrics
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_RUN_WRITER_H_
