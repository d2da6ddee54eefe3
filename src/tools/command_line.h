// What all sub-commands of `syncopate` share: how errors look and which exit code they give, and
// the checks of options' values.
#ifndef SYNCOPATE_TOOLS_COMMAND_LINE_H_
#define SYNCOPATE_TOOLS_COMMAND_LINE_H_

#include <cstdint>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/progress.h"

namespace syncopate::tools {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadUsage = 2;
inline constexpr int kSignalled = 128;  // added to the signal's number, as shells have it

// Says `syncopate COMMAND: message` in one line on standard error.
void Say(absl::string_view command, absl::string_view message);

// Says why the command fails and returns its exit code: kBadUsage for what the user gave (invalid
// arguments, files not found), else kFailed. After an interrupt (tools/interrupt.h) whatever failed
// did so because of it: then it says so, and the exit code is 128 + signal.
int Complain(absl::string_view command, const absl::Status& status);

// Checks of an option's value whose messages a user can read, as in
//   command->add_option("--rounds", rounds)->check(WholeNumber(1, 1000));
// Those of the library name bounds of the machine's numbers.
CLI::Validator WholeNumber(int64_t min, int64_t max);
CLI::Validator WholeNumberFrom(int64_t min);

// How this process shows the progress of what takes long (base/progress.h).
absl::StatusOr<ProgressOptions> ProgressOfThisProcess();

// Parses and runs. Wrong usage becomes one line and kBadUsage; no arguments print the help.
// `exit_code` is the one that the sub-commands set; returns what the process shall exit with, which
// is kFailed, with a line, if standard output could not be written (a full disk).
int RunCommandLine(CLI::App& app, int argc, const char* const* argv, const int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_COMMAND_LINE_H_
