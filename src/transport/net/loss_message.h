// What workers tell each other about lost ones (loss_consensus.h), and its bytes.
//
//   u8 kind, u8 verdicts, u8 proposals, u8 opinions, u16 known, u16 first,
//   verdicts x mark, proposals x mark, opinions x {u16 rank, u8 opinion}
//   mark = {u16 rank, u8 cause (| 0x80: certain), u16 by}
//
// all little-endian, at most kLossMessageBytesMax.
#ifndef SYNCOPATE_TRANSPORT_NET_LOSS_MESSAGE_H_
#define SYNCOPATE_TRANSPORT_NET_LOSS_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::transport::net {

// How a worker was lost, from the weakest evidence to the strongest.
enum class Cause : uint8_t {
  kSilent = 1,  // no sign of it for too long
  kStuck = 2,   // it did not finish what it had begun
  kCutOff = 3,  // it said that it cannot reach the majority, and went
  kDied = 4,    // its process ended
  kLeft = 5,    // it ended its part in good order
};

// It does nothing any more, whatever the network does. Otherwise it is only believed to be lost.
inline bool IsCertain(Cause cause) { return cause >= Cause::kCutOff; }

// "died (its process ended)"; the subject is the worker.
std::string Describe(Cause cause);

// A worker is lost, as the rank `by` found out.
struct Mark {
  int rank = -1;
  Cause cause = Cause::kSilent;
  int by = -1;
  bool certain = false;  // by its cause, or because it gave itself up

  friend bool operator==(const Mark&, const Mark&) = default;
};

// What the sender thinks of a worker that somebody accuses.
enum class Opinion : uint8_t {
  kHeard = 1,   // the sender hears it
  kSilent = 2,  // the sender does not
  kStuck = 3,   // the sender wants it out
};

struct RankOpinion {
  int rank = -1;
  Opinion opinion = Opinion::kHeard;

  friend bool operator==(const RankOpinion&, const RankOpinion&) = default;
};

struct LossMessage {
  enum class Kind : uint8_t {
    kState = 1,     // a beat
    kGoing = 2,     // the sender gives itself up; the only proposal says why
    kExpelled = 3,  // the receiver is held for lost
  };
  static constexpr size_t kVerdictsMax = 16;  // in one message
  static constexpr size_t kProposalsMax = 48;
  static constexpr size_t kOpinionsMax = 48;

  Kind kind = Kind::kState;
  int known = 0;                // how many verdicts stand for the sender
  int first = 0;                // `verdicts` begin with this one, counted from 0
  std::vector<Mark> verdicts;   // that stand
  std::vector<Mark> proposals;  // a part of what the sender proposes as the next ones
  std::vector<RankOpinion> opinions;

  friend bool operator==(const LossMessage&, const LossMessage&) = default;
};

inline constexpr size_t kLossMessageBytesMax =
    8 + 5 * (LossMessage::kVerdictsMax + LossMessage::kProposalsMax) +
    3 * LossMessage::kOpinionsMax;
static_assert(kLossMessageBytesMax <= 512);

// The message keeps the limits above, and its ranks are below limits::kWorkersMax.
std::string Encode(const LossMessage& message);

// In a job of `size` workers. InvalidArgument with what is wrong.
absl::StatusOr<LossMessage> DecodeLossMessage(absl::string_view bytes, int size);

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_LOSS_MESSAGE_H_
