// The command line that reaches a host: ssh, an agent of the user's, or nothing for this machine.
#ifndef SYNCOPATE_LAUNCH_AGENT_COMMAND_H_
#define SYNCOPATE_LAUNCH_AGENT_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::launch {

// `word` as a POSIX shell reads it back.
std::string ShellQuote(absl::string_view word);

// Cuts a command line into words: blanks separate, quotes ('…', "…") and backslashes hold together.
// Nothing is expanded.
absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view text);

// Whether `host` means the machine whose name is `own_name`.
bool IsThisHost(absl::string_view host, absl::string_view own_name);

// How to run `command` on `host`. With an `agent` ("CMD {host}") its words, {host} replaced, and
// the command's as they are; else directly if `here`; else by ssh, the command quoted for the shell
// there. A host that is silent for `host_timeout_ns` ends ssh, a little before that time.
absl::StatusOr<std::vector<std::string>> AgentCommand(absl::string_view agent,
                                                      const std::string& host, bool here,
                                                      const std::vector<std::string>& command,
                                                      int64_t host_timeout_ns);

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_AGENT_COMMAND_H_
