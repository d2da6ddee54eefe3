// What workers tell each other besides gradients: sums and outcomes by rounds of texts, clocks and
// tensors by collectives. These have a group of their own, because gradients are sent in an order of
// their own on the world's.
#ifndef SYNCOPATE_TRAIN_SIDE_CHANNEL_H_
#define SYNCOPATE_TRAIN_SIDE_CHANNEL_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapt/job_exchange.h"
#include "observe/clock_offset.h"
#include "sync/exchange.h"
#include "syncopate/syncopate.h"

namespace syncopate::train {

// Every call is made by all workers, in the same order.
class SideChannel {
 public:
  // `worker` must outlive it.
  static absl::StatusOr<SideChannel> Make(Worker& worker);

  // For texts.
  adapt::JobExchange& exchange() { return sync::ExchangeOf(worker_); }
  // For tensors.
  Group& group() { return group_; }

  // The sums over all workers.
  absl::StatusOr<std::vector<double>> Sum(std::vector<double> values);
  // How a step went that all workers take: OK where it went well for all. Else the first worker
  // that failed keeps its error, which tells enough, and the others get Cancelled.
  absl::Status Agree(const absl::Status& own);
  // How far this worker's clock is from rank 0's. Both wait for each other in a collective: a
  // message that wakes a thread would take longer, and say less.
  absl::StatusOr<observe::ClockOffset> CompareClocks();

 private:
  SideChannel(Worker& worker, Group group) : worker_(worker), group_(std::move(group)) {}
  Worker& worker_;
  Group group_;
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_SIDE_CHANNEL_H_
