// Live changes to a lab: a link's rate, a cut, a flow in the background, a slower host. They are
// values; what the lab is like follows from its spec and the list of changes that stand, so that
// undoing one in the middle of the list needs no history.
#ifndef SYNCOPATE_LAB_CHANGE_H_
#define SYNCOPATE_LAB_CHANGE_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lab/spec.h"

namespace syncopate::lab {

inline constexpr double kSlowFactorMax = 1000;
inline constexpr int kChangesMax = 1000;  // that stand at once

enum class ChangeKind { kRate, kCut, kFlow, kSlow };

// A process that can be told from a later one with the same number.
struct ProcessId {
  pid_t pid = -1;
  uint64_t start = 0;  // as in /proc: clock ticks since the machine started
};

struct Change {
  std::string name;  // given when it is made
  ChangeKind kind = ChangeKind::kRate;
  int a = -1;                         // nodes
  int b = -1;                         // -1: a cut from everything, or a slow host
  bool forward = true;                // rate, cut: from a to b (without b: out of a)
  bool back = true;                   // rate, cut: from b to a
  int64_t rate = 0;                   // rate, flow: bit/s, 0 not shaped
  int seconds = kFlowSecondsDefault;  // flow
  bool udp = false;                   // flow: keeps its rate, whatever the others get
  double factor = 1;                  // slow
  double cores = 0;                   // slow: what the host's full speed is; 0: its fair share
  std::vector<ProcessId> processes;   // flow: both ends
};

// Reads what stands after `syncopate lab`, and in scenarios:
//   link A B rate RATE [--one-way]
//   cut A [B] [--one-way in|out]
//   flow add A B [--udp] [--rate RATE] [--seconds S]
//   slow HOST FACTORx [--cores C]
absl::StatusOr<Change> ParseChange(const Spec& spec, std::vector<std::string> words);
// Such words again.
std::string ToWords(const Spec& spec, const Change& change);

// Takes "--flag VALUE" out of `words`; empty if it is not there, an error if the value is missing.
absl::StatusOr<std::string> TakeOption(std::vector<std::string>& words, absl::string_view flag);

// What holds for one direction of a link.
struct Setting {
  int64_t rate = 0;
  bool cut = false;

  friend bool operator==(const Setting&, const Setting&) = default;
};

struct Settings {
  std::vector<std::array<Setting, 2>> links;  // by link: a to b, b to a
  std::set<std::pair<int, int>> blocked;      // (from, to): hosts whose packets are lost on the way

  friend bool operator==(const Settings&, const Settings&) = default;
};

// What the spec and the changes come to. Of several rates for a link the last one holds.
Settings Effective(const Spec& spec, const std::vector<Change>& changes);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_CHANGE_H_
