// The report as one HTML page that needs nothing else: no scripts, no files, no network. Every plot
// has a sentence and a table beside it that say the same. Pure.
#ifndef SYNCOPATE_OBSERVE_HTML_REPORT_H_
#define SYNCOPATE_OBSERVE_HTML_REPORT_H_

#include <string>
#include <vector>

#include "observe/run_reader.h"

namespace syncopate::observe {

// One run in full, or several compared.
std::string ToHtml(const std::vector<RunRecord>& runs);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_HTML_REPORT_H_
