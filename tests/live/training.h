// Runs one training job (the ranks of `syncopate train`) of a live campaign on the hosts of a lab.
// Training does not go on after a loss: every survivor must end with an error that names the same
// victim, and every victim that lives must end too.
#ifndef SYNCOPATE_TESTS_LIVE_TRAINING_H_
#define SYNCOPATE_TESTS_LIVE_TRAINING_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "lab/lab.h"
#include "live/outcome.h"
#include "live/plan.h"

namespace syncopate::live {

// The program that a rank of `syncopate train` runs; empty if it is not built.
std::string TrainingProgram();

// The one case of the job. The workers' standard error goes to `log` too unless that is empty. The
// calling process must have one thread.
Outcome RunTraining(lab::Lab& lab, const JobPlan& plan, const std::string& log);

// What a rank says at its end of whom it blames; nothing if it does not say so.
std::optional<int> SuspectIn(absl::string_view said);

}  // namespace syncopate::live

#endif  // SYNCOPATE_TESTS_LIVE_TRAINING_H_
