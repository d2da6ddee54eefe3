// How the workers of a job end together, and what the run leaves. One of them writes it; should it be
// lost in doing so, the next one does.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "observe/breakdown.h"
#include "observe/run_reader.h"
#include "observe/trace_parts.h"
#include "train/model_file.h"
#include "train/trainer_impl.h"

namespace syncopate::train {

using observe::Summary;

absl::StatusOr<std::optional<Summary>> Trainer::End() {
  if (keeper_ != nullptr && keeper_->waits_for_costs() && writes()) {
    LedgerReport report = OwnReport();
    report.event = absl::StrCat("not planned ", options_.schedule, ": ", keeper_->reason());
    SYNCOPATE_RETURN_IF_ERROR(seat_->Post(std::move(report)));
  }
  // The summary has the loss and the accuracy of the last iteration, whatever --evaluate-every
  // says.
  if (when_ == EvaluateWhen::kIn && !evaluated_) SYNCOPATE_RETURN_IF_ERROR(EvaluateTogether());
  // The ledger orders nothing once it knows that a worker has ended: what it has ordered until then is
  // in its answer, and those who take part in it must find this worker there.
  LedgerReport report = OwnReport();
  report.finished = true;
  SYNCOPATE_RETURN_IF_ERROR(seat_->Ask(report).status());
  if (when_ == EvaluateWhen::kBeside) SYNCOPATE_RETURN_IF_ERROR(EvaluateElsewhere());
  if (mean_ != nullptr) mean_->Wait().IgnoreError();

  if (timeline_) {
    SYNCOPATE_RETURN_IF_ERROR(timeline_->Append(recorder_.TakeNew()));
    SYNCOPATE_RETURN_IF_ERROR(timeline_->Close());
  }
  report.kind = LedgerReport::Kind::kMeet;
  SYNCOPATE_ASSIGN_OR_RETURN(Standing met, seat_->Await(report, kOthersMax));
  if (mean_ != nullptr) SYNCOPATE_RETURN_IF_ERROR(AverageLast(met));
  const std::vector<int> members = met.members;
  for (;;) {
    SYNCOPATE_RETURN_IF_ERROR(FollowLedger(met));
    if (writes()) {
      SYNCOPATE_RETURN_IF_ERROR(EvaluateLast());
      SYNCOPATE_RETURN_IF_ERROR(WriteAllLines());
      SYNCOPATE_ASSIGN_OR_RETURN(Summary summary, WriteRun(members));
      report.kind = LedgerReport::Kind::kWritten;
      SYNCOPATE_RETURN_IF_ERROR(seat_->Ask(report).status());
      return summary;
    }
    SYNCOPATE_RETURN_IF_ERROR(traces_->Send(writer_rank_, recorder_.Trace()));
    report.kind = LedgerReport::Kind::kFarewell;
    report.writer = writer_rank_;
    // The writer may have many snapshots to evaluate.
    SYNCOPATE_ASSIGN_OR_RETURN(met, seat_->Await(report, kOthersMax));
    if (met.written) return std::nullopt;
  }
}

absl::Status Trainer::WriteAllLines() {
  for (;;) {
    SYNCOPATE_ASSIGN_OR_RETURN(const Standing standing, seat_->Ask(OwnReport()));
    if (standing.lines.empty()) return absl::OkStatus();
    SYNCOPATE_RETURN_IF_ERROR(writer_.Write(standing.lines));
  }
}

// The time before the loop, in it and after it, each without what was no part of an iteration;
// `seconds` is all of it.
observe::WallTime Trainer::WallTime(double seconds) const {
  const auto seconds_of = [this](SpanKind kind) {
    return static_cast<double>(recorder_.TotalNs(kind)) * 1e-9;
  };
  observe::WallTime wall = {.start = InsideSeconds({.at_ns = clock_.began_ns()}, loop_begin_),
                            .iterations = InsideSeconds(loop_begin_, loop_end_),
                            .measuring = seconds_of(SpanKind::kMeasure),
                            .evaluation = seconds_of(SpanKind::kEvaluate),
                            .checkpoints = seconds_of(SpanKind::kCheckpoint),
                            .earlier = writer_.earlier().seconds};
  wall.end = seconds - wall.earlier - wall.start - wall.iterations - wall.measuring -
             wall.evaluation - wall.checkpoints;
  return wall;
}

// Only with the traces of all workers can be told who waited for whom. Of workers that are lost the
// timelines are read that they have left, as a report does.
absl::StatusOr<Summary> Trainer::WriteRun(const std::vector<int>& members) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<WorkerTrace> traces,
                             traces_->Gather(members, recorder_.Trace(), DeadlineNs()));
  int64_t done = iteration_;
  if (!lockstep()) {
    done = static_cast<int64_t>(seat_->standing().total_samples /
                                static_cast<uint64_t>(options_.batch));
  }
  Summary summary{.strategy = options_.strategy,
                  .schedule = keeper_ != nullptr ? options_.schedule : "none",
                  .workers = worker_.size(),
                  .iterations = done,
                  .resumed_at = writer_.earlier().resumed_at,
                  .reached = reached_,
                  .accuracy = evaluation_->accuracy,
                  .loss = evaluation_->loss,
                  .iteration_ms_p50 = {},
                  .compute_ms_p50 = {},
                  .exposed_comm_ms_p50 = {},
                  .waiting_ms_p50 = {},
                  .mean_ms = {},
                  .wall = {}};
  observe::RunDirectory* folder = writer_.folder();
  if (folder != nullptr) SYNCOPATE_RETURN_IF_ERROR(folder->WriteTimeline(traces));
  if (folder != nullptr && static_cast<int>(traces.size()) < worker_.size()) {
    absl::StatusOr<observe::RunRecord> run = observe::ReadRun(options_.run_folder);
    if (run.ok()) traces = std::move(run->traces);
  } else if (options_.resume) {  // costs are those of the whole run, as the report has them
    std::vector<std::vector<WorkerTrace>> parts = observe::ReadEarlierParts(options_.run_folder);
    parts.push_back(std::move(traces));
    traces = observe::JoinParts(std::move(parts));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const observe::Breakdown breakdown, observe::BreakDown(traces));
  SetCosts(breakdown, &summary);
  if (folder != nullptr) {
    if (last_model_) PutInto(*last_model_, *model_);
    SYNCOPATE_RETURN_IF_ERROR(SaveModel(options_.run_folder, options_.model, data_.info, *model_));
    SYNCOPATE_RETURN_IF_ERROR(writer_.WriteState(done, summary.bytes_sent, evaluation_->accuracy));
  }
  if (processors_begin_ && processors_end_) {
    summary.cores_busy = BusyShare(*processors_begin_, *processors_end_);
  }
  if (source_ != nullptr) {
    SYNCOPATE_ASSIGN_OR_RETURN(summary.samples_repeated, course_->Repeated());
  }
  // As late as can be, so that as much as can be is part of it.
  summary.seconds = clock_.Seconds();
  if (options_.resume) summary.part_seconds = summary.seconds - writer_.earlier().seconds;
  summary.wall = WallTime(summary.seconds);
  // Last: a run that has a summary has ended.
  if (folder != nullptr) SYNCOPATE_RETURN_IF_ERROR(folder->WriteSummary(summary));
  return summary;
}

}  // namespace syncopate::train
