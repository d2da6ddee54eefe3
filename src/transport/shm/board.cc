#include "transport/shm/board.h"

namespace syncopate::transport::shm {
namespace {

int RankOf(uint64_t verdict) { return static_cast<int>(verdict >> 16) - 1; }

}  // namespace

std::string WhyEnded(Cause cause) {
  return cause == Cause::kLate ? "it did not go on in time" : "no heartbeat";
}

std::string Describe(Cause cause) {
  switch (cause) {
    case Cause::kLeft:
      return "left the job";
    case Cause::kDied:
      return "died (its process ended)";
    case Cause::kStuck:
      return "is stuck (no heartbeat; it was ended)";
    case Cause::kStuckInDebugger:
      return "is stuck (no heartbeat: it was being debugged; it was ended)";
    case Cause::kStuckFrozen:
      return "is stuck (no heartbeat: it was frozen; it was ended)";
    case Cause::kLate:
      return "is stuck (it did not finish an operation in time; it was ended)";
  }
  return "is lost";
}

// Each takes the first free place, and looks at all before it: no rank comes twice, and two verdicts at
// the same moment are one after the other for all.
bool Pronounce(Board& board, int rank, Cause cause, int by) {
  const uint64_t verdict = static_cast<uint64_t>(rank + 1) << 16 |
                           static_cast<uint64_t>(cause) << 8 | static_cast<uint64_t>(by);
  for (std::atomic<uint64_t>& place : board.verdicts) {
    uint64_t there = 0;
    if (place.compare_exchange_strong(there, verdict)) return true;
    if (RankOf(there) == rank) return false;
  }
  return false;  // there are no more ranks than places
}

bool IsLost(const Board& board, int rank) {
  for (const std::atomic<uint64_t>& place : board.verdicts) {
    const uint64_t verdict = place.load(std::memory_order_acquire);
    if (verdict == 0) return false;
    if (RankOf(verdict) == rank) return true;
  }
  return false;
}

uint64_t CountVerdicts(const Board& board) {
  uint64_t count = 0;
  for (const std::atomic<uint64_t>& place : board.verdicts) {
    if (place.load(std::memory_order_acquire) == 0) break;
    ++count;
  }
  return count;
}

std::vector<Loss> ReadVerdicts(const Board& board, int size) {
  std::vector<Loss> losses;
  for (const std::atomic<uint64_t>& place : board.verdicts) {
    const uint64_t verdict = place.load(std::memory_order_acquire);
    if (verdict == 0) break;
    if (RankOf(verdict) >= size) continue;  // no worker of ours wrote it
    losses.push_back({.rank = RankOf(verdict),
                      .order = losses.size() + 1,
                      .cause = Describe(static_cast<Cause>((verdict >> 8) & 0xff)),
                      .left = static_cast<Cause>((verdict >> 8) & 0xff) == Cause::kLeft});
  }
  return losses;
}

}  // namespace syncopate::transport::shm
