// What the launcher and its part on another host say to each other, over the standard input and
// output of the agent (ssh) between them: frames of a kind, a rank and some bytes.
//
// Before its first frame the far side writes kAgentMark; what comes before that (a greeting of the
// login shell) is not ours.
#ifndef SYNCOPATE_LAUNCH_AGENT_FRAMES_H_
#define SYNCOPATE_LAUNCH_AGENT_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::launch {

inline constexpr char kAgentMark[] = "\nSYNCOPATE-AGENT-1\n";
// How much input for rank 0 may be in flight, sent and not taken yet.
inline constexpr size_t kInputWindowBytes = 64 << 10;
// The shortest silence by which a side may be held for lost.
inline constexpr int64_t kHostTimeoutNsMin = 1'000'000'000;

enum class FrameKind : uint32_t {
  // To the far side.
  kStart = 1,  // bytes: a RemoteStart
  kInput,      // bytes: for the standard input of its first rank
  kInputEnd,
  kSignal,  // rank: the signal's number; the ranks are asked to end by it
  kKill,    // end the ranks at once
  // From the far side.
  kStarted,      // all its ranks run
  kOut,          // bytes: of the rank's standard output
  kErr,          // bytes: of its standard error
  kEnded,        // bytes: the wait status, as text
  kCannotRun,    // bytes: the errno, as text
  kCannotStart,  // bytes: the errno, as text
  kInputTaken,   // bytes: how much of the input the rank has taken, as text
  kProblem,      // bytes: why nothing can be started
  kDone,         // nothing of the job is left there
  kWhyEnded,     // bytes: why another rank has ended it; comes before kEnded
  // From either side.
  kBeat,  // a sign of life
};
inline constexpr uint32_t kFrameKindMax = static_cast<uint32_t>(FrameKind::kBeat);

struct Frame {
  FrameKind kind = FrameKind::kDone;
  int rank = 0;
  std::string bytes;
};

inline constexpr size_t kFrameHeaderBytes = 12;
// The largest frame is a start with a large environment.
inline constexpr size_t kFrameBytesMax = 4 << 20;

void AppendFrame(FrameKind kind, int rank, absl::string_view bytes, std::string& out);

// Cuts a stream into frames. Not thread-safe.
class FrameReader {
 public:
  void Add(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }
  // The next whole frame; nothing if more bytes are needed; an error if it can be no frame.
  absl::StatusOr<std::optional<Frame>> Next();

 private:
  std::string bytes_;
  size_t taken_ = 0;
};

// What a far side needs to start its ranks.
struct RemoteStart {
  std::string job;
  int size = 1;
  int first_rank = 0;
  int ranks = 1;
  int64_t grace_ns = 0;
  int64_t host_timeout_ns = kHostTimeoutNsMin;  // how long either side may be silent
  std::string folder;                           // to run in
  std::vector<std::string> command;             // not empty
  std::vector<std::string> environment;         // "NAME=value", in addition to what is there
};

std::string EncodeStart(const RemoteStart& start);
absl::StatusOr<RemoteStart> DecodeStart(absl::string_view bytes);

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_AGENT_FRAMES_H_
