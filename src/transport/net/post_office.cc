#include "transport/net/post_office.h"

#include <iterator>
#include <utility>

namespace syncopate::transport::net {
namespace {

// A sender hears how much was taken when this part of its queue was taken since it last heard: rarely,
// and long before the queue is full.
constexpr uint64_t kTellPart = 8;

}  // namespace

PostOffice::PostOffice(int rank, int size, uint64_t queued_bytes_max, Carrier& carrier)
    : rank_(rank),
      queued_bytes_max_(queued_bytes_max),
      carrier_(carrier),
      peers_(static_cast<size_t>(size)) {}

absl::Status PostOffice::Post(int to, MailKind kind, std::string bytes) {
  Peer& receiver = peer(to);
  const uint64_t cost = MailCost(kind, bytes.size());
  const bool message = kind == MailKind::kMessage;
  const uint64_t queued = message ? receiver.posted - receiver.posted_taken : receiver.parcels_cost;
  if (queued + cost > (message ? queued_bytes_max_ : MailQueueBytesMax(kind))) {
    return MailQueueFull(to, kind);
  }
  (message ? receiver.posted : receiver.parcels_cost) += cost;
  if (to == rank_) {
    inbox_.push_back({.from = to, .kind = kind, .bytes = std::move(bytes)});
  } else if (message) {
    carrier_.SendMail(to, FrameType::kMessage, 0, bytes);
  } else {
    receiver.parcels.push_back(std::move(bytes));
    if (receiver.parcels.size() == 1) SendFirstParcel(to);
  }
  return absl::OkStatus();
}

void PostOffice::SendFirstParcel(int to) {
  Peer& receiver = peer(to);
  receiver.parcel_cookie = kCookieBit | ++next_cookie_;
  carrier_.SendParcel(to, receiver.parcels_taken, receiver.parcels.front(), receiver.parcel_cookie);
}

bool PostOffice::MessageArrived(int from, std::string bytes) {
  Peer& sender = peer(from);
  const uint64_t cost = MailCost(MailKind::kMessage, bytes.size());
  if (sender.gone || sender.came - sender.taken + cost > queued_bytes_max_) return false;
  sender.came += cost;
  inbox_.push_back({.from = from, .kind = MailKind::kMessage, .bytes = std::move(bytes)});
  return true;
}

std::byte* PostOffice::PlaceParcel(int from, const FrameHeader& header) {
  Peer& sender = peer(from);
  if (sender.gone || sender.parcel_waits || header.sequence != sender.parcels_come) return nullptr;
  if (sender.coming == nullptr) {
    sender.coming = std::make_unique<std::string>(header.total, '\0');
    sender.coming_got = 0;
  }
  if (sender.coming->size() != header.total) return nullptr;
  ++sender.coming_under_way;
  return reinterpret_cast<std::byte*>(sender.coming->data()) + header.offset;
}

void PostOffice::ParcelArrived(int from, const FrameHeader& header) {
  Peer& sender = peer(from);
  if (sender.coming == nullptr) return;
  --sender.coming_under_way;
  sender.coming_got += header.payload_bytes;
  if (sender.coming_got < header.total || sender.coming_under_way > 0) return;
  inbox_.push_back({.from = from, .kind = MailKind::kParcel, .bytes = std::move(*sender.coming)});
  sender.coming = nullptr;
  sender.parcel_waits = true;
}

bool PostOffice::MessagesTaken(int from, const FrameHeader& header) {
  Peer& receiver = peer(from);
  if (header.sequence < receiver.posted_taken || header.sequence > receiver.posted) return false;
  receiver.posted_taken = header.sequence;
  return true;
}

bool PostOffice::ParcelTaken(int from, const FrameHeader& header) {
  Peer& receiver = peer(from);
  if (receiver.parcels.empty() || header.sequence != receiver.parcels_taken) return false;
  receiver.parcels_cost -= MailCost(MailKind::kParcel, receiver.parcels.front().size());
  carrier_.Detach(receiver.parcel_cookie);
  receiver.parcels.pop_front();
  ++receiver.parcels_taken;
  if (!receiver.parcels.empty()) SendFirstParcel(from);
  return true;
}

void PostOffice::Lose(Mail last) {
  Peer& lost = peer(last.from);
  if (std::exchange(lost.gone, true)) return;
  if (lost.coming != nullptr) {
    if (lost.coming_under_way > 0) carrier_.Abandon(*lost.coming);
    lost.coming = nullptr;
  }
  if (!lost.parcels.empty()) carrier_.Detach(lost.parcel_cookie);
  lost.parcels.clear();
  inbox_.push_back(std::move(last));
}

void PostOffice::Take(std::vector<Mail>& mail) {
  std::vector<Mail> taken = std::exchange(inbox_, {});
  for (const Mail& one : taken) {
    Peer& sender = peer(one.from);
    const uint64_t cost = MailCost(one.kind, one.bytes.size());
    if (one.kind == MailKind::kMessage) {
      (one.from == rank_ ? sender.posted_taken : sender.taken) += cost;
      if (sender.taken - sender.told >= queued_bytes_max_ / kTellPart) Tell(one.from);
    } else if (one.kind == MailKind::kParcel && one.from == rank_) {
      sender.parcels_cost -= cost;
    } else if (one.kind == MailKind::kParcel) {
      sender.parcel_waits = false;
      const uint64_t number = sender.parcels_come++;
      if (!sender.gone) carrier_.SendMail(one.from, FrameType::kParcelTaken, number, "");
    }
  }
  mail.insert(mail.end(), std::make_move_iterator(taken.begin()),
              std::make_move_iterator(taken.end()));
}

void PostOffice::Tell(int from) {
  Peer& sender = peer(from);
  if (sender.gone) return;
  sender.told = sender.taken;
  carrier_.SendMail(from, FrameType::kMessagesTaken, sender.taken, "");
}

}  // namespace syncopate::transport::net
