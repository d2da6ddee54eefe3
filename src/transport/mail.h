// What workers tell each other beside collectives: messages, which are small and go ahead of data, and
// parcels, which are larger and travel like data. What is in them is for the layers above.
//
// Between two workers messages arrive exactly once and in the order in which they were posted, and so
// do parcels, while both are in the job; a message may overtake a parcel. Of a worker that is lost or
// leaves, a worker gets what had come before it knew, then one Mail that says so, then nothing more.
#ifndef SYNCOPATE_TRANSPORT_MAIL_H_
#define SYNCOPATE_TRANSPORT_MAIL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/limits.h"

namespace syncopate::transport {

enum class MailKind : uint8_t {
  kMessage,
  kParcel,
  kLost,  // `from` is lost; `bytes` says why, for people. Never posted, only taken
  kLeft,  // `from` left the job in good order. Never posted, only taken
};
// Those that are posted: the first two.
inline constexpr size_t kMailKinds = 2;

struct Mail {
  int from = -1;  // rank in the job
  MailKind kind = MailKind::kMessage;
  std::string bytes;
  uint64_t order = 0;  // kLost and kLeft: Loss::order

  friend bool operator==(const Mail&, const Mail&) = default;
};

struct Loss;  // transport.h
// What a worker gets last of one that is lost or left.
Mail LastMailOf(const Loss& loss);

// The longest message or parcel.
constexpr uint64_t MailBytesMax(MailKind kind) {
  return limits::kMailLabelBytesMax +
         (kind == MailKind::kMessage ? limits::kMailBytesMax : limits::kParcelBytesMax);
}
// What may wait from one worker to another, and what mail of this length counts there.
constexpr uint64_t MailQueueBytesMax(MailKind kind) {
  return kind == MailKind::kMessage ? limits::kMailQueuedBytesMax : limits::kParcelsQueuedBytesMax;
}
constexpr uint64_t MailCost(MailKind kind, uint64_t bytes) {
  return kind == MailKind::kMessage ? std::max(bytes, limits::kMailCostMin) : bytes;
}

// Why this cannot be posted to `to` in a job of `size` workers, whatever the transport.
absl::Status CheckMail(int to, int size, MailKind kind, absl::string_view bytes);
// More than MailQueueBytesMax() would wait for `to`.
absl::Status MailQueueFull(int to, MailKind kind);
// `to` is not in the job any more.
absl::Status NobodyThere(int to);
// This worker is not in the job any more.
absl::Status NotInTheJob(int rank);

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_MAIL_H_
