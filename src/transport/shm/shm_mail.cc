#include "transport/shm/shm_mail.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

namespace syncopate::transport::shm {
namespace {

constexpr size_t kMessages = static_cast<size_t>(MailKind::kMessage);
constexpr size_t kParcels = static_cast<size_t>(MailKind::kParcel);

// How long mail that waits for room may keep a worker that leaves: as long as workers of other hosts are heard out.
constexpr int64_t kLastMailNs = 500'000'000;

// Tells the receiver that there is not enough room. True: by now there may be, so try again.
bool WaitForRoom(MailRing& ring) {
  ring.sender_waits.store(1);
  // The receiver may have emptied the ring between the look and the word. If it has not, it has been
  // told of something that it has not read yet, and looks for the word after reading that.
  return ring.read.load() == ring.written.load(std::memory_order_relaxed);
}

}  // namespace

ShmMail::ShmMail(Peers& peers)
    : peers_(peers),
      outgoing_(static_cast<size_t>(peers.size())),
      incoming_(static_cast<size_t>(peers.size())) {}

// Nobody posts or takes any more. Receivers say when there is room again, as always.
ShmMail::~ShmMail() {
  const int bell = peers_.mail_bell();
  const int64_t deadline_ns = peers_.clock().NowNs() + kLastMailNs;
  while (bell >= 0 && !IsLost(peers_.board(), peers_.rank()) && FillAll()) {
    const int64_t left_ns = deadline_ns - peers_.clock().NowNs();
    if (left_ns <= 0) return;
    // The loss of a receiver rings no bell that this thread hears.
    constexpr int64_t kLookNs = 10'000'000;
    pollfd ready = {.fd = bell, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(std::min(left_ns, kLookNs) / 1'000'000 + 1)) < 0 &&
        errno != EINTR) {
      return;
    }
    peers_.TakeMailFrom();
  }
}

bool ShmMail::FillAll() {
  MutexLock lock(&mutex_);
  bool waits = false;
  for (int to = 0; to < peers_.size(); ++to) {
    const Outgoing& outgoing = outgoing_[static_cast<size_t>(to)];
    const auto any = [&] {
      return !outgoing.waiting[kMessages].empty() || !outgoing.waiting[kParcels].empty();
    };
    if (!any() || IsLost(peers_.board(), to)) continue;
    Fill(to);
    waits = waits || any();
  }
  return waits;
}

absl::Status ShmMail::Post(int to, MailKind kind, std::string bytes) {
  if (const absl::Status fit = CheckMail(to, peers_.size(), kind, bytes); !fit.ok()) return fit;
  const uint64_t cost = MailCost(kind, bytes.size());
  if (IsLost(peers_.board(), peers_.rank())) return NotInTheJob(peers_.rank());
  MutexLock lock(&mutex_);
  Outgoing& outgoing = outgoing_[static_cast<size_t>(to)];
  if (outgoing.ended || IsLost(peers_.board(), to)) return NobodyThere(to);
  const size_t k = static_cast<size_t>(kind);
  if (outgoing.waiting_cost[k] + cost > MailQueueBytesMax(kind)) return MailQueueFull(to, kind);
  // The usual message: nothing waits before it, and there is room.
  if (kind == MailKind::kMessage && to != peers_.rank() && outgoing.waiting[k].empty() &&
      WriteRecord(peers_.control(to).messages[peers_.rank()], bytes.size(), bytes)) {
    peers_.TellMail(to, peers_.rank());
    return absl::OkStatus();
  }
  outgoing.waiting_cost[k] += cost;
  if (to == peers_.rank()) {
    own_.push_back({.from = to, .kind = kind, .bytes = std::move(bytes)});
    peers_.TellMail(to, to);
    return absl::OkStatus();
  }
  outgoing.waiting[k].push_back(std::move(bytes));
  Fill(to);
  return absl::OkStatus();
}

void ShmMail::Fill(int to) {
  const bool messages = FillMessages(to);
  const bool parcels = FillParcels(to);
  if (messages || parcels) peers_.TellMail(to, peers_.rank());
}

bool ShmMail::FillMessages(int to) {
  Outgoing& outgoing = outgoing_[static_cast<size_t>(to)];
  MailRing& ring = peers_.control(to).messages[peers_.rank()];
  bool moved = false;
  while (!outgoing.waiting[kMessages].empty()) {
    const std::string& message = outgoing.waiting[kMessages].front();
    if (!WriteRecord(ring, message.size(), message)) {
      if (WaitForRoom(ring)) continue;
      break;
    }
    outgoing.waiting_cost[kMessages] -= MailCost(MailKind::kMessage, message.size());
    outgoing.waiting[kMessages].pop_front();
    moved = true;
  }
  return moved;
}

bool ShmMail::FillParcels(int to) {
  Outgoing& outgoing = outgoing_[static_cast<size_t>(to)];
  MailRing& ring = peers_.control(to).parcels[peers_.rank()];
  bool moved = false;
  while (!outgoing.waiting[kParcels].empty()) {
    const std::string& parcel = outgoing.waiting[kParcels].front();
    const absl::string_view part =
        absl::string_view(parcel).substr(outgoing.sent_of_first, kMailRecordBytesMax);
    if (!WriteRecord(ring, parcel.size(), part)) {
      if (WaitForRoom(ring)) continue;
      break;
    }
    moved = true;
    outgoing.sent_of_first += part.size();
    if (outgoing.sent_of_first < parcel.size()) continue;
    outgoing.sent_of_first = 0;
    outgoing.waiting_cost[kParcels] -= MailCost(MailKind::kParcel, parcel.size());
    outgoing.waiting[kParcels].pop_front();
  }
  return moved;
}

void ShmMail::Empty(int from, std::vector<Mail>& mail) {
  Incoming& incoming = incoming_[static_cast<size_t>(from)];
  if (incoming.ended) return;
  MailRing& messages = peers_.own().messages[from];
  MailRing& parcels = peers_.own().parcels[from];
  // What comes while this reads is told again, and read then: a quick sender does not keep it here.
  const uint64_t messages_end = messages.written.load();
  const uint64_t parcels_end = parcels.written.load();
  while (messages.read.load(std::memory_order_relaxed) != messages_end) {
    std::optional<MailRecord> record = ReadRecord(messages);
    if (!record.has_value()) break;
    mail.push_back({.from = from, .kind = MailKind::kMessage, .bytes = std::move(record->bytes)});
  }
  while (parcels.read.load(std::memory_order_relaxed) != parcels_end) {
    std::optional<MailRecord> record = ReadRecord(parcels);
    if (!record.has_value()) break;
    if (incoming.parcel.empty()) {
      incoming.parcel_bytes = record->total;
      incoming.parcel.reserve(record->total);
    }
    incoming.parcel += record->bytes;
    if (incoming.parcel.size() < incoming.parcel_bytes) continue;
    mail.push_back(
        {.from = from, .kind = MailKind::kParcel, .bytes = std::exchange(incoming.parcel, {})});
  }
  for (MailRing* ring : {&messages, &parcels}) {
    // The reads above and this look are in the one order of all such accesses: a sender that says so later sees
    // the room that there is now. To write there each time would take the line from the sender each time.
    if (ring->sender_waits.load() != 0 && ring->sender_waits.exchange(0) != 0) {
      peers_.TellMail(from, peers_.rank());
    }
  }
}

void ShmMail::TakeLosses(std::vector<Mail>& mail) {
  const uint64_t losses = CountVerdicts(peers_.board());
  if (losses == losses_told_) return;
  losses_told_ = losses;
  for (const Loss& loss : ReadVerdicts(peers_.board(), peers_.size())) {
    Incoming& incoming = incoming_[static_cast<size_t>(loss.rank)];
    if (incoming.ended) continue;
    // All that it wrote before it ended.
    if (loss.rank != peers_.rank()) Empty(loss.rank, mail);
    incoming.ended = true;
    incoming.parcel = {};
    mail.push_back(LastMailOf(loss));
    MutexLock lock(&mutex_);
    Outgoing& outgoing = outgoing_[static_cast<size_t>(loss.rank)];
    outgoing = {};
    outgoing.ended = true;
  }
}

void ShmMail::TakeOwn(std::vector<Mail>& mail) {
  Outgoing& outgoing = outgoing_[static_cast<size_t>(peers_.rank())];
  for (Mail& one : own_) {
    outgoing.waiting_cost[static_cast<size_t>(one.kind)] -= MailCost(one.kind, one.bytes.size());
    mail.push_back(std::move(one));
  }
  own_.clear();
}

void ShmMail::Take(std::vector<Mail>& mail) {
  uint64_t from = peers_.TakeMailFrom();
  for (; from != 0; from &= from - 1) {
    const int rank = __builtin_ctzll(from);
    if (rank >= peers_.size()) break;  // nobody of this job
    if (rank != peers_.rank()) Empty(rank, mail);
    MutexLock lock(&mutex_);
    if (rank == peers_.rank()) {
      TakeOwn(mail);
    } else {
      Fill(rank);
    }
  }
  TakeLosses(mail);
}

}  // namespace syncopate::transport::shm
