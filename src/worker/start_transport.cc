#include "worker/start_transport.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/proof.h"
#include "base/status.h"
#include "base/switch.h"
#include "control/interfaces.h"
#include "control/job_key.h"
#include "control/launcher_notes.h"
#include "control/meeting.h"
#include "transport/net/endpoint.h"
#include "transport/net/net_transport.h"
#include "transport/shm/shm_transport.h"
#include "worker/job_environment.h"

namespace syncopate::worker {
namespace {

constexpr int64_t kTimeoutNsDefault = 300'000'000'000;
constexpr uint64_t kArenaBytesMin = uint64_t{16} << 20;
constexpr uint64_t kArenaBytesMax = uint64_t{1} << 42;
constexpr int kConnectionsMax = 16;
// docs/wire.md, "Socket buffers".
constexpr int kSocketBufferBytes = 128 << 10;
constexpr uint64_t kSocketBufferBytesMax = uint64_t{1} << 30;

absl::StatusOr<Job> ResolveJob(const Options& options, const Environment& environment) {
  if (options.job) return *options.job;
  SYNCOPATE_ASSIGN_OR_RETURN(std::optional<Job> job, JobFromEnvironment(environment));
  if (job) return *std::move(job);
  Job alone;
  alone.id = absl::StrCat("alone-", getpid());
  return alone;
}

absl::StatusOr<int64_t> ResolveTimeoutNs(const Options& options, const Environment& environment) {
  if (options.timeout) {
    if (*options.timeout <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError("Options::timeout is not positive");
    }
    return absl::ToInt64Nanoseconds(*options.timeout);
  }
  const std::optional<std::string> text = environment("SYNCOPATE_TIMEOUT");
  if (!text) return kTimeoutNsDefault;
  absl::StatusOr<int64_t> timeout_ns = ParseDurationNs(*text);
  if (!timeout_ns.ok()) return At("SYNCOPATE_TIMEOUT", timeout_ns.status());
  return timeout_ns;
}

absl::StatusOr<uint64_t> ResolveArenaBytes(const Options& options, const Environment& environment,
                                           int local_size) {
  uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 4 /
                   static_cast<uint64_t>(std::max(local_size, 1));
  if (options.arena_bytes) bytes = *options.arena_bytes;
  const std::optional<std::string> text = environment("SYNCOPATE_ARENA_BYTES");
  if (!options.arena_bytes && text) {
    absl::StatusOr<uint64_t> parsed = ParseBytes(*text, kArenaBytesMax);
    if (!parsed.ok()) return At("SYNCOPATE_ARENA_BYTES", parsed.status());
    bytes = *parsed;
  }
  constexpr uint64_t kPage = 4096;
  return std::clamp(bytes, kArenaBytesMin, kArenaBytesMax) / kPage * kPage;
}

int AvailableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

absl::StatusOr<control::InterfaceAddress> ResolveInterface(const Environment& environment) {
  const std::string wanted = environment("SYNCOPATE_SOCKET_IFNAME").value_or("");
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<control::InterfaceAddress> all,
                             control::ListInterfaces());
  absl::StatusOr<std::vector<control::InterfaceAddress>> chosen =
      control::ChooseInterfaces(wanted, all);
  if (!chosen.ok()) return At("SYNCOPATE_SOCKET_IFNAME", chosen.status());
  return chosen->front();
}

absl::StatusOr<int> ResolveConnections(const Environment& environment,
                                       const std::string& interface) {
  const std::string text = environment("SYNCOPATE_CONNECTIONS").value_or("auto");
  if (text == "auto") return control::ConnectionsFor(control::LinkBitsPerSecond(interface));
  absl::StatusOr<int64_t> count = ParseInt(text, 1, kConnectionsMax);
  if (!count.ok()) return At("SYNCOPATE_CONNECTIONS", count.status());
  return static_cast<int>(*count);
}

absl::StatusOr<int> ResolveSocketBuffer(const Environment& environment) {
  const std::string text = environment("SYNCOPATE_SOCKET_BUFFER").value_or("auto");
  if (text == "auto") return kSocketBufferBytes;
  if (text == "kernel") return 0;
  absl::StatusOr<uint64_t> bytes = ParseBytes(text, kSocketBufferBytesMax);
  if (!bytes.ok()) return At("SYNCOPATE_SOCKET_BUFFER", bytes.status());
  return static_cast<int>(*bytes);
}

absl::StatusOr<transport::WhenStuck> ResolveWhenStuck(const Environment& environment) {
  const std::string text = environment("SYNCOPATE_STUCK").value_or("");
  if (text.empty()) return transport::WhenStuck::kLook;
  if (text == "kill") return transport::WhenStuck::kEnd;
  if (text == "wait") return transport::WhenStuck::kWait;
  return absl::InvalidArgumentError(
      absl::StrCat("SYNCOPATE_STUCK: \"", text, "\" is neither wait nor kill"));
}

// A launcher sees only that a signal killed the process.
transport::OnEnding TellLauncher(const Environment& environment, int rank) {
  return [environment, rank](int pid, const std::string& cause) {
    control::NoteEnding(environment, pid, rank, cause);
  };
}

// What forbids that the job's key is made of public values; empty: nothing.
absl::StatusOr<std::string> ResolveSecretFor(const Environment& environment, bool secure) {
  SYNCOPATE_ASSIGN_OR_RETURN(const bool required,
                             IsOn(environment, "SYNCOPATE_REQUIRE_KEY", /*otherwise=*/false));
  if (secure) return std::string("SYNCOPATE_SECURE=1");
  return std::string(required ? "SYNCOPATE_REQUIRE_KEY=1" : "");
}

// Says once that others could take part in this job.
void WarnOfPublicKey() {
  static std::atomic<bool> warned = false;
  if (warned.exchange(true)) return;
  Log(LogLevel::kWarn,
      "the key of this job is made of public values: whoever reaches its ports and knows its "
      "launcher's variables can take part in it; ",
      control::kKeyRemedy);
}

absl::Status StartNetwork(const Environment& environment, uint64_t arena_bytes,
                          const std::string& terms, transport::WhenStuck when_stuck,
                          StartedTransport& started) {
  const Job& job = started.job;
  const int64_t deadline_ns = MonotonicClock().NowNs() + started.timeout_ns;
  transport::NetOptions options = {.job = job.id,
                                   .rank = job.rank,
                                   .size = job.size,
                                   .wire = environment("SYNCOPATE_TRANSPORT").value_or("auto"),
                                   .arena_bytes = arena_bytes,
                                   .cores = AvailableCores(),
                                   .terms = terms,
                                   .start_timeout_ns = started.timeout_ns,
                                   .when_stuck = when_stuck,
                                   .on_ending = TellLauncher(environment, job.rank)};
  if (options.wire == "auto") options.wire = "tcp";
  // Silence of a worker on another host is waited for, too.
  if (when_stuck == transport::WhenStuck::kWait) {
    options.consensus.silence_ns = std::max(options.consensus.silence_ns, started.timeout_ns);
  }
  options.host = environment("SYNCOPATE_HOST").value_or(transport::net::ThisHostName());
  options.machine = environment("SYNCOPATE_MACHINE").value_or("");
  SYNCOPATE_ASSIGN_OR_RETURN(const control::InterfaceAddress interface,
                             ResolveInterface(environment));
  options.ip = interface.address;
  SYNCOPATE_ASSIGN_OR_RETURN(options.socket_buffer_bytes, ResolveSocketBuffer(environment));
  SYNCOPATE_ASSIGN_OR_RETURN(options.lanes, ResolveConnections(environment, interface.name));
  SYNCOPATE_ASSIGN_OR_RETURN(options.secure,
                             IsOn(environment, "SYNCOPATE_SECURE", /*otherwise=*/false));
  SYNCOPATE_ASSIGN_OR_RETURN(std::string secret_for, ResolveSecretFor(environment, options.secure));
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<transport::NetStart> start,
                             transport::StartNetTransport(options, MonotonicClock()));
  SYNCOPATE_ASSIGN_OR_RETURN(control::Meeting meeting,
                             control::Meet({.job = job.id,
                                            .rank = job.rank,
                                            .size = job.size,
                                            .key = {},
                                            .secret_for = std::move(secret_for),
                                            .rendezvous = {},
                                            .host = options.host,
                                            .payload = start->payload(),
                                            .deadline_ns = deadline_ns},
                                           MonotonicClock(), environment));
  const bool leaves_host = job.local_size != job.size;
  if (meeting.key_is_public && leaves_host && job.rank == 0) WarnOfPublicKey();
  SYNCOPATE_ASSIGN_OR_RETURN(started.transport, start->Connect(meeting.payloads, meeting.key));
  started.hosts = std::move(meeting.hosts);
  return absl::OkStatus();
}

// For workers of one host that cannot share memory. They meet as they did for that, and rank 0 makes
// the key of their connections, so that nothing else is needed.
absl::Status StartOnLoopback(const Environment& environment, const std::string& terms,
                             int64_t deadline_ns, StartedTransport& started) {
  const Job& job = started.job;
  transport::NetOptions options = {.job = job.id,
                                   .rank = job.rank,
                                   .size = job.size,
                                   .ip = "127.0.0.1",
                                   .wire = environment("SYNCOPATE_TRANSPORT").value_or("auto"),
                                   .cores = AvailableCores(),
                                   .terms = terms,
                                   .start_timeout_ns = deadline_ns - MonotonicClock().NowNs()};
  if (options.wire == "auto") options.wire = "tcp";
  options.host = environment("SYNCOPATE_HOST").value_or(transport::net::ThisHostName());
  options.machine = absl::StrCat("rank ", job.rank);
  SYNCOPATE_ASSIGN_OR_RETURN(options.socket_buffer_bytes, ResolveSocketBuffer(environment));
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<transport::NetStart> start,
                             transport::StartNetTransport(options, MonotonicClock()));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string own_key, RandomBytes(kKeyBytes));
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::vector<std::string> texts,
      transport::ExchangeTexts(absl::StrCat(job.id, "/loopback"), job.rank, job.size,
                               absl::StrCat(own_key, start->payload()), MonotonicClock(),
                               deadline_ns));
  const std::string key = texts.front().substr(0, kKeyBytes);
  for (std::string& text : texts) text.erase(0, kKeyBytes);
  SYNCOPATE_ASSIGN_OR_RETURN(started.transport, start->Connect(texts, key));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StartedTransport> StartTransport(const Options& options,
                                                const Environment& environment,
                                                const std::string& terms) {
  StartedTransport started;
  SYNCOPATE_ASSIGN_OR_RETURN(started.job, ResolveJob(options, environment));
  const Job& job = started.job;
  SYNCOPATE_RETURN_IF_ERROR(
      SetUpLog(environment("SYNCOPATE_DEBUG").value_or(""), absl::StrCat("rank ", job.rank)));
  SYNCOPATE_ASSIGN_OR_RETURN(started.timeout_ns, ResolveTimeoutNs(options, environment));
  SYNCOPATE_ASSIGN_OR_RETURN(const uint64_t arena_bytes,
                             ResolveArenaBytes(options, environment, job.local_size));
  SYNCOPATE_ASSIGN_OR_RETURN(const transport::WhenStuck when_stuck, ResolveWhenStuck(environment));
  if (job.local_size != job.size) {
    SYNCOPATE_RETURN_IF_ERROR(StartNetwork(environment, arena_bytes, terms, when_stuck, started));
    return started;
  }
  const int64_t deadline_ns = MonotonicClock().NowNs() + started.timeout_ns;
  absl::StatusOr<std::unique_ptr<transport::Transport>> shared =
      transport::StartShmTransport({.job = job.id,
                                    .rank = job.rank,
                                    .size = job.size,
                                    .arena_bytes = arena_bytes,
                                    .cores = AvailableCores(),
                                    .terms = terms,
                                    .start_timeout_ns = started.timeout_ns,
                                    .when_stuck = when_stuck,
                                    .on_ending = TellLauncher(environment, job.rank)},
                                   MonotonicClock());
  if (transport::CannotFence(shared.status())) {
    if (job.rank == 0) {
      Log(LogLevel::kWarn, shared.status().message(), "; their data goes over the loopback");
    }
    SYNCOPATE_RETURN_IF_ERROR(StartOnLoopback(environment, terms, deadline_ns, started));
    return started;
  }
  SYNCOPATE_RETURN_IF_ERROR(shared.status());
  started.transport = *std::move(shared);
  return started;
}

}  // namespace syncopate::worker
