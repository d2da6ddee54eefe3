#include "train/data/npm.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/pidfd.h"
#include "base/status.h"

extern char** environ;

namespace syncopate::train {

namespace {

constexpr uint64_t kLogBytesMax = 1 << 20;
constexpr size_t kLogLinesShown = 4;

// Starts npm in `folder`; its output goes to `log`.
absl::StatusOr<pid_t> Spawn(std::vector<std::string> words, const std::string& folder,
                            const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return absl::UnavailableError(absl::StrCat("there is no program ", words[0],
                                               "; install npm (Debian: apt-get install npm)"));
  }
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot start ", words[0], ": ", std::strerror(error)));
  }
  return pid;
}

// Waits until the process has ended; ends it at the deadline.
absl::StatusOr<int> WaitFor(pid_t pid, int64_t timeout_ns,
                            const std::function<void(int)>& every_second) {
  const int64_t start = MonotonicClock().NowNs();
  const UniqueFd process = OpenPidFd(pid);
  bool late = false;
  while (true) {
    pollfd poll_for{process.get(), POLLIN, 0};
    if (poll(&poll_for, 1, 1000) > 0) break;
    const int64_t taken = MonotonicClock().NowNs() - start;
    if (taken >= timeout_ns || !process.ok()) {
      late = true;
      kill(pid, SIGKILL);
      break;
    }
    if (every_second) every_second(static_cast<int>(taken / 1'000'000'000));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (late) {
    return absl::UnavailableError(
        absl::StrCat("npm did not finish within ", timeout_ns / 1'000'000'000, " s"));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The lines of npm's log that say what went wrong.
std::string WhatNpmSaid(const std::string& log) {
  const auto text = ReadFile(log, kLogBytesMax);
  if (!text.ok()) return "nothing";
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipWhitespace())) {
    if (!absl::ConsumePrefix(&line, "npm ERR! ") && !absl::ConsumePrefix(&line, "npm error ")) {
      continue;
    }
    if (absl::StrContains(line, "complete log")) continue;
    if (lines.size() < kLogLinesShown) lines.emplace_back(line);
  }
  return lines.empty() ? "nothing" : absl::StrJoin(lines, "; ");
}

}  // namespace

absl::StatusOr<std::string> NpmPack(const std::string& npm, const std::string& package,
                                    const std::string& folder, int64_t timeout_ns,
                                    const std::function<void(int)>& every_second) {
  const std::string log = absl::StrCat(folder, "/npm.log");
  // Without a network, npm's usual three tries would keep a user waiting for a minute and a half.
  SYNCOPATE_ASSIGN_OR_RETURN(
      const pid_t pid, Spawn({npm, "pack", package, "--ignore-scripts", "--fetch-retries=1",
                              "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"},
                             folder, log));
  SYNCOPATE_ASSIGN_OR_RETURN(const int code, WaitFor(pid, timeout_ns, every_second));
  if (code != 0) {
    return absl::UnavailableError(
        absl::StrCat("npm pack ended with code ", code, " and said: ", WhatNpmSaid(log)));
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tgz") return entry.path().string();
  }
  return absl::UnavailableError("npm pack left no archive");
}

}  // namespace syncopate::train
