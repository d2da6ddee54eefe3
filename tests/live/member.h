// A worker of a live job: it runs the job's operation over and over, compares every element, goes on
// with the survivors after each loss, and tells all of it in its account.
#ifndef SYNCOPATE_TESTS_LIVE_MEMBER_H_
#define SYNCOPATE_TESTS_LIVE_MEMBER_H_

#include "live/plan.h"
#include "live/story.h"
#include "syncopate/syncopate.h"

namespace syncopate::live {

// Returns when the story says so, when this worker is out of the job, or when something is wrong.
void RunMember(Worker& worker, const JobPlan& job, Story& story);

}  // namespace syncopate::live

#endif  // SYNCOPATE_TESTS_LIVE_MEMBER_H_
