// The course of a run: numbers at moments, one JSON object a line. Pure.
//
//   {"kind":"train","iteration":120,"seconds":4.25,"loss":0.31,"learning_rate":0.1}
//   {"kind":"evaluate","iteration":200,"seconds":7.5,"loss":0.28,"accuracy":0.912}
//   {"kind":"event","iteration":210,"seconds":7.9,"text":"planned again: asc-wfbp, 14 transfers"}
//   {"kind":"event","iteration":200,"seconds":8.2,"resumed_at":200,"text":"resumed at 200"}
//
// A run that is resumed does the iterations after its last checkpoint again. Its file keeps what it
// had noted of them before; ResumedAt() and DropSuperseded() tell that from what counts.
#ifndef SYNCOPATE_OBSERVE_METRICS_H_
#define SYNCOPATE_OBSERVE_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace syncopate::observe {

struct Metric {
  std::string kind;  // "train", "evaluate", "event"; others are kept and not shown
  int64_t iteration = 0;
  double seconds = 0;                                  // since the run began
  std::vector<std::pair<std::string, double>> values;  // "loss", "accuracy", "learning_rate", ...
  std::string text;

  std::optional<double> Value(absl::string_view name) const;
  friend bool operator==(const Metric&, const Metric&) = default;
};

// One line without its end. Numbers that are not finite become null.
std::string ToJson(const Metric& metric);

struct MetricsContents {
  std::vector<Metric> metrics;     // in the order of the file
  std::vector<std::string> notes;  // what could not be read, for people
};

// Reads lines, also of a file that was cut off. Unknown keys whose values are numbers are values.
MetricsContents ReadMetrics(absl::string_view text);

// Notes that the run goes on after that iteration.
Metric ResumeEvent(int64_t iteration);
// After which iterations the run went on, in the order of the file.
std::vector<int64_t> ResumedAt(const std::vector<Metric>& metrics);
// Removes what was noted of iterations that were done again later.
void DropSuperseded(std::vector<Metric>& metrics);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_METRICS_H_
