#include "subprocess.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/pidfd.h"
#include "gtest/gtest.h"

namespace syncopate::testing {
namespace {

int LeftMs(int64_t deadline_ns) {
  const int64_t left_ns = deadline_ns - MonotonicClock().NowNs();
  return left_ns <= 0 ? 0 : static_cast<int>(left_ns / 1'000'000 + 1);
}

void MakePipe(UniqueFd& read_end, UniqueFd& write_end) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  read_end = UniqueFd(ends[0]);
  write_end = UniqueFd(ends[1]);
}

// Appends what is there; closes at the end. A terminal ends with an error.
void ReadSome(UniqueFd& fd, std::string& text) {
  char buffer[64 << 10];
  const ssize_t count = read(fd.get(), buffer, sizeof(buffer));
  if (count > 0) {
    text.append(buffer, static_cast<size_t>(count));
  } else if (count == 0 || errno != EINTR) {
    fd.Reset();
  }
}

}  // namespace

Subprocess::Subprocess(const std::vector<std::string>& command, const Options& options) {
  UniqueFd in, out, err;
  int terminal = -1;
  if (!options.terminal) {
    MakePipe(in, in_fd_);
    MakePipe(out_fd_, out);
    MakePipe(err_fd_, err);
  }
  pid_ = options.terminal ? forkpty(&terminal, nullptr, nullptr, nullptr) : fork();
  if (pid_ == 0) {
    if (!options.terminal) {
      dup2(in.get(), STDIN_FILENO);
      dup2(out.get(), STDOUT_FILENO);
      dup2(err.get(), STDERR_FILENO);
    }
    for (const std::string& variable : options.environment) {
      putenv(const_cast<char*>(variable.c_str()));
    }
    if (options.before_exec) options.before_exec();
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  EXPECT_GT(pid_, 0);
  if (options.terminal) {
    fcntl(terminal, F_SETFD, FD_CLOEXEC);
    out_fd_ = UniqueFd(terminal);
    in_fd_ = UniqueFd(fcntl(terminal, F_DUPFD_CLOEXEC, 0));
  }
  if (!options.input.empty()) Write(options.input);
  if (!options.input_stays_open && !options.terminal) in_fd_.Reset();
}

Subprocess::~Subprocess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

int Subprocess::Count(const std::string& text) const {
  int count = 0;
  for (size_t at = out_.find(text); at != std::string::npos; at = out_.find(text, at + 1)) ++count;
  return count;
}

void Subprocess::Write(const std::string& text) {
  EXPECT_EQ(write(in_fd_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

void Subprocess::CloseOutput() { out_fd_.Reset(); }

bool Subprocess::ReadUntil(const std::function<bool()>& done) {
  const int64_t deadline_ns = MonotonicClock().NowNs() + kDeadlineNs;
  while (!done() && (out_fd_.ok() || err_fd_.ok())) {
    pollfd polls[] = {{out_fd_.get(), POLLIN, 0}, {err_fd_.get(), POLLIN, 0}};
    if (poll(polls, 2, LeftMs(deadline_ns)) == 0) {
      ADD_FAILURE() << "nothing more came from process " << pid_ << "; so far:\n" << out_ << err_;
      return false;
    }
    if (polls[0].revents != 0) ReadSome(out_fd_, out_);
    if (polls[1].revents != 0) ReadSome(err_fd_, err_);
  }
  return true;
}

int Subprocess::Wait() {
  const UniqueFd process = OpenPidFd(pid_);
  ReadUntil([] { return false; });
  pollfd ended = {process.get(), POLLIN, 0};
  if (poll(&ended, 1, static_cast<int>(kDeadlineNs / 1'000'000)) != 1) {
    ADD_FAILURE() << "process " << pid_ << " does not end";
    return -1;
  }
  int status = 0;
  rusage usage = {};
  EXPECT_EQ(wait4(pid_, &status, 0, &usage), pid_);
  pid_ = -1;
  memory_bytes_max_ = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string UniqueMarker() {
  static int count = 0;
  return absl::StrCat("marked-", getpid(), "-", MonotonicClock().NowNs(), "-", ++count);
}

std::vector<pid_t> MarkedProcesses(const std::string& marker) {
  std::vector<pid_t> pids;
  DIR* directory = opendir("/proc");
  while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    std::ifstream file(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
    const std::string environment((std::istreambuf_iterator<char>(file)), {});
    if (absl::StrContains(environment, marker)) pids.push_back(pid);
  }
  if (directory != nullptr) closedir(directory);
  return pids;
}

std::string CommandLineOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/cmdline"), std::ios::binary);
  std::string line((std::istreambuf_iterator<char>(file)), {});
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line;
}

bool WaitForProcesses(const std::string& marker, size_t count) {
  const int64_t deadline_ns = MonotonicClock().NowNs() + kDeadlineNs;
  while (MarkedProcesses(marker).size() < count) {
    if (MonotonicClock().NowNs() >= deadline_ns) return false;
    poll(nullptr, 0, 5);  // nothing tells of new processes
  }
  return true;
}

bool WaitUntilNoneIsLeft(const std::string& marker) {
  const int64_t deadline_ns = MonotonicClock().NowNs() + kDeadlineNs;
  for (std::vector<pid_t> pids = MarkedProcesses(marker); !pids.empty();
       pids = MarkedProcesses(marker)) {
    const UniqueFd process = OpenPidFd(pids.front());
    pollfd ended = {process.get(), POLLIN, 0};
    if (process.ok() && poll(&ended, 1, LeftMs(deadline_ns)) == 0) return false;
  }
  return true;
}

pid_t WorkerOf(const std::string& marker, int rank) {
  for (const pid_t pid : MarkedProcesses(marker)) {
    std::ifstream environment(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
    const std::string variables((std::istreambuf_iterator<char>(environment)), {});
    std::error_code error;
    const std::string program =
        std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe"), error).filename();
    if (program == "syncopate-train" &&
        absl::StrContains(variables, absl::StrCat("SYNCOPATE_RANK=", rank, std::string(1, '\0')))) {
      return pid;
    }
  }
  return -1;
}

}  // namespace syncopate::testing
