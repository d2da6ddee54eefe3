#include "transport/net/ucx_worker.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "transport/net/doorman.h"
#include "transport/net/ucx_library.h"

namespace syncopate::transport::net {
namespace {

constexpr int kTriesMax = 20;

// The name of the interface with this address.
absl::StatusOr<std::string> InterfaceOf(const std::string& ip) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return absl::UnavailableError("cannot list network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const void* address = nullptr;
    if (entry->ifa_addr->sa_family == AF_INET) {
      address = &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      address = &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
    } else {
      continue;
    }
    char text[INET6_ADDRSTRLEN] = {};
    inet_ntop(entry->ifa_addr->sa_family, address, text, sizeof(text));
    if (ip == text) return std::string(entry->ifa_name);
  }
  return absl::NotFoundError(absl::StrCat("no network interface of this host has the address ", ip,
                                          "; choose one with SYNCOPATE_SOCKET_IFNAME"));
}

// UCX's names of what may carry the traffic of an interface: itself, and its RDMA devices.
std::string DevicesOf(const std::string& interface) {
  std::string devices = interface;
  std::error_code none;
  const std::filesystem::path folder =
      std::filesystem::path("/sys/class/net") / interface / "device" / "infiniband";
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    absl::StrAppend(&devices, ",", entry.path().filename().string(), ":1");
  }
  return devices;
}

// Whether the address of a UCX worker holds the port, as it does where others are to connect to it.
bool Names(absl::string_view address, in_port_t port) {
  return absl::StrContains(address,
                           absl::string_view(reinterpret_cast<const char*>(&port), sizeof(port)));
}

}  // namespace

absl::Status UcxError(absl::string_view what, ucs_status_t status) {
  return absl::UnavailableError(absl::StrCat(what, ": UCX: ", Ucx().status_string(status)));
}

absl::StatusOr<std::unique_ptr<UcxWorker>> UcxWorker::Make(const std::string& ip) {
  SYNCOPATE_RETURN_IF_ERROR(LoadUcx().status());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string interface, InterfaceOf(ip));
  ucp_config_t* raw_config = nullptr;
  ucs_status_t status = Ucx().config_read(nullptr, nullptr, &raw_config);
  if (status != UCS_OK) return UcxError("cannot read UCX's configuration", status);
  const std::unique_ptr<ucp_config_t, decltype(&ucp_config_release)> config(raw_config,
                                                                            Ucx().config_release);
  // UCX over TCP takes events of its sockets in batches and asserts that no endpoint of a batch has
  // been closed by then; a peer that ends closes two at once. One event at a time is never stale.
  // What a peer calls a connection is asked for when the connection is made, not when the first message
  // goes that needs it: a peer that ends before it has been asked would take this process along. UCX asks
  // no peer whether it is there: an answer for a connection that was closed is a connection of its own,
  // which fails where the peer has ended. The consensus on losses has heartbeats.
  for (const auto& [name, value] : {std::pair<const char*, std::string>("TLS", "^sm,self"),
                                    {"NET_DEVICES", DevicesOf(interface)},
                                    {"MAX_POLL", "1"},
                                    {"RESOLVE_REMOTE_EP_ID", "on"},
                                    {"KEEPALIVE_INTERVAL", "inf"}}) {
    status = Ucx().config_modify(config.get(), name, value.c_str());
    if (status != UCS_OK) return UcxError(absl::StrCat("cannot set ", name, "=", value), status);
  }
  std::unique_ptr<UcxWorker> worker(new UcxWorker());
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "syncopate";
  status =
      Ucx().init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config.get(), &worker->context_);
  if (status != UCS_OK) {
    return UcxError(absl::StrCat("cannot use the interface ", interface,
                                 " (see what UCX offers there with ucx_info -d)"),
                    status);
  }
  ucp_worker_params_t worker_params = {};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  // UCX listens at one port at most. Other threads may begin to listen meanwhile, and the bytes of
  // UCX's address may name their ports by chance; not again and again.
  for (int tries = 0; tries == 0 || worker->listeners_.size() > 1; ++tries) {
    if (tries == kTriesMax) return absl::UnavailableError("cannot tell which port is UCX's");
    if (worker->worker_ != nullptr) Ucx().worker_destroy(std::exchange(worker->worker_, nullptr));
    const std::map<int, in_port_t> others = ListeningSockets();
    status = Ucx().worker_create(worker->context_, &worker_params, &worker->worker_);
    if (status != UCS_OK) return UcxError("cannot make a worker", status);
    ucp_address_t* address = nullptr;
    size_t address_bytes = 0;
    status = Ucx().worker_get_address(worker->worker_, &address, &address_bytes);
    if (status != UCS_OK) return UcxError("cannot learn the worker's address", status);
    worker->address_.assign(reinterpret_cast<const char*>(address), address_bytes);
    Ucx().worker_release_address(worker->worker_, address);
    worker->listeners_.clear();
    for (const auto& [fd, port] : ListeningSockets()) {
      const auto other = others.find(fd);
      const bool is_new = other == others.end() || other->second != port;
      if (is_new && Names(worker->address_, port)) worker->listeners_.insert(fd);
    }
  }
  SYNCOPATE_RETURN_IF_ERROR(worker->LetIn({}));
  status = Ucx().worker_get_efd(worker->worker_, &worker->event_fd_);
  if (status != UCS_OK) return UcxError("cannot sleep until something comes", status);
  return worker;
}

absl::Status UcxWorker::LetIn(absl::Span<const UniqueFd> peers) {
  std::vector<sockaddr_storage> addresses;
  for (const UniqueFd& peer : peers) {
    if (!peer.ok()) continue;
    sockaddr_storage address = {};
    socklen_t bytes = sizeof(address);
    if (getpeername(peer.get(), reinterpret_cast<sockaddr*>(&address), &bytes) == 0) {
      addresses.push_back(address);
    }
  }
  for (const int listener : listeners_) {
    SYNCOPATE_RETURN_IF_ERROR(net::LetIn(listener, addresses));
  }
  return absl::OkStatus();
}

UcxWorker::~UcxWorker() {
  if (worker_ != nullptr) Ucx().worker_destroy(worker_);
  if (context_ != nullptr) Ucx().cleanup(context_);
}

}  // namespace syncopate::transport::net
