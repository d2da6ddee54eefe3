#include "control/meeting.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/parse.h"
#include "base/proof.h"
#include "base/status.h"
#include "control/interfaces.h"
#include "control/job_key.h"
#include "control/pmi_exchange.h"
#include "control/pmix_exchange.h"
#include "control/rendezvous_client.h"
#include "control/rendezvous_server.h"
#include "control/slurm_nodes.h"
#include "control/sockets.h"

namespace syncopate::control {
namespace {

// Ports that are derived from a job lie below those that systems give out by themselves, and the
// next few are tried if one is taken.
constexpr int kDerivedPortMin = 10'000;
constexpr int kDerivedPorts = 20'000;
constexpr int kPortTries = 8;

absl::StatusOr<Meeting> Place(absl::string_view place, absl::StatusOr<Meeting> meeting) {
  if (meeting.ok()) return meeting;
  return At(place, meeting.status());
}

// How often each worker of this process has met.
int NextRound(const std::string& job, int rank) {
  static Mutex* const mutex = new Mutex;
  static auto* const rounds = new std::map<std::pair<std::string, int>, int>;
  MutexLock lock(mutex);
  return (*rounds)[{job, rank}]++;
}

absl::StatusOr<std::string> Variable(const Environment& environment, const std::string& name) {
  std::string value = environment(name).value_or("");
  if (value.size() > limits::kEnvironmentValueBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", value.size(),
                                                   " characters; use at most ",
                                                   limits::kEnvironmentValueBytesMax));
  }
  return value;
}

// Whether a variable that a launcher sets holds this number.
bool Says(const Environment& environment, const std::string& name, int number) {
  return environment(name).value_or("") == absl::StrCat(number);
}

// A key for jobs to which none was given and none can be told in secret. Others that know the job
// could derive it too.
std::string DerivedKey(const MeetingOptions& options) {
  return ProofText("syncopate derived key")
      .Add(options.job)
      .AddNumber(options.size)
      .ProofBy("syncopate");
}

// Meets with the key that was given, else with a derived one, if that may be.
absl::StatusOr<Meeting> WithKey(
    MeetingOptions options,
    const std::function<absl::StatusOr<Meeting>(const MeetingOptions&)>& meet) {
  const bool is_public = options.key.empty();
  if (is_public) {
    SYNCOPATE_RETURN_IF_ERROR(CheckKeyMayBePublic(options.secret_for));
    options.key = DerivedKey(options);
  }
  absl::StatusOr<Meeting> meeting = meet(options);
  if (meeting.ok()) meeting->key_is_public = is_public;
  return meeting;
}

absl::StatusOr<std::string> AddressToBind(const Environment& environment) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                             Variable(environment, "SYNCOPATE_SOCKET_IFNAME"));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<InterfaceAddress> list, ListInterfaces());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<InterfaceAddress> chosen,
                             ChooseInterfaces(text, list));
  return chosen.front().address;
}

RendezvousServerOptions ServerOptions(const MeetingOptions& options, std::string address,
                                      int port) {
  return {.address = std::move(address),
          .port = port,
          .job = options.job,
          .size = options.size,
          .key = options.key,
          .hosts = {},
          .on_step = {}};
}

// Rank 0 takes part in its own rendezvous and serves it until all have their answer.
absl::StatusOr<Meeting> MeetAsHost(const MeetingOptions& options, RendezvousServer& server,
                                   const Clock& clock) {
  absl::StatusOr<Meeting> meeting = JoinMeeting(options, {server.address()}, clock);
  if (meeting.ok()) server.WaitUntilAnswered(options.deadline_ns);
  return meeting;
}

// Passes rank 0's text to all.
using Share =
    std::function<absl::StatusOr<std::string>(const std::string& name, const std::string& text)>;

// The launcher carries the address and a random key from rank 0 to the others.
absl::StatusOr<Meeting> MeetByLauncher(MeetingOptions options, const Share& share,
                                       const Clock& clock, const Environment& environment) {
  const std::string name = absl::StrCat("syncopate-meeting-", options.round);
  options.round = 0;  // each meeting has a server of its own
  std::unique_ptr<RendezvousServer> server;
  std::string introduction = "none";
  absl::Status failed = absl::OkStatus();
  if (options.rank == 0) {
    // The others wait for a text even if something fails here.
    failed = [&]() -> absl::Status {
      if (options.key.empty()) {
        SYNCOPATE_ASSIGN_OR_RETURN(options.key, RandomBytes(kKeyBytes));
      }
      SYNCOPATE_ASSIGN_OR_RETURN(const std::string address, AddressToBind(environment));
      SYNCOPATE_ASSIGN_OR_RETURN(
          server, RendezvousServer::Start(ServerOptions(options, address, 0), clock));
      introduction = absl::StrCat(server->address(), "/", FormatKey(options.key));
      return absl::OkStatus();
    }();
  }
  absl::StatusOr<std::string> shared = share(name, introduction);
  SYNCOPATE_RETURN_IF_ERROR(failed);
  SYNCOPATE_RETURN_IF_ERROR(shared.status());
  if (options.rank == 0) return MeetAsHost(options, *server, clock);
  const std::vector<std::string> parts = absl::StrSplit(*shared, '/');
  if (parts.size() != 2) {
    return absl::UnavailableError("rank 0 could not start the rendezvous; its own error says why");
  }
  if (options.key.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(options.key, ParseKey(parts[1]));
  }
  return JoinMeeting(options, {parts[0]}, clock);
}

// The address of rank 0 as the others know it, if it is one of this host's; else the default.
absl::StatusOr<std::string> OwnAddress(const std::string& host, const Clock& clock,
                                       int64_t deadline_ns, const Environment& environment) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<InterfaceAddress> own, ListInterfaces());
  const auto addresses = Resolve(host, 1, clock, deadline_ns);
  for (const InterfaceAddress& each : own) {
    if (!addresses.ok()) break;
    const auto numeric = NumericAddress(each.address, 1);
    for (const SocketAddress& address : *addresses) {
      if (numeric.ok() && SameAddress(*numeric, address)) return each.address;
    }
  }
  return AddressToBind(environment);
}

// Everybody knows where rank 0 is, and derives the port.
absl::StatusOr<Meeting> MeetAtHost(MeetingOptions options, const std::string& host,
                                   const std::string& seed, const Clock& clock,
                                   const Environment& environment) {
  // Each meeting has a server of its own. The key tells it from the last one, which may still be
  // there.
  options.key = ProofText("syncopate round").AddNumber(options.round).ProofBy(options.key);
  options.round = 0;
  const int base =
      kDerivedPortMin + static_cast<int>(DigestOf(absl::StrCat(options.job, "|", seed)).low %
                                         (kDerivedPorts - kPortTries));
  if (options.rank != 0) {
    std::vector<std::string> addresses;
    for (int i = 0; i < kPortTries; ++i) addresses.push_back(JoinAddress(host, base + i));
    return JoinMeeting(options, addresses, clock);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string address,
                             OwnAddress(host, clock, options.deadline_ns, environment));
  absl::Status last = absl::OkStatus();
  for (int i = 0; i < kPortTries; ++i) {
    auto server = RendezvousServer::Start(ServerOptions(options, address, base + i), clock);
    if (server.ok()) return MeetAsHost(options, **server, clock);
    last = server.status();
  }
  return At(absl::StrCat(kPortTries, " ports were tried"), last);
}

absl::Status CheckOptions(const MeetingOptions& options, const Clock& clock) {
  if (options.size < 1 || options.size > limits::kWorkersMax || options.rank < 0 ||
      options.rank >= options.size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", options.rank, " of ", options.size,
                                                   " workers; the size is 1 to ",
                                                   limits::kWorkersMax, ", the rank below it"));
  }
  if (options.payload.size() > limits::kMeetingPayloadBytesMax ||
      options.host.size() > limits::kHostNameBytesMax ||
      options.job.size() > limits::kEnvironmentValueBytesMax) {
    return absl::InvalidArgumentError("payload, host or job is longer than its limit");
  }
  if (clock.NowNs() >= options.deadline_ns) {
    return absl::DeadlineExceededError("the deadline of the meeting has passed before it began");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Meeting> Meet(const MeetingOptions& given, const Clock& clock,
                             const Environment& environment) {
  MeetingOptions options = given;
  SYNCOPATE_RETURN_IF_ERROR(CheckOptions(options, clock));
  if (options.round < 0) options.round = NextRound(options.job, options.rank);
  if (options.key.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(options.key, GivenKey(environment));
  }
  if (options.rendezvous.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(options.rendezvous, Variable(environment, "SYNCOPATE_RENDEZVOUS"));
  }
  if (!options.rendezvous.empty()) {
    return WithKey(options, [&](const MeetingOptions& complete) {
      return JoinMeeting(complete, {complete.rendezvous}, clock);
    });
  }
  if (options.size == 1) {  // nobody to find
    if (options.key.empty()) options.key = DerivedKey(options);
    options.round = 0;
    SYNCOPATE_ASSIGN_OR_RETURN(
        const auto server, RendezvousServer::Start(ServerOptions(options, "127.0.0.1", 0), clock));
    return MeetAsHost(options, *server, clock);
  }

  // The same order as that in which workers believe their launchers; numbers of another launcher
  // around this one do not count.
  const auto unset_or = [&](const char* name, int number) {
    return !environment(name).has_value() || Says(environment, name, number);
  };
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string master, Variable(environment, "MASTER_ADDR"));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string master_port, Variable(environment, "MASTER_PORT"));
  if (!master.empty() && !master_port.empty() && unset_or("RANK", options.rank) &&
      unset_or("WORLD_SIZE", options.size)) {
    Log(LogLevel::kInfo, "meeting at MASTER_ADDR=", master);
    return Place("meeting by torchrun's MASTER_ADDR",
                 WithKey(options, [&](const MeetingOptions& complete) {
                   return MeetAtHost(complete, master, master_port, clock, environment);
                 }));
  }
  if (environment("PMIX_NAMESPACE").has_value() && Says(environment, "PMIX_RANK", options.rank)) {
    Log(LogLevel::kInfo, "meeting by PMIx");
    return Place("meeting by PMIx", MeetByLauncher(
                                        options,
                                        [&](const std::string& name, const std::string& text) {
                                          return ShareByPmix(name, options.rank, text, clock,
                                                             options.deadline_ns);
                                        },
                                        clock, environment));
  }
  if (environment("PMI_FD").has_value() && Says(environment, "PMI_RANK", options.rank) &&
      Says(environment, "PMI_SIZE", options.size)) {
    Log(LogLevel::kInfo, "meeting by PMI");
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string fd_text, Variable(environment, "PMI_FD"));
    auto fd = ParseInt(fd_text, 0, 1 << 20);
    if (!fd.ok()) return At("PMI_FD", fd.status());
    return Place("meeting by PMI", MeetByLauncher(
                                       options,
                                       [&](const std::string& name, const std::string& text) {
                                         return ShareByPmi(static_cast<int>(*fd), name,
                                                           options.rank, text, clock,
                                                           options.deadline_ns);
                                       },
                                       clock, environment));
  }
  if (Says(environment, "SLURM_PROCID", options.rank)) {
    const char* name =
        environment("SLURM_STEP_NODELIST").has_value() ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string list, Variable(environment, name));
    auto node = FirstSlurmNode(list);
    if (!node.ok()) return At(name, node.status());
    Log(LogLevel::kInfo, "meeting at ", *node, ", the first of ", name);
    return Place("meeting by Slurm's node list",
                 WithKey(options, [&](const MeetingOptions& complete) {
                   return MeetAtHost(complete, *node, "slurm", clock, environment);
                 }));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "rank ", options.rank, " of ", options.size,
      " knows no way to the other hosts' workers: looked for SYNCOPATE_RENDEZVOUS, for MASTER_ADDR "
      "and "
      "MASTER_PORT (torchrun), PMIX_NAMESPACE and PMIX_RANK (Open MPI, srun --mpi=pmix), PMI_FD "
      "(MPICH) and SLURM_PROCID (srun); start the job with syncopate launch -H, or set "
      "SYNCOPATE_RENDEZVOUS=host:port"));
}

}  // namespace syncopate::control
