// What `syncopate report` says about runs: text for people and JSON for programs. Pure.
#ifndef SYNCOPATE_OBSERVE_TEXT_REPORT_H_
#define SYNCOPATE_OBSERVE_TEXT_REPORT_H_

#include <string>
#include <vector>

#include "observe/run_reader.h"

namespace syncopate::observe {

// Where the time of a run went, who is late, how loss and accuracy went, and what to know.
std::string ToText(const RunRecord& run);
// A row a run, to compare them, and what to know about each.
std::string ToComparison(const std::vector<RunRecord>& runs);
// {"runs": [...]}; each with the keys of its summary, and "name", "ended", "breakdown", "late",
// "notes".
std::string ToJson(const std::vector<RunRecord>& runs);

// Which rank is the latest, or that none is late: "rank 2 on node1 kept others waiting in 67 % of
// the iterations, by 7.21 ms".
std::string WhoIsLate(const Breakdown& breakdown);

// At most `count` of the metrics that have a loss or an accuracy, evenly spread, the last among
// them; evaluations rather than training.
std::vector<const Metric*> CourseOf(const std::vector<Metric>& metrics, size_t count);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_TEXT_REPORT_H_
