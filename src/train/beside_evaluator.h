// Evaluates copies of a model on a thread of its own, while the model trains on.
#ifndef SYNCOPATE_TRAIN_BESIDE_EVALUATOR_H_
#define SYNCOPATE_TRAIN_BESIDE_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "train/batch.h"
#include "train/data/dataset.h"
#include "train/ledger/ledger_message.h"
#include "train/model_copy.h"
#include "train/models.h"

namespace syncopate::train {

// Used by the training thread alone.
class BesideEvaluator {
 public:
  // `model`: one of the kind to evaluate, for this alone. `data` must outlive it.
  BesideEvaluator(std::shared_ptr<Model> model, const Dataset& data, int64_t samples_max)
      : model_(std::move(model)), data_(data), samples_max_(samples_max) {}
  ~BesideEvaluator() { Join(); }
  BesideEvaluator(const BesideEvaluator&) = delete;

  bool busy() const;  // until Take() has returned what came of it
  // Begins, if it is not busy. The note goes with it; loss and accuracy are filled in.
  void Start(ModelCopy copy, const EvaluationNote& note);
  // Until nothing runs here any more.
  void Wait() { Join(); }
  // What was evaluated since the last call.
  std::optional<absl::StatusOr<EvaluationNote>> Take();
  // The same on the calling thread, once nothing runs here any more.
  absl::StatusOr<Evaluation> Now(const ModelCopy& copy);
  // As the last evaluation left it.
  Model& model() { return *model_; }

 private:
  absl::StatusOr<Evaluation> Run(const ModelCopy& copy);
  void Join();

  const std::shared_ptr<Model> model_;
  const Dataset& data_;
  const int64_t samples_max_;
  std::thread thread_;
  mutable Mutex mutex_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::StatusOr<EvaluationNote>> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_BESIDE_EVALUATOR_H_
