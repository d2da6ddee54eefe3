// The mean of several workers' models, made of copies beside training: an average of the lowest
// priority in a group of its own. A member that is lost breaks it; it is up to the caller to try again
// among survivors.
#ifndef SYNCOPATE_TRAIN_MODEL_MEAN_H_
#define SYNCOPATE_TRAIN_MODEL_MEAN_H_

#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "syncopate/syncopate.h"
#include "train/ledger/ledger_message.h"
#include "train/model_copy.h"

namespace syncopate::train {

// Used by the training thread alone.
class ModelMean {
 public:
  // Of calls, the higher go first: those of strategies are 0 and more.
  static constexpr int kPriority = -1'000'000;

  // What an average was asked for, and when its copy was taken.
  struct Purpose {
    EvaluationOrder order;
    double seconds = 0;
  };
  struct Mean {
    Purpose purpose;
    ModelCopy model;
  };

  explicit ModelMean(Worker& worker) : worker_(worker) {}
  // What is under way goes on, with its copy, until it ends by itself or the worker does.
  ModelMean(const ModelMean&) = delete;

  // Averages copies among the members of the order, of which this worker is one. Returns at once.
  absl::Status Start(ModelCopy copy, const Purpose& purpose);
  // A mean that has come since the last call; the newest.
  std::optional<Mean> Take();
  // What was asked for of the newest average that Take() has found to have failed since the last call.
  std::optional<EvaluationOrder> TakeFailed() { return std::exchange(failed_, std::nullopt); }
  // Waits until nothing is under way; how the last one ended.
  absl::Status Wait();

 private:
  struct Average {
    Mean mean;
    Group group;
    Handle handle;
  };
  Worker& worker_;
  std::list<Average> under_way_;
  std::optional<Mean> mean_;
  std::optional<EvaluationOrder> failed_;
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_MODEL_MEAN_H_
