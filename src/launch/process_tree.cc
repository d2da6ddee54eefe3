#include "launch/process_tree.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/pidfd.h"
#include "base/unique_fd.h"

namespace syncopate::launch {
namespace {

// How long to wait for the death of what was just killed before looking again for what it may have
// forked meanwhile.
constexpr int64_t kPassNs = 20'000'000;

struct Process {
  pid_t parent = 0;
  bool zombie = false;
  std::string start;  // its starting time: tells it from a later process with the same number
};

std::optional<Process> ReadProcess(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const size_t name_end = line.rfind(')');  // the name may hold spaces and brackets
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(line.substr(name_end + 2), ' ');
  Process process;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[1], &process.parent)) return std::nullopt;
  process.zombie = fields[0] == "Z" || fields[0] == "X";
  process.start = fields[19];
  return process;
}

std::map<pid_t, Process> DescendantsOf(pid_t root) {
  std::map<pid_t, Process> all;
  if (DIR* directory = opendir("/proc")) {
    while (const dirent* entry = readdir(directory)) {
      pid_t pid = 0;
      if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
      if (std::optional<Process> process = ReadProcess(pid)) all[pid] = *process;
    }
    closedir(directory);
  }
  std::map<pid_t, Process> below;
  for (const auto& [pid, process] : all) {
    // The walk is bounded: a table read while it changes could hold a circle.
    pid_t above = process.parent;
    for (size_t depth = 0; depth < all.size() && above != root; ++depth) {
      auto it = all.find(above);
      if (it == all.end()) break;
      above = it->second.parent;
    }
    if (above == root) below[pid] = process;
  }
  return below;
}

// Kills exactly this process, not one that has got its number since.
void KillExactly(pid_t pid, const Process& process) {
  const UniqueFd fd = OpenPidFd(pid);
  if (!fd.ok()) return;
  const std::optional<Process> now = ReadProcess(pid);
  if (now.has_value() && now->start == process.start) {
    SendSignal(fd, SIGKILL);
  }
}

// Reaps what is dead; returns whether any child is left.
bool ReapDead() {
  while (true) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid == 0) return true;
    if (pid < 0 && errno == ECHILD) return false;
  }
}

}  // namespace

std::vector<pid_t> Descendants(pid_t root) {
  std::vector<pid_t> pids;
  for (const auto& [pid, process] : DescendantsOf(root)) {
    if (!process.zombie) pids.push_back(pid);
  }
  return pids;
}

bool EndDescendants(const Clock& clock, int64_t deadline_ns) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  while (ReapDead()) {
    const int64_t left_ns = deadline_ns - clock.NowNs();
    if (left_ns <= 0) return false;
    for (const auto& [pid, process] : DescendantsOf(getpid())) {
      if (!process.zombie) KillExactly(pid, process);
    }
    const timespec wait = {0, static_cast<long>(std::min(left_ns, kPassNs))};
    sigtimedwait(&child, nullptr, &wait);
  }
  return true;
}

}  // namespace syncopate::launch
