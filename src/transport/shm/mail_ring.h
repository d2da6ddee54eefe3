// Bytes from one worker to another in shared memory: a ring that the sender fills and the receiver
// empties, in the receiver's control memory. A record that a sender has not written to its end when it
// dies is never seen.
#ifndef SYNCOPATE_TRANSPORT_SHM_MAIL_RING_H_
#define SYNCOPATE_TRANSPORT_SHM_MAIL_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace syncopate::transport::shm {

struct MailRing {
  static constexpr uint64_t kBytes = 64 << 10;

  alignas(64) std::atomic<uint64_t> written;  // bytes in all, by the sender
  // By the sender: it has more than fits; whoever makes room takes this away and rings for it.
  std::atomic<uint32_t> sender_waits;
  alignas(64) std::atomic<uint64_t> read;  // bytes in all, by the receiver
  alignas(64) std::byte bytes[kBytes];
};

// A record of a ring: a whole message, or a part of a parcel of `total` bytes.
struct MailRecord {
  uint64_t total = 0;
  std::string bytes;
};
// No record holds more, so that several fit into a ring.
inline constexpr uint64_t kMailRecordBytesMax = 15 << 10;

// Writes a record; false if there is no room for it now. By the sender alone.
bool WriteRecord(MailRing& ring, uint64_t total, absl::string_view bytes);
// The next record, if there is one. By the receiver alone. What the ring says is checked against the
// limits: nothing, if it cannot be true; the ring then stays as it is.
std::optional<MailRecord> ReadRecord(MailRing& ring);

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_MAIL_RING_H_
