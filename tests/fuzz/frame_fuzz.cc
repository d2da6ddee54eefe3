// The header of a frame: what is accepted keeps its limits and encodes to the same bytes.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "transport/mail.h"
#include "transport/net/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const auto header = transport::net::DecodeFrameHeader(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(data), size));
  if (!header.ok()) return 0;
  if (header->payload_bytes > transport::net::kPayloadBytesMax ||
      header->total > transport::net::kMessageBytesMax)
    std::abort();
  using transport::MailBytesMax, transport::MailKind, transport::net::FrameType;
  if (header->type == FrameType::kMessage &&
      header->payload_bytes > MailBytesMax(MailKind::kMessage)) {
    std::abort();
  }
  if (header->type == FrameType::kParcel && header->total > MailBytesMax(MailKind::kParcel)) {
    std::abort();
  }
  const transport::net::EncodedHeader again = Encode(*header);
  if (std::memcmp(again.data(), data, size) != 0) std::abort();
  return 0;
}
