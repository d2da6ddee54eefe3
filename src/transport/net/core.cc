#include "transport/net/core.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/log.h"

namespace syncopate::transport::net {
namespace {

// Groups that peers use and this worker has not made yet, or has let go.
constexpr size_t kGroupsMax = 8192;
constexpr size_t kEarlyMessagesMax = 4096;
// What is less than this is on its way all at once.
constexpr uint64_t kStreamBytes = 16 << 10;

// How many bytes this member of the group sends in all, at most.
uint64_t BytesFrom(const SessionSpec& spec, int member) {
  return spec.incoming != nullptr ? (*spec.incoming)[static_cast<size_t>(member)]
                                  : std::numeric_limits<uint64_t>::max();
}
// No message of the operation is longer than the memory that it may be taken from.
uint64_t MessageBytesMax(const SessionSpec& spec) { return spec.data_bytes + spec.scratch_bytes; }

// By member, the part of what comes; empty if that is very little or not known.
std::vector<double> SharesOf(const SessionSpec& spec) {
  if (spec.incoming == nullptr) return {};
  const uint64_t total = std::accumulate(spec.incoming->begin(), spec.incoming->end(), uint64_t{0});
  if (total < kStreamBytes) return {};
  std::vector<double> shares;
  for (const uint64_t bytes : *spec.incoming) {
    shares.push_back(static_cast<double>(bytes) / static_cast<double>(total));
  }
  return shares;
}

}  // namespace

std::string Describe(const DroppedFrames& dropped) {
  std::vector<std::string> parts;
  const auto add = [&](uint64_t count, absl::string_view what) {
    if (count > 0) parts.push_back(absl::StrCat(count, " ", what));
  };
  add(dropped.lost_workers, "of lost workers");
  add(dropped.other_jobs, "of other jobs");
  add(dropped.closed_groups, "of closed groups");
  add(dropped.before_losses, "from before a loss");
  add(dropped.unexpected, "not expected");
  return absl::StrJoin(parts, ", ");
}

int NetGroup::MemberOf(int rank) const {
  const auto found = std::find(members.begin(), members.end(), rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

Core::Core(const Options& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      consensus_(options.consensus, clock.NowNs()),
      peers_(static_cast<size_t>(options.size)),
      open_peers_(options.size - 1),
      buffers_(options.limits.kept_bytes_max),
      now_ns_(clock.NowNs()) {
  peers_[static_cast<size_t>(options.rank)].open = false;
}

bool Core::Progress() {
  now_ns_ = clock_.NowNs();
  return wire_->Progress();
}

void Core::Tick(int64_t now_ns) {
  now_ns_ = now_ns;
  consensus_.Tick(now_ns);
  Conclude();
  FlushAll();
}

void Core::FlushAll() {
  for (auto& [key, group] : groups_) {
    if (group->gates == nullptr) continue;
    group->gates->Flush();
    Pump(*group);
  }
}

// ---- groups and operations

NetGroup* Core::FindOrMake(uint64_t key) {
  const auto found = groups_.find(key);
  if (found != groups_.end()) return found->second.get();
  if (groups_.size() >= kGroupsMax && !ForgetGroup()) return nullptr;
  auto group = std::make_unique<NetGroup>();
  group->key = key;
  return groups_.emplace(key, std::move(group)).first->second.get();
}

// The one that was let go first: of that, late frames are least likely. Else one that is only known
// from messages.
bool Core::ForgetGroup() {
  if (!let_go_.empty()) {
    groups_.erase(let_go_.front());
    let_go_.pop_front();
    return true;
  }
  const auto idle = std::find_if(groups_.begin(), groups_.end(), [](const auto& entry) {
    return !entry.second->open && entry.second->operations.empty();
  });
  if (idle == groups_.end()) return false;
  groups_.erase(idle);
  return true;
}

NetOperation* Core::FindOrMake(NetGroup& group, uint64_t sequence) {
  if (group.closed.Contains(sequence)) return nullptr;
  std::unique_ptr<NetOperation>& operation = group.operations[sequence];
  if (operation == nullptr) {
    operation = std::make_unique<NetOperation>();
    operation->group = group.key;
    operation->sequence = sequence;
  }
  return operation.get();
}

void Core::SetMembers(NetGroup& group, const std::vector<int>& members) {
  if (group.gates != nullptr) return;
  group.members = members;
  const int self = group.MemberOf(options_.rank);
  group.gates =
      std::make_unique<GateProtocol>(std::vector<int32_t>(members.begin(), members.end()), self);
  if (gave_up_) group.gates->GiveUp();
  for (const Loss& loss : losses_) {
    const int member = group.MemberOf(loss.rank);
    if (member < 0 || loss.rank == options_.rank) continue;
    group.gates->Lose(member);
    if (group.lost_order == 0) group.lost_order = loss.order;
  }
  for (const auto& [rank, message] : std::exchange(group.early_messages, {})) {
    const int member = group.MemberOf(rank);
    if (member >= 0) group.gates->Receive(member, message);
  }
  Pump(group);
}

absl::Status Core::OpenGroup(uint64_t key, const std::vector<int>& members) {
  NetGroup* group = FindOrMake(key);
  if (group == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "there are ", kGroupsMax, " groups already; let go of groups that are no longer used"));
  }
  if (group->open || group->let_go) {
    return absl::AlreadyExistsError("a group with this key was made already");
  }
  SetMembers(*group, members);
  if (group->members != members) {
    return absl::FailedPreconditionError("another worker knows this group with other members");
  }
  group->open = true;
  return absl::OkStatus();
}

void Core::CloseGroup(uint64_t key) {
  NetGroup& group = *groups_.at(key);
  group.open = false;
  group.let_go = true;
  let_go_.push_back(key);
  DropUnopened(group);
  group.gates->Flush();
  Pump(group);
}

NetOperation& Core::Begin(NetGroup& group, const SessionSpec& spec, int self) {
  NetOperation& operation = *FindOrMake(group, spec.sequence);
  operation.opened = true;
  operation.spec = spec;
  using Mode = GateProtocol::Mode;
  const Mode mode = spec.ending == Ending::kLoose     ? Mode::kLoose
                    : spec.ending == Ending::kAwaited ? Mode::kAwaited
                                                      : Mode::kShared;
  group.gates->Open(spec.sequence, mode,
                    {.digest = spec.digest, .weight = spec.weight, .staged = spec.staged},
                    spec.awaits_start);
  TakeEarlyMessages(group, operation);
  if (!SharesOf(spec).empty()) ExpectShares();
  // Who will send us more than the early bytes must know that we are there.
  for (size_t member = 0; member < group.members.size(); ++member) {
    const int rank = group.members[member];
    if (static_cast<int>(member) == self) continue;
    if (spec.incoming != nullptr && (*spec.incoming)[member] <= limits().early_bytes) continue;
    if (consensus_.IsLost(rank)) continue;
    wire_->Send(rank, HeaderFor(FrameType::kOpen, group.key, spec.sequence), nullptr, 0);
  }
  return operation;
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
  group.gates->Ask(operation.sequence, member, digest);
  Pump(group);
}

// Where several peers send at once, what is on its way from all of them waits in the same queue,
// and is lost if that is too much. Of operations under way at once the larger share counts.
void Core::ExpectShares() {
  std::vector<double> most(peers_.size(), 0);
  for (const auto& [key, group] : groups_) {
    for (const auto& [sequence, operation] : group->operations) {
      if (!operation->opened) continue;
      const std::vector<double> shares = SharesOf(operation->spec);
      for (size_t member = 0; member < shares.size(); ++member) {
        double& share = most[static_cast<size_t>(group->members[member])];
        share = std::max(share, shares[member]);
      }
    }
  }
  for (size_t rank = 0; rank < most.size(); ++rank) {
    if (most[rank] > 0) wire_->Expect(static_cast<int>(rank), most[rank]);
  }
}

void Core::End(NetGroup& group, uint64_t sequence) {
  const auto found = group.operations.find(sequence);
  if (found == group.operations.end()) return;
  NetOperation& operation = *found->second;
  for (const auto& [key, cookie] : operation.cookies) {
    if (sendings_.erase(cookie) > 0) wire_->Detach(cookie);
  }
  if (operation.results_left > 0) {
    absl::erase_if(sendings_, [&](const auto& entry) {
      if (entry.second.operation != &operation) return false;
      wire_->Detach(entry.first);
      return true;
    });
  }
  for (auto& [key, incoming] : operation.incoming) GiveBack(incoming);
  if (operation.results_under_way > 0) {
    wire_->Abandon(operation.spec.data, operation.spec.data_bytes);
  }
  group.operations.erase(found);
  group.closed.Add(sequence);
  group.gates->Close(sequence);
  Pump(group);
}

// ---- messages out

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
  if (!operation.begun_by.insert(peer).second || operation.waiting.empty()) return;
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
  const auto found = sendings_.find(cookie);
  if (found == sendings_.end() || --found->second.fragments > 0) return;
  if (found->second.result) --found->second.operation->results_left;
  sendings_.erase(found);
}

bool Core::Sent(const NetOperation& operation, uint32_t step, int rank) const {
  const auto found = operation.cookies.find({rank, step});
  return found != operation.cookies.end() && !sendings_.contains(found->second);
}

void Core::Pump(NetGroup& group) {
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

// ---- messages in

bool Core::IsForeign(int rank, const FrameHeader& header) {
  if (consensus_.IsLost(rank)) {
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
  if (group == nullptr) {
    ++dropped_.unexpected;
    return {nullptr, nullptr};
  }
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
      peer.control.resize(header.payload_bytes);
      return reinterpret_cast<std::byte*>(peer.control.data());
    case FrameType::kData:
      return PlaceData(rank, header);
    case FrameType::kResult: {
      NetOperation* operation = ResultTarget(rank, header);
      if (operation == nullptr || operation->spec.data == nullptr) {
        ++dropped_.closed_groups;
        return nullptr;
      }
      ++operation->results_under_way;
      return operation->spec.data + header.offset;
    }
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
                                                    data ? header.payload_bytes : 0);
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
  }
}

void Core::ResultArrived(int rank, const FrameHeader& header) {
  // A frame without payload was not placed, so nobody has looked at it yet.
  if (header.payload_bytes == 0 && ResultTarget(rank, header) == nullptr) {
    ++dropped_.closed_groups;
    return;
  }
  const auto found = groups_.find(header.group);
  if (found == groups_.end()) return;
  NetGroup& group = *found->second;
  const auto place = group.operations.find(header.sequence);
  if (place == group.operations.end()) return;
  NetOperation& operation = *place->second;
  if (header.payload_bytes > 0) --operation.results_under_way;
  if (std::exchange(operation.result_from, rank) != rank) operation.result_got = 0;
  operation.result_got += header.payload_bytes;
  if (operation.result_got < header.total) return;
  group.gates->ResultArrived(header.sequence);
  Pump(group);
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
  NetGroup* group = FindOrMake(header.group);
  if (!message.ok() || group == nullptr) {
    ++dropped_.unexpected;
    return;
  }
  if (group->gates == nullptr &&
      (message->kind == GateMessage::Kind::kAsk || message->kind == GateMessage::Kind::kQuery)) {
    // Somebody cannot wait until this worker makes the group, which may be never.
    const std::vector<int> members(message->ranks.begin(), message->ranks.end());
    if (AreMembers(members)) SetMembers(*group, members);
  }
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

// ---- who is lost

void Core::Closed(int rank, const absl::Status& why) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!std::exchange(peer.open, false)) return;
  --open_peers_;
  if (leaving_) return;
  Log(LogLevel::kInfo, "the connection with worker ", rank, " ended",
      why.ok() ? "" : absl::StrCat(": ", why.message()));
  consensus_.Closed(rank, peer.bye ? Cause::kLeft : Cause::kDied, now_ns_);
  Conclude();
}

void Core::Expel(int rank) {
  consensus_.Expel(rank, clock_.NowNs());
  Conclude();
}

void Core::Conclude() {
  for (const LossConsensus::Outgoing& outgoing : consensus_.TakeMessages()) {
    const std::string bytes = Encode(outgoing.message);
    FrameHeader header = HeaderFor(FrameType::kBeat, 0, 0);
    header.payload_bytes = static_cast<uint32_t>(bytes.size());
    header.total = bytes.size();
    wire_->Send(outgoing.to, header, reinterpret_cast<const std::byte*>(bytes.data()), 0);
  }
  std::vector<Verdict> fresh;
  while (known_verdicts_ < consensus_.verdicts().size()) {
    const Verdict& verdict = consensus_.verdicts()[known_verdicts_++];
    std::string cause = Describe(verdict.cause);
    if (!options_.hosts.empty()) {
      absl::StrAppend(&cause, " on ", options_.hosts[static_cast<size_t>(verdict.rank)]);
    }
    losses_.push_back({.rank = verdict.rank, .order = verdict.order, .cause = std::move(cause)});
    if (verdict.rank == options_.rank) continue;
    fresh.push_back(verdict);
    if (!IsCertain(verdict.cause)) uncertain_.push_back(verdict.rank);
  }
  for (const Verdict& verdict : fresh) {
    const int rank = verdict.rank;
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (peer.open) {
      peer.open = false;
      --open_peers_;
      wire_->Close(rank, /*politely=*/true);  // it should read that it is out, if it can
    }
    for (auto& [key, group] : groups_) {
      DropUnopenedFrom(*group, rank);
      const int member = group->MemberOf(rank);
      if (member < 0) continue;
      if (group->lost_order == 0) group->lost_order = verdict.order;
      DropUnopened(*group);
      group->gates->Lose(member);
      Pump(*group);
    }
  }
  if (consensus_.self_lost() && !gave_up_) {
    gave_up_ = true;
    const bool known = std::any_of(losses_.begin(), losses_.end(),
                                   [&](const Loss& loss) { return loss.rank == options_.rank; });
    if (!known) {
      // First: whatever this worker still believes about others does not count.
      losses_.insert(losses_.begin(),
                     {.rank = options_.rank, .order = 0, .cause = consensus_.self_lost_reason()});
    }
    for (auto& [key, group] : groups_) {
      if (group->gates != nullptr) group->gates->GiveUp();
    }
  }
}

void Core::Leave() {
  leaving_ = true;
  FlushAll();
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!peers_[static_cast<size_t>(rank)].open) continue;
    wire_->Send(rank, HeaderFor(FrameType::kBye, 0, 0), nullptr, 0);
    wire_->Close(rank, /*politely=*/true);
  }
}

}  // namespace syncopate::transport::net
