// What `syncopate bench` and the drivers of its contestants say to each other: one line a message,
// over a Unix socket between the command and every rank of every contestant.
//
//   rank:     hello <rank> <size> <pid>
//   command:  run <collective> <bytes> <type> <op> <warmup> <iterations> <check> <active ranks>
//             the ranks as "0-2,4", or "all"
//   rank:     result <wrong elements> <samples> <ns> <ns> ...     one sample an iteration
//             unsupported <why>                                   the same on every rank
//             error <what>
//   command:  quit
//
// Between a reply and the next command the rank sleeps in read(): a contestant costs nothing while
// another one is measured.
#ifndef SYNCOPATE_TOOLS_BENCH_PROTOCOL_H_
#define SYNCOPATE_TOOLS_BENCH_PROTOCOL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "syncopate/collective.h"
#include "syncopate/data_type.h"

namespace syncopate::tools::bench {

inline constexpr int64_t kIterationsMax = 100'000;        // of one run
inline constexpr int64_t kCheckedCallsMax = 1000;         // of one run
inline constexpr size_t kLineBytesMax = size_t{4} << 20;  // holds kIterationsMax samples
inline constexpr uint64_t kBufferBytesMax = uint64_t{64} << 30;
inline constexpr const char* kControlSocket = "control";  // in the contestant's directory

struct Hello {
  int rank = 0;
  int size = 0;
  int pid = 0;
};
std::string Format(const Hello& hello);
absl::StatusOr<Hello> ParseHello(absl::string_view line);

// One round of one contestant at one size. Where the collective has blocks, they are equal.
struct RunRequest {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // of the whole buffer, a multiple of the type's size
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int64_t warmup = 0;      // untimed calls before the timed ones
  int64_t iterations = 0;  // timed calls, back to back
  int64_t check = 0;       // calls before all others whose results are compared, element by element
  std::vector<int> active = {};  // all-reduce: the ranks whose data counts, rising; empty: all

  bool IsActive(int rank) const {
    return active.empty() || std::binary_search(active.begin(), active.end(), rank);
  }
};
std::string Format(const RunRequest& request);
absl::StatusOr<RunRequest> ParseRunRequest(absl::string_view line);

// Whether a rank can end a call before others have begun it. Such calls are timed one by one, with
// a barrier before each, or a queue of them would be measured; all others back to back.
inline bool TimedApart(Collective collective) { return HasRoot(collective); }

// What one rank answers. `samples_ns` is empty on a rank that takes no part in the collective.
struct RankResult {
  uint64_t wrong = 0;
  std::vector<int64_t> samples_ns;
};
std::string Format(const RankResult& result);
// "unsupported ..." becomes Unimplemented, "refused ..." (what the user asked for or set cannot be) InvalidArgument,
// "error ..." Internal; the text is the message. What is no reply is Internal, too.
absl::StatusOr<RankResult> ParseReply(absl::string_view line);
// Whether a rank that says this will not go on, so that the others wait for it in vain.
bool EndsAll(absl::string_view line);
// The line that ParseReply() reads back as `error` (Unimplemented, InvalidArgument, or anything else as Internal).
std::string FormatError(const absl::Status& error);

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_PROTOCOL_H_
