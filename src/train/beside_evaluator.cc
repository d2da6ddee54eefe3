#include "train/beside_evaluator.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncopate::train {

bool BesideEvaluator::busy() const {
  MutexLock lock(&mutex_);
  return running_ || ended_.has_value();
}

// LibTorch reports errors by exceptions, which must not end the thread.
absl::StatusOr<Evaluation> BesideEvaluator::Run(const ModelCopy& copy) {
  try {
    PutInto(copy, *model_);
    return Evaluate(*model_, data_.info, data_.test, samples_max_);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("LibTorch: ", error.what()));
  }
}

void BesideEvaluator::Start(ModelCopy copy, const EvaluationNote& note) {
  if (busy()) return;
  Join();
  {
    MutexLock lock(&mutex_);
    running_ = true;
  }
  thread_ = std::thread([this, copy = std::move(copy), note] {
    const absl::StatusOr<Evaluation> evaluation = Run(copy);
    absl::StatusOr<EvaluationNote> ended = note;
    if (!evaluation.ok()) {
      ended = evaluation.status();
    } else {
      ended->loss = evaluation->loss;
      ended->accuracy = evaluation->accuracy;
    }
    MutexLock lock(&mutex_);
    ended_ = std::move(ended);
    running_ = false;
  });
}

std::optional<absl::StatusOr<EvaluationNote>> BesideEvaluator::Take() {
  MutexLock lock(&mutex_);
  return std::exchange(ended_, std::nullopt);
}

absl::StatusOr<Evaluation> BesideEvaluator::Now(const ModelCopy& copy) {
  Join();
  return Run(copy);
}

void BesideEvaluator::Join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace syncopate::train
