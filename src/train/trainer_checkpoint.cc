// What a run goes on from: saved at the same iteration by workers in lockstep, else by each worker at a
// boundary of its own (loose_checkpoints.h).
#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"
#include "train/checkpoint.h"
#include "train/checkpoint_set.h"
#include "train/trainer_impl.h"

namespace syncopate::train {
namespace {

constexpr uint64_t kConfigBytesMax = uint64_t{1} << 20;

}  // namespace

using observe::ScopedSpan;

// The digest of the options guards against a run that goes on differently from how it began; the
// old config.json serves only to name the difference.
absl::Status Trainer::Resume() {
  const auto refuse = [&](const absl::Status& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume from ", options_.run_folder, ": ", why.message()));
  };
  absl::StatusOr<LoadedSet> loaded = LoadFromSet(options_.run_folder, side_->exchange());
  if (!loaded.ok()) return refuse(loaded.status());
  resumed_ = *std::move(loaded);
  const Checkpoint* const checkpoint = &resumed_->checkpoint;
  if (checkpoint->config != config_) {
    const auto text = ReadFile(absl::StrCat(options_.run_folder, "/config.json"), kConfigBytesMax);
    const absl::StatusOr<TrainOptions> before =
        text.ok() ? ParseTrainOptions(*text) : text.status();
    const std::string difference = before.ok() ? CourseDifference(*before, options_) : "";
    return refuse(absl::FailedPreconditionError(absl::StrCat(
        "it began with other options", difference.empty() ? "" : absl::StrCat(": ", difference),
        "; give the same ones, or begin anew in another folder")));
  }
  const absl::Status status = Restore(*checkpoint, options_.model, config_, *model_, *optimizer_);
  if (!status.ok()) return refuse(status);
  iteration_ = checkpoint->iteration;
  if (lockstep() && iteration_ > iterations_) {
    return refuse(absl::FailedPreconditionError(
        absl::StrCat("its checkpoint is at iteration ", iteration_, ", and this job would end at ",
                     iterations_, "; ask for more by --iterations or --epochs")));
  }
  return absl::OkStatus();
}

// Without lockstep workers were at iterations of their own. All go on from that of the furthest, so that
// groups which follow from the iteration are the same for all.
absl::StatusOr<std::vector<std::string>> Trainer::TakeStates() {
  if (!resumed_ || lockstep()) return std::vector<std::string>();
  std::vector<double> furthest = {static_cast<double>(iteration_)};
  SYNCOPATE_RETURN_IF_ERROR(adapt::Largest(side_->exchange(), "iterations", furthest));
  iteration_ = static_cast<int64_t>(furthest[0]);
  return adapt::TextsOfAll(side_->exchange(), "courses", resumed_->checkpoint.course);
}

absl::StatusOr<sync::ResumedState> Trainer::TakeStrategyState() {
  sync::ResumedState resumed;
  if (!resumed_) return resumed;
  for (int rank = 0; rank < worker_.size(); ++rank) {
    resumed.ranks.push_back(resumed_->note.RankOf(rank));
  }
  resumed.strategy = resumed_->checkpoint.strategy;
  if (entry_->make_service) {
    SYNCOPATE_ASSIGN_OR_RETURN(
        resumed.service, sync::NewestServiceState(side_->exchange(), resumed_->checkpoint.service));
  }
  return resumed;
}

absl::Status Trainer::OpenCheckpoints() {
  if (lockstep() || options_.checkpoint_every == 0) return absl::OkStatus();
  LooseCheckpoints::Options loose;
  loose.folder = options_.run_folder;
  loose.every = options_.checkpoint_every;
  if (resumed_) loose.resumed = resumed_->note;
  SYNCOPATE_ASSIGN_OR_RETURN(checkpoints_, LooseCheckpoints::Start(worker_, loose));
  return absl::OkStatus();
}

// The checkpoint is of a moment at which no update is pending, so that a resumed run in lockstep goes on
// bit for bit as this one.
absl::StatusOr<Checkpoint> Trainer::CaptureNow() {
  SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Finish());
  course_->AllApplied();
  Checkpoint checkpoint = Capture(*model_, *optimizer_);
  checkpoint.model = options_.model;
  checkpoint.config = config_;
  checkpoint.iteration = iteration_;
  checkpoint.sampler = course_->sampler().position();
  if (!lockstep()) {
    SYNCOPATE_ASSIGN_OR_RETURN(checkpoint.course, course_->State());
  }
  SYNCOPATE_ASSIGN_OR_RETURN(checkpoint.strategy, synchronizer_->StrategyState());
  SYNCOPATE_ASSIGN_OR_RETURN(checkpoint.service, synchronizer_->ServiceState());
  return checkpoint;
}

absl::Status Trainer::Save() {
  const bool due = options_.checkpoint_every > 0 && iteration_ % options_.checkpoint_every == 0;
  if (checkpoints_ == nullptr && !due) return absl::OkStatus();
  const ScopedSpan span(&recorder_, SpanKind::kCheckpoint, static_cast<int>(iteration_ - 1));
  if (checkpoints_ != nullptr) {
    return checkpoints_->AtBoundary(course_->RateIteration(iteration_),
                                    [this] { return CaptureNow(); });
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, CaptureNow());
  // A run that goes on from here finds the metrics of all that came before: reports precede the meeting.
  LedgerReport report = OwnReport();
  report.kind = LedgerReport::Kind::kMeet;
  SYNCOPATE_ASSIGN_OR_RETURN(const Standing met, seat_->Ask(std::move(report)));
  SYNCOPATE_RETURN_IF_ERROR(FollowLedger(met));
  return SaveToSet(options_.run_folder, side_->exchange(), checkpoint);
}

absl::Status Trainer::SaveLast() {
  if (checkpoints_ == nullptr) return absl::OkStatus();
  const ScopedSpan span(&recorder_, SpanKind::kCheckpoint, static_cast<int>(iteration_ - 1));
  return checkpoints_->End(
      seat_->standing().reached ? course_->RateIteration(iteration_) : iterations_,
      [this] { return CaptureNow(); }, kOthersMax);
}

}  // namespace syncopate::train
