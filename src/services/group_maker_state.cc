// All that a GroupMaker's decisions depend on, as bytes; and how it goes on after losses and from a checkpoint.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/fields.h"
#include "services/group_maker.h"

namespace syncopate::services {
namespace {

constexpr uint64_t kWorkersReadMax = 1 << 20;
constexpr size_t kWorkerBytes = 3 + 3 * 8 + 8 + 4 + 8;
constexpr size_t kGroupBytes = 16 + 2 + 4;

void AppendKey(std::string& out, const GroupKey& key) {
  Append(out, key.maker);
  Append(out, key.number);
}

GroupKey ReadKey(ByteReader& reader) {
  GroupKey key;
  key.maker = reader.Read<uint64_t>();
  key.number = reader.Read<uint64_t>();
  return key;
}

}  // namespace

//   state  = list(worker) list(group) last:key union joined_epoch:i64 draws:u64 made:u64 samples:u64
//            average:f64 counts
//   worker = live waits told:u8 requests:i64 asked told:i64 busy:f64 alone:i32 version:u64
//   group  = key phase:u8 begun:u8 list(rank:u32 open:u8)            in the order of their keys
void GroupMaker::AppendState(std::string& out) const {
  Append(out, static_cast<uint32_t>(workers_.size()));
  for (const Worker& worker : workers_) {
    for (const bool truth : {worker.live, worker.waits, worker.told}) Append(out, truth);
    Append(out, worker.requests);
    Append(out, worker.asked_ns);
    Append(out, worker.told_ns);
    Append(out, worker.busy_seconds);
    Append(out, worker.alone);
    Append(out, worker.version);
  }
  std::map<GroupKey, int> by_key;
  for (size_t place = 0; place < groups_.size(); ++place) {
    if (groups_[place].key != GroupKey{}) by_key[groups_[place].key] = static_cast<int>(place);
  }
  Append(out, static_cast<uint32_t>(by_key.size()));
  for (const auto& [key, place] : by_key) {
    const Group& each = groups_[static_cast<size_t>(place)];
    AppendKey(out, key);
    Append(out, each.phase);
    Append(out, each.begun);
    Append(out, static_cast<uint32_t>(each.members.size()));
    for (const int member : each.members) {
      const auto& groups = at(member).groups;
      Append(out, static_cast<uint32_t>(member));
      Append(out, std::find(groups.begin(), groups.end(), place) != groups.end());
    }
  }
  AppendKey(out, last_ < 0 ? GroupKey{} : groups_[static_cast<size_t>(last_)].key);
  union_.AppendState(out);
  Append(out, joined_epoch_);
  for (const uint64_t each : {draws_, made_, total_samples_}) Append(out, each);
  Append(out, average_seconds_);
  for (const uint64_t each : {counts_.requests, counts_.groups, counts_.conflicts, counts_.alone}) {
    Append(out, each);
  }
  Append(out, counts_.waiting_ns);
}

void GroupMaker::ReadState(ByteReader& reader) {
  const uint32_t workers = ReadCount(reader, kWorkersReadMax, kWorkerBytes);
  workers_.assign(workers, Worker());
  live_.clear();
  idle_.clear();
  groups_.clear();
  free_.clear();
  touched_.clear();
  arrived_.clear();
  last_ = -1;
  for (uint32_t rank = 0; rank < workers; ++rank) {
    Worker& worker = workers_[rank];
    worker.live = ReadTruth(reader);
    worker.waits = ReadTruth(reader);
    worker.told = ReadTruth(reader);
    worker.requests = reader.Read<int64_t>();
    worker.asked_ns = reader.Read<int64_t>();
    worker.told_ns = reader.Read<int64_t>();
    worker.busy_seconds = reader.Read<double>();
    worker.alone = reader.Read<int>();
    worker.version = reader.Read<uint64_t>();
    if (worker.live) live_.push_back(static_cast<int>(rank));
  }
  for (uint32_t left = ReadCount(reader, kWorkersReadMax, kGroupBytes); left > 0 && reader.ok();
       --left) {
    Group& made = groups_.emplace_back();
    const int place = static_cast<int>(groups_.size()) - 1;
    made.key = ReadKey(reader);
    const auto phase = reader.Read<uint8_t>();
    if (phase > static_cast<uint8_t>(GroupPhase::kLast) || made.key == GroupKey{}) Refuse(reader);
    made.phase = static_cast<GroupPhase>(phase);
    made.begun = ReadTruth(reader);
    for (uint32_t members = ReadCount(reader, kWorkersReadMax, 5); members > 0 && reader.ok();
         --members) {
      const auto member = reader.Read<uint32_t>();
      const bool open = ReadTruth(reader);
      if (member >= workers ||
          (!made.members.empty() && static_cast<int>(member) <= made.members.back()) ||
          (open && !workers_[member].live)) {
        Refuse(reader);
      }
      if (!reader.ok()) return;
      made.members.push_back(static_cast<int>(member));
      if (!open) continue;
      Worker& worker = workers_[member];
      ++made.open;
      made.ready += !made.begun && worker.waits && worker.groups.empty();
      worker.groups.push_back(place);
    }
  }
  const GroupKey last = ReadKey(reader);
  for (size_t place = 0; place < groups_.size(); ++place) {
    if (last != GroupKey{} && groups_[place].key == last) last_ = static_cast<int>(place);
  }
  union_ = GroupUnion(static_cast<int>(workers), union_.overdue_requests());
  union_.ReadState(reader);
  joined_epoch_ = reader.Read<int64_t>();
  draws_ = reader.Read<uint64_t>();
  made_ = reader.Read<uint64_t>();
  total_samples_ = reader.Read<uint64_t>();
  average_seconds_ = reader.Read<double>();
  counts_.requests = reader.Read<uint64_t>();
  counts_.groups = reader.Read<uint64_t>();
  counts_.conflicts = reader.Read<uint64_t>();
  counts_.alone = reader.Read<uint64_t>();
  counts_.waiting_ns = reader.Read<int64_t>();
  if (!reader.ok()) return;
  for (const int rank : live_) {
    if (!at(rank).groups.empty()) continue;
    AddIdle(rank);
    if (rules_.arrival && at(rank).waits) arrived_.push_back(rank);
  }
}

absl::Status GroupMaker::Rebuild(const std::vector<Known>& known) {
  std::map<GroupKey, std::vector<const Known*>> told;
  std::map<GroupKey, bool> started;
  for (const Known& each : known) {
    if (!IsLive(each.rank)) continue;
    RemoveIdle(each.rank);
    at(each.rank).requests = static_cast<int64_t>(each.requests);
    AddIdle(each.rank);
    total_samples_ = std::max(total_samples_, each.total_samples);
    made_ = std::max(made_, each.key.number);
    if (each.key == GroupKey{}) continue;
    told[each.key].push_back(&each);
    started[each.key] |= each.started;
  }
  for (const auto& [key, by] : told) {
    const std::vector<int>& members = by.front()->members;
    for (const Known* each : by) {
      if (each->members != members ||
          !std::binary_search(members.begin(), members.end(), each->rank)) {
        return absl::InvalidArgumentError(absl::StrCat("ranks ", by.front()->rank, " and ",
                                                       each->rank,
                                                       " report different members of one group"));
      }
    }
    // Nobody else will ever begin it: what its members say of it later is ignored.
    if (!started[key]) continue;
    groups_.push_back({.key = key, .members = members, .begun = true});
    const int place = static_cast<int>(groups_.size()) - 1;
    for (const int member : members) {
      if (!IsLive(member) || !at(member).groups.empty()) continue;
      RemoveIdle(member);
      at(member).groups.push_back(place);
      ++group(place).open;
    }
    for (const Known* each : by) at(each->rank).told = !at(each->rank).groups.empty();
  }
  return absl::OkStatus();
}

absl::Status GroupMaker::Resume(absl::string_view state, const std::vector<int>& ranks) {
  GroupMaker before(rules_, job_);
  ByteReader reader(state);
  before.ReadState(reader);
  if (!reader.AtEnd()) return absl::DataLossError("no state of a group generator");
  total_samples_ = before.total_samples_;
  draws_ = before.draws_;
  counts_ = before.counts_;
  for (size_t rank = 0; rank < ranks.size() && rank < workers_.size(); ++rank) {
    const size_t old = static_cast<size_t>(ranks[rank]);
    if (old >= before.workers_.size()) continue;
    RemoveIdle(static_cast<int>(rank));
    workers_[rank].requests = before.workers_[old].requests;
    AddIdle(static_cast<int>(rank));
  }
  return absl::OkStatus();
}

}  // namespace syncopate::services
