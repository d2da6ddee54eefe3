// One worker of a training job: loads data, trains a model together with the others, evaluates,
// saves, and says where the time went.
#ifndef SYNCOPATE_TRAIN_TRAINER_H_
#define SYNCOPATE_TRAIN_TRAINER_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "observe/summary.h"
#include "syncopate/syncopate.h"
#include "train/options/train_options.h"

namespace syncopate::train {

// `say` gets lines for people, now and then, on the worker that writes the run: the first live one of
// the host order of the job's services (docs/services.md).
// The summary is that worker's; the others get none. A lost worker is an error that names it, unless
// the strategy goes on without. Cancelled: another worker could not begin, and tells why.
// `began_ns`: the moment of MonotonicClock() from which the run's seconds count.
absl::StatusOr<std::optional<observe::Summary>> Train(
    Worker& worker, const TrainOptions& options, const std::function<void(absl::string_view)>& say,
    int64_t began_ns = MonotonicClock().NowNs());

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_TRAINER_H_
