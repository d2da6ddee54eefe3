// What comes to the core: where a frame's payload goes, what becomes of it, and which frames are
// dropped.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/copy_count.h"
#include "base/log.h"
#include "transport/net/core.h"

namespace syncopate::transport::net {
namespace {

constexpr size_t kEarlyMessagesMax = 4096;

// How many bytes this member of the group sends in all, at most.
uint64_t BytesFrom(const SessionSpec& spec, int member) {
  return spec.incoming != nullptr ? (*spec.incoming)[static_cast<size_t>(member)]
                                  : std::numeric_limits<uint64_t>::max();
}
// No message of the operation is longer than the memory that it may be taken from.
uint64_t MessageBytesMax(const SessionSpec& spec) { return spec.data_bytes + spec.scratch_bytes; }

}  // namespace

bool Core::IsForeign(int rank, const FrameHeader& header) {
  // A worker that left is heard out before that counts, and so are those whose losses come after its own in the
  // order of all: until this worker takes note of a loss, it is as if it had not heard of it.
  if (consensus_.IsLost(rank) && !peers_[static_cast<size_t>(rank)].open) {
    ++dropped_.lost_workers;
  } else if (header.job != options_.job) {
    ++dropped_.other_jobs;
  } else {
    return false;
  }
  return true;
}

// A group that has lost a member is at its end: operations that this worker has not begun by then can
// only fail. Whoever knew of the loss sends nothing for them, but what was sent before may still come.
std::pair<NetGroup*, NetOperation*> Core::OperationFor(const FrameHeader& header) {
  NetGroup* group = FindOrMake(header.group);
  if (group == nullptr) return {nullptr, nullptr};
  const bool ended = group->lost_order > 0 && !group->operations.contains(header.sequence);
  if (!ended && !group->let_go) {
    if (NetOperation* operation = FindOrMake(*group, header.sequence)) return {group, operation};
  }
  ++(group->lost_order > header.losses_known ? dropped_.before_losses : dropped_.closed_groups);
  return {nullptr, nullptr};
}

void Core::DropUnopened(NetGroup& group) {
  std::erase_if(group.operations, [&](auto& entry) {
    NetOperation& operation = *entry.second;
    if (operation.opened) return false;
    for (auto& [key, incoming] : operation.incoming) {
      CountOpened(key.first, incoming);
      GiveBack(incoming);
    }
    return true;
  });
}

void Core::DropUnopenedFrom(NetGroup& group, int rank) {
  for (auto& [sequence, operation] : group.operations) {
    if (operation->opened) continue;
    absl::erase_if(operation->incoming, [&](auto& entry) {
      if (entry.first.first != rank) return false;
      CountOpened(rank, entry.second);
      GiveBack(entry.second);
      return true;
    });
  }
}

void Core::CountOpened(int rank, const NetOperation::Incoming& incoming) {
  peers_[static_cast<size_t>(rank)].unopened_bytes -= incoming.total;
}

std::byte* Core::Place(int rank, const FrameHeader& header) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (IsForeign(rank, header)) return nullptr;
  switch (header.type) {
    case FrameType::kBeat:
    case FrameType::kGate:
    case FrameType::kBye:
    case FrameType::kOpen:
    case FrameType::kMessage:
    case FrameType::kMessagesTaken:
    case FrameType::kParcelTaken:
      peer.control.resize(header.payload_bytes);
      return reinterpret_cast<std::byte*>(peer.control.data());
    case FrameType::kData:
      return PlaceData(rank, header);
    case FrameType::kParcel: {
      std::byte* place = mail_.PlaceParcel(rank, header);
      if (place == nullptr) ++dropped_.unexpected;
      return place;
    }
    case FrameType::kResult:
      return PlaceResult(rank, header);
  }
  return nullptr;
}

NetOperation* Core::ResultTarget(int rank, const FrameHeader& header) {
  const auto group = groups_.find(header.group);
  if (group == groups_.end()) return nullptr;
  const auto found = group->second->operations.find(header.sequence);
  if (found == group->second->operations.end() || !found->second->opened) return nullptr;
  // Taken only while this member holds still for it.
  if (!group->second->gates->Held(header.sequence) || group->second->MemberOf(rank) < 0 ||
      header.total != found->second->spec.data_bytes) {
    return nullptr;
  }
  return found->second.get();
}

// A result is kept beside the operation's data until the operation takes it: this worker may be
// working on the data at this moment.
std::byte* Core::PlaceResult(int rank, const FrameHeader& header) {
  NetOperation* operation = ResultTarget(rank, header);
  if (operation == nullptr) {
    ++dropped_.closed_groups;
    return nullptr;
  }
  const auto [entry, fresh] = operation->results.try_emplace(rank);
  NetOperation::Incoming& incoming = entry->second;
  if (fresh) {
    incoming.buffer = buffers_.Take(header.total);
    incoming.total = header.total;
  }
  if (header.payload_bytes > 0) ++incoming.under_way;
  return incoming.buffer.bytes.get() + header.offset;
}

bool Core::Expects(NetGroup& group, NetOperation& operation, int rank, const FrameHeader& header) {
  const int member = group.MemberOf(rank);
  const bool known = !group.members.empty();
  uint64_t& came = operation.came[rank];
  bool expected = false;
  if (!operation.opened) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    expected = (!known || member >= 0) && came + header.total <= limits().early_bytes;
    if (expected && peer.unopened_bytes + header.total > limits().unopened_bytes_max) {
      Log(LogLevel::kWarn, "worker ", rank, " sends more than was asked for; it is dropped");
      expected = false;
    }
    if (expected) peer.unopened_bytes += header.total;
  } else if (member >= 0 && header.digest != operation.spec.digest) {
    TellOddity(group, operation, member, header.digest);
  } else if (member >= 0) {
    expected = header.total <= MessageBytesMax(operation.spec) &&
               came + header.total <= BytesFrom(operation.spec, member);
  }
  if (expected) came += header.total;
  return expected;
}

std::byte* Core::PlaceData(int rank, const FrameHeader& header) {
  const auto [group, operation] = OperationFor(header);
  if (operation == nullptr) return nullptr;
  auto entry = operation->incoming.find({rank, header.step});
  if (entry == operation->incoming.end()) {
    if (!Expects(*group, *operation, rank, header)) {
      ++dropped_.unexpected;
      return nullptr;
    }
    entry = operation->incoming
                .try_emplace({rank, header.step},
                             NetOperation::Incoming{.buffer = buffers_.Take(header.total),
                                                    .total = header.total,
                                                    .digest = header.digest})
                .first;
  }
  NetOperation::Incoming& incoming = entry->second;
  if (incoming.total != header.total || incoming.digest != header.digest) {
    ++dropped_.unexpected;
    return nullptr;
  }
  if (header.payload_bytes > 0) ++incoming.under_way;
  return incoming.buffer.bytes.get() + header.offset;
}

void Core::Arrived(int rank, const FrameHeader& header) {
  if (IsForeign(rank, header)) return;
  consensus_.Heard(rank, now_ns_);
  if (const int64_t at_ns = wire_->ArrivalNs(now_ns_); at_ns != 0) {
    const bool data = header.type == FrameType::kData;
    peers_[static_cast<size_t>(rank)].times.Arrived(header.sent_ns, at_ns,
                                                    data ? header.payload_bytes : 0, now_ns_);
  }
  switch (header.type) {
    case FrameType::kBeat: {
      absl::StatusOr<LossMessage> message =
          DecodeLossMessage(peers_[static_cast<size_t>(rank)].control, options_.size);
      if (message.ok()) consensus_.Received(rank, *message, now_ns_);
      Conclude();
      return;
    }
    case FrameType::kBye:
      peers_[static_cast<size_t>(rank)].bye = true;
      return;
    case FrameType::kOpen: {
      const auto [group, operation] = OperationFor(header);
      if (operation != nullptr) PeerHasBegun(*operation, rank);
      return;
    }
    case FrameType::kData:
      DataArrived(rank, header);
      return;
    case FrameType::kGate:
      GateMessageArrived(rank, header);
      return;
    case FrameType::kResult:
      ResultArrived(rank, header);
      return;
    case FrameType::kMessage:
      if (!mail_.MessageArrived(rank, peers_[static_cast<size_t>(rank)].control)) {
        ++dropped_.unexpected;
      }
      return;
    case FrameType::kParcel:
      mail_.ParcelArrived(rank, header);
      return;
    case FrameType::kMessagesTaken:
      if (!mail_.MessagesTaken(rank, header)) ++dropped_.unexpected;
      return;
    case FrameType::kParcelTaken:
      if (!mail_.ParcelTaken(rank, header)) ++dropped_.unexpected;
      return;
  }
}

void Core::ResultArrived(int rank, const FrameHeader& header) {
  // A frame without payload was not placed, so nobody has looked at it yet.
  if (header.payload_bytes == 0) PlaceResult(rank, header);
  const auto found = groups_.find(header.group);
  if (found == groups_.end()) return;
  NetGroup& group = *found->second;
  const auto place = group.operations.find(header.sequence);
  if (place == group.operations.end()) return;
  const auto entry = place->second->results.find(rank);
  if (entry == place->second->results.end()) return;
  NetOperation::Incoming& incoming = entry->second;
  if (header.payload_bytes > 0) --incoming.under_way;
  incoming.got += header.payload_bytes;
  if (incoming.got < incoming.total) return;
  group.gates->ResultArrived(header.sequence);
  Pump(group);
}

bool Core::TakeResult(NetGroup& group, NetOperation& operation) {
  if (!group.gates->TakeResult(operation.sequence)) return false;
  const auto whole =
      std::find_if(operation.results.begin(), operation.results.end(),
                   [](const auto& entry) { return entry.second.got >= entry.second.total; });
  if (whole != operation.results.end() && whole->second.total > 0) {
    CountCopy(CopyStage::kReceived, whole->second.total);
    std::memcpy(operation.spec.data, whole->second.buffer.bytes.get(), whole->second.total);
  }
  for (auto& [rank, incoming] : operation.results) GiveBack(incoming);
  operation.results.clear();
  Pump(group);
  return true;
}

void Core::DataArrived(int rank, const FrameHeader& header) {
  if (header.payload_bytes == 0 && PlaceData(rank, header) == nullptr) return;
  const auto group = groups_.find(header.group);
  if (group == groups_.end()) return;
  const auto found = group->second->operations.find(header.sequence);
  if (found == group->second->operations.end()) return;
  NetOperation& operation = *found->second;
  const auto entry = operation.incoming.find({rank, header.step});
  if (entry == operation.incoming.end()) return;
  NetOperation::Incoming& incoming = entry->second;
  if (header.payload_bytes > 0) --incoming.under_way;
  incoming.got += header.payload_bytes;
  ++incoming.fragments;
  PeerHasBegun(operation, rank);
}

// A connection may be in the middle of a frame for this buffer: what is left of the frame must not go
// into memory that is then somebody else's.
void Core::GiveBack(NetOperation::Incoming& incoming) {
  if (incoming.under_way > 0) {
    wire_->Abandon(incoming.buffer.bytes.get(), incoming.buffer.capacity);
  }
  buffers_.Give(std::move(incoming.buffer));
}

std::vector<Traffic> Core::TakeTraffic() {
  std::vector<Traffic> all;
  for (Peer& peer : peers_) all.push_back(peer.times.Take());
  return all;
}

void Core::GateMessageArrived(int rank, const FrameHeader& header) {
  absl::StatusOr<GateMessage> message =
      DecodeGateMessage(peers_[static_cast<size_t>(rank)].control);
  if (!message.ok()) {
    ++dropped_.unexpected;
    return;
  }
  // Somebody cannot wait until this worker makes the group, which may be never.
  const bool asks =
      message->kind == GateMessage::Kind::kAsk || message->kind == GateMessage::Kind::kQuery;
  const std::vector<int> members(message->ranks.begin(), message->ranks.end());
  if (asks && AreMembers(members)) Revive(header.group, members);
  NetGroup* group = FindOrMake(header.group);
  if (group == nullptr) return;
  if (group->gates == nullptr && asks && AreMembers(members)) SetMembers(*group, members);
  if (group->gates == nullptr) {
    if (group->early_messages.size() < kEarlyMessagesMax) {
      group->early_messages.emplace_back(rank, *std::move(message));
    }
    return;
  }
  const int member = group->MemberOf(rank);
  if (member < 0 || !group->gates->Receive(member, *message)) {
    ++dropped_.unexpected;
    return;
  }
  Pump(*group);
  Compact(header.group);
}

// Different workers of the job, with this one among them.
bool Core::AreMembers(const std::vector<int>& ranks) const {
  const std::set<int> different(ranks.begin(), ranks.end());
  return different.size() == ranks.size() && different.contains(options_.rank) &&
         *different.begin() >= 0 && *different.rbegin() < options_.size;
}

const std::byte* Core::Arrived(NetGroup& group, NetOperation& operation, int from, uint32_t step,
                               uint64_t size) {
  static constexpr std::byte kNothing{};
  const auto found = operation.incoming.find({group.members[static_cast<size_t>(from)], step});
  if (found == operation.incoming.end()) return nullptr;
  const NetOperation::Incoming& incoming = found->second;
  if (incoming.total != size) {
    TellOddity(group, operation, from, incoming.digest);
    return nullptr;
  }
  if (incoming.fragments == 0 || incoming.got < incoming.total) return nullptr;
  return incoming.buffer.bytes != nullptr ? incoming.buffer.bytes.get() : &kNothing;
}

void Core::Consume(NetOperation& operation, int rank, uint32_t step) {
  const auto found = operation.incoming.find({rank, step});
  if (found == operation.incoming.end()) return;
  GiveBack(found->second);
  operation.incoming.erase(found);
}

// What came before this worker had begun is now compared with what it runs.
void Core::TakeEarlyMessages(NetGroup& group, NetOperation& operation) {
  std::optional<GateProtocol::Oddity> oddity;
  absl::erase_if(operation.incoming, [&](auto& entry) {
    auto& [key, incoming] = entry;
    CountOpened(key.first, incoming);
    const int member = group.MemberOf(key.first);
    const bool same = incoming.digest == operation.spec.digest;
    if (member >= 0 && !same) oddity = {member, incoming.digest};
    if (member >= 0 && same && incoming.total <= MessageBytesMax(operation.spec)) return false;
    GiveBack(incoming);
    ++dropped_.unexpected;
    return true;
  });
  if (oddity) TellOddity(group, operation, oddity->member, oddity->digest);
}

void Core::TellOddity(NetGroup& group, NetOperation& operation, int member, uint64_t digest) {
  if (operation.spec.hopeless) return;
  group.gates->Ask(operation.sequence, member, digest);
  Pump(group);
}

}  // namespace syncopate::transport::net
