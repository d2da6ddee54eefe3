#include "lab/scoped_lab.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"

namespace syncopate::lab {
namespace {

// The life of the guard. It holds none of the maker's files, or a reader of the maker's output
// would wait for it.
[[noreturn]] void Guard(UniqueFd lifeline, const std::string& lab, const Clock& clock) {
  setsid();  // Ctrl-C is for the maker
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
  char byte = 0;
  while (read(lifeline.get(), &byte, 1) < 0 && errno == EINTR) {
  }
  Lab::Down(lab, clock).IgnoreError();  // NotFound: the maker has done it
  _exit(0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScopedLab>> ScopedLab::Up(const Spec& spec, const std::string& name,
                                                         const Clock& clock) {
  auto scoped = std::unique_ptr<ScopedLab>(new ScopedLab(name, clock));
  SYNCOPATE_RETURN_IF_ERROR(scoped->StartGuard());
  SYNCOPATE_ASSIGN_OR_RETURN(Lab lab, Lab::Up(spec, name, clock));
  scoped->lab_ = std::make_unique<Lab>(std::move(lab));
  return scoped;
}

absl::Status ScopedLab::StartGuard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("no pipe for the lab: ", std::strerror(errno)));
  }
  UniqueFd guards(ends[0]);
  lifeline_ = UniqueFd(ends[1]);
  guard_ = fork();
  if (guard_ == 0) {
    lifeline_.Reset();
    Guard(std::move(guards), name_, clock_);
  }
  if (guard_ < 0) {
    return absl::UnavailableError(absl::StrCat("cannot fork: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

ScopedLab::~ScopedLab() {
  if (lab_ != nullptr) {
    const absl::Status down = Lab::Down(name_, clock_);
    if (!down.ok()) Log(LogLevel::kWarn, "taking down lab ", name_, ": ", down.message());
  }
  lifeline_.Reset();
  if (guard_ > 0) waitpid(guard_, nullptr, 0);
}

}  // namespace syncopate::lab
