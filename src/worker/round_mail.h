// The mail of rounds of texts (text_rounds.h), as bytes. Numbers are little-endian.
//
//   mail    = lane:u8 kind:u8 round:u64 body
//   1 text  = root:u16 name:u8 as many bytes, then the text      root 0xffff: all get all texts
//   2 taken = nothing         the text that you sent as a parcel has come
//   3 fault = the reason      the sender brings no text to this round
//
// A text that does not fit a message travels as a parcel. Whatever is read meets its limit before
// memory is taken for it.
#ifndef SYNCOPATE_WORKER_ROUND_MAIL_H_
#define SYNCOPATE_WORKER_ROUND_MAIL_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/limits.h"

namespace syncopate::worker {

inline constexpr uint64_t kRoundNameBytesMax = 64;   // what a round is about
inline constexpr uint64_t kRoundHeadBytesMax = 128;  // all that goes before a text
inline constexpr uint64_t kRoundTextBytesMax = limits::kParcelBytesMax - kRoundHeadBytesMax;
inline constexpr uint64_t kRoundFaultBytesMax = 1024;  // why a worker brings no text
// All texts of a round that one worker sends or gets.
inline constexpr uint64_t kRoundBytesMax = uint64_t{1} << 30;
// How far ahead of another a worker may be, and what is kept of its texts then.
inline constexpr uint64_t kRoundsAheadMax = 1024;
inline constexpr uint64_t kRoundsAheadBytesMax = uint64_t{128} << 20;

// Whose rounds these are: each lane counts its own.
enum class RoundLane : uint8_t { kChunkTuner, kJob };
inline constexpr size_t kRoundLanes = 2;

struct RoundMail {
  enum class Kind : uint8_t { kText = 1, kTaken = 2, kFault = 3 };
  RoundLane lane = RoundLane::kJob;
  Kind kind = Kind::kText;
  uint64_t round = 0;
  int root = -1;          // kText; -1: all get all texts
  std::string what = {};  // kText: what the round is about
  std::string text = {};  // kText, kFault
};

std::string Encode(const RoundMail& mail);
absl::StatusOr<RoundMail> DecodeRoundMail(absl::string_view bytes);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_ROUND_MAIL_H_
