#include "launch/worker_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace syncopate::launch {
namespace {

int MakePipe(UniqueFd& read_end, UniqueFd& write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  read_end = UniqueFd(ends[0]);
  write_end = UniqueFd(ends[1]);
  // Only our end: the worker would not expect its own to be non-blocking.
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return errno;
  return 0;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the new process; never returns.
void BecomeProgram(const WorkerStart& start, pid_t parent, int out, int err) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  const std::vector<char*> arguments = Pointers(start.command);
  const std::vector<char*> environment = Pointers(start.environment);
  ExecError report = {start.rank, 0};
  if (dup2(start.input, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
      dup2(err, STDERR_FILENO) >= 0 && sigprocmask(SIG_SETMASK, &start.signal_mask, nullptr) == 0) {
    execvpe(arguments[0], arguments.data(), environment.data());
  }
  report.error = errno;
  (void)!write(start.exec_errors, &report, sizeof(report));
  _exit(127);
}

// Threads of OpenMP that have nothing to do spin for milliseconds before they sleep, and so do
// those of LibTorch, which uses it. With more threads than cores (another job on this machine, a
// second rank) they keep the cores from those that have work to do, and both jobs become many times
// slower. Passive threads sleep at once. A user who has said how threads shall wait is obeyed; the
// last two are what GNU's and LLVM's OpenMP add to the standard's variable.
constexpr const char* kWaitVariables[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"};
constexpr const char* kPassiveWaits = "OMP_WAIT_POLICY=passive";

absl::string_view NameOf(absl::string_view variable) {
  return variable.substr(0, variable.find('='));
}

}  // namespace

std::vector<std::string> InheritedEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  return variables;
}

std::vector<std::string> WithVariables(const std::vector<std::string>& environment,
                                       const std::vector<std::string>& extra) {
  std::vector<std::string> all;
  for (const std::string& variable : environment) {
    const bool replaced = std::any_of(extra.begin(), extra.end(), [&](const std::string& each) {
      return NameOf(each) == NameOf(variable);
    });
    if (!replaced) all.push_back(variable);
  }
  all.insert(all.end(), extra.begin(), extra.end());
  return all;
}

std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& inherited,
                                           const WorkerIdentity& worker) {
  const std::vector<std::pair<std::string, std::string>> own = {
      {"SYNCOPATE_JOB", worker.job},
      {"SYNCOPATE_RANK", absl::StrCat(worker.rank)},
      {"SYNCOPATE_SIZE", absl::StrCat(worker.size)},
      {"SYNCOPATE_LOCAL_RANK", absl::StrCat(worker.local_rank)},
      {"SYNCOPATE_LOCAL_SIZE", absl::StrCat(worker.local_size)}};
  const std::vector<std::pair<std::string, std::string>> common = {
      {"RANK", absl::StrCat(worker.rank)},
      {"WORLD_SIZE", absl::StrCat(worker.size)},
      {"LOCAL_RANK", absl::StrCat(worker.local_rank)},
      {"LOCAL_WORLD_SIZE", absl::StrCat(worker.local_size)}};
  const auto names_one_of = [](const std::string& variable, const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& named) {
      return absl::StartsWith(variable, absl::StrCat(named.first, "="));
    });
  };
  std::vector<std::string> environment;
  bool common_set = false, waits_set = false;
  for (const std::string& variable : inherited) {
    if (names_one_of(variable, own)) continue;
    common_set = common_set || names_one_of(variable, common);
    waits_set = waits_set || absl::c_linear_search(kWaitVariables, NameOf(variable));
    environment.push_back(variable);
  }
  for (const auto& [name, value] : own) environment.push_back(absl::StrCat(name, "=", value));
  if (!common_set) {
    for (const auto& [name, value] : common) environment.push_back(absl::StrCat(name, "=", value));
  }
  if (!waits_set) environment.push_back(kPassiveWaits);
  return environment;
}

int StartWorker(const WorkerStart& start, WorkerProcess& worker) {
  UniqueFd out, err;
  if (const int error = MakePipe(worker.out, out); error != 0) return error;
  if (const int error = MakePipe(worker.err, err); error != 0) return error;
  const pid_t parent = getpid();
  worker.pid = fork();
  if (worker.pid < 0) return errno;
  if (worker.pid == 0) BecomeProgram(start, parent, out.get(), err.get());
  setpgid(worker.pid, worker.pid);  // here too: the group exists when this returns
  return 0;
}

std::optional<ExecError> TakeExecError(UniqueFd& exec_errors) {
  if (!exec_errors.ok()) return std::nullopt;
  ExecError report;
  const ssize_t count = read(exec_errors.get(), &report, sizeof(report));
  if (count == 0) exec_errors.Reset();
  if (count != sizeof(report)) return std::nullopt;
  return report;
}

}  // namespace syncopate::launch
