// What the core sends: data of operations, results, and what the gate protocols say.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "transport/net/core.h"

namespace syncopate::transport::net {

FrameHeader Core::HeaderFor(FrameType type, uint64_t group, uint64_t sequence) const {
  return {.type = type,
          .job = options_.job,
          .losses_known = static_cast<uint32_t>(losses_.size()),
          .group = group,
          .sequence = sequence,
          .sent_ns = clock_.NowNs()};
}

uint32_t Core::FragmentsOf(uint64_t size) const {
  const uint64_t most = limits().fragment_bytes;
  return static_cast<uint32_t>(std::max<uint64_t>((size + most - 1) / most, 1));
}

void Core::Offer(NetGroup& group, NetOperation& operation, uint32_t step, int to,
                 const std::byte* bytes, uint64_t size) {
  const int rank = group.members[static_cast<size_t>(to)];
  const uint64_t cookie = next_cookie_++;
  operation.cookies[{rank, step}] = cookie;
  FrameHeader header = HeaderFor(FrameType::kData, group.key, operation.sequence);
  header.step = step;
  header.priority = operation.spec.priority;
  header.total = size;
  header.digest = operation.spec.digest;
  sendings_[cookie] = {.operation = &operation, .fragments = FragmentsOf(size)};
  if (!operation.begun_by.contains(rank)) {
    uint64_t& early = operation.early[rank];
    if (early + size > limits().early_bytes && size > 0) {
      operation.waiting.push_back({rank, header, bytes, cookie});
      return;
    }
    early += size;
  }
  SendMessage(rank, header, bytes, cookie);
}

void Core::SendMessage(int rank, FrameHeader header, const std::byte* bytes, uint64_t cookie) {
  const uint64_t size = header.total;
  header.sent_ns = clock_.NowNs();  // it may have waited until the member was there
  const uint32_t most = limits().fragment_bytes;
  for (uint64_t offset = 0; offset == 0 || offset < size; offset += most) {
    header.offset = offset;
    header.payload_bytes = static_cast<uint32_t>(std::min<uint64_t>(most, size - offset));
    wire_->Send(rank, header, bytes + offset, cookie);
  }
}

void Core::PeerHasBegun(NetOperation& operation, int peer) {
  if (!operation.begun_by.insert(peer).second) return;
  NoteBegun(operation);
  if (operation.waiting.empty()) return;
  std::vector<NetOperation::Waiting> waiting = std::exchange(operation.waiting, {});
  for (NetOperation::Waiting& message : waiting) {
    if (message.rank == peer) {
      SendMessage(peer, message.header, message.bytes, message.cookie);
    } else {
      operation.waiting.push_back(message);
    }
  }
}

void Core::Sent(uint64_t cookie) {
  if ((cookie & PostOffice::kCookieBit) != 0) return;  // kept until it is taken
  const auto found = sendings_.find(cookie);
  if (found == sendings_.end() || --found->second.fragments > 0) return;
  if (found->second.result) --found->second.operation->results_left;
  sendings_.erase(found);
}

bool Core::Sent(const NetOperation& operation, uint32_t step, int rank) const {
  const auto found = operation.cookies.find({rank, step});
  return found != operation.cookies.end() && !sendings_.contains(found->second);
}

absl::Status Core::Post(int to, MailKind kind, std::string bytes) {
  if (const absl::Status fit = CheckMail(to, options_.size, kind, bytes); !fit.ok()) return fit;
  if (leaving_ || gave_up_) return NotInTheJob(options_.rank);
  if (to != options_.rank && !peers_[static_cast<size_t>(to)].open) return NobodyThere(to);
  return mail_.Post(to, kind, std::move(bytes));
}

void Core::SendMail(int to, FrameType type, uint64_t sequence, absl::string_view bytes) {
  FrameHeader header = HeaderFor(type, 0, sequence);
  header.total = bytes.size();
  header.payload_bytes = static_cast<uint32_t>(bytes.size());
  wire_->Send(to, header, reinterpret_cast<const std::byte*>(bytes.data()), 0);
}

void Core::SendParcel(int to, uint64_t sequence, const std::string& bytes, uint64_t cookie) {
  FrameHeader header = HeaderFor(FrameType::kParcel, 0, sequence);
  header.total = bytes.size();
  SendMessage(to, header, reinterpret_cast<const std::byte*>(bytes.data()), cookie);
}

void Core::Say(NetGroup& group) {
  for (GateProtocol::Outgoing& outgoing : group.gates->TakeMessages()) {
    const int rank = group.members[static_cast<size_t>(outgoing.to)];
    const std::string bytes = Encode(outgoing.message);
    FrameHeader header = HeaderFor(FrameType::kGate, group.key, 0);
    header.payload_bytes = static_cast<uint32_t>(bytes.size());
    header.total = bytes.size();
    wire_->Send(rank, header, reinterpret_cast<const std::byte*>(bytes.data()), 0);
  }
  for (const GateProtocol::Provision& provision : group.gates->TakeProvisions()) {
    Provide(group, provision);
  }
}

void Core::Provide(NetGroup& group, const GateProtocol::Provision& provision) {
  const auto found = group.operations.find(provision.sequence);
  if (found == group.operations.end() || !found->second->opened) return;
  NetOperation& operation = *found->second;
  for (const int member : provision.needy) {
    const int rank = group.members[static_cast<size_t>(member)];
    if (!operation.results_for.insert(rank).second) continue;  // by an earlier decision
    const uint64_t size = operation.spec.data_bytes;
    const uint64_t cookie = next_cookie_++;
    FrameHeader header = HeaderFor(FrameType::kResult, group.key, provision.sequence);
    header.total = size;
    header.digest = operation.spec.digest;
    header.priority = operation.spec.priority;
    ++operation.results_left;
    sendings_[cookie] = {.operation = &operation, .fragments = FragmentsOf(size), .result = true};
    SendMessage(rank, header, operation.spec.data, cookie);
  }
}

}  // namespace syncopate::transport::net
