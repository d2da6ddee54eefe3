#include "tools/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/environment.h"
#include "base/parse.h"
#include "tools/interrupt.h"
#include "tools/usage_message.h"

namespace syncopate::tools {
namespace {

// CLI11 takes a "--" before the program of a prefix command (`launch -n 4 -- sh -c true`) for the
// end of the sub-command. Without it the program is where the first word stands that is neither an
// option nor an option's value, so a "--" just there can go. One that comes later belongs to the
// program.
std::vector<std::string> WithoutMark(const CLI::App& app, std::vector<std::string> words) {
  const CLI::App* command = &app;
  size_t first = 0;  // the word after the sub-command's names: `lab run`
  while (first < words.size()) {
    const std::vector<const CLI::App*> found = command->get_subcommands(
        [&](const CLI::App* each) { return each->get_name() == words[first]; });
    if (found.empty()) break;
    command = found[0];
    ++first;
  }
  if (!command->get_prefix_command()) return words;
  for (size_t i = first; i < words.size(); ++i) {
    if (words[i] == "--") {
      words.erase(words.begin() + static_cast<ptrdiff_t>(i));
      break;
    }
    if (words[i].size() < 2 || words[i][0] != '-') break;
    const CLI::Option* option = command->get_option_no_throw(words[i]);
    if (option != nullptr && option->get_items_expected_max() > 0) ++i;
  }
  return words;
}

// CLI11 takes -1 for the largest number where an option's number has no sign. Such options refuse
// whatever is negative, in all sub-commands.
void RefuseNegative(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_type_name() != "UINT") continue;
    option->check([](const std::string& text) {
      if (!absl::StartsWith(text, "-")) return std::string();
      return absl::StrCat("\"", text, "\" is not a whole number of at least 0");
    });
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    RefuseNegative(*command);
  }
}

// What a command printed may not have arrived: the disk is full, or nobody reads it. The command
// that the user called is named, with its sub-command (`lab status`).
int CheckOutput(const CLI::App& app, int exit_code) {
  std::cout.flush();
  if (std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  std::string command;
  for (const CLI::App* each = &app; !each->get_subcommands().empty();) {
    each = each->get_subcommands().front();
    absl::StrAppend(&command, command.empty() ? "" : " ", each->get_name());
  }
  Say(command, "cannot write to standard output; is its disk full?");
  return exit_code == kDone ? kFailed : exit_code;
}

}  // namespace

void Say(absl::string_view command, absl::string_view message) {
  const std::string line = absl::StrJoin(absl::StrSplit(message, '\n', absl::SkipEmpty()), " ");
  std::cerr << absl::StrCat("syncopate", command.empty() ? "" : " ", command, ": ", line, "\n")
            << std::flush;
}

int Complain(absl::string_view command, const absl::Status& status) {
  if (const int signal = InterruptSignal(); signal != 0) {
    const bool told = absl::StartsWith(status.message(), "interrupted");
    Say(command, told ? status.message() : Interrupted().message());
    return kSignalled + signal;
  }
  Say(command, status.message());
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? kBadUsage : kFailed;
}

CLI::Validator WholeNumber(int64_t min, int64_t max) {
  return CLI::Validator(
      [min, max](const std::string& text) {
        return std::string(ParseInt(text, min, max).status().message());
      },
      absl::StrCat(min, "..", max));
}

CLI::Validator WholeNumberFrom(int64_t min) {
  return CLI::Validator(
      [min](const std::string& text) {
        if (ParseInt(text, min, std::numeric_limits<int64_t>::max()).ok()) return std::string();
        return absl::StrCat("\"", text, "\" is not a whole number of at least ", min);
      },
      absl::StrCat(">=", min));
}

absl::StatusOr<ProgressOptions> ProgressOfThisProcess() {
  return ProgressOptionsFor(ProcessEnvironment(), isatty(STDERR_FILENO) == 1);
}

int RunCommandLine(CLI::App& app, int argc, const char* const* argv, const int& exit_code) {
  if (argc <= 1) {
    std::cout << app.help();
    return CheckOutput(app, kDone);
  }
  RefuseNegative(app);
  try {
    std::vector<std::string> words = WithoutMark(app, {argv + 1, argv + argc});
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(std::move(words));
    return CheckOutput(app, exit_code);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      return CheckOutput(app, app.exit(error));  // help or version was asked for
    }
    const UsageMessage message = DescribeUsageError(app, {argv + 1, argv + argc}, error);
    Say(message.command, message.text);
    return kBadUsage;
  }
}

}  // namespace syncopate::tools
