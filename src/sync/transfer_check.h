// Whether a transfer that a strategy wants to start makes sense on this worker.
#ifndef SYNCOPATE_SYNC_TRANSFER_CHECK_H_
#define SYNCOPATE_SYNC_TRANSFER_CHECK_H_

#include "absl/status/status.h"
#include "model/tensor_layout.h"
#include "strategy/command.h"

namespace syncopate::sync {

// What is known of the worker.
struct TransferPlace {
  int rank = 0;
  int size = 1;
  int tensors = 0;
  bool moves_gradients = true;
  bool moves_parameters = true;
  bool has_store = false;
  bool serves = false;  // it is a server
};

// Internal, with the command in its text, if it does not: such a strategy has a fault.
absl::Status CheckTransfer(const strategy::StartTransfer& start, const TransferPlace& place,
                           const TensorLayout& layout);

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_TRANSFER_CHECK_H_
