#include "lab/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/netns.h"
#include "lab/plan.h"
#include "nlohmann/json.hpp"

namespace syncopate::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kStateFolder[] = "/run/syncopate/labs";
constexpr uint64_t kStateBytesMax = uint64_t{16} << 20;
constexpr int64_t kLockWaitNs = 30'000'000'000;

absl::Status MakeFolder() {
  for (const char* folder : {"/run/syncopate", kStateFolder}) {
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
      return absl::PermissionDeniedError(
          absl::StrCat("the folder ", folder, " cannot be made: ", strerror(errno)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Change> ParseStoredChange(const Spec& spec, const Json& json) {
  const std::vector<std::string> words =
      absl::StrSplit(json.at("do").get<std::string>(), ' ', absl::SkipEmpty());
  SYNCOPATE_ASSIGN_OR_RETURN(Change change, ParseChange(spec, words));
  change.name = json.at("name").get<std::string>();
  for (const Json& process : json.at("processes")) {
    change.processes.push_back(
        {process.at("pid").get<pid_t>(), process.at("start").get<uint64_t>()});
  }
  return change;
}

}  // namespace

std::string StatePath(absl::string_view lab) {
  return absl::StrCat(kStateFolder, "/", lab, ".json");
}
std::string HostsPath(absl::string_view lab) {
  return absl::StrCat(kStateFolder, "/", lab, ".hosts");
}

std::string ToJson(const State& state) {
  Json changes = Json::array();
  for (const Change& change : state.changes) {
    Json processes = Json::array();
    for (const ProcessId& process : change.processes) {
      processes.push_back({{"pid", process.pid}, {"start", process.start}});
    }
    changes.push_back({{"name", change.name},
                       {"do", ToWords(state.spec, change)},
                       {"processes", std::move(processes)}});
  }
  const Json json = {{"lab", ToToml(state.spec)},
                     {"complete", state.complete},
                     {"changes_made", state.changes_made},
                     {"changes", std::move(changes)}};
  return json.dump(1) + "\n";
}

absl::StatusOr<State> ParseState(absl::string_view json) {
  State state;
  try {
    const Json parsed = Json::parse(json.begin(), json.end());
    SYNCOPATE_ASSIGN_OR_RETURN(state.spec, ParseLab(parsed.at("lab").get<std::string>(), "lab"));
    state.complete = parsed.at("complete").get<bool>();
    state.changes_made = parsed.at("changes_made").get<int>();
    for (const Json& change : parsed.at("changes")) {
      SYNCOPATE_ASSIGN_OR_RETURN(Change read, ParseStoredChange(state.spec, change));
      state.changes.push_back(std::move(read));
    }
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("not the state of a lab: ", error.what()));
  }
  return state;
}

absl::Status SaveState(const State& state) {
  SYNCOPATE_RETURN_IF_ERROR(MakeFolder());
  return WriteFile(StatePath(state.spec.name), ToJson(state));
}

absl::StatusOr<State> LoadState(absl::string_view lab) {
  SYNCOPATE_RETURN_IF_ERROR(CheckName(lab, kLabNameBytesMax));
  const absl::StatusOr<std::string> text = ReadFile(StatePath(lab), kStateBytesMax);
  if (absl::IsNotFound(text.status())) {
    const std::vector<std::string> names = LabNames();
    return absl::NotFoundError(
        absl::StrCat("there is no lab ", lab, "; ",
                     names.empty() ? "none is up: syncopate lab up FILE.toml" : "up: ",
                     absl::StrJoin(names, ", ")));
  }
  if (!text.ok()) return text.status();
  absl::StatusOr<State> state = ParseState(*text);
  if (!state.ok()) {
    return absl::DataLossError(absl::StrCat(StatePath(lab), ": ", state.status().message(),
                                            "; clean up with syncopate lab down ", lab));
  }
  return state;
}

void RemoveState(absl::string_view lab) {
  unlink(HostsPath(lab).c_str());
  unlink(StatePath(lab).c_str());
}

std::vector<std::string> LabNames() {
  std::set<std::string> names;
  if (DIR* const dir = opendir(kStateFolder)) {
    while (const dirent* entry = readdir(dir)) {
      absl::string_view name = entry->d_name;
      if (absl::ConsumeSuffix(&name, ".json") && CheckName(name, kLabNameBytesMax).ok()) {
        names.insert(std::string(name));
      }
    }
    closedir(dir);
  }
  for (const std::string& netns : ListNamespaces()) {
    if (const std::string lab = LabOfNamespace(netns); !lab.empty()) names.insert(lab);
  }
  return {names.begin(), names.end()};
}

absl::StatusOr<std::string> ResolveName(const std::string& name) {
  if (!name.empty()) {
    SYNCOPATE_RETURN_IF_ERROR(CheckName(name, kLabNameBytesMax));
    return name;
  }
  const std::vector<std::string> names = LabNames();
  if (names.size() == 1) return names[0];
  if (names.empty()) {
    return absl::NotFoundError("no lab is up; start one with syncopate lab up FILE.toml");
  }
  return absl::InvalidArgumentError(absl::StrCat("several labs are up (",
                                                 absl::StrJoin(names, ", "),
                                                 "); say which one by its name or --lab"));
}

absl::StatusOr<LabLock> LabLock::Take(const Clock& clock) {
  SYNCOPATE_RETURN_IF_ERROR(MakeFolder());
  const std::string path = absl::StrCat(kStateFolder, "/.lock");
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.ok()) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": ", strerror(errno)));
  }
  const int64_t deadline_ns = clock.NowNs() + kLockWaitNs;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return absl::InternalError(absl::StrCat(path, ": ", strerror(errno)));
    }
    if (clock.NowNs() > deadline_ns) {
      return absl::DeadlineExceededError(
          "another syncopate lab command has been changing labs for 30 s; wait for it or end it");
    }
    const timespec pause = {0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  return LabLock(std::move(fd));
}

}  // namespace syncopate::lab
