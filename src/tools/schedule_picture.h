// Timelines of schedules as a picture: one panel a schedule, all to the same scale.
#ifndef SYNCOPATE_TOOLS_SCHEDULE_PICTURE_H_
#define SYNCOPATE_TOOLS_SCHEDULE_PICTURE_H_

#include <string>

#include "tools/plan_schedule.h"

namespace syncopate::tools {

// A lane for the computing, lanes for the transfers (as many as run at once) with their start-ups
// in a lighter tone, and the time that the iteration waits for communication.
std::string SchedulesToSvg(const ScheduleReport& report);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_SCHEDULE_PICTURE_H_
