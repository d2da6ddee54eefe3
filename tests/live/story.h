// What the workers of a live job tell the one that has started them, in memory that they share. It
// stays when a worker is killed in the middle of a word; a count is written after what it counts.
#ifndef SYNCOPATE_TESTS_LIVE_STORY_H_
#define SYNCOPATE_TESTS_LIVE_STORY_H_

#include <atomic>
#include <cstdint>

#include "live/plan.h"

namespace syncopate::live {

// What a call that failed has left.
enum class Data : uint8_t {
  kOld,
  kNew,
  kWrong,        // neither in all elements
  kUnspecified,  // a broadcast may leave anything
  kNoCall,       // the group could not even be made
};

struct Loss {
  int suspect = -1;
  int code = 0;            // absl::StatusCode
  int64_t noticed_ns = 0;  // when the call returned
  uint64_t rounds = 0;     // that the group had done before
  Data data = Data::kNoCall;
  char text[192] = {};
};

enum class End : uint8_t {
  kNone,
  kOut,    // it was told, or found out, that it is not in the job any more
  kLeft,   // in good order
  kWrong,  // a call succeeded with a wrong element, or failed as none may
};

// Of one worker.
struct Account {
  std::atomic<uint64_t> losses{0};
  Loss loss[kWorkersMax] = {};
  // Losses in the upper half, rounds that the group of the survivors has done in the lower.
  std::atomic<uint64_t> progress{0};
  std::atomic<End> end{End::kNone};
  char why[256] = {};
};

struct Story {
  std::atomic<bool> leave{false};  // all faults have been: the workers may go
  Account accounts[kWorkersMax] = {};
};

inline uint64_t ProgressOf(uint64_t losses, uint64_t rounds) { return losses << 32 | rounds; }

}  // namespace syncopate::live

#endif  // SYNCOPATE_TESTS_LIVE_STORY_H_
