#include "transport/net/frame.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "transport/mail.h"

namespace syncopate::transport::net {
namespace {

constexpr uint16_t kFrameMagic = 0x5953;  // "SY"
constexpr uint8_t kFrameVersion = 3;

}  // namespace

EncodedHeader Encode(const FrameHeader& header) {
  std::string bytes;
  Append(bytes, kFrameMagic);
  Append(bytes, kFrameVersion);
  Append(bytes, static_cast<uint8_t>(header.type));
  Append(bytes, header.payload_bytes);
  Append(bytes, header.job);
  Append(bytes, header.losses_known);
  Append(bytes, header.group);
  Append(bytes, header.sequence);
  Append(bytes, header.step);
  Append(bytes, header.priority);
  Append(bytes, header.offset);
  Append(bytes, header.total);
  Append(bytes, header.digest);
  Append(bytes, header.sent_ns);
  EncodedHeader encoded;
  static_assert(sizeof(encoded) == kFrameHeaderBytes);
  std::memcpy(encoded.data(), bytes.data(), encoded.size());
  return encoded;
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(absl::Span<const std::byte> bytes) {
  if (bytes.size() != kFrameHeaderBytes) {
    return absl::InvalidArgumentError("a frame's header is cut short");
  }
  ByteReader reader(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  if (reader.Read<uint16_t>() != kFrameMagic) return absl::InvalidArgumentError("this is no frame");
  const uint8_t version = reader.Read<uint8_t>();
  if (version != kFrameVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of version ", version, "; this is version ", kFrameVersion));
  }
  FrameHeader header;
  const uint8_t type = reader.Read<uint8_t>();
  if (type < static_cast<uint8_t>(FrameType::kBeat) ||
      type > static_cast<uint8_t>(FrameType::kParcelTaken)) {
    return absl::InvalidArgumentError(absl::StrCat("a frame of type ", type));
  }
  header.type = static_cast<FrameType>(type);
  header.payload_bytes = reader.Read<uint32_t>();
  header.job = reader.Read<uint32_t>();
  header.losses_known = reader.Read<uint32_t>();
  header.group = reader.Read<uint64_t>();
  header.sequence = reader.Read<uint64_t>();
  header.step = reader.Read<uint32_t>();
  header.priority = reader.Read<int32_t>();
  header.offset = reader.Read<uint64_t>();
  header.total = reader.Read<uint64_t>();
  header.digest = reader.Read<uint64_t>();
  header.sent_ns = reader.Read<int64_t>();
  uint32_t payload_max = CarriesData(header.type) ? kPayloadBytesMax : kControlBytesMax;
  if (header.type == FrameType::kMessage) {
    payload_max = static_cast<uint32_t>(MailBytesMax(MailKind::kMessage));
  }
  if (header.payload_bytes > payload_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("a payload of ", header.payload_bytes, " bytes; the limit is ", payload_max));
  }
  // Beats and messages are all payload, goodbyes, openings and receipts have none.
  const bool message = header.type == FrameType::kBeat || header.type == FrameType::kGate ||
                       header.type == FrameType::kMessage;
  if (!CarriesData(header.type) && message != (header.payload_bytes > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of type ", type, " with ", header.payload_bytes, " bytes"));
  }
  if (header.losses_known > limits::kWorkersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of a worker that knows of ", header.losses_known, " losses"));
  }
  if (header.type == FrameType::kParcel &&
      (header.payload_bytes == 0 || header.total > MailBytesMax(MailKind::kParcel))) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part with ", header.payload_bytes, " bytes of a parcel of ", header.total));
  }
  if (header.total > kMessageBytesMax || header.offset > header.total ||
      header.payload_bytes > header.total - header.offset) {
    return absl::InvalidArgumentError(absl::StrCat("a part at ", header.offset, " with ",
                                                   header.payload_bytes, " bytes of a message of ",
                                                   header.total));
  }
  return header;
}

}  // namespace syncopate::transport::net
