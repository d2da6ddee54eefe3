#include "launch/outcome.h"

#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace syncopate::launch {
namespace {

std::string SignalText(int signal) {
  const char* name = sigabbrev_np(signal);
  return absl::StrCat("signal ", signal, name == nullptr ? "" : absl::StrCat(" (SIG", name, ")"));
}

std::string EndedText(int ranks) {
  if (ranks == 0) return "";
  return absl::StrCat("; ended ", ranks, ranks == 1 ? " rank" : " ranks");
}

std::string Remedy(int error) {
  switch (error) {
    case ENOENT:
      return "check its name, or give a path such as ./program";
    case EACCES:
      return "is it a program? chmod +x makes it executable";
    default:
      return "check that it is a program for this machine";
  }
}

}  // namespace

Outcome OutcomeOf(int rank, int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return {.kind = Outcome::Kind::kKilled,
            .rank = rank,
            .number = WTERMSIG(wait_status),
            .lost = true};
  }
  const int code = WEXITSTATUS(wait_status);
  if (code == 0) return {};
  return {.kind = Outcome::Kind::kExited, .rank = rank, .number = code};
}

int ExitCode(const Outcome& outcome) {
  switch (outcome.kind) {
    case Outcome::Kind::kDone:
      return 0;
    case Outcome::Kind::kExited:
      return outcome.number;
    case Outcome::Kind::kKilled:
    case Outcome::Kind::kInterrupted:
      return 128 + outcome.number;
    case Outcome::Kind::kCannotRun:
      return 2;
    case Outcome::Kind::kCannotStart:
    case Outcome::Kind::kTimedOut:
    case Outcome::Kind::kOutputBroken:
    case Outcome::Kind::kLauncherGone:
    case Outcome::Kind::kHostFailed:
    case Outcome::Kind::kNotMet:
    case Outcome::Kind::kNoRendezvous:
      return 1;
  }
  return 1;
}

std::string Explain(const Outcome& outcome, int ranks, absl::string_view program,
                    absl::string_view timeout) {
  const std::string others =
      outcome.others_ended == 0 ? "" : absl::StrCat("; ended the other ", outcome.others_ended);
  const std::string all = ranks == 1 ? "; ended it" : absl::StrCat("; ended all ", ranks, " ranks");
  const std::string where = outcome.host.empty() ? "" : absl::StrCat(" on ", outcome.host);
  switch (outcome.kind) {
    case Outcome::Kind::kDone:
    case Outcome::Kind::kLauncherGone:
      return "";
    case Outcome::Kind::kHostFailed:
      return absl::StrCat("host ", outcome.host, " (",
                          absl::StrContains(outcome.ranks, '-') ? "ranks " : "rank ", outcome.ranks,
                          ") ", outcome.detail, others);
    case Outcome::Kind::kNotMet:
      return absl::StrCat("rank ", outcome.rank, where, " has not come to the rendezvous ",
                          outcome.detail, others);
    case Outcome::Kind::kNoRendezvous:
      return outcome.detail;
    case Outcome::Kind::kExited:
      return absl::StrCat("rank ", outcome.rank, where, " exited with code ", outcome.number,
                          others);
    case Outcome::Kind::kKilled:
      return absl::StrCat("rank ", outcome.rank, where, " ",
                          outcome.detail.empty()
                              ? absl::StrCat("was killed by ", SignalText(outcome.number))
                              : outcome.detail,
                          others);
    case Outcome::Kind::kCannotRun:
      return absl::StrCat("cannot run \"", program, "\"", where, ": ",
                          std::strerror(outcome.number), "; ", Remedy(outcome.number));
    case Outcome::Kind::kCannotStart:
      return absl::StrCat("cannot start rank ", outcome.rank, where, ": ",
                          std::strerror(outcome.number),
                          "; use fewer ranks or raise the limits that ulimit -a shows", others);
    case Outcome::Kind::kTimedOut:
      return absl::StrCat("not done after ", timeout, all, "; give more time with --timeout");
    case Outcome::Kind::kInterrupted:
      return absl::StrCat(InterruptText(outcome.number), EndedText(outcome.others_ended));
    case Outcome::Kind::kOutputBroken:
      return absl::StrCat("cannot write standard output: ", std::strerror(outcome.number), all);
  }
  return "";
}

std::string InterruptText(int signal) {
  const char* name = sigabbrev_np(signal);
  if (signal == SIGINT || name == nullptr) return "interrupted";
  return absl::StrCat("interrupted by SIG", name);
}

}  // namespace syncopate::launch
