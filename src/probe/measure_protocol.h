// What rank 0 tells the others to do in one experiment of the probe and what they answer, as bytes.
#ifndef SYNCOPATE_PROBE_MEASURE_PROTOCOL_H_
#define SYNCOPATE_PROBE_MEASURE_PROTOCOL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::probe {

// The most flows of one experiment.
inline constexpr uint32_t kFlowsMax = 4096;
// A flow sends pieces of these sizes, and at most kPiecesMax of them.
inline constexpr uint32_t kPieceBytesMin = 2 << 10;
inline constexpr uint32_t kPieceBytesMax = 1 << 20;
inline constexpr uint32_t kPiecesMax = 4096;
// The length of an experiment and the pings of one, at most.
inline constexpr double kSecondsMax = 60;
inline constexpr uint32_t kPingsMax = 64;
// The size of a host's name in an answer.
inline constexpr uint32_t kNameBytes = 256;

struct Instruction {
  enum class Kind : uint32_t {
    kName = 1,   // say which host you are on
    kFlows = 2,  // run `flows`
    kPing = 3,   // the flow's ends send a small message to and fro
    kEnd = 4,    // the probe is over
  };
  struct Flow {
    uint32_t from = 0;  // ranks
    uint32_t to = 0;
    uint32_t piece_bytes = kPieceBytesMin;

    friend bool operator==(const Flow&, const Flow&) = default;
  };

  Kind kind = Kind::kEnd;
  double seconds = 0;
  uint32_t pieces = 0;  // that a flow sends at most; pings: how many
  std::vector<Flow> flows;

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

// An instruction travels as a head of fixed size and, if it has flows, a list of them.
inline constexpr uint64_t kHeadBytes = 24;
inline constexpr uint64_t kFlowBytes = 12;

std::string EncodeHead(const Instruction& instruction);
std::string EncodeFlows(const Instruction& instruction);
// InvalidArgument if anything is out of its limits. A head has as many empty flows as will follow.
absl::StatusOr<Instruction> DecodeHead(absl::string_view bytes);
// Fills the flows in; `ranks` is the size of the job.
absl::Status DecodeFlows(absl::string_view bytes, uint32_t ranks, Instruction& instruction);

// What a worker saw of the flows that it had a part in.
struct FlowsAnswer {
  struct Flow {
    double rate = 0;           // bytes/s
    double ended_seconds = 0;  // when it ran out of pieces, else the length of the experiment

    friend bool operator==(const Flow&, const Flow&) = default;
  };

  double stolen = 0;        // part of its host's processor time meanwhile, 0 to 1
  std::vector<Flow> flows;  // that it received, in the order of the instruction

  friend bool operator==(const FlowsAnswer&, const FlowsAnswer&) = default;
};

// An answer is a head and kAnswerFlowBytes for each received flow.
inline constexpr uint64_t kAnswerHeadBytes = 16;
inline constexpr uint64_t kAnswerFlowBytes = 16;

std::string EncodeAnswer(const FlowsAnswer& answer);
// InvalidArgument if it is not about `received` flows or anything is out of its limits.
absl::StatusOr<FlowsAnswer> DecodeAnswer(absl::string_view bytes, uint64_t received);

// When pieces of a flow came: seconds since the beginning, and their bytes, in order.
struct Arrival {
  double seconds = 0;
  uint32_t bytes = 0;
};
// Bytes/s between two times. A piece is taken to come evenly since the one before it, so that few
// large pieces give as good a rate as many small ones. `ended`: the flow had sent all that it was
// allowed to; if that was before `to_seconds`, what it achieved until then counts.
double RateBetween(const std::vector<Arrival>& arrivals, double from_seconds, double to_seconds,
                   bool ended);

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_MEASURE_PROTOCOL_H_
