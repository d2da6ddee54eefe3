// A worker's side of the ledger (ledger.h): tells it how far the worker is, and knows what it said
// last. Nothing here waits but what says so.
#ifndef SYNCOPATE_TRAIN_LEDGER_LEDGER_SEAT_H_
#define SYNCOPATE_TRAIN_LEDGER_LEDGER_SEAT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "syncopate/syncopate.h"
#include "train/ledger/ledger.h"
#include "train/ledger/ledger_message.h"

namespace syncopate::train {

// Used by the training thread alone; answers come on the worker's control thread.
class LedgerSeat {
 public:
  // How many iterations a worker may begin after it has heard that the job ends: an answer takes less.
  static constexpr int64_t kIterationsFurther = 2;

  // Adds the service. Every worker of the job does so, as often as the others. The worker must outlive
  // the seat.
  static absl::StatusOr<std::unique_ptr<LedgerSeat>> Make(Worker& worker, LedgerOptions options);
  ~LedgerSeat();
  LedgerSeat(const LedgerSeat&) = delete;

  // Reports, and returns at once. Each report arrives, in order.
  absl::Status Post(LedgerReport report);
  // The same for reports of which the newest is enough: one that waits still is replaced.
  absl::Status PostNewest(LedgerReport report);
  // Reports after all that was posted before, and waits for the answer, at most the worker's timeout.
  absl::StatusOr<Standing> Ask(LedgerReport report);
  // The same for what is answered when others have done something, which may take longer than any request:
  // a meeting, a farewell. Waits at most so long; if those that it waits for are lost, the ledger answers.
  absl::StatusOr<Standing> Await(LedgerReport report, absl::Duration timeout);

  // What the ledger said last.
  Standing standing() const;

  // Whether the worker begins another iteration after it has done `iterations`. While all agree on
  // where they end it may wait, until the deadline at most.
  absl::StatusOr<bool> MayBegin(int64_t iterations, int64_t deadline_ns);

 private:
  struct Shared;
  LedgerSeat(Worker& worker, const std::string& name);
  Worker& worker_;
  const std::shared_ptr<Shared> shared_;  // answers may come after the seat's end
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_LEDGER_LEDGER_SEAT_H_
