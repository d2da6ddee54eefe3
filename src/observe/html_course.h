// How loss and accuracy went, as charts and a table of a report's page. Pure.
#ifndef SYNCOPATE_OBSERVE_HTML_COURSE_H_
#define SYNCOPATE_OBSERVE_HTML_COURSE_H_

#include <string>
#include <vector>

#include "observe/run_reader.h"

namespace syncopate::observe {

// Loss and accuracy over iterations and over time. One run shows training and evaluation in one
// chart; of several, each has a colour, so that there is a chart for either. A chart in which no
// series has two points is left out: the table has such numbers.
std::string Course(const std::vector<RunRecord>& runs);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_HTML_COURSE_H_
