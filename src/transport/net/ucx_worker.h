// A UCX context and worker that use one network interface of this host, and the RDMA devices behind
// it. Never shared memory: hosts that are network namespaces of one machine must not meet there.
#ifndef SYNCOPATE_TRANSPORT_NET_UCX_WORKER_H_
#define SYNCOPATE_TRANSPORT_NET_UCX_WORKER_H_

#include <ucp/api/ucp.h>

#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/unique_fd.h"

namespace syncopate::transport::net {

absl::Status UcxError(absl::string_view what, ucs_status_t status);

// Not thread-safe.
class UcxWorker {
 public:
  // `ip` is one of this host's addresses. It decides over UCX_TLS and UCX_NET_DEVICES; UCX reads
  // its other variables itself.
  static absl::StatusOr<std::unique_ptr<UcxWorker>> Make(const std::string& ip);
  ~UcxWorker();

  ucp_worker_h handle() const { return worker_; }
  const std::string& address() const { return address_; }  // bytes, for ucp_ep_create
  int event_fd() const { return event_fd_; }

  // Nobody can connect to UCX's own port until it is said who may: those at the other ends of these
  // sockets.
  absl::Status LetIn(absl::Span<const UniqueFd> peers);
  size_t listeners() const { return listeners_.size(); }  // how many ports UCX listens at

 private:
  UcxWorker() = default;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::string address_;
  int event_fd_ = -1;        // the worker's own
  std::set<int> listeners_;  // the sockets of the worker that listen
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_UCX_WORKER_H_
