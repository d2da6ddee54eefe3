// What became of one case of a live campaign, as a value: judged from what the workers tell, and
// written as a line of JSON that reads back.
#ifndef SYNCOPATE_TESTS_LIVE_OUTCOME_H_
#define SYNCOPATE_TESTS_LIVE_OUTCOME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "live/plan.h"
#include "live/story.h"

namespace syncopate::live {

// The promises of docs/failure.md, for cases in which no survivor's sentry was held up for longer.
inline constexpr int64_t kKillMsMax = 1000;
inline constexpr int64_t kSilenceMsMax = 5000;
inline constexpr int64_t kPauseMsMax = 500;

struct Outcome {
  uint64_t job = 0;
  int number = 0;  // of the case in its job
  std::string kind;
  std::string wire;
  int slots = 0;
  std::string operation;
  int workers = 0;         // that were there before
  int64_t noticed_ms = 0;  // from the last blow until the last survivor had an error for each loss
  int64_t pause_ms = 0;    // the longest for which a survivor's sentry was held up
  std::string data;   // what the failed call has left: "old", "new" or "" if that is not promised
  std::string times;  // of every loss at every survivor, for messages; not kept in files
  // What did not hold, each as "hang: ...", "wrong element: ...", "differing suspects: ...",
  // "live worker suspected: ...", "late: ..." or "other: ...".
  std::vector<std::string> failures;
};

// An outcome of which nothing is known yet.
Outcome BeginOutcome(const JobPlan& job, int number);

// Adds a failure if the loss was noticed too late.
void JudgeTime(const Case& each, Outcome& outcome);

// Compares what `survivors` have told since they had lost `before` workers, but for times. `blow_ns`
// is when the last blow fell.
Outcome Judge(const JobPlan& job, int number, const std::vector<int>& survivors, uint64_t before,
              int64_t blow_ns, const Story& story);

std::string ToJson(const Outcome& outcome);
absl::StatusOr<Outcome> ParseOutcome(absl::string_view line);

}  // namespace syncopate::live

#endif  // SYNCOPATE_TESTS_LIVE_OUTCOME_H_
