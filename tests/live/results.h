// The file of a live campaign: a line that says which campaign it is, then a line for each outcome.
// It is written as the campaign goes, so one that was ended can go on from it.
#ifndef SYNCOPATE_TESTS_LIVE_RESULTS_H_
#define SYNCOPATE_TESTS_LIVE_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "live/outcome.h"

namespace syncopate::live {

// Several processes may add to one file, each outcomes of whole jobs.
class Results {
 public:
  // Opens the file, or makes it. InvalidArgument if it belongs to a campaign with another seed.
  static absl::StatusOr<Results> Open(const std::string& path, uint64_t seed);

  // What was in the file when it was opened.
  const std::vector<Outcome>& outcomes() const { return outcomes_; }

  absl::Status Add(const std::vector<Outcome>& outcomes);

 private:
  std::string path_;
  std::vector<Outcome> outcomes_;
};

// Times are promised where no survivor's sentry was held up, so a campaign in which many were says little of
// them: at most this percentage of its cases may be. With fewer cases the share says nothing.
inline constexpr size_t kHeldUpPercentMax = 2;
inline constexpr size_t kHeldUpCasesMin = 100;

// FailedPrecondition, with the numbers, if there are more.
absl::Status CheckHeldUp(const std::vector<Outcome>& outcomes);

// For people: what became of the faults by kind, and how many there were of what.
std::string Table(const std::vector<Outcome>& outcomes);

}  // namespace syncopate::live

#endif  // SYNCOPATE_TESTS_LIVE_RESULTS_H_
