#include "adapt/network_watch.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/status.h"
#include "base/units.h"

namespace syncopate::adapt {
namespace {

// A message is kind:u8, then for kTraffic sent:i64 (by the clock of the sender) flows:u8 and for each of them
// from:u32 begin:i64 slots:u8 list(bytes:u32 busy:u16), busy in kBusyUnitNs. kBegin has nothing behind it.
enum class MessageKind : uint8_t { kTraffic = 1, kBegin = 2 };
constexpr int64_t kBusyUnitNs = 1000;
constexpr size_t kSlotsMax = 16;  // of a flow in a message: more than come in a tick
constexpr uint64_t kSlotBytesMax = UINT32_MAX;

constexpr uint32_t kReasonBytesMax = 4096;
// Slots are judged when all that came in them is known.
constexpr int64_t kLagNs = 1'000'000'000;
// The messages that tell how clocks differ: those of the last ten seconds.
constexpr size_t kClocksRemembered = 20;
constexpr size_t kComingMax = 4096;
// How often it is said at most that something is slower and nobody knows what.
constexpr int64_t kTellNs = 30'000'000'000;

// The last kSlotsMax of them at most.
void AppendFlow(std::string& out, int from, const transport::Traffic& traffic) {
  const size_t skipped = traffic.slots.size() - std::min(traffic.slots.size(), kSlotsMax);
  Append(out, static_cast<uint32_t>(from));
  Append(out, traffic.begin_ns + static_cast<int64_t>(skipped) * transport::Traffic::kSlotNs);
  Append(out, static_cast<uint8_t>(traffic.slots.size() - skipped));
  for (size_t i = skipped; i < traffic.slots.size(); ++i) {
    const transport::Traffic::Slot& slot = traffic.slots[i];
    Append(out, static_cast<uint32_t>(std::min(slot.bytes, kSlotBytesMax)));
    Append(out, static_cast<uint16_t>(std::min<int64_t>(slot.busy_ns / kBusyUnitNs, UINT16_MAX)));
  }
}

// What came from the workers that sent most; empty: nothing.
std::string EncodeTraffic(const std::vector<transport::Traffic>& traffic, int64_t now_ns) {
  std::vector<std::pair<uint64_t, size_t>> peers;  // bytes, rank
  for (size_t rank = 0; rank < traffic.size(); ++rank) {
    if (traffic[rank].bytes > 0) peers.emplace_back(traffic[rank].bytes, rank);
  }
  if (peers.empty()) return "";
  std::sort(peers.rbegin(), peers.rend());
  peers.resize(std::min(peers.size(), NetworkWatch::kPeersMax));
  std::string out;
  Append(out, static_cast<uint8_t>(MessageKind::kTraffic));
  Append(out, now_ns);
  Append(out, static_cast<uint8_t>(peers.size()));
  for (const auto& [bytes, rank] : peers) AppendFlow(out, static_cast<int>(rank), traffic[rank]);
  return out;
}

// One for each flow, which begin at different times; nothing if it is no such message.
std::vector<TrafficRecord> DecodeTraffic(absl::string_view message, int to, int64_t clocks_ns) {
  ByteReader reader(message);
  reader.Read<uint8_t>();
  reader.Read<int64_t>();
  const auto flows = reader.Read<uint8_t>();
  std::vector<TrafficRecord> records;
  for (uint8_t i = 0; i < flows && reader.ok(); ++i) {
    const auto from = reader.Read<uint32_t>();
    const auto begin_ns = reader.Read<int64_t>();
    const auto slots = reader.Read<uint8_t>();
    if (slots > kSlotsMax || from > INT32_MAX) return {};
    TrafficRecord record = {.to = to, .begin_ns = begin_ns + clocks_ns, .flows = {}};
    TrafficRecord::Flow flow = {.from = static_cast<int>(from), .slots = {}};
    for (uint8_t slot = 0; slot < slots && reader.ok(); ++slot) {
      const auto bytes = reader.Read<uint32_t>();
      const auto busy = reader.Read<uint16_t>();
      flow.slots.push_back({.bytes = bytes, .busy_ns = busy * kBusyUnitNs});
    }
    record.flows.push_back(std::move(flow));
    records.push_back(std::move(record));
  }
  if (!reader.ok() || reader.left() > 0) return {};
  return records;
}

// A version on its way is reason:u32 as many bytes, then the topology.
std::string EncodeVersion(absl::string_view reason, const Topology& topology) {
  reason = reason.substr(0, kReasonBytesMax);
  std::string out;
  Append(out, static_cast<uint32_t>(reason.size()));
  absl::StrAppend(&out, reason, ToJson(topology));
  return out;
}

absl::StatusOr<std::pair<std::string, Topology>> DecodeVersion(absl::string_view bytes) {
  ByteReader reader(bytes);
  const auto length = reader.Read<uint32_t>();
  if (length > kReasonBytesMax) return absl::InvalidArgumentError("its reason is too long");
  std::string reason(reader.ReadBytes(length));
  if (!reader.ok()) return absl::InvalidArgumentError("it is too short");
  SYNCOPATE_ASSIGN_OR_RETURN(Topology topology, ParseTopology(reader.ReadBytes(reader.left())));
  return std::make_pair(std::move(reason), std::move(topology));
}

static_assert(transport::Traffic::kSlotNs == NetworkDetector::kSlotNs);

}  // namespace

absl::StatusOr<Digest> NetworkWatch::DigestOfVersion(absl::string_view bytes) {
  const auto version = DecodeVersion(bytes);
  if (!version.ok()) return At("a version of the network", version.status());
  return syncopate::DigestOf(version->second);
}

NetworkWatch::NetworkWatch(int rank, const Topology& topology, const std::vector<int>& placement,
                           bool measured, Seams seams, ValueAgreement& agreement,
                           const Clock& clock)
    : rank_(rank),
      placement_(placement),
      measured_(measured),
      seams_(std::move(seams)),
      agreement_(agreement),
      clock_(clock),
      newest_number_(topology.version),
      newest_{.version = topology.version,
              .reason = topology.source,
              .topology_json = ToJson(topology)},
      newest_topology_(topology),
      first_version_(topology.version),
      planned_version_(topology.version) {}

// ---- what travels

void NetworkWatch::Know(Topology topology, const std::string& reason) {
  MutexLock lock(&mutex_);
  known_.emplace(std::move(topology), reason);
}

void NetworkWatch::Tick() {
  std::optional<std::pair<Topology, std::string>> known;
  {
    MutexLock lock(&mutex_);
    known.swap(known_);
  }
  if (known) {
    seams_.beside([this, known = *std::move(known)] {
      MutexLock judging(&judging_);
      Propose(known.first, known.second);
    });
  }
  const std::string message = EncodeTraffic(seams_.take_traffic(), clock_.NowNs());
  const int host = seams_.host();
  if (host != rank_) {
    if (!message.empty() && host >= 0) seams_.send(host, message);
    return;
  }
  if (!message.empty()) Received(rank_, message);
  std::deque<Coming> records;
  {
    MutexLock lock(&mutex_);
    // One at a time: where judging takes longer than a tick, the next one has more to judge.
    if (judges_) return;
    judges_ = true;
    records.swap(coming_);
  }
  seams_.beside([this, records = std::move(records)]() mutable {
    Judge(std::move(records), clock_.NowNs());
    MutexLock lock(&mutex_);
    judges_ = false;
  });
}

void NetworkWatch::Received(int from, absl::string_view message) {
  ByteReader reader(message);
  const auto kind = reader.Read<uint8_t>();
  if (kind == static_cast<uint8_t>(MessageKind::kBegin)) {
    // It starts a service, which takes a lock that others may hold for a while.
    seams_.beside([this] { Begin(); });
    return;
  }
  const auto sent_ns = reader.Read<int64_t>();
  if (kind != static_cast<uint8_t>(MessageKind::kTraffic) || !reader.ok()) return;
  MutexLock lock(&mutex_);
  std::deque<int64_t>& clocks = clocks_[from];
  clocks.push_back(clock_.NowNs() - sent_ns);
  if (clocks.size() > kClocksRemembered) clocks.pop_front();
  if (coming_.size() >= kComingMax) coming_.pop_front();
  coming_.push_back({.from = from,
                     .clocks_ns = *std::min_element(clocks.begin(), clocks.end()),
                     .message = std::string(message)});
}

// ---- what is decided

void NetworkWatch::Judge(std::deque<Coming> records, int64_t now_ns) {
  MutexLock lock(&judging_);
  if (records.empty() && detector_ == nullptr) return;
  uint64_t version = 0, moved = 0;
  int64_t called_ns = 0;
  {
    MutexLock taking(&mutex_);
    TakeVersions();
    version = planned_version_;
    moved = moved_;
    called_ns = called_ns_;
    if (detector_ == nullptr) {
      planned_ = *newest_topology_;
      // A version after the first one was measured, or seen by an earlier host.
      const bool measured = measured_ || !switches_.empty() || planned_version_ != first_version_;
      detector_ = std::make_unique<NetworkDetector>(planned_, placement_, measured);
      judged_by_ = newest_number_;
    } else if (newest_number_ > judged_by_) {
      // One that another worker has proposed, or that is known by a measurement.
      detector_->Adopt(*newest_topology_, placement_, /*measured=*/true);
      judged_by_ = newest_number_;
    }
  }
  for (const Coming& coming : records) {
    for (const TrafficRecord& record :
         DecodeTraffic(coming.message, coming.from, coming.clocks_ns)) {
      detector_->Take(record);
    }
  }
  const NetworkFindings findings = detector_->Judge(now_ns - kLagNs);
  Tell(findings, now_ns);
  const NetworkTrial::Verdict verdict = trial_.Saw(called_ns, moved, version);
  if (!findings.changes.empty()) {
    judged_by_ = Propose(detector_->topology(), findings.Reason());
    going_back_ = 0;
  } else if (version == going_back_) {
    return;  // its plans have been in force before
  } else if (verdict == NetworkTrial::Verdict::kGoesBack) {
    const std::string reason = absl::StrCat(
        "plans of version ", version, " are taken back: the job moved ", FormatRate(trial_.after()),
        " by them, ", FormatRate(trial_.before()), " before");
    judged_by_ = going_back_ = Propose(planned_, reason);
  } else if (verdict == NetworkTrial::Verdict::kStays) {
    Log(LogLevel::kInfo, "plans of network version ", version, " stay: the job moves ",
        FormatRate(trial_.after()), " by them, ", FormatRate(trial_.before()), " before");
    planned_ = detector_->topology();
  }
}

uint64_t NetworkWatch::Propose(const Topology& topology, const std::string& reason) {
  Topology next = topology;
  {
    MutexLock lock(&mutex_);
    next.version = newest_number_ + 1;
  }
  next.source = reason.substr(0, 256);
  // Nothing of this costs a job anything in which nothing changes.
  Begin();
  std::string begin;
  Append(begin, static_cast<uint8_t>(MessageKind::kBegin));
  for (size_t rank = 0; rank < placement_.size(); ++rank) {
    if (static_cast<int>(rank) != rank_) seams_.send(static_cast<int>(rank), begin);
  }
  Log(LogLevel::kWarn, "network version ", next.version, ": ", reason);
  agreement_.Propose(next.version, EncodeVersion(reason, next));
  return next.version;
}

// Under the lock, so that this worker is at most at the next call.
void NetworkWatch::Begin() {
  MutexLock lock(&mutex_);
  agreement_.Begin(call_);
}

void NetworkWatch::Tell(const NetworkFindings& findings, int64_t now_ns) {
  if (findings.suspects.empty() || (told_ns_ != INT64_MIN && now_ns < told_ns_ + kTellNs)) return;
  told_ns_ = now_ns;
  Log(LogLevel::kInfo, findings.Reason());
}

// ---- what counts

uint64_t NetworkWatch::BeforeCall(int64_t call, uint64_t bytes) {
  MutexLock lock(&mutex_);
  call_ = call;
  moved_ += bytes;
  called_ns_ = clock_.NowNs();
  // A version that was agreed on counts for all.
  TakeVersions();
  bool switched = false;
  while (!switches_.empty() && switches_.front().from <= call) {
    planned_version_ = switches_.front().version;
    switched = true;
    switches_.pop_front();
  }
  if (switched) {
    Log(LogLevel::kInfo, "programs are planned by network version ", planned_version_,
        " from call ", call, " on");
  }
  return planned_version_;
}

uint64_t NetworkWatch::VersionFor(int64_t call) {
  MutexLock lock(&mutex_);
  TakeVersions();
  uint64_t planned_by = planned_version_;
  for (const Switch& each : switches_) {
    if (each.from > call) break;
    planned_by = each.version;
  }
  return planned_by;
}

void NetworkWatch::TakeVersions() {
  for (ValueAgreement::Value& value : agreement_.TakeNew()) {
    auto version = DecodeVersion(value.bytes);
    if (!version.ok()) continue;  // it has passed DigestOfVersion()
    newest_ = {.version = version->second.version,
               .reason = std::move(version->first),
               .topology_json = ToJson(version->second)};
    newest_number_ = newest_.version;
    seams_.new_plans(newest_.version, version->second);
    newest_topology_ = std::move(version->second);
    switches_.push_back({.from = value.from, .version = newest_.version});
  }
}

NetworkVersion NetworkWatch::Newest() {
  MutexLock lock(&mutex_);
  TakeVersions();
  return newest_;
}

}  // namespace syncopate::adapt
