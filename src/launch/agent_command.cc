#include "launch/agent_command.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"

namespace syncopate::launch {
namespace {

// The probes of ssh without an answer after which it ends.
constexpr int kAliveProbes = 3;

}  // namespace

std::string ShellQuote(absl::string_view word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'') {
      if (++i == text.size()) break;
      word.push_back(text[i]);
      in_word = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word.push_back(c);
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(word);
      word.clear();
      in_word = false;
    } else {
      word.push_back(c);
      in_word = true;
    }
  }
  if (quote != 0 || absl::EndsWith(text, "\\")) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" ends inside of quotes or after a backslash"));
  }
  if (in_word) words.push_back(word);
  return words;
}

bool IsThisHost(absl::string_view host, absl::string_view own_name) {
  if (host == "localhost" || host == "127.0.0.1" || host == "::1") return true;
  // "node1" and "node1.cluster.org" are the same to us only if one of them says no domain.
  const absl::string_view short_host = host.substr(0, host.find('.'));
  const absl::string_view short_own = own_name.substr(0, own_name.find('.'));
  return !host.empty() && (host == own_name || (short_host == short_own &&
                                                (host == short_host || own_name == short_own)));
}

absl::StatusOr<std::vector<std::string>> AgentCommand(absl::string_view agent,
                                                      const std::string& host, bool here,
                                                      const std::vector<std::string>& command,
                                                      int64_t host_timeout_ns) {
  std::vector<std::string> words;
  if (!agent.empty()) {
    if (!absl::StrContains(agent, "{host}")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", agent, "\" does not say where {host} goes; write for example \"ssh {host}\""));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(words, SplitWords(agent));
    for (std::string& word : words) word = absl::StrReplaceAll(word, {{"{host}", host}});
  } else if (!here) {
    const std::string remote = absl::StrJoin(
        command, " ",
        [](std::string* out, const std::string& word) { absl::StrAppend(out, ShellQuote(word)); });
    const int64_t alive_s =
        std::max<int64_t>(host_timeout_ns / (kAliveProbes + 1) / 1'000'000'000, 1);
    return std::vector<std::string>{"ssh",
                                    "-o",
                                    "BatchMode=yes",
                                    "-o",
                                    absl::StrCat("ServerAliveInterval=", alive_s),
                                    "-o",
                                    absl::StrCat("ServerAliveCountMax=", kAliveProbes),
                                    "-T",
                                    host,
                                    remote};
  }
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace syncopate::launch
