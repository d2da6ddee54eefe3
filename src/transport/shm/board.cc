#include "transport/shm/board.h"

#include <algorithm>

namespace syncopate::transport::shm {

std::string WhyEnded(Cause cause) {
  return cause == Cause::kStuck ? "no heartbeat" : "it did not go on in time";
}

std::string Describe(Cause cause) {
  switch (cause) {
    case Cause::kLeft:
      return "left the job";
    case Cause::kDied:
      return "died (its process ended)";
    case Cause::kStuck:
      return "is stuck (no heartbeat; it was ended)";
    case Cause::kLate:
      return "is stuck (it did not finish an operation in time; it was ended)";
  }
  return "is lost";
}

bool Pronounce(Board& board, int rank, Cause cause, int by) {
  std::atomic<uint64_t>& verdict = board.verdicts[rank];
  if (verdict.load(std::memory_order_acquire) != 0) return false;
  // The order is drawn before the verdict stands, so two verdicts may stand in the other order than
  // they were drawn; what matters is that every reader sorts them alike.
  const uint64_t order = board.count.fetch_add(1) + 1;
  uint64_t none = 0;
  return verdict.compare_exchange_strong(
      none, order << 16 | static_cast<uint64_t>(cause) << 8 | static_cast<uint64_t>(by));
}

std::vector<Loss> ReadVerdicts(const Board& board, int size) {
  std::vector<Loss> losses;
  for (int rank = 0; rank < size; ++rank) {
    const uint64_t verdict = board.verdicts[rank].load(std::memory_order_acquire);
    if (verdict == 0) continue;
    losses.push_back({.rank = rank,
                      .order = verdict >> 16,
                      .cause = Describe(static_cast<Cause>((verdict >> 8) & 0xff))});
  }
  std::sort(losses.begin(), losses.end(),
            [](const Loss& a, const Loss& b) { return a.order < b.order; });
  return losses;
}

}  // namespace syncopate::transport::shm
