// The frame: what travels between two workers of a job on different hosts. A header of fixed size,
// then as many bytes of payload as it says. docs/wire.md has the layout and what each type means.
#ifndef SYNCOPATE_TRANSPORT_NET_FRAME_H_
#define SYNCOPATE_TRANSPORT_NET_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace syncopate::transport::net {

enum class FrameType : uint8_t {
  kBeat = 1,     // payload: a LossMessage
  kBye = 2,      // the sender leaves the job in good order and sends nothing more
  kData = 3,     // a part of what step `step` sends in operation `sequence` of `group`
  kOpen = 4,     // the sender has opened operation `sequence`: it takes more than early bytes
  kGate = 5,     // payload: a GateMessage about the gates of `group`
  kResult = 6,   // a part of the result of an operation, for a member that could not finish it
  kMessage = 7,  // payload: mail of kind kMessage
  kParcel = 8,   // a part of mail of kind kParcel; `sequence` counts the parcels of a sender
  // Of messages of the receiver, those that cost `sequence` bytes in all have been taken.
  kMessagesTaken = 9,
  kParcelTaken = 10,  // parcel `sequence` of the receiver has been taken; the next one may be sent
};

struct FrameHeader {
  FrameType type = FrameType::kBeat;
  uint32_t payload_bytes = 0;
  uint32_t job = 0;           // short digest of the job's id
  uint32_t losses_known = 0;  // how many losses the sender knew of
  uint64_t group = 0;         // its key; 0 where none is meant
  uint64_t sequence = 0;      // of the operation in the group
  uint32_t step = 0;          // the sender's
  int32_t priority = 0;       // of the operation: higher goes first
  uint64_t offset = 0;        // of the payload in the whole message
  uint64_t total = 0;         // bytes of the whole message
  uint64_t digest = 0;        // of the operation, as the sender runs it
  int64_t sent_ns = 0;        // when it was ready to be sent, by any clock of the sender

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

inline constexpr size_t kFrameHeaderBytes = 72;
// Messages are cut into payloads of at most this size, so that urgent ones need not wait long.
inline constexpr uint32_t kFragmentBytes = 128 << 10;
// No payload is larger; nothing is allocated for one that claims to be.
inline constexpr uint32_t kPayloadBytesMax = 1 << 20;
// No control frame has more; so they stay small beside data, and fit the memory kept for them.
inline constexpr uint32_t kControlBytesMax = 256 << 10;
// No message is larger.
inline constexpr uint64_t kMessageBytesMax = uint64_t{1} << 40;

// Whether frames of this type carry data of operations, or travel as such data does. All others are
// control frames.
inline bool CarriesData(FrameType type) {
  return type == FrameType::kData || type == FrameType::kResult || type == FrameType::kParcel;
}

using EncodedHeader = std::array<std::byte, kFrameHeaderBytes>;
EncodedHeader Encode(const FrameHeader& header);

// InvalidArgument with the field that is out of its limits. `bytes` has kFrameHeaderBytes.
absl::StatusOr<FrameHeader> DecodeFrameHeader(absl::Span<const std::byte> bytes);

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_FRAME_H_
