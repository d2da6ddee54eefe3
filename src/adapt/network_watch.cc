#include "adapt/network_watch.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/status.h"
#include "base/units.h"

namespace syncopate::adapt {
namespace {

// A record has for each peer its rank (-1: none), bytes and nanoseconds; then how many calls ran at
// once, and the nanoseconds that were spent on calls.
constexpr size_t kWordsPerPeer = 3;
constexpr size_t kAtOnceWord = NetworkWatch::kPeersMax * kWordsPerPeer;
constexpr size_t kRecordWords = kAtOnceWord + 2;
// With many workers a period is longer, so that records stay below 1/256 of what they are about.
constexpr uint64_t kRecordShare = 256;
constexpr uint64_t kTracedBytesMin = 16 << 10;
constexpr uint32_t kReasonBytesMax = 4096;
constexpr int kDetector = 0;  // the rank that looks for changes

uint64_t Combine(uint64_t kind, uint64_t digest) {
  const uint64_t both[] = {kind, digest};
  return DigestOf(absl::string_view(reinterpret_cast<const char*>(both), sizeof(both))).low;
}

// A record from another worker as it must be: peers are workers or none (-1), and nothing else is negative.
absl::StatusOr<std::vector<int64_t>> DecodeRecord(absl::string_view text, size_t workers) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<int64_t> record, DecodeIntegers(text, kRecordWords));
  for (size_t i = 0; i < NetworkWatch::kPeersMax; ++i) {
    const int64_t* const peer = record.data() + i * kWordsPerPeer;
    if (peer[0] < 0) continue;
    if (static_cast<uint64_t>(peer[0]) >= workers || peer[1] < 0 || peer[2] < 0) {
      return absl::InvalidArgumentError("no record of what came from other workers");
    }
  }
  if (record[kAtOnceWord] < 0 || record.back() < 0) {
    return absl::InvalidArgumentError("no record of how many calls there were and what they took");
  }
  return record;
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

}  // namespace

absl::StatusOr<Digest> NetworkWatch::DigestOfVersion(absl::string_view bytes) {
  const auto version = DecodeVersion(bytes);
  if (!version.ok()) return At("a version of the network", version.status());
  return syncopate::DigestOf(version->second);
}

NetworkWatch::NetworkWatch(const Topology& topology, const std::vector<int>& placement,
                           std::function<std::vector<transport::Traffic>()> take_traffic,
                           JobExchange& exchange, ValueAgreement& agreement,
                           std::function<void(uint64_t, const Topology&)> new_plans,
                           const Clock& clock)
    : workers_(placement.size()),
      period_bytes_(
          std::max(kPeriodBytes, kRecordShare * workers_ * kRecordWords * sizeof(int64_t))),
      take_traffic_(std::move(take_traffic)),
      exchange_(exchange),
      agreement_(agreement),
      new_plans_(std::move(new_plans)),
      clock_(clock),
      newest_number_(topology.version),
      newest_{.version = topology.version,
              .reason = topology.source,
              .topology_json = ToJson(topology)},
      planned_version_(topology.version),
      begin_ns_(clock.NowNs()) {
  if (exchange.rank() == kDetector) upkeep_.emplace(topology, placement);
}

uint64_t NetworkWatch::BeforeCall(int64_t call, uint64_t bytes, int64_t deadline_ns) {
  const int at_once = ++under_way_;
  MutexLock lock(&mutex_);
  if (!ended_) {
    // A call that is still under way belongs to the period that ends and to the next one.
    SawAtOnce(at_once);
    if (bytes_ >= period_bytes_) {
      EndPeriod(call, deadline_ns);
      at_once_ = at_once;
    }
    bytes_ += bytes;
  }
  // A version that was agreed on counts for all, also where the watch has ended meanwhile.
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

bool NetworkWatch::WouldWait() {
  MutexLock lock(&mutex_);
  // The call would end a period, which comes to those that are under way.
  if (ended_ || bytes_ < period_bytes_) return false;
  Learn();
  return unknown_.size() >= kPeriodsAheadMax;
}

void NetworkWatch::TakeVersions() {
  for (ValueAgreement::Value& value : agreement_.TakeNew()) {
    auto version = DecodeVersion(value.bytes);
    if (!version.ok()) continue;  // it has passed DigestOfVersion()
    newest_ = {.version = version->second.version,
               .reason = std::move(version->first),
               .topology_json = ToJson(version->second)};
    newest_number_ = newest_.version;
    new_plans_(newest_.version, version->second);
    switches_.push_back({.from = value.from, .version = newest_.version});
  }
}

// Without the lock: calls of other groups are many, and this is all that the watch needs to know of them.
void NetworkWatch::BesideCall() { SawAtOnce(++under_way_); }

void NetworkWatch::SawAtOnce(int at_once) {
  int most = at_once_;
  while (most < at_once && !at_once_.compare_exchange_weak(most, at_once)) {
  }
}

void NetworkWatch::Planned(uint64_t program_digest) {
  MutexLock lock(&mutex_);
  kind_ = Combine(kind_, program_digest);
  ++calls_;
}

void NetworkWatch::Waited(int64_t ns) {
  MutexLock lock(&mutex_);
  ++waited_calls_;
  waited_ns_ += ns;
}

void NetworkWatch::EndPeriod(int64_t call, int64_t deadline_ns) {
  agreement_.Begin(call);
  unknown_.push_back(
      {.kind = kind_,
       .records = exchange_.Start(
           {.what = "traffic", .text = EncodeNumbers(TakeRecord()), .root = kDetector})});
  ++period_;
  bytes_ = kind_ = 0;
  LearnAndWait(deadline_ns);
}

NetworkWatch::Record NetworkWatch::TakeRecord() {
  const std::vector<transport::Traffic> traffic = take_traffic_();
  std::vector<std::pair<uint64_t, size_t>> peers;  // bytes, rank
  for (size_t rank = 0; rank < workers_ && rank < traffic.size(); ++rank) {
    if (traffic[rank].busy_ns > 0) peers.emplace_back(traffic[rank].bytes, rank);
  }
  // A record has room for kPeersMax peers: those that sent most tell most about the network.
  std::sort(peers.rbegin(), peers.rend());
  Record record(kRecordWords, -1);
  for (size_t i = 0; i < peers.size() && i < kPeersMax; ++i) {
    const size_t rank = peers[i].second;
    record[i * kWordsPerPeer] = static_cast<int64_t>(rank);
    record[i * kWordsPerPeer + 1] = static_cast<int64_t>(traffic[rank].bytes);
    record[i * kWordsPerPeer + 2] = traffic[rank].busy_ns;
  }
  record[kAtOnceWord] = at_once_;
  const int64_t now_ns = clock_.NowNs();
  // Time spent on calls is known only if the caller waited for each of them.
  record.back() = waited_calls_ == calls_ ? waited_ns_ : now_ns - begin_ns_;
  begin_ns_ = now_ns;
  waited_ns_ = 0;
  waited_calls_ = calls_ = 0;
  return record;
}

// The periods are shown strictly in order.
void NetworkWatch::Learn() {
  while (!ended_ && !unknown_.empty()) {
    Period& first = unknown_.front();
    if (!first.records->Done()) return;
    const absl::StatusOr<std::vector<std::string>> texts = first.records->Wait();
    if (!texts.ok()) return End(texts.status());
    if (upkeep_) {
      std::vector<Record> all;
      for (const std::string& text : *texts) {
        absl::StatusOr<Record> record = DecodeRecord(text, workers_);
        if (!record.ok()) return End(At(absl::StrCat("worker ", all.size()), record.status()));
        all.push_back(*std::move(record));
      }
      Show(period_ - unknown_.size(), first.kind, all);
    }
    unknown_.pop_front();
  }
}

void NetworkWatch::LearnAndWait(int64_t deadline_ns) {
  for (Learn(); unknown_.size() > kPeriodsAheadMax; Learn()) {
    // A reader may learn the end of this round meanwhile.
    const std::shared_ptr<JobExchange::Round> first = unknown_.front().records;
    mutex_.Unlock();
    const bool over = first->WaitUntil(deadline_ns);
    mutex_.Lock();
    if (!over) {
      return End(absl::DeadlineExceededError(
          "records of a period did not come before the deadline of a call"));
    }
  }
}

void NetworkWatch::Show(uint64_t period, uint64_t kind, const std::vector<Record>& all) {
  std::vector<probe::TrafficSample> samples;
  std::vector<int64_t> lengths;
  int64_t at_once = 1;
  for (size_t worker = 0; worker < all.size(); ++worker) {
    const Record& record = all[worker];
    at_once = std::max(at_once, record[kAtOnceWord]);
    lengths.push_back(record.back());
    for (size_t i = 0; i < kPeersMax; ++i) {
      const size_t at = i * kWordsPerPeer;
      if (record[at] < 0) continue;
      probe::TrafficSample sample;
      sample.from = static_cast<int>(record[at]);
      sample.to = static_cast<int>(worker);
      sample.bytes = static_cast<uint64_t>(record[at + 1]);
      sample.busy_seconds = static_cast<double>(record[at + 2]) / 1e9;
      samples.push_back(sample);
    }
  }
  // The worker that comes last to a call waits least for the others, so the shortest of the times
  // is the one that the network took.
  const double seconds =
      static_cast<double>(*std::min_element(lengths.begin(), lengths.end())) / 1e9;
  if (LogEnabled(LogLevel::kTrace)) {
    std::string line = absl::StrCat("period ", period, ", ", FormatSeconds(seconds), ":");
    for (const probe::TrafficSample& sample : samples) {
      if (sample.bytes < kTracedBytesMin) continue;
      absl::StrAppend(&line, " ", sample.from, "->", sample.to, " ", sample.bytes >> 10, " KiB ",
                      FormatSeconds(sample.busy_seconds), ";");
    }
    Log(LogLevel::kTrace, line);
  }
  // Periods with more calls at once are slower, so they are compared only with their like.
  if (at_once > 1) kind = Combine(kind, static_cast<uint64_t>(at_once));
  std::optional<probe::TopologyChange> change = upkeep_->Observe(period, kind, seconds, samples);
  if (!change) return;
  Log(LogLevel::kWarn, "network version ", change->topology.version, ": ", change->reason);
  agreement_.Propose(change->topology.version, EncodeVersion(change->reason, change->topology));
}

// Others must not wait for records that this worker does not send any more.
void NetworkWatch::End(const absl::Status& why) {
  if (std::exchange(ended_, true)) return;
  exchange_.Stop(why.message());
  unknown_.clear();
  Log(LogLevel::kInfo, "changes of the network are not looked for any more: ", why.message());
}

NetworkVersion NetworkWatch::Newest() {
  MutexLock lock(&mutex_);
  Learn();
  TakeVersions();
  return newest_;
}

}  // namespace syncopate::adapt
