#include "transport/net/core.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/limits.h"
#include "base/log.h"

namespace syncopate::transport::net {
namespace {

// Groups that are open, that peers use and this worker has not made yet, or that were broken and let go.
constexpr size_t kGroupsMax = 8192;
// What is less than this is on its way all at once.
constexpr uint64_t kStreamBytes = 16 << 10;
// How long the last words of a worker that gives up may take before it ends its connections.
constexpr int64_t kLastWordsNs = 300'000'000;
// How long what a worker sent before it left may take to come after another worker has told of it.
constexpr int64_t kHearOutNs = 500'000'000;

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
      mail_(options.rank, options.size, options.limits.mail_queued_bytes, *this),
      consensus_(options.consensus, clock.NowNs()),
      peers_(static_cast<size_t>(options.size)),
      open_peers_(options.size - 1),
      closed_groups_(limits::kClosedGroupsMax),
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
  if (gave_up_ && now_ns >= hang_up_ns_ && !leaving_) HangUp();
  FlushAll();
}

// A key may stand there several times, since a group that is forgotten and asked for again is a new one; and
// what is done here notes groups as well. So those that are at work are found first.
void Core::FlushAll() {
  std::vector<NetGroup*> groups;
  for (const uint64_t key : std::exchange(at_work_, {})) {
    const auto found = groups_.find(key);
    if (found != groups_.end() && std::exchange(found->second->at_work, false)) {
      groups.push_back(found->second.get());
    }
  }
  for (NetGroup* group : groups) {
    group->gates->Flush();
    Say(*group);
    if (!group->operations.empty()) NoteWork(*group);
  }
}

void Core::NoteWork(NetGroup& group) {
  if (!std::exchange(group.at_work, true)) at_work_.push_back(group.key);
}

// ---- groups and operations

NetGroup* Core::FindOrMake(uint64_t key) {
  const auto found = groups_.find(key);
  if (found != groups_.end()) return found->second.get();
  if (closed_groups_.Find(key)) {
    ++dropped_.closed_groups;
    return nullptr;
  }
  if (groups_.size() >= kGroupsMax && !ForgetGroup()) {
    ++dropped_.unexpected;
    return nullptr;
  }
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

void Core::Revive(uint64_t key, const std::vector<int>& members) {
  const std::optional<uint64_t> settled_below = closed_groups_.Find(key);
  if (!settled_below || groups_.contains(key)) return;
  if (groups_.size() >= kGroupsMax && !ForgetGroup()) return;
  auto group = std::make_unique<NetGroup>();
  group->key = key;
  group->let_go = true;
  let_go_.push_back(key);
  NetGroup& revived = *groups_.emplace(key, std::move(group)).first->second;
  SetMembers(revived, members, *settled_below);
}

void Core::Compact(uint64_t key) {
  const auto found = groups_.find(key);
  if (found == groups_.end() || !found->second->let_go || !found->second->operations.empty())
    return;
  const std::optional<uint64_t> settled = found->second->gates->Settled();
  if (!settled) return;
  closed_groups_.Add(key, *settled);
  groups_.erase(found);
  std::erase(let_go_, key);
}

void Core::SetMembers(NetGroup& group, const std::vector<int>& members, uint64_t settled_below) {
  if (group.gates != nullptr) return;
  group.members = members;
  const int self = group.MemberOf(options_.rank);
  group.gates = std::make_unique<GateProtocol>(std::vector<int32_t>(members.begin(), members.end()),
                                               self, settled_below);
  if (gave_up_) group.gates->GiveUp();
  for (const Loss& loss : losses_) {
    const int member = group.MemberOf(loss.rank);
    if (member < 0 || loss.rank == options_.rank) continue;
    group.gates->Lose(member);
    if (group.lost_order == 0) group.lost_order = loss.order;
  }
  if (group.lost_order > 0) DropUnopened(group);
  for (const auto& [rank, message] : std::exchange(group.early_messages, {})) {
    const int member = group.MemberOf(rank);
    if (member >= 0) group.gates->Receive(member, message);
  }
  Pump(group);
}

absl::Status Core::OpenGroup(uint64_t key, const std::vector<int>& members) {
  if (closed_groups_.Find(key)) {
    return absl::AlreadyExistsError("a group with this key was made already");
  }
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
  Compact(key);
}

void Core::Hurry(uint64_t key) {
  NetGroup& group = *groups_.at(key);
  group.gates->Hurry();
  Pump(group);
}

// What has come for it already may hold memory; who asks for it is answered by Revive().
void Core::Renounce(uint64_t key) {
  const auto found = groups_.find(key);
  if (found != groups_.end() && (found->second->open || found->second->gates != nullptr)) return;
  if (found != groups_.end()) {
    DropUnopened(*found->second);
    groups_.erase(found);
  }
  closed_groups_.Add(key, 0);
}

NetOperation& Core::Begin(NetGroup& group, const SessionSpec& spec, int self) {
  NetOperation& operation = *FindOrMake(group, spec.sequence);
  NoteWork(group);
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

// Where several peers send at once, what is on its way from all of them waits in the same queue,
// and is lost if that is too much. Of operations under way at once the larger share counts.
void Core::ExpectShares() {
  std::vector<double> most(peers_.size(), 0);
  for (const uint64_t key : at_work_) {
    const auto group = groups_.find(key);
    if (group == groups_.end()) continue;
    for (const auto& [sequence, operation] : group->second->operations) {
      if (!operation->opened) continue;
      const std::vector<double> shares = SharesOf(operation->spec);
      for (size_t member = 0; member < shares.size(); ++member) {
        double& share = most[static_cast<size_t>(group->second->members[member])];
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
  for (auto& [rank, incoming] : operation.results) GiveBack(incoming);
  group.operations.erase(found);
  group.closed.Add(sequence);
  group.gates->Close(sequence);
  Pump(group);
}

// ---- who is lost

void Core::Closed(int rank, const absl::Status& why) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!std::exchange(peer.open, false)) return;
  --open_peers_;
  if (leaving_) return;
  Log(LogLevel::kInfo, "the connection with worker ", rank, " ended",
      why.ok() ? "" : absl::StrCat(": ", why.message()));
  if (absl::IsDataLoss(why)) peer.tampering = std::string(why.message());
  consensus_.Closed(rank, peer.bye ? Cause::kLeft : Cause::kDied, now_ns_);
  Conclude();
}

void Core::Expel(int rank) {
  consensus_.Expel(rank, clock_.NowNs());
  Conclude();
}

// A worker that left has sent all that the others need of it and then ended its connections. Another one may be
// quicker to tell of it: what it sent is read first.
bool Core::MustHearOut(size_t number) const {
  const Verdict& verdict = consensus_.verdicts()[number];
  const bool more_may_come = verdict.cause == Cause::kLeft && verdict.rank != options_.rank &&
                             peers_[static_cast<size_t>(verdict.rank)].open && !leaving_;
  return more_may_come && now_ns_ < hear_out_until_ns_[number];
}

void Core::Conclude() {
  for (const LossConsensus::Outgoing& outgoing : consensus_.TakeMessages()) {
    const std::string bytes = Encode(outgoing.message);
    FrameHeader header = HeaderFor(FrameType::kBeat, 0, 0);
    header.payload_bytes = static_cast<uint32_t>(bytes.size());
    header.total = bytes.size();
    wire_->Send(outgoing.to, header, reinterpret_cast<const std::byte*>(bytes.data()), 0);
  }
  // From when a verdict has come, so that several that wait for each other's workers do not add up.
  hear_out_until_ns_.resize(consensus_.verdicts().size(), now_ns_ + kHearOutNs);
  std::vector<Verdict> fresh;
  while (known_verdicts_ < consensus_.verdicts().size()) {
    const Verdict& verdict = consensus_.verdicts()[known_verdicts_];
    if (MustHearOut(known_verdicts_)) break;
    ++known_verdicts_;
    std::string cause = Describe(verdict.cause);
    if (!options_.hosts.empty()) {
      absl::StrAppend(&cause, " on ", options_.hosts[static_cast<size_t>(verdict.rank)]);
    }
    const std::string& tampering = peers_[static_cast<size_t>(verdict.rank)].tampering;
    if (!tampering.empty()) absl::StrAppend(&cause, " (", tampering, ")");
    losses_.push_back({.rank = verdict.rank,
                       .order = verdict.order,
                       .cause = std::move(cause),
                       .left = verdict.cause == Cause::kLeft});
    mail_.Lose(LastMailOf(losses_.back()));
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
    hang_up_ns_ = now_ns_ + kLastWordsNs;
    const bool known = std::any_of(losses_.begin(), losses_.end(),
                                   [&](const Loss& loss) { return loss.rank == options_.rank; });
    if (!known) {
      // First: whatever this worker still believes about others does not count.
      losses_.insert(losses_.begin(),
                     {.rank = options_.rank, .order = 0, .cause = consensus_.self_lost_reason()});
      mail_.Lose(LastMailOf(losses_.front()));
    }
    for (auto& [key, group] : groups_) {
      if (group->gates == nullptr) continue;
      group->gates->GiveUp();
      NoteWork(*group);
    }
  }
}

// To a worker to which nothing comes, the network seems to take what it says, up to what may be on its
// way unacknowledged; its last words are then stuck in its kernel. That a connection is reset is told
// without waiting for anything.
void Core::HangUp() {
  for (int rank = 0; rank < options_.size; ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (!std::exchange(peer.open, false)) continue;
    --open_peers_;
    wire_->Close(rank, /*politely=*/false);
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
