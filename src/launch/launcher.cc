#include "launch/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "base/pidfd.h"
#include "base/unique_fd.h"
#include "launch/agent_supervisor.h"
#include "launch/hosts_supervisor.h"
#include "launch/local_supervisor.h"
#include "launch/process_tree.h"
#include "launch/supervisor_waits.h"

namespace syncopate::launch {
namespace {

// Standard input, output and error exist, so that no pipe of ours gets one of their numbers.
void OpenStandardFiles() {
  for (int fd = open("/dev/null", O_RDWR); fd >= 0; fd = open("/dev/null", O_RDWR)) {
    if (fd > STDERR_FILENO) {
      close(fd);
      return;
    }
  }
}

// Blocks what launcher and supervisor take from signalfds or must not die of; gives back the old
// mask in the end. What the user's shell ignores stays ignored (nohup).
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigemptyset(&ending_);
    for (int signal : kEndingSignals) {
      struct sigaction action;
      if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
      sigaddset(&ending_, signal);
      sigaddset(&blocked, signal);
    }
    // Blocked, the last two turn a read or write of a background job into an error or nothing.
    for (int signal : {SIGCHLD, SIGPIPE, SIGTTIN, SIGTTOU}) sigaddset(&blocked, signal);
    sigprocmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalBlock() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;

  const sigset_t& before() const { return before_; }
  const sigset_t& ending() const { return ending_; }  // without those that are ignored

 private:
  sigset_t before_;
  sigset_t ending_;
};

// Hands a terminal's input to rank 0, which cannot read it itself: it is not in the terminal's
// foreground group. Other kinds of input rank 0 gets directly, so that nobody takes from them what
// it does not want.
class TerminalRelay {
 public:
  // The end for rank 0 to read is in `input`.
  explicit TerminalRelay(UniqueFd& input) {
    int ends[2];
    if (isatty(STDIN_FILENO) != 1 || pipe2(ends, O_CLOEXEC) != 0) {
      input = UniqueFd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
      return;
    }
    input = UniqueFd(ends[0]);
    to_rank_ = UniqueFd(ends[1]);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
  }

  // What to wait for before the next Move().
  pollfd Wanted() const {
    if (!to_rank_.ok()) return {-1, 0, 0};
    if (!waiting_.empty()) return {to_rank_.get(), POLLOUT, 0};
    return {STDIN_FILENO, POLLIN, 0};
  }

  void Move() {
    if (waiting_.empty()) {
      char buffer[4096];
      const ssize_t count = read(STDIN_FILENO, buffer, sizeof(buffer));
      if (count < 0 && errno == EINTR) return;
      if (count <= 0) return to_rank_.Reset();  // end of input, or we are a background job
      waiting_.assign(buffer, static_cast<size_t>(count));
    }
    const ssize_t count = write(to_rank_.get(), waiting_.data(), waiting_.size());
    if (count > 0) waiting_.erase(0, static_cast<size_t>(count));
    if (count < 0 && errno != EAGAIN && errno != EINTR) to_rank_.Reset();  // rank 0 reads no more
  }

 private:
  UniqueFd to_rank_;
  std::string waiting_;
};

int CannotStart(const std::string& name, const char* what) {
  std::fprintf(stderr, "syncopate %s: cannot %s: %s; see ulimit -a for the limits\n", name.c_str(),
               what, std::strerror(errno));
  return 1;
}

// What the supervisor runs; returns the exit code. `launcher` is a pidfd, `input` the standard
// input.
using SupervisorBody =
    std::function<int(UniqueFd launcher, UniqueFd input, const sigset_t& user_mask)>;

// In the new process; never returns.
void BecomeSupervisor(const SupervisorBody& body, pid_t launcher, UniqueFd input,
                      const sigset_t& user_mask) {
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  UniqueFd watch = OpenPidFd(launcher);
  if (!watch.ok() || getppid() != launcher) _exit(1);
  // The ranks' input must end when its writer closes it, so only rank 0 may hold it.
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(nothing.get(), STDIN_FILENO);
  _exit(body(std::move(watch), std::move(input), user_mask));
}

// Passes signals and input on until the supervisor has ended; returns its wait status.
int WatchSupervisor(pid_t supervisor, int supervisor_fd, const SignalBlock& signals,
                    TerminalRelay& relay) {
  const UniqueFd ending(signalfd(-1, &signals.ending(), SFD_CLOEXEC | SFD_NONBLOCK));
  while (true) {
    pollfd polls[] = {{supervisor_fd, POLLIN, 0}, {ending.get(), POLLIN, 0}, relay.Wanted()};
    if (poll(polls, std::size(polls), -1) < 0) continue;
    signalfd_siginfo info;
    while (polls[1].revents != 0 && read(ending.get(), &info, sizeof(info)) == sizeof(info)) {
      kill(supervisor, static_cast<int>(info.ssi_signo));
    }
    if (polls[2].revents != 0) relay.Move();
    int status = 0;
    if (polls[0].revents != 0 && waitpid(supervisor, &status, 0) == supervisor) return status;
  }
}

int RunWithSupervisor(const std::string& name, const SupervisorBody& body, const Clock& clock) {
  OpenStandardFiles();
  const SignalBlock signals;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  UniqueFd input;
  TerminalRelay relay(input);
  if (!input.ok()) return CannotStart(name, "pass standard input on");
  std::fflush(nullptr);
  const pid_t launcher = getpid();
  const pid_t supervisor = fork();
  if (supervisor < 0) return CannotStart(name, "start a process");
  if (supervisor == 0) BecomeSupervisor(body, launcher, std::move(input), signals.before());
  input.Reset();
  const UniqueFd supervisor_fd = OpenPidFd(supervisor);
  const int status = WatchSupervisor(supervisor, supervisor_fd.get(), signals, relay);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  EndDescendants(clock, clock.NowNs() + kKillNs);
  std::fprintf(stderr, "syncopate %s: its supervisor process was killed by signal %d; ended all\n",
               name.c_str(), WTERMSIG(status));
  return 1;
}

}  // namespace

int Launch(const LaunchOptions& options, const Clock& clock) {
  return RunWithSupervisor(
      options.name,
      [&](UniqueFd launcher, UniqueFd input, const sigset_t& user_mask) {
        if (options.hosts.empty()) {
          return LocalSupervisor(options, clock, std::move(launcher), std::move(input), user_mask)
              .Run();
        }
        return HostsSupervisor(options, clock, std::move(launcher), std::move(input), user_mask)
            .Run();
      },
      clock);
}

int LaunchRemote(const Clock& clock) {
  return RunWithSupervisor(
      "launch",
      [&](UniqueFd launcher, UniqueFd input, const sigset_t& user_mask) {
        return AgentSupervisor(clock, std::move(launcher), std::move(input), user_mask).Run();
      },
      clock);
}

}  // namespace syncopate::launch
