// The messages that a worker has offered in one experiment of the probe. Their memory must stay as
// it is until the receivers have taken them; AllConsumed() tells when.
#ifndef SYNCOPATE_PROBE_OUTBOX_H_
#define SYNCOPATE_PROBE_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/transport.h"

namespace syncopate::probe {

class Outbox {
 public:
  // `memory` is where offsets count from; it must outlive the outbox.
  explicit Outbox(const std::byte* memory) : memory_(memory) {}

  // Offers bytes to the worker `to`, which takes them in its step `their_step`.
  void Offer(transport::Session& session, uint32_t step, int to, uint32_t their_step,
             uint64_t offset, uint64_t bytes) {
    session.Offer(step, to, memory_ + offset, {Space::kData, offset, bytes});
    offered_.push_back({to, step, their_step});
  }

  bool AllConsumed(transport::Session& session) {
    while (!offered_.empty()) {
      const Offered& last = offered_.back();
      if (!session.Consumed(last.to, last.step, last.their_step)) return false;
      offered_.pop_back();
    }
    return true;
  }

 private:
  struct Offered {
    int to;
    uint32_t step;
    uint32_t their_step;
  };

  const std::byte* const memory_;
  std::vector<Offered> offered_;
};

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_OUTBOX_H_
