// How fast a wire moves bytes between hosts: each of N processes sends to the next one and receives
// from the one before, so that every link is busy in both directions; then the first two play
// ping-pong with 4 KiB.
//
//   wire_benchmark WIRE LANES RANK SIZE IP FOLDER SECONDS
//
// starts one of them; they find each other through files in FOLDER, which is new and empty. Each
// prints its payload rate in Mbit/s, and how much of a core it took; rank 0 the round trip too.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/status.h"
#include "transport/net/tcp_mesh.h"
#include "transport/net/tcp_wire.h"
#include "transport/net/tls_mesh.h"
#include "transport/net/ucx_wire.h"

namespace syncopate::transport::net {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int kOutstanding = 16;
constexpr uint32_t kPingBytes = 4096;
constexpr int kPings = 500;
constexpr int64_t kAddressBytesMax = 8192;

class Counter final : public WireHandler {
 public:
  std::byte* Place(int, const FrameHeader&) override { return memory_.data(); }
  void Arrived(int, const FrameHeader& header) override {
    if (header.type != FrameType::kData) return;
    (header.step == 0 ? bytes : pings) += header.step == 0 ? header.payload_bytes : 1;
  }
  void Sent(uint64_t) override { --outstanding; }
  void Closed(int peer, const absl::Status&) override { closed.insert(peer); }

  uint64_t bytes = 0;
  uint64_t pings = 0;
  int outstanding = 0;
  std::set<int> closed;

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(kPayloadBytesMax);
};

struct Settings {
  std::string wire;
  int lanes = 1;
  int rank = 0;
  int size = 0;
  std::string ip;
  std::string folder;
  int seconds = 1;
};

// Through files; the last byte tells that one is complete.
absl::StatusOr<std::vector<std::string>> Exchange(const Settings& settings, absl::string_view name,
                                                  const std::string& mine, int64_t deadline_ns) {
  const auto path = [&](int rank) { return absl::StrCat(settings.folder, "/", name, rank); };
  SYNCOPATE_RETURN_IF_ERROR(WriteFile(path(settings.rank), mine));
  std::vector<std::string> all;
  while (static_cast<int>(all.size()) < settings.size) {
    auto text = ReadFile(path(static_cast<int>(all.size())), kAddressBytesMax);
    if (text.ok()) {
      all.push_back(*std::move(text));
      continue;
    }
    if (MonotonicClock().NowNs() > deadline_ns) return text.status();
    poll(nullptr, 0, 10);
  }
  return all;
}

absl::StatusOr<std::unique_ptr<Wire>> Connect(const Settings& settings, WireHandler& handler) {
  const int64_t deadline_ns = MonotonicClock().NowNs() + 30 * kSecond;
  SYNCOPATE_ASSIGN_OR_RETURN(TcpListener listener, ListenTcp(settings.ip));
  MeshOptions mesh = {.rank = settings.rank,
                      .size = settings.size,
                      .lanes = settings.lanes,
                      .key = "the key of a benchmark"};
  SYNCOPATE_ASSIGN_OR_RETURN(mesh.addresses,
                             Exchange(settings, "tcp", listener.address, deadline_ns));
  std::unique_ptr<UcxWorker> worker;
  UcxWire::Options ucx = {.rank = settings.rank};
  if (settings.wire == "ucx") {
    SYNCOPATE_ASSIGN_OR_RETURN(worker, UcxWorker::Make(settings.ip));
    SYNCOPATE_ASSIGN_OR_RETURN(ucx.addresses,
                               Exchange(settings, "ucx", worker->address(), deadline_ns));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(auto sockets,
                             ConnectMesh(std::move(listener), mesh, MonotonicClock(), deadline_ns));
  if (settings.wire != "ucx") {
    TlsMesh sessions;
    if (settings.wire == "tls") {
      SYNCOPATE_ASSIGN_OR_RETURN(sessions,
                                 SecureMesh(sockets, mesh, MonotonicClock(), deadline_ns));
    }
    return TcpWire::Make(std::move(sockets), handler, 0, std::move(sessions));
  }
  for (auto& lanes : sockets) {
    ucx.sockets.push_back(lanes.empty() ? UniqueFd() : std::move(lanes.front()));
  }
  return UcxWire::Make(std::move(worker), std::move(ucx), handler, MonotonicClock(), deadline_ns);
}

void Wait(Wire& wire) {
  if (wire.Progress() || !wire.Arm()) return;
  pollfd ready = {.fd = wire.fd(), .events = POLLIN, .revents = 0};
  poll(&ready, 1, 100);
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

absl::Status Run(const Settings& settings) {
  Counter counter;
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<Wire> wire, Connect(settings, counter));
  const std::vector<std::byte> payload(kFragmentBytes);
  const int next = (settings.rank + 1) % settings.size;
  FrameHeader header = {
      .type = FrameType::kData, .payload_bytes = kFragmentBytes, .total = kFragmentBytes};
  const Clock& clock = MonotonicClock();
  const auto flow_until = [&](int64_t until_ns) {
    while (clock.NowNs() < until_ns) {
      while (counter.outstanding < kOutstanding) {
        ++counter.outstanding;
        wire->Send(next, header, payload.data(), 1);
      }
      Wait(*wire);
    }
  };
  flow_until(clock.NowNs() + kSecond);  // until the connections are up to speed
  const int64_t begin_ns = clock.NowNs();
  const uint64_t begin_bytes = counter.bytes;
  const double begin_cpu = CpuSeconds();
  flow_until(begin_ns + settings.seconds * kSecond);
  const double seconds = 1e-9 * static_cast<double>(clock.NowNs() - begin_ns);
  std::printf("%s rank %d: %.1f Mbit/s, %.0f %% of a core\n", settings.wire.c_str(), settings.rank,
              8e-6 * static_cast<double>(counter.bytes - begin_bytes) / seconds,
              100 * (CpuSeconds() - begin_cpu) / seconds);
  const int64_t quiet_ns = clock.NowNs() + 2 * kSecond;
  while (clock.NowNs() < quiet_ns) Wait(*wire);

  if (settings.rank < 2) {
    FrameHeader ping = {
        .type = FrameType::kData, .payload_bytes = kPingBytes, .step = 1, .total = kPingBytes};
    std::vector<int64_t> times_ns;
    for (uint64_t i = 1; i <= kPings; ++i) {
      const int64_t start_ns = clock.NowNs();
      if (settings.rank == 0) wire->Send(1, ping, payload.data(), 1);
      while (counter.pings < i) {
        if (counter.closed.contains(1 - settings.rank)) {
          return absl::UnavailableError("the other one ended in the middle of the ping-pong");
        }
        Wait(*wire);
      }
      if (settings.rank == 1) wire->Send(0, ping, payload.data(), 1);
      times_ns.push_back(clock.NowNs() - start_ns);
    }
    std::sort(times_ns.begin(), times_ns.end());
    if (settings.rank == 0) {
      std::printf("%s round trip of 4 KiB: %.1f us\n", settings.wire.c_str(),
                  1e-3 * static_cast<double>(times_ns[times_ns.size() / 2]));
    }
  }
  for (int rank = 0; rank < settings.size; ++rank) {
    if (rank != settings.rank) wire->Close(rank, /*politely=*/true);
  }
  const int64_t end_ns = clock.NowNs() + 5 * kSecond;
  while (static_cast<int>(counter.closed.size()) < settings.size - 1 && clock.NowNs() < end_ns)
    Wait(*wire);
  return absl::OkStatus();
}

absl::StatusOr<Settings> Parse(char** arguments) {
  Settings settings;
  settings.wire = arguments[1];
  SYNCOPATE_ASSIGN_OR_RETURN(settings.lanes, ParseInt(arguments[2], 1, 64));
  SYNCOPATE_ASSIGN_OR_RETURN(settings.size, ParseInt(arguments[4], 2, 256));
  SYNCOPATE_ASSIGN_OR_RETURN(settings.rank, ParseInt(arguments[3], 0, settings.size - 1));
  settings.ip = arguments[5];
  settings.folder = arguments[6];
  SYNCOPATE_ASSIGN_OR_RETURN(settings.seconds, ParseInt(arguments[7], 1, 3600));
  return settings;
}

}  // namespace
}  // namespace syncopate::transport::net

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: %s tcp|tls|ucx LANES RANK SIZE IP FOLDER SECONDS\n", argv[0]);
    return 2;
  }
  const auto settings = syncopate::transport::net::Parse(argv);
  if (!settings.ok()) {
    std::fprintf(stderr, "%s\n", settings.status().ToString().c_str());
    return 2;
  }
  const absl::Status status = syncopate::transport::net::Run(*settings);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
