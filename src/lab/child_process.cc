#include "lab/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/environment.h"
#include "base/pidfd.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "lab/netns.h"
#include "lab/proc_file.h"

namespace syncopate::lab {
namespace {

constexpr size_t kOutputBytesMax = size_t{16} << 20;
constexpr size_t kQuotedBytesMax = 400;
constexpr int kExecFailed = 127;

UniqueFd MemoryFile(const char* name, const std::string& contents) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC));
  if (!fd.ok()) return fd;
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t count = write(fd.get(), contents.data() + done, contents.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return UniqueFd();
    done += static_cast<size_t>(count);
  }
  lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

std::string Contents(int fd) {
  std::string text;
  char buffer[1 << 14];
  lseek(fd, 0, SEEK_SET);
  while (text.size() < kOutputBytesMax) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

struct Streams {
  int in = -1;
  int out = -1;
  int err = -1;
};

// In the new process: nothing here may allocate or lock.
[[noreturn]] void Become(char* const* words, const char* program, const Streams& streams,
                         int netns_fd) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  if (netns_fd >= 0 && setns(netns_fd, CLONE_NEWNET) != 0) _exit(kExecFailed);
  dup2(streams.in, STDIN_FILENO);
  dup2(streams.out, STDOUT_FILENO);
  dup2(streams.err, STDERR_FILENO);
  execv(program, words);
  _exit(kExecFailed);
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<UniqueFd> OpenIfNamed(const std::string& netns) {
  if (netns.empty()) return UniqueFd();
  return OpenNamespace(netns);
}

// Field 22 of /proc/PID/stat; 0 if there is no such process or it is a zombie.
uint64_t StartOf(pid_t pid) {
  const absl::StatusOr<std::string> stat = ReadProcFile(absl::StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return 0;
  const size_t end = stat->rfind(')');  // the name before it may hold anything
  if (end == std::string::npos) return 0;
  const std::vector<std::string> fields =
      absl::StrSplit(stat->substr(end + 1), ' ', absl::SkipEmpty());
  uint64_t start = 0;
  if (fields.size() < 20 || fields[0] == "Z" || !absl::SimpleAtoi(fields[19], &start)) return 0;
  return start;
}

}  // namespace

std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const std::string path =
      absl::StrCat(ProcessEnvironment()("PATH").value_or(""), ":/usr/sbin:/sbin:/usr/bin:/bin");
  for (const absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    std::string program = absl::StrCat(folder, "/", name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& words,
                                                 const std::string& input,
                                                 const std::string& netns) {
  const std::string program = FindProgram(words[0]);
  if (program.empty()) {
    return absl::NotFoundError(absl::StrCat("the program ", words[0], " is not installed"));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const UniqueFd netns_fd, OpenIfNamed(netns));
  const UniqueFd in = MemoryFile("input", input);
  UniqueFd out = MemoryFile("output", "");
  UniqueFd err = MemoryFile("errors", "");
  if (!in.ok() || !out.ok() || !err.ok()) {
    return absl::UnavailableError(absl::StrCat("no memory for the input and output of ", words[0]));
  }
  std::vector<char*> pointers = Pointers(words);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::UnavailableError(absl::StrCat("fork: ", strerror(errno)));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kExecFailed);
    Become(pointers.data(), program.c_str(), {in.get(), out.get(), err.get()}, netns_fd.get());
  }
  ChildProcess command;
  command.name_ = words[0];
  command.pid_ = pid;
  command.out_fd_ = dup(out.get());
  command.err_fd_ = dup(err.get());
  return command;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      out_fd_(std::exchange(other.out_fd_, -1)),
      err_fd_(std::exchange(other.err_fd_, -1)) {}

ChildProcess::~ChildProcess() {
  End();
  if (out_fd_ >= 0) close(out_fd_);
  if (err_fd_ >= 0) close(err_fd_);
}

void ChildProcess::End() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

absl::StatusOr<ProgramResult> ChildProcess::Wait(int64_t deadline_ns, int cancel_fd) {
  const UniqueFd process = OpenPidFd(pid_);
  pollfd watched[] = {{process.get(), POLLIN, 0}, {cancel_fd, POLLIN, 0}};
  const int timeout_ms = static_cast<int>(std::max<int64_t>(deadline_ns, 0) / 1'000'000);
  int ready = 0;
  do {
    ready = poll(watched, std::size(watched), timeout_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready > 0 && watched[1].revents != 0) {
    End();
    return absl::CancelledError(absl::StrCat(name_, " was ended"));
  }
  if (ready == 0) {
    End();
    return absl::DeadlineExceededError(
        absl::StrCat(name_, " did not end within ", timeout_ms / 1000, " s"));
  }
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = Contents(out_fd_);
  result.err = Contents(err_fd_);
  return result;
}

absl::StatusOr<std::string> Run(const std::vector<std::string>& words, const std::string& input) {
  SYNCOPATE_ASSIGN_OR_RETURN(ChildProcess command, ChildProcess::Start(words, input, ""));
  SYNCOPATE_ASSIGN_OR_RETURN(ProgramResult result, command.Wait(kProgramDeadlineNs));
  if (result.exit_code == 0) return std::move(result.out);
  const std::string said(absl::StripAsciiWhitespace(result.err));
  return absl::InternalError(absl::StrCat(absl::StrJoin(words, " "), " failed (exit code ",
                                          result.exit_code,
                                          "): ", said.substr(0, kQuotedBytesMax)));
}

absl::StatusOr<ProcessId> StartInBackground(const std::vector<std::string>& words,
                                            const std::string& netns) {
  const std::string program = FindProgram(words[0]);
  if (program.empty()) {
    return absl::NotFoundError(absl::StrCat("the program ", words[0], " is not installed"));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const UniqueFd netns_fd, OpenIfNamed(netns));
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  std::vector<char*> pointers = Pointers(words);
  const pid_t pid = fork();
  if (pid < 0) return absl::UnavailableError(absl::StrCat("fork: ", strerror(errno)));
  if (pid == 0) {
    setsid();
    Become(pointers.data(), program.c_str(), {null.get(), null.get(), null.get()}, netns_fd.get());
  }
  return ProcessId{pid, StartOf(pid)};
}

bool IsAlive(const ProcessId& process) {
  return process.pid > 0 && process.start != 0 && StartOf(process.pid) == process.start;
}

void EndProcess(const ProcessId& process) {
  if (process.pid <= 0) return;
  const UniqueFd handle = OpenPidFd(process.pid);
  if (handle.ok() && IsAlive(process)) {  // the handle is of the process that was looked at
    SendSignal(handle, SIGKILL);
    pollfd watched = {handle.get(), POLLIN, 0};
    poll(&watched, 1, 5000);
  }
  waitpid(process.pid, nullptr, WNOHANG);  // if it is a child of ours
}

}  // namespace syncopate::lab
