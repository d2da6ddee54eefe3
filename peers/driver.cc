#include "driver.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace syncopate::peers {
namespace {

// The rank's end of the control socket. Blocking: there is nothing else to do between runs, and
// the command's death ends the wait.
class Control {
 public:
  static absl::StatusOr<Control> Connect(const std::string& directory) {
    const std::string path = absl::StrCat(directory, "/", tools::bench::kControlSocket);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
      return absl::InvalidArgumentError(absl::StrCat(path, " is too long for a socket's name"));
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.ok() ||
        connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot connect to ", path, ": ", std::strerror(errno)));
    }
    return Control(std::move(fd));
  }

  bool Write(std::string line) {
    line.push_back('\n');
    for (size_t done = 0; done < line.size();) {
      const ssize_t n = send(fd_.get(), line.data() + done, line.size() - done, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }

  // The next line, or nothing when the command is gone or sends what is not a line.
  bool Read(std::string* line) {
    constexpr size_t kCommandBytesMax = 4096;
    line->clear();
    char c = 0;
    while (line->size() < kCommandBytesMax) {
      const ssize_t n = read(fd_.get(), &c, 1);  // commands are short and rare
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      if (c == '\n') return true;
      line->push_back(c);
    }
    return false;
  }

 private:
  explicit Control(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// No process of a contestant outlives the one that started it.
void DieWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

absl::StatusOr<int> RankFrom(const std::string& variable, int workers) {
  const std::optional<std::string> text = ProcessEnvironment()(variable);
  if (!text) return absl::InvalidArgumentError(absl::StrCat(variable, " is not set"));
  const absl::StatusOr<int64_t> rank = ParseInt(*text, 0, workers - 1);
  if (!rank.ok()) return At(variable, rank.status());
  return static_cast<int>(*rank);
}

int Serve(const DriverOptions& options, const ContestantFactory& factory) {
  absl::StatusOr<std::unique_ptr<Contestant>> contestant = factory(options);
  absl::StatusOr<Control> control = Control::Connect(options.directory);
  if (!control.ok()) {
    std::cerr << control.status().message() << std::endl;
    return 1;
  }
  if (!contestant.ok()) {
    control->Write(tools::bench::FormatError(contestant.status()));
    return 1;
  }
  Contestant& c = **contestant;
  bool alive =
      control->Write(tools::bench::Format(tools::bench::Hello{c.rank(), c.size(), getpid()}));
  std::string line;
  while (alive && control->Read(&line) && line != "quit") {
    absl::StatusOr<tools::bench::RunRequest> request = tools::bench::ParseRunRequest(line);
    absl::StatusOr<tools::bench::RankResult> result =
        request.ok() ? Measure(c, *request, MonotonicClock()) : request.status();
    alive = control->Write(result.ok() ? tools::bench::Format(*result)
                                       : tools::bench::FormatError(result.status()));
  }
  return 0;
}

}  // namespace

absl::StatusOr<DriverOptions> ParseDriverOptions(int argc, const char* const* argv) {
  DriverOptions options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 >= argc) return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
    const std::string value = argv[i + 1];
    if (name == "--dir") {
      options.directory = value;
    } else if (name == "--workers") {
      SYNCOPATE_ASSIGN_OR_RETURN(const int64_t n, ParseInt(value, 1, limits::kWorkersMax));
      options.workers = static_cast<int>(n);
    } else if (name == "--bytes-max") {
      SYNCOPATE_ASSIGN_OR_RETURN(options.bytes_max,
                                 ParseBytes(value, tools::bench::kBufferBytesMax));
    } else if (name == "--algorithm") {
      options.algorithm = value;
    } else if (name == "--rank-from") {
      options.rank_from = value;
    } else if (name == "--memory") {
      options.memory = value;
    } else if (name == "--timeout") {
      SYNCOPATE_ASSIGN_OR_RETURN(const int64_t ns, ParseDurationNs(value));
      options.timeout = absl::Nanoseconds(ns);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown option ", name));
    }
  }
  if (options.directory.empty()) {
    return absl::InvalidArgumentError("this program is started by `syncopate bench`");
  }
  return options;
}

absl::StatusOr<tools::bench::RankResult> Measure(Contestant& contestant,
                                                 const tools::bench::RunRequest& request,
                                                 const Clock& clock) {
  const int rank = contestant.rank();
  const int size = contestant.size();
  SYNCOPATE_RETURN_IF_ERROR(contestant.Prepare(request));
  tools::bench::RankResult result;
  if (!contestant.TakesPart(request)) return result;
  const uint64_t block_bytes = HasBlocks(request.collective) ? request.bytes / size : 0;
  for (int64_t i = 0; i < request.check; ++i) {
    const Pattern pattern(request, size, i);
    pattern.Fill(rank, contestant.data());
    SYNCOPATE_RETURN_IF_ERROR(contestant.Call());
    result.wrong +=
        pattern.CountWrong(rank, contestant.result(), contestant.ResultBlock(block_bytes));
  }
  FillNeutral(request, contestant.data());
  result.samples_ns.resize(static_cast<size_t>(request.iterations));
  SYNCOPATE_RETURN_IF_ERROR(contestant.Barrier());
  for (int64_t i = 0; i < request.warmup; ++i) SYNCOPATE_RETURN_IF_ERROR(contestant.Call());
  int64_t last = clock.NowNs();
  const bool apart = tools::bench::TimedApart(request.collective);
  for (int64_t& sample : result.samples_ns) {
    if (apart) {
      SYNCOPATE_RETURN_IF_ERROR(contestant.Barrier());
      last = clock.NowNs();
    }
    SYNCOPATE_RETURN_IF_ERROR(contestant.Call());
    const int64_t now = clock.NowNs();
    sample = now - last;
    last = now;
  }
  SYNCOPATE_RETURN_IF_ERROR(contestant.Barrier());
  const bool idle = !request.IsActive(rank) || (request.collective == Collective::kSendReceive &&
                                                rank != kRoot && rank != Target(size));
  if (idle) result.samples_ns.clear();
  return result;
}

int RankMain(int argc, const char* const* argv, const ContestantFactory& factory) {
  DieWithParent(getppid());
  absl::StatusOr<DriverOptions> options = ParseDriverOptions(argc, argv);
  if (!options.ok()) {
    std::cerr << argv[0] << ": " << options.status().message() << std::endl;
    return 2;
  }
  return Serve(*options, factory);
}

int ForkedMain(int argc, const char* const* argv, const ForkedFactory& factory,
               const std::function<absl::Status(const DriverOptions&)>& before_fork) {
  DieWithParent(getppid());
  absl::StatusOr<DriverOptions> options = ParseDriverOptions(argc, argv);
  absl::Status status = options.status();
  if (status.ok() && before_fork) status = before_fork(*options);
  if (!status.ok()) {
    std::cerr << argv[0] << ": " << status.message() << std::endl;
    return 2;
  }
  if (!options->rank_from.empty()) {
    const absl::StatusOr<int> rank = RankFrom(options->rank_from, options->workers);
    if (!rank.ok()) {
      std::cerr << argv[0] << ": " << rank.status().message() << std::endl;
      return 2;
    }
    return Serve(*options, [&](const DriverOptions& o) { return factory(o, *rank); });
  }
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  int rank = 0;
  for (int r = 1; r < options->workers && rank == 0; ++r) {
    const pid_t pid = fork();
    if (pid < 0) {
      std::cerr << argv[0] << ": cannot fork: " << std::strerror(errno) << std::endl;
      return 1;  // the children made so far die with this process
    }
    if (pid == 0) {
      rank = r;
      children.clear();
      DieWithParent(parent);
    } else {
      children.push_back(pid);
    }
  }
  const int code = Serve(*options, [&](const DriverOptions& o) { return factory(o, rank); });
  if (code != 0) return code;
  for (const pid_t pid : children) waitpid(pid, nullptr, 0);
  return 0;
}

absl::StatusOr<std::byte*> TouchedMemory(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a buffer of ", FormatBytes(bytes)));
  }
  std::memset(memory, 1, bytes);
  return static_cast<std::byte*>(memory);
}

}  // namespace syncopate::peers
