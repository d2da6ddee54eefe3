// What is wrong with a command line, in our own words: the library that parses it knows, but its
// messages name types and bounds of the machine, and stop at the first thing that is missing where
// a mistyped word is the cause.
#ifndef SYNCOPATE_TOOLS_USAGE_MESSAGE_H_
#define SYNCOPATE_TOOLS_USAGE_MESSAGE_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace syncopate::tools {

struct UsageMessage {
  // Names of the sub-commands that the words led to, as `lab up`; empty for `syncopate` itself.
  std::string command;
  // What is wrong, with which value, what is possible, and how to see more. For example:
  //   -n: "0" is not a whole number of at least 1; syncopate train --help shows what is possible
  std::string text;
};

// `app` has just refused `words` (all after the program's own name) with `error`.
UsageMessage DescribeUsageError(const CLI::App& app, const std::vector<std::string>& words,
                                const CLI::ParseError& error);

// For commands that leave their words to a program, which the library lets pass as they are. An
// error if the first of them looks like an option: it is one that `command` does not have, since no
// program's name begins with a dash.
absl::Status CheckWordsLeft(const CLI::App& command);

// How many letters must be inserted, removed, changed or swapped with the next one to make `a` of
// `b`; swapped letters are not changed again.
int EditDistance(absl::string_view a, absl::string_view b);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_USAGE_MESSAGE_H_
