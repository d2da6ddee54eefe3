// One worker's part of a training job, for the files that make it up:
//
//   trainer.cc             prepares data, model, course and synchronizer
//   trainer_loop.cc        the iterations, and what follows each of them
//   trainer_evaluation.cc  evaluation: in the run, beside it, after it
//   trainer_checkpoint.cc  what a run goes on from
//   trainer_end.cc         how workers end together, and what the run leaves
//
// The start and the end are met by all workers that live. In between nothing waits for another worker
// but what the strategy waits for, and evaluation and checkpoints of strategies in lockstep: how far
// workers are, and what follows from that, goes through the job's ledger (ledger/ledger.h).
//
// Where workers could fail differently at the start (data, model, checkpoint, folder) they agree on the
// outcome first (SideChannel::Agree): a worker that returned alone would leave the others waiting in
// the next collective.
#ifndef SYNCOPATE_TRAIN_TRAINER_IMPL_H_
#define SYNCOPATE_TRAIN_TRAINER_IMPL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "adapt/schedule_keeper.h"
#include "base/processor_time.h"
#include "model/compute_pace.h"
#include "observe/recorder.h"
#include "observe/summary.h"
#include "observe/timeline_file.h"
#include "strategy/registry.h"
#include "sync/decision_log.h"
#include "sync/resumed_state.h"
#include "sync/sample_source.h"
#include "sync/synchronizer.h"
#include "syncopate/syncopate.h"
#include "torch/gradient_hooks.h"
#include "train/batch.h"
#include "train/beside_evaluator.h"
#include "train/checkpoint.h"
#include "train/checkpoint_set.h"
#include "train/data/dataset.h"
#include "train/ledger/ledger_seat.h"
#include "train/loose_checkpoints.h"
#include "train/model_mean.h"
#include "train/models.h"
#include "train/optimizer.h"
#include "train/options/train_options.h"
#include "train/run_clock.h"
#include "train/run_writer.h"
#include "train/side_channel.h"
#include "train/step_replica.h"
#include "train/trace_desk.h"
#include "train/worker_course.h"

namespace syncopate::train {

// How much longer than this worker others may train, or evaluate what the run ends with. Who is lost is found
// out sooner; this only bounds the wait.
inline constexpr absl::Duration kOthersMax = absl::Hours(24);

class Trainer {
 public:
  Trainer(Worker& worker, const TrainOptions& options, const RunWriter::Say& say, int64_t began_ns);

  // The summary where this worker has written it.
  absl::StatusOr<std::optional<observe::Summary>> Run();

 private:
  bool lockstep() const { return entry_->lockstep; }
  bool ranges() const { return data_mode_ == strategy::DataMode::kRanges; }
  // Whether the ledger orders evaluations: the model of an iteration is not that of one worker.
  bool by_order() const {
    return when_ == EvaluateWhen::kBeside && (!lockstep() || mean_ != nullptr);
  }
  bool writes() const { return writer_rank_ == worker_.rank(); }
  int64_t DeadlineNs() const;  // of a wait that begins now

  // ---- trainer.cc
  absl::Status Prepare();
  absl::Status LoadData();
  absl::Status MakeModels();
  void SetLength();
  absl::Status MakeCourse();
  absl::Status OpenLedger();
  absl::Status OpenLog();
  absl::Status OpenRun();
  absl::Status MakeSynchronizer();

  // ---- trainer_loop.cc
  absl::Status Loop();
  absl::StatusOr<bool> BeginsAnother();
  // The samples of the next iteration; none: all epochs are over.
  absl::StatusOr<SampleBatch> Pick();
  absl::Status Iterate(const SampleBatch& picked);
  absl::Status AfterIteration();
  absl::Status Need(int tensor);
  absl::Status Report();
  // Does what the ledger said last: how far the job is, and what this worker writes if it writes.
  absl::Status FollowLedger(const Standing& standing);
  absl::Status KeepSchedule();
  LedgerReport OwnReport() const;
  // Hooks run inside of LibTorch and cannot return an error, so Iterate() looks here after each
  // pass.
  void Note(const absl::Status& status) {
    if (failure_.ok()) failure_ = status;
  }

  // ---- trainer_evaluation.cc
  absl::Status EvaluateTogether();
  // What is to be done after an iteration for evaluations beside the run or after it.
  absl::Status EvaluateElsewhere();
  absl::Status BeginEvaluation();
  absl::Status TakeEvaluation();
  absl::Status TakeSnapshot();
  absl::Status EvaluateSnapshots();
  absl::Status WriteLateEvaluation();
  // Of the model that the run ends with, on the worker that writes.
  absl::Status EvaluateLast();
  // The mean of all who live, on all of them; `met` is the standing of their meeting.
  absl::Status AverageLast(Standing& met);
  bool ReachesTarget(const Evaluation& evaluation) const;

  // ---- trainer_checkpoint.cc
  absl::Status Resume();
  // What the workers of the set were at, that all go on from.
  absl::StatusOr<std::vector<std::string>> TakeStates();
  // What strategy and service go on from.
  absl::StatusOr<sync::ResumedState> TakeStrategyState();
  absl::Status OpenCheckpoints();
  absl::StatusOr<Checkpoint> CaptureNow();
  absl::Status Save();
  absl::Status SaveLast();

  // ---- trainer_end.cc
  absl::StatusOr<std::optional<observe::Summary>> End();
  absl::Status WriteAllLines();
  absl::StatusOr<observe::Summary> WriteRun(const std::vector<int>& members);
  observe::WallTime WallTime(double seconds) const;

  Worker& worker_;
  const TrainOptions& options_;
  observe::Recorder recorder_;
  RunClock clock_;
  RunWriter writer_;
  const strategy::StrategyEntry* entry_ = nullptr;
  EvaluateWhen when_ = EvaluateWhen::kIn;
  strategy::DataMode data_mode_ = strategy::DataMode::kInStep;

  std::optional<SideChannel> side_;
  std::unique_ptr<LedgerSeat> seat_;
  std::unique_ptr<TraceDesk> traces_;
  Dataset data_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<sync::SampleSource> source_;  // null: no service deals out samples
  std::unique_ptr<WorkerCourse> course_;
  std::optional<LoadedSet> resumed_;               // what the job goes on from
  std::unique_ptr<LooseCheckpoints> checkpoints_;  // null: in lockstep, or none are wanted
  std::unique_ptr<StepReplica> steps_;
  std::unique_ptr<adapt::ScheduleKeeper> keeper_;  // null: the strategy has no schedule
  std::unique_ptr<sync::DecisionLog> log_;         // null: none is wanted
  std::unique_ptr<sync::Synchronizer> synchronizer_;
  std::unique_ptr<torch::GradientHooks> hooks_;
  std::vector<std::vector<int>> tensors_of_layer_;
  LearningRate rate_;
  int64_t iterations_ = 0;        // in all
  std::vector<int64_t> batches_;  // by worker, at the start

  int writer_rank_ = -1;
  std::optional<observe::TimelineFile> timeline_;
  std::string config_;
  absl::Status failure_;  // the first error of a hook

  int64_t first_iteration_ = 0;  // of the job, that it goes on after
  int64_t iteration_ = 0;        // done so far, by this worker
  uint64_t samples_ = 0;         // that it had since the job began or went on
  bool training_ = false;        // the forward pass that runs is one of training
  bool sending_ = false;         // gradients that get ready are complete
  double loss_ = 0;              // of this worker's last batch
  int64_t last_batch_ = 0;       // how many samples it had
  Mark loop_begin_, loop_end_;   // of the iterations
  // Of this host's processors when the iterations began and ended; null: the host does not tell.
  std::optional<ProcessorTime> processors_begin_, processors_end_;
  PacedIteration pace_;

  std::optional<Evaluation> evaluation_;
  bool evaluated_ = false;  // after the last iteration
  std::optional<bool> reached_;
  std::unique_ptr<BesideEvaluator> beside_;  // null: evaluation is in the run
  std::unique_ptr<ModelMean> mean_;          // null: the model is no mean
  uint64_t ordered_ = 0, attempted_ = 0;     // the order that this worker took part in last
  int64_t snapshot_mark_ = 0;                // of the last snapshot
  std::optional<ModelCopy> last_model_;      // the mean that the run ends with
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_TRAINER_IMPL_H_
