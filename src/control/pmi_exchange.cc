#include "control/pmi_exchange.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "control/sockets.h"

namespace syncopate::control {
namespace {

constexpr size_t kLineBytesMax = 4096;

using Fields = std::map<std::string, std::string>;

// One conversation on PMI_FD: a command line, a line in answer.
class Conversation {
 public:
  Conversation(int fd, const Clock& clock, int64_t deadline_ns)
      : fd_(fd), clock_(clock), deadline_ns_(deadline_ns) {}

  // The fields of the answer, which must be an `expected` that reports no error.
  absl::StatusOr<Fields> Ask(const std::string& command, const std::string& expected) {
    SYNCOPATE_RETURN_IF_ERROR(SendAll(fd_, absl::StrCat(command, "\n"), clock_, deadline_ns_));
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string line, ReadLine());
    Fields fields;
    for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(word, absl::MaxSplits('=', 1));
      fields.emplace(parts.first, parts.second);
    }
    const bool failed = fields.count("rc") != 0 && fields["rc"] != "0";
    if (fields["cmd"] != expected || failed) {
      return absl::UnavailableError(
          absl::StrCat("PMI answered \"", command, "\" with \"", line, "\""));
    }
    return fields;
  }

 private:
  // Byte by byte: what follows the line is not ours to read.
  absl::StatusOr<std::string> ReadLine() {
    std::string line;
    while (line.size() < kLineBytesMax) {
      SYNCOPATE_ASSIGN_OR_RETURN(const std::string byte,
                                 ReceiveExactly(fd_, 1, clock_, deadline_ns_));
      if (byte == "\n") return line;
      line += byte;
    }
    return absl::UnavailableError("PMI sends a line without an end");
  }

  const int fd_;
  const Clock& clock_;
  const int64_t deadline_ns_;
};

// Hydra takes a process that used PMI and ends without a word for a crashed one. So the word is
// said when this process exits: earlier would take PMI away from an MPI library that starts later.
struct Farewell {
  int fd = -1;
  pid_t process = -1;
  struct stat identity = {};
};
Farewell farewell;  // written once, before atexit()

constexpr int64_t kFarewellNs = 1'000'000'000;

void SayFarewell() {
  struct stat now = {};
  // In a child that was forked, or if an MPI library has said it and closed the socket: nothing.
  if (getpid() != farewell.process || fstat(farewell.fd, &now) != 0 ||
      now.st_dev != farewell.identity.st_dev || now.st_ino != farewell.identity.st_ino) {
    return;
  }
  const Clock& clock = MonotonicClock();
  Conversation(farewell.fd, clock, clock.NowNs() + kFarewellNs)
      .Ask("cmd=finalize", "finalize_ack")
      .IgnoreError();
}

void PrepareFarewell(int fd) {
  static const bool once = [fd] {
    farewell.fd = fd;
    farewell.process = getpid();
    return fstat(fd, &farewell.identity) == 0 && std::atexit(SayFarewell) == 0;
  }();
  (void)once;
}

}  // namespace

absl::StatusOr<std::string> ShareByPmi(int fd, const std::string& name, int rank,
                                       const std::string& text, const Clock& clock,
                                       int64_t deadline_ns) {
  PrepareFarewell(fd);
  Conversation pmi(fd, clock, deadline_ns);
  SYNCOPATE_ASSIGN_OR_RETURN(Fields space, pmi.Ask("cmd=get_my_kvsname", "my_kvsname"));
  const std::string key = absl::StrCat("kvsname=", space["kvsname"], " key=", name);
  if (rank == 0) {
    SYNCOPATE_RETURN_IF_ERROR(
        pmi.Ask(absl::StrCat("cmd=put ", key, " value=", text), "put_result").status());
  }
  SYNCOPATE_RETURN_IF_ERROR(
      At("PMI's barrier of all workers", pmi.Ask("cmd=barrier_in", "barrier_out").status()));
  if (rank == 0) return text;
  SYNCOPATE_ASSIGN_OR_RETURN(Fields got, pmi.Ask(absl::StrCat("cmd=get ", key), "get_result"));
  return got["value"];
}

}  // namespace syncopate::control
