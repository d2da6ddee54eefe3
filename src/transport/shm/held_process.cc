#include "transport/shm/held_process.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/parse.h"

namespace syncopate::transport::shm {
namespace {

constexpr uint64_t kBytesMax = 64 << 10;
constexpr int64_t kPidMax = int64_t{1} << 30;

// The text of a file; empty if it cannot be read.
std::string Text(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kBytesMax);
  return text.ok() ? *std::move(text) : "";
}

// What stands after `name` on its line: "TracerPid:\t0".
std::string Field(const std::string& text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, name)) return std::string(absl::StripAsciiWhitespace(line));
  }
  return "";
}

// A process is frozen with its cgroup, also if an outer one was frozen. The hierarchies are mounted
// in one of these places, the unified one beside the others or alone.
bool IsFrozen(const std::string& proc, const std::string& root) {
  const std::string cgroups = absl::StrCat(root, "/sys/fs/cgroup");
  for (absl::string_view line : absl::StrSplit(Text(proc + "/cgroup"), '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1] == "freezer") {
      const std::string state = Text(absl::StrCat(cgroups, "/freezer", parts[2], "/freezer.state"));
      if (absl::StartsWith(state, "FR")) return true;  // FROZEN, FREEZING
    }
    if (!parts[1].empty()) continue;
    for (const char* place : {"", "/unified"}) {
      const std::string events = Text(absl::StrCat(cgroups, place, parts[2], "/cgroup.events"));
      if (Field(events, "frozen ") == "1") return true;
    }
  }
  // Where the cgroups are not to be seen, as in a container: the place in the kernel where frozen
  // processes wait.
  const std::string place = Text(proc + "/wchan");
  return place == "__refrigerator" || place == "do_freezer_trap";
}

}  // namespace

pid_t NumberInProc(const UniqueFd& process) {
  const std::string info = Text(absl::StrCat("/proc/self/fdinfo/", process.get()));
  const absl::StatusOr<int64_t> number = ParseInt(Field(info, "Pid:"), 1, kPidMax);
  return number.ok() ? static_cast<pid_t>(*number) : 0;
}

HeldProcess LookAtProcess(pid_t pid, const std::string& root) {
  const std::string proc = absl::StrCat(root, "/proc/", pid);
  const std::string status = Text(proc + "/status");
  const std::string tracer = Field(status, "TracerPid:");
  if (!tracer.empty() && tracer != "0") {
    const std::string name(
        absl::StripAsciiWhitespace(Text(absl::StrCat(root, "/proc/", tracer, "/comm"))));
    return {Hold::kDebugger, absl::StrCat("it is being debugged by process ", tracer,
                                          name.empty() ? "" : absl::StrCat(" (", name, ")"))};
  }
  // Traced from a PID namespace that cannot be seen from here.
  if (absl::StartsWith(Field(status, "State:"), "t")) {
    return {Hold::kDebugger, "it is being debugged"};
  }
  if (IsFrozen(proc, root)) return {Hold::kFreezer, "it is frozen (cgroup freezer)"};
  return {};
}

}  // namespace syncopate::transport::shm
