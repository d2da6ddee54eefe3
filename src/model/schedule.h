// Which gradient tensors are sent together, and which transfers may run at once: what a scheduler
// decides and a trainer carries out.
#ifndef SYNCOPATE_MODEL_SCHEDULE_H_
#define SYNCOPATE_MODEL_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"

namespace syncopate {

// One all-reduce of a run of tensors, first..last in the forward numbering of TensorTable. It is
// ready when the backward of `first` is done, the last of the run. It starts once it is ready, the
// transfer before it in the schedule has started, and at most `beside` earlier ones still run:
// beside = 0 waits for all of them ("normal"), 1 lets one run on ("simultaneous"), k - 1 is k-way.
struct Transfer {
  int first = 0;
  int last = 0;
  int beside = 0;

  int tensors() const { return last - first + 1; }
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// Transfers in the order in which they start, which is the order of the backward pass: the first
// one holds the last tensor of the model, the last one holds tensor 0.
struct Schedule {
  std::string planner;  // the name of the planner that made it, as "asc-wfbp"
  std::vector<Transfer> transfers;

  // How many tensors it is for.
  int tensors() const { return transfers.empty() ? 0 : transfers.front().last + 1; }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// A valid schedule covers each of the tensors 0..`tensors`-1 once, in runs in backward order, and
// lets at most limits::kBesideMax transfers run beside one. The first transfer's `beside` is 0: it
// has none beside it.
absl::Status Validate(const Schedule& schedule, int tensors);

// The text form, one transfer a line; ParseSchedule(ToText(s)) == s for every valid s.
//   syncopate schedule 1
//   planner asc-wfbp
//   transfer 4-6
//   transfer 0-3 beside 1
//   end
// ParseSchedule validates; errors name the line.
std::string ToText(const Schedule& schedule);
absl::StatusOr<Schedule> ParseSchedule(absl::string_view text);

// The digest of everything but `planner`, which does not matter to the peers that run it.
Digest DigestOf(const Schedule& schedule);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_SCHEDULE_H_
