// UCX, loaded only by a worker that uses it: merely being linked with it, UCX would take over
// signals of every program (SIGHUP, and those of crashes).
#ifndef SYNCOPATE_TRANSPORT_NET_UCX_LIBRARY_H_
#define SYNCOPATE_TRANSPORT_NET_UCX_LIBRARY_H_

#include <ucp/api/ucp.h>

#include "absl/status/statusor.h"

namespace syncopate::transport::net {

// The functions that we call, by their names without "ucp_".
// clang-format off
#define SYNCOPATE_UCP_FUNCTIONS(F) \
  F(am_recv_data_nbx) F(am_send_nbx) F(cleanup) F(config_modify) F(config_read) \
  F(config_release) F(ep_close_nbx) F(ep_create) F(ep_flush_nbx) F(init_version) \
  F(request_check_status) F(request_free) F(worker_arm) F(worker_create) \
  F(worker_destroy) F(worker_get_address) F(worker_get_efd) F(worker_progress) \
  F(worker_release_address) F(worker_set_am_recv_handler)
// clang-format on

struct UcxLibrary {
#define SYNCOPATE_DECLARE(name) decltype(&ucp_##name) name = nullptr;
  SYNCOPATE_UCP_FUNCTIONS(SYNCOPATE_DECLARE)
#undef SYNCOPATE_DECLARE
  decltype(&ucs_status_string) status_string = nullptr;
};

// Loads it once for the process; the program's signals stay as they were. Unavailable if it is not
// installed.
absl::StatusOr<const UcxLibrary*> LoadUcx();

// After LoadUcx() has succeeded.
const UcxLibrary& Ucx();

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_UCX_LIBRARY_H_
