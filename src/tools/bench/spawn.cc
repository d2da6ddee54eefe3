#include "tools/bench/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/parse.h"
#include "base/pidfd.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "tools/interrupt.h"

extern char** environ;

namespace syncopate::tools::bench {
namespace {

constexpr uint64_t kLogBytesMax = uint64_t{1} << 20;
constexpr int64_t kPollNsMax = 1'000'000'000;

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// This process's environment with the plan's changes.
std::vector<std::string> EnvironmentFor(const LaunchPlan& plan) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = std::string(*entry).substr(0, std::strcspn(*entry, "="));
    if (plan.environment.count(name) == 0) entries.push_back(*entry);
  }
  for (const auto& [name, value] : plan.environment) {
    entries.push_back(absl::StrCat(name, "=", value));
  }
  return entries;
}

// Between fork and exec: only system calls.
[[noreturn]] void Become(char* const* arguments, char* const* environment, int log, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  execve(arguments[0], arguments, environment);
  _exit(127);
}

// Sleeps until the process has ended.
absl::Status AwaitEnd(pid_t pid, int64_t deadline_ns, int interrupt_fd, const Clock& clock) {
  const UniqueFd process = OpenPidFd(pid);
  if (!process.ok()) return absl::UnavailableError("the program cannot be watched");
  while (true) {
    const int64_t left_ns = deadline_ns - clock.NowNs();
    if (left_ns <= 0) return absl::DeadlineExceededError("it takes too long");
    pollfd polled[] = {{process.get(), POLLIN, 0}, {interrupt_fd, POLLIN, 0}};
    const int64_t wait_ms = std::min(left_ns, kPollNsMax) / 1'000'000 + 1;
    if (poll(polled, 2, static_cast<int>(wait_ms)) < 0 && errno != EINTR) {
      return absl::UnavailableError(absl::StrCat("poll: ", std::strerror(errno)));
    }
    if (polled[1].revents != 0) return Interrupted();
    if (polled[0].revents != 0) return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<pid_t> Spawn(const LaunchPlan& plan, const std::string& log) {
  const UniqueFd output(
      open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!output.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot write ", log, ": ", std::strerror(errno)));
  }
  std::vector<std::string> arguments = plan.arguments;
  std::vector<std::string> environment = EnvironmentFor(plan);
  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> environment_pointers = Pointers(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    Become(argument_pointers.data(), environment_pointers.data(), output.get(), parent);
  }
  if (pid < 0) return absl::UnavailableError(absl::StrCat("cannot fork: ", std::strerror(errno)));
  setpgid(pid, pid);  // whichever of the two is first
  return pid;
}

std::string LastWords(const std::string& log) {
  const absl::StatusOr<std::string> text = ReadFile(log, kLogBytesMax);
  if (!text.ok()) return "";
  std::string last;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    // Some launchers draw rulers.
    const bool speaks = std::any_of(line.begin(), line.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c));
    });
    if (speaks) last = std::string(line.substr(0, 200));
  }
  return last;
}

absl::Status RunToEnd(const LaunchPlan& plan, const std::string& log, int64_t deadline_ns,
                      int interrupt_fd, const Clock& clock) {
  SYNCOPATE_ASSIGN_OR_RETURN(const pid_t pid, Spawn(plan, log));
  const absl::Status ended = AwaitEnd(pid, deadline_ns, interrupt_fd, clock);
  if (!ended.ok()) kill(-pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (absl::IsCancelled(ended) || (ended.ok() && status == 0)) return ended;
  std::string message(ended.ok() ? "it failed" : ended.message());
  const std::string words = LastWords(log);
  if (!words.empty()) absl::StrAppend(&message, "; its last words: \"", words, "\"");
  return absl::Status(ended.ok() ? absl::StatusCode::kUnavailable : ended.code(), message);
}

}  // namespace syncopate::tools::bench
