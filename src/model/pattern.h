// Which workers average with which, round by round: what a planner of groups decides and a strategy
// that averages parameters carries out.
#ifndef SYNCOPATE_MODEL_PATTERN_H_
#define SYNCOPATE_MODEL_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"

namespace syncopate {

namespace limits {
inline constexpr uint64_t kPatternRoundsMax = 4096;  // as many as workers
inline constexpr uint64_t kPatternTextBytesMax = uint64_t{128} << 20;
}  // namespace limits

// Iteration t averages in round t modulo the period. Every round is a partition of the ranks: each
// worker is in exactly one group, alone where it averages with nobody.
//
// The one form of a round: ranks ascend inside a group, groups ascend by their first ranks.
struct Pattern {
  using Group = std::vector<int>;
  using Round = std::vector<Group>;

  std::string planner;  // the name of the planner that made it, as "ds-sync"
  int workers = 0;      // ranks 0 .. workers-1
  std::vector<Round> rounds;

  int period() const { return static_cast<int>(rounds.size()); }
  // The round of an iteration, counted from the one at which the pattern came into force.
  const Round& RoundOf(uint64_t iteration) const { return rounds[iteration % rounds.size()]; }
  friend bool operator==(const Pattern&, const Pattern&) = default;
};

// Brings the groups of a round into their one form and leaves out empty ones.
void Sort(Pattern::Round& round);

// The first fault, with its place: "rounds[3]: worker 5 is in two groups". A valid pattern has at
// least one worker and one round, and every round is a partition of its ranks in the one form.
absl::Status Validate(const Pattern& pattern);

// The text form, one round a line; ParsePattern(ToText(p)) == p for every valid p.
//   syncopate pattern 1
//   planner ds-sync
//   workers 8
//   round 0,4 1-3 5-7
//   round 0,2-3 1,5 4,6-7
//   end
// ParsePattern validates; errors name the line. Ranks and groups may stand in any order there.
std::string ToText(const Pattern& pattern);
absl::StatusOr<Pattern> ParsePattern(absl::string_view text);

// The digest of everything but `planner`, which does not matter to the peers that run it.
Digest DigestOf(const Pattern& pattern);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_PATTERN_H_
