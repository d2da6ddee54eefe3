// How a worker starts: it listens, tells the others where, connects with all of them, and puts
// shared memory, the wire and the core together.
#include "transport/net/net_transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "transport/net/core_transport.h"
#include "transport/net/endpoint.h"
#include "transport/net/tcp_mesh.h"
#include "transport/net/tcp_wire.h"
#include "transport/net/tls_mesh.h"
#include "transport/net/ucx_wire.h"
#include "transport/net/ucx_worker.h"
#include "transport/shm/shm_transport.h"
#include "transport/terms.h"

namespace syncopate::transport {
namespace {

// Where the worker listens, and what UCX calls it; the second part is empty without UCX.
std::string JoinAddress(const std::string& address, const std::string& ucx) {
  return ucx.empty() ? address : absl::StrCat(address, " ", ucx);
}
std::pair<std::string, std::string> SplitAddress(const std::string& both) {
  const size_t space = both.find(' ');
  if (space == std::string::npos) return {both, ""};
  return {both.substr(0, space), both.substr(space + 1)};
}

// What a worker says of its wire, so that all can compare it.
std::string NameOfWire(const NetOptions& options) {
  return absl::StrCat(options.wire, options.secure ? "+tls" : "");
}

class Start final : public NetStart {
 public:
  Start(const NetOptions& options, const Clock& clock, net::TcpListener listener,
        std::unique_ptr<net::UcxWorker> ucx, net::Endpoint endpoint)
      : options_(options),
        clock_(clock),
        deadline_ns_(clock.NowNs() + options.start_timeout_ns),
        listener_(std::move(listener)),
        ucx_(std::move(ucx)),
        payload_(net::Encode(endpoint)) {}

  const std::string& payload() const override { return payload_; }

  absl::StatusOr<std::unique_ptr<Transport>> Connect(const std::vector<std::string>& payloads,
                                                     const std::string& key) override {
    SYNCOPATE_ASSIGN_OR_RETURN(Others others, ReadPayloads(payloads, key));
    SYNCOPATE_ASSIGN_OR_RETURN(
        auto sockets, net::ConnectMesh(std::move(listener_), others.mesh, clock_, deadline_ns_));
    net::TlsMesh sessions;
    if (options_.secure) {
      SYNCOPATE_ASSIGN_OR_RETURN(sessions,
                                 net::SecureMesh(sockets, others.mesh, clock_, deadline_ns_));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(auto local, ShareMemory(others));
    net::Core::Options core = {.rank = options_.rank,
                               .size = options_.size,
                               .job = others.mesh.job,
                               .hosts = others.mesh.hosts,
                               .consensus = options_.consensus};
    core.consensus.rank = options_.rank;
    core.consensus.size = options_.size;
    auto transport = std::make_unique<net::CoreTransport>(
        core, clock_, std::move(others.local_ranks), std::move(local));
    SYNCOPATE_ASSIGN_OR_RETURN(auto wire,
                               MakeWire(std::move(sockets), std::move(sessions),
                                        std::move(others.ucx_addresses), transport->handler()));
    transport->Run(std::move(wire));
    return transport;
  }

 private:
  // What the payloads of all workers say.
  struct Others {
    net::MeshOptions mesh;
    std::vector<std::string> ucx_addresses;  // by rank; empty strings without UCX
    std::string machine;                     // of this worker
    std::vector<int> local_ranks;            // on this machine, sorted, with this worker
  };

  absl::StatusOr<Others> ReadPayloads(const std::vector<std::string>& payloads,
                                      const std::string& key) const {
    Others others;
    others.mesh = {.rank = options_.rank,
                   .size = options_.size,
                   .lanes = options_.lanes,
                   .job = static_cast<uint32_t>(DigestOf(options_.job).low),
                   .key = key};
    std::vector<std::string> machines, terms;
    for (size_t rank = 0; rank < payloads.size(); ++rank) {
      absl::StatusOr<net::Endpoint> endpoint = net::DecodeEndpoint(payloads[rank]);
      if (!endpoint.ok()) return At(absl::StrCat("worker ", rank), endpoint.status());
      if (const std::string own = NameOfWire(options_); endpoint->wire != own) {
        return absl::FailedPreconditionError(absl::StrCat(
            "worker ", rank, " uses ", endpoint->wire, ", worker ", options_.rank, " ", own,
            "; give all workers the same SYNCOPATE_TRANSPORT and SYNCOPATE_SECURE"));
      }
      // The least of all, so that all workers come to the same number.
      others.mesh.lanes = std::min(others.mesh.lanes, endpoint->lanes);
      const auto [address, ucx_address] = SplitAddress(endpoint->address);
      others.mesh.addresses.push_back(address);
      others.ucx_addresses.push_back(ucx_address);
      others.mesh.hosts.push_back(endpoint->host);
      machines.push_back(endpoint->machine);
      terms.push_back(endpoint->terms);
    }
    SYNCOPATE_RETURN_IF_ERROR(CompareTerms(terms));
    others.machine = machines[static_cast<size_t>(options_.rank)];
    for (size_t rank = 0; rank < machines.size(); ++rank) {
      if (machines[rank] == others.machine) others.local_ranks.push_back(static_cast<int>(rank));
    }
    return others;
  }

  // The transport among the workers of this host, or null if this worker is alone there or they
  // cannot share memory: then each is on a host of its own.
  absl::StatusOr<std::unique_ptr<Transport>> ShareMemory(Others& others) const {
    const std::vector<int>& ranks = others.local_ranks;
    if (ranks.size() <= 1) return nullptr;
    const auto self = std::find(ranks.begin(), ranks.end(), options_.rank);
    auto local = StartShmTransport({.job = absl::StrCat(options_.job, "/", others.machine),
                                    .rank = static_cast<int>(self - ranks.begin()),
                                    .size = static_cast<int>(ranks.size()),
                                    .names = ranks,
                                    .arena_bytes = options_.arena_bytes,
                                    .cores = options_.cores,
                                    .bell = true,
                                    .start_timeout_ns = deadline_ns_ - clock_.NowNs(),
                                    .when_stuck = options_.when_stuck,
                                    .on_ending = options_.on_ending},
                                   clock_);
    if (!CannotFence(local.status())) return local;
    if (self == ranks.begin()) {
      Log(LogLevel::kWarn, local.status().message(), "; their data goes over the loopback");
    }
    others.local_ranks = {options_.rank};
    return nullptr;
  }

  // `sockets` are those of each rank, by lane.
  absl::StatusOr<std::unique_ptr<net::Wire>> MakeWire(std::vector<std::vector<UniqueFd>> sockets,
                                                      net::TlsMesh sessions,
                                                      std::vector<std::string> ucx_addresses,
                                                      net::WireHandler& handler) {
    if (ucx_ == nullptr) {
      return net::TcpWire::Make(std::move(sockets), handler, options_.socket_buffer_bytes,
                                std::move(sessions));
    }
    net::UcxWire::Options ucx = {.rank = options_.rank, .addresses = std::move(ucx_addresses)};
    for (auto& lanes : sockets) {
      ucx.sockets.push_back(lanes.empty() ? UniqueFd() : std::move(lanes.front()));
    }
    return net::UcxWire::Make(std::move(ucx_), std::move(ucx), handler, clock_, deadline_ns_);
  }

  const NetOptions options_;
  const Clock& clock_;
  const int64_t deadline_ns_;
  net::TcpListener listener_;
  std::unique_ptr<net::UcxWorker> ucx_;  // null: TCP
  const std::string payload_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NetStart>> StartNetTransport(const NetOptions& options,
                                                            const Clock& clock) {
  if (options.wire != "tcp" && options.wire != "ucx") {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no transport \"", options.wire, "\"; use tcp or ucx"));
  }
  if (options.secure && options.wire != "tcp") {
    return absl::InvalidArgumentError(absl::StrCat(
        "SYNCOPATE_SECURE=1 and SYNCOPATE_TRANSPORT=", options.wire,
        ": only tcp can be encrypted; use tcp, or a network that nobody else reaches"));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(net::TcpListener listener, net::ListenTcp(options.ip));
  std::unique_ptr<net::UcxWorker> ucx;
  if (options.wire == "ucx") {
    SYNCOPATE_ASSIGN_OR_RETURN(ucx, net::UcxWorker::Make(options.ip));
  }
  net::Endpoint endpoint = {
      .wire = NameOfWire(options),
      .machine = options.machine.empty() ? net::ThisMachine() : options.machine,
      .host = options.host.empty() ? net::ThisHostName() : options.host,
      .address = JoinAddress(listener.address, ucx == nullptr ? "" : ucx->address()),
      .lanes = options.lanes,
      .terms = options.terms};
  return std::make_unique<Start>(options, clock, std::move(listener), std::move(ucx),
                                 std::move(endpoint));
}

}  // namespace syncopate::transport
