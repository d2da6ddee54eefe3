// The service of a virtual job. Every worker's part in it is the machine that runs live
// (services/service_host.h): it asks, hosts or stands by, and when the host dies the standby goes on from
// the same state. The cluster says who comes and goes; mail takes the delay of messages.
//
// A request is as many messages as live: request, event to the standby, acknowledgement, answer. Nothing
// here takes time or memory by the number of workers, but for the beginning and where a worker comes or
// goes.
#ifndef SYNCOPATE_SIM_VIRTUAL_SERVICE_H_
#define SYNCOPATE_SIM_VIRTUAL_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/host_order.h"
#include "services/service_host.h"
#include "sim/event_queue.h"
#include "sim/virtual_options.h"

namespace syncopate::sim {

class VirtualService {
 public:
  // What the cluster is told.
  struct Listener {
    // The request of that tag is answered, or never will be.
    std::function<void(int rank, uint64_t tag, const absl::StatusOr<std::string>& answer)> answered;
    // The worker that wanted to leave may: what it knew of the service is with others.
    std::function<void(int rank)> may_leave;
  };

  // `options`, `now` (seconds, which never go back) and `queue` must outlive it.
  VirtualService(const VirtualOptions& options, const double& now, EventQueue& queue,
                 Listener listener);
  VirtualService(const VirtualService&) = delete;
  VirtualService& operator=(const VirtualService&) = delete;

  // Makes the parts of all workers that are there at the beginning.
  absl::Status Begin();

  const std::string& name() const { return name_; }

  // Asks for a worker that runs. An error: the service has ended, or too many requests are open.
  absl::Status Ask(int rank, uint64_t tag, std::string request);
  // The worker wants to leave in good order.
  void Leave(int rank);

  // ---- who comes and goes. All workers learn of the same changes in the same order.

  // The worker is gone, from this moment on.
  void Depart(int rank, bool in_good_order);
  // The worker is there from this moment on, and knows of all changes.
  absl::Status Join(int rank);
  // The number of the last change.
  uint64_t changes() const { return changes_.size(); }
  // A worker learns of all changes up to this one. Nothing if it is gone.
  void Learn(int rank, uint64_t change);
  // Whether the worker is there and has its part in the service.
  bool Runs(int rank) const { return parts_[static_cast<size_t>(rank)].runs; }

  // Entries of the queue that only wait for a moment that the service has named.
  size_t timers() const { return timers_; }

 private:
  struct Part {
    std::unique_ptr<services::ServiceHost> host;  // null: it has not come yet
    bool runs = false;
    uint64_t known = 0;   // changes that it has learnt of
    uint64_t joined = 0;  // the change with which it came; 0: it was there before
    int64_t tick_at_ns = INT64_MAX;
    std::set<uint64_t> open;  // tags of its requests
    absl::Status ended;       // not OK: the service has ended for it
    bool leaving = false;
    // From workers of which it has not heard yet that they are there.
    std::vector<std::pair<int, std::string>> early;
  };
  using Letters = std::shared_ptr<std::queue<std::string>>;

  Part& PartOf(int rank) { return parts_[static_cast<size_t>(rank)]; }
  int64_t NowNs() const;
  absl::Status Start(int rank);
  // Does what the part wants done, until it wants nothing.
  void Drain(int rank);
  void TickLater(int rank);
  void Post(int from, int to, std::string bytes);
  void Deliver(int from, int to, std::string bytes);

  void Carry(int rank, services::Send& command);
  void Carry(int rank, services::SendParcel& command);
  void Carry(int rank, services::Answered& command);
  void Carry(int rank, services::ReportWanted& command);
  void Carry(int rank, services::MayLeave& command);
  void Carry(int rank, services::EndJob& command);
  void Carry(int rank, services::Remark& command);

  const VirtualOptions& options_;
  const double& now_;
  EventQueue& queue_;
  const Listener listener_;
  const double delay_;  // seconds of a message
  std::string name_;
  std::optional<services::HostOrder> order_;  // of the beginning
  std::vector<services::Change> changes_;
  std::vector<Part> parts_;                                 // by rank
  absl::flat_hash_map<std::pair<int, int>, Letters> mail_;  // by sender and receiver, in order
  size_t timers_ = 0;
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_VIRTUAL_SERVICE_H_
