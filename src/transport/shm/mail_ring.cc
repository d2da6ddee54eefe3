#include "transport/shm/mail_ring.h"

#include <algorithm>
#include <cstring>

#include "transport/mail.h"

namespace syncopate::transport::shm {
namespace {

struct Header {
  uint64_t bytes = 0;
  uint64_t total = 0;
};

// Records begin at multiples of this, so that a header is never cut.
constexpr uint64_t kAlign = sizeof(Header);
static_assert(MailRing::kBytes % kAlign == 0);
static_assert(MailBytesMax(MailKind::kMessage) <= kMailRecordBytesMax);

uint64_t RoomOf(uint64_t bytes) { return sizeof(Header) + (bytes + kAlign - 1) / kAlign * kAlign; }

void CopyIn(MailRing& ring, uint64_t at, absl::string_view bytes) {
  const uint64_t place = at % MailRing::kBytes;
  const uint64_t first = std::min<uint64_t>(bytes.size(), MailRing::kBytes - place);
  std::memcpy(ring.bytes + place, bytes.data(), first);
  std::memcpy(ring.bytes, bytes.data() + first, bytes.size() - first);
}

void CopyOut(const MailRing& ring, uint64_t at, char* to, uint64_t bytes) {
  const uint64_t place = at % MailRing::kBytes;
  const uint64_t first = std::min<uint64_t>(bytes, MailRing::kBytes - place);
  std::memcpy(to, ring.bytes + place, first);
  std::memcpy(to + first, ring.bytes, bytes - first);
}

}  // namespace

bool WriteRecord(MailRing& ring, uint64_t total, absl::string_view bytes) {
  const uint64_t written = ring.written.load(std::memory_order_relaxed);
  const uint64_t used = written - ring.read.load(std::memory_order_acquire);
  if (used > MailRing::kBytes || MailRing::kBytes - used < RoomOf(bytes.size())) return false;
  const Header header = {.bytes = bytes.size(), .total = total};
  CopyIn(ring, written, {reinterpret_cast<const char*>(&header), sizeof(header)});
  CopyIn(ring, written + sizeof(header), bytes);
  ring.written.store(written + RoomOf(bytes.size()), std::memory_order_release);
  return true;
}

std::optional<MailRecord> ReadRecord(MailRing& ring) {
  const uint64_t read = ring.read.load(std::memory_order_relaxed);
  const uint64_t there = ring.written.load(std::memory_order_acquire) - read;
  if (there < sizeof(Header) || there > MailRing::kBytes) return std::nullopt;
  Header header;
  CopyOut(ring, read, reinterpret_cast<char*>(&header), sizeof(header));
  if (header.bytes == 0 || header.bytes > kMailRecordBytesMax || RoomOf(header.bytes) > there ||
      header.total < header.bytes || header.total > MailBytesMax(MailKind::kParcel)) {
    return std::nullopt;
  }
  MailRecord record = {.total = header.total, .bytes = std::string(header.bytes, '\0')};
  CopyOut(ring, read + sizeof(header), record.bytes.data(), header.bytes);
  // Not only released: a sender that finds no room says so, and then looks once more (ShmMail).
  ring.read.store(read + RoomOf(header.bytes));
  return record;
}

}  // namespace syncopate::transport::shm
