#include "train/run_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/status.h"
#include "train/seconds_left.h"

namespace syncopate::train {
namespace {

// After this long the writer says how far the run has come, though no line is due: iterations are
// long.
constexpr int64_t kSilenceNsMax = 10'000'000'000;

}  // namespace

absl::Status RunWriter::Begin(int64_t iteration) {
  if (options_.run_folder.empty()) return absl::OkStatus();
  SYNCOPATE_ASSIGN_OR_RETURN(
      observe::RunDirectory folder,
      observe::RunDirectory::Create(options_.run_folder,
                                    options_.resume      ? observe::ExistingRun::kContinue
                                    : options_.overwrite ? observe::ExistingRun::kReplace
                                                         : observe::ExistingRun::kRefuse));
  folder_ = std::move(folder);
  SYNCOPATE_RETURN_IF_ERROR(folder_->WriteConfig(ToJson(options_)));
  if (!options_.resume) return absl::OkStatus();
  earlier_ = folder_->earlier();
  earlier_.resumed_at.push_back(iteration);
  observe::Metric resumed = observe::ResumeEvent(iteration);
  resumed.seconds = earlier_.seconds;
  return folder_->Append(resumed);
}

// The config is written again: this worker's folder may be on another host.
absl::Status RunWriter::TakeOver() {
  say_(absl::StrCat("rank ", rank_, " writes the run from now on"));
  if (options_.run_folder.empty() || folder_) return absl::OkStatus();
  SYNCOPATE_ASSIGN_OR_RETURN(observe::RunDirectory folder,
                             observe::RunDirectory::TakeOver(options_.run_folder, rank_));
  folder_ = std::move(folder);
  return folder_->WriteConfig(ToJson(options_));
}

void RunWriter::BeginLoop(const Mark& begin, int64_t iterations) {
  begin_ = reported_ = begin;
  said_ns_ = begin.at_ns;
  iterations_ = iterations;
}

void RunWriter::SayProgress(int64_t iteration, absl::string_view more) {
  said_ns_ = MonotonicClock().NowNs();
  const double left = SecondsLeft({.elapsed_ns = said_ns_ - begin_.at_ns,
                                   .done = iteration - begin_.iteration,
                                   .left = std::max<int64_t>(0, iterations_ - iteration)});
  say_(absl::StrFormat("iteration %d of %d, %s%.0f s left", iteration, iterations_, more, left));
}

void RunWriter::BreakSilence(int64_t iteration) {
  if (MonotonicClock().NowNs() - said_ns_ >= kSilenceNsMax) SayProgress(iteration, "");
}

absl::Status RunWriter::Append(observe::Metric metric) {
  if (!folder_) return absl::OkStatus();
  if (metric.seconds == 0) metric.seconds = clock_.Seconds();
  // What was timed elsewhere may come after lines that are newer; curves never run back.
  metric.seconds = appended_seconds_ = std::max(metric.seconds, appended_seconds_);
  return folder_->Append(metric);
}

absl::Status RunWriter::Write(const std::vector<LedgerLine>& lines) {
  for (const LedgerLine& line : lines) {
    if (line.number <= written_) continue;
    written_ = line.number;
    switch (line.kind) {
      case LedgerLine::Kind::kTrain:
        SYNCOPATE_RETURN_IF_ERROR(WriteTraining(line));
        break;
      case LedgerLine::Kind::kEvaluate:
        say_(absl::StrFormat("iteration %d: test loss %.4f, accuracy %.2f %%", line.iteration,
                             line.loss, 100 * line.accuracy));
        state_.accuracy = line.accuracy;
        SYNCOPATE_RETURN_IF_ERROR(
            Append({.kind = "evaluate",
                    .iteration = line.iteration,
                    .seconds = line.seconds,
                    .values = {{"loss", line.loss}, {"accuracy", line.accuracy}},
                    .text = ""}));
        break;
      case LedgerLine::Kind::kEvent:
        say_(line.text);
        SYNCOPATE_RETURN_IF_ERROR(Append(
            {.kind = "event", .iteration = line.iteration, .values = {}, .text = line.text}));
        break;
    }
  }
  return absl::OkStatus();
}

// An iteration's time is that of this worker between two lines. Without lockstep it is one of the job,
// as many samples as all workers together have in an iteration, by the ledger's time: this worker may
// have been busy when the line was made.
absl::Status RunWriter::WriteTraining(const LedgerLine& line) {
  const auto found = marks_.find(line.iteration);
  const bool own = found != marks_.end();
  const Mark now = own ? found->second : clock_.Now(line.iteration);
  marks_.erase(marks_.begin(), marks_.upper_bound(line.iteration));
  const double seconds = own || line_ns_ == 0 ? InsideSeconds(reported_, now)
                                              : static_cast<double>(line.at_ns - line_ns_) * 1e-9;
  const double each =
      seconds / static_cast<double>(std::max<int64_t>(1, now.iteration - reported_.iteration));
  reported_ = now;
  line_ns_ = line.at_ns;
  SayProgress(line.iteration,
              absl::StrFormat("loss %.4f, %.1f ms an iteration, %.0f samples/s, ", line.loss,
                              each * 1e3, static_cast<double>(options_.batch) / each));
  SYNCOPATE_RETURN_IF_ERROR(Append(
      {.kind = "train",
       .iteration = line.iteration,
       .values = {{"loss", line.loss}, {"learning_rate", line.rate}, {"iteration_ms", each * 1e3}},
       .text = ""}));
  state_.iteration_seconds = each;
  state_.loss = line.loss;
  return WriteState(line.iteration, line.bytes, std::nullopt);
}

absl::Status RunWriter::WriteState(int64_t iteration, uint64_t bytes_sent,
                                   std::optional<double> accuracy) {
  if (!folder_) return absl::OkStatus();
  state_.run = options_.run_folder;
  state_.workers = workers_;
  state_.iterations = static_cast<uint64_t>(iteration);
  state_.bytes_sent = bytes_sent;
  state_.seconds = clock_.Seconds();
  if (accuracy) state_.accuracy = accuracy;
  return folder_->WritePrometheus(state_);
}

}  // namespace syncopate::train
