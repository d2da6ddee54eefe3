#include "services/group_maker.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncopate::services {
namespace {

// The share of the newest in what is usual.
constexpr double kNewest = 0.2;
constexpr int64_t kLagOfAnyLag = 4;  // where no lag is too long, joining goes by this one

double Usual(double usual, double now) {
  return usual == 0 ? now : usual + kNewest * (now - usual);
}

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

absl::string_view NameOf(GroupPhase phase) {
  static constexpr absl::string_view kNames[] = {"any",     "divided", "heads", "node",
                                                 "arrived", "joining", "last"};
  return kNames[static_cast<size_t>(phase)];
}

GroupMaker::GroupMaker(const GroupRules& rules, const GroupJob& job)
    : rules_(rules),
      job_(job),
      workers_(static_cast<size_t>(job.workers)),
      live_(static_cast<size_t>(job.workers)),
      union_(job.workers, 2 * (rules.lag_max > 0 ? rules.lag_max : kLagOfAnyLag)) {
  std::iota(live_.begin(), live_.end(), 0);
  for (const int rank : live_) {
    at(rank).live = true;
    AddIdle(rank);
  }
}

int GroupMaker::NodeOf(int rank) const {
  const size_t place = static_cast<size_t>(rank);
  return place < job_.node.size() ? job_.node[place] : 0;
}

// ---- requests

absl::Status GroupMaker::Want(const Moment& moment, int rank, const WantGroup& want,
                              std::vector<GivenGroup>& given) {
  if (!IsLive(rank)) return absl::FailedPreconditionError("the worker does not take part");
  Worker& worker = at(rank);
  if (worker.waits) return absl::FailedPreconditionError("the worker waits for a group already");
  if (worker.told) {
    return absl::FailedPreconditionError(
        "the worker has not said that its part in the group that it was given is over");
  }
  if (worker.groups.empty()) RemoveIdle(rank);  // it is counted elsewhere from here on
  ++worker.requests;
  if (worker.groups.empty()) AddIdle(rank);
  ++counts_.requests;
  worker.version = std::max(worker.version, want.version);
  worker.busy_seconds = Usual(worker.busy_seconds, want.busy_seconds);
  total_samples_ += want.samples;
  union_.Asked(rank);
  if (job_.samples_end > 0 && total_samples_ >= job_.samples_end && !stopping()) Stop(moment);
  Ask(moment, rank, given);
  return absl::OkStatus();
}

bool GroupMaker::Done(const Moment& moment, int rank, const GroupKey& key,
                      std::vector<GivenGroup>& given) {
  if (!IsLive(rank)) return true;
  Worker& worker = at(rank);
  if (!worker.told || group(worker.groups.front()).key != key) return true;
  average_seconds_ = Usual(average_seconds_, Seconds(moment.now_ns - worker.told_ns));
  Leave(rank, worker.groups.front());
  // Without a buffer a worker does all that it is in before it goes on.
  const bool goes_on = rules_.buffer || worker.groups.empty() || stopping();
  if (!goes_on) {
    worker.waits = true;
    worker.asked_ns = moment.now_ns;
    FrontChanged(rank);
  }
  BeginAllReady(moment, given);
  return goes_on;
}

void GroupMaker::Ask(const Moment& moment, int rank, std::vector<GivenGroup>& given) {
  Worker& worker = at(rank);
  worker.waits = true;
  worker.asked_ns = moment.now_ns;
  if (!worker.groups.empty() && group(worker.groups.front()).begun) {
    // It began before its service was rebuilt, which this worker was not told.
    const Group& begun = group(worker.groups.front());
    Tell(moment, rank, begun, worker.version, false, given);
    return;
  }
  FrontChanged(rank);
  if (!stopping()) MakeGroups(moment, rank);
  if (worker.groups.empty() && !rules_.arrival) GoOnAlone(moment, rank, given);
  BeginAllReady(moment, given);
}

void GroupMaker::GoOnAlone(const Moment& moment, int rank, std::vector<GivenGroup>& given) {
  Worker& worker = at(rank);
  ++worker.alone;
  ++counts_.alone;
  const Group alone = {.key = {moment.maker, ++made_}, .members = {rank}};
  Tell(moment, rank, alone, worker.version, true, given);
  worker.told = false;  // there is nothing of which it could say that it is over
}

// ---- departures and arrivals

void GroupMaker::Gone(const Moment& moment, int rank, std::vector<GivenGroup>& given) {
  if (!IsLive(rank)) return;
  Worker& worker = at(rank);
  if (worker.groups.empty()) RemoveIdle(rank);
  const bool was_ready = worker.waits && !worker.groups.empty();
  for (size_t i = 0; i < worker.groups.size(); ++i) {
    const int place = worker.groups[i];
    Group& left = group(place);
    --left.open;
    if (!left.begun) {
      std::erase(left.members, rank);
      if (i == 0 && was_ready) --left.ready;
      touched_.push_back(place);
    }
    if (left.open == 0) Free(place);
  }
  worker = Worker();
  std::erase(live_, rank);
  union_.Gone(rank);
  // Fewer may have to come until enough have.
  if (rules_.arrival && !stopping()) MakeArrived(moment);
  BeginAllReady(moment, given);
}

void GroupMaker::Came(int rank) {
  if (IsLive(rank)) return;
  if (workers_.size() <= static_cast<size_t>(rank)) workers_.resize(static_cast<size_t>(rank) + 1);
  std::vector<int64_t> requests;
  for (const int other : live_) requests.push_back(at(other).requests);
  Worker& worker = at(rank);
  worker.live = true;
  if (!requests.empty()) {
    const auto middle = requests.begin() + static_cast<ptrdiff_t>(requests.size() / 2);
    std::nth_element(requests.begin(), middle, requests.end());
    worker.requests = *middle;
  }
  live_.insert(std::upper_bound(live_.begin(), live_.end(), rank), rank);
  union_.Came(rank);
  if (stopping()) {
    Group& last = group(last_);
    if (!last.begun) {
      last.members.insert(std::upper_bound(last.members.begin(), last.members.end(), rank), rank);
      ++last.open;
      worker.groups.push_back(last_);
      return;
    }
  }
  AddIdle(rank);
}

// ---- the life of groups

void GroupMaker::FrontChanged(int rank) {
  Worker& worker = at(rank);
  if (!worker.waits || worker.groups.empty()) return;
  ++group(worker.groups.front()).ready;
  touched_.push_back(worker.groups.front());
}

void GroupMaker::BeginAllReady(const Moment& moment, std::vector<GivenGroup>& given) {
  // Beginning one may free another: an entry of one is over when it begins.
  for (size_t i = 0; i < touched_.size(); ++i) BeginIfReady(moment, touched_[i], given);
  touched_.clear();
}

void GroupMaker::BeginIfReady(const Moment& moment, int place, std::vector<GivenGroup>& given) {
  Group& ready = group(place);
  if (ready.key == GroupKey{} || ready.begun || ready.ready < ready.open) return;
  ready.begun = true;
  uint64_t version = UINT64_MAX;
  for (const int member : ready.members) version = std::min(version, at(member).version);
  bool first = true;
  for (const int member : ready.members) {
    Tell(moment, member, ready, version, std::exchange(first, false), given);
  }
  union_.Began(ready.members);
  if (ready.members.size() > 1) {
    ++counts_.groups;
    for (const int member : ready.members) at(member).alone = 0;
    return;
  }
  const int rank = ready.members.front();
  ++counts_.alone;
  if (place != last_) Leave(rank, place);
}

void GroupMaker::Tell(const Moment& moment, int rank, const Group& group, uint64_t version,
                      bool first, std::vector<GivenGroup>& given) {
  Worker& worker = at(rank);
  worker.waits = false;
  worker.told = true;
  worker.told_ns = moment.now_ns;
  counts_.waiting_ns += moment.now_ns - worker.asked_ns;
  given.push_back(
      {.rank = rank,
       .key = group.key,
       .members = group.members,
       .phase = group.phase,
       .version = version,
       .stop = group.phase == GroupPhase::kLast || (stopping() && group.phase == GroupPhase::kAny),
       .first = first});
}

void GroupMaker::Leave(int rank, int place) {
  Worker& worker = at(rank);
  worker.told = false;
  worker.groups.erase(worker.groups.begin());
  if (worker.groups.empty()) AddIdle(rank);
  if (--group(place).open == 0) Free(place);
}

void GroupMaker::Free(int place) {
  if (place == last_) return;  // it stays, for what comes late
  group(place) = Group();
  free_.push_back(place);
}

// Whoever has begun brings it to its end; then all that live come together once more.
void GroupMaker::Stop(const Moment& moment) {
  for (size_t place = 0; place < groups_.size(); ++place) {
    if (groups_[place].key != GroupKey{} && !groups_[place].begun)
      Dissolve(static_cast<int>(place));
  }
  last_ = Make(moment, live_, GroupPhase::kLast);
}

void GroupMaker::Dissolve(int place) {
  for (const int member : group(place).members) {
    Worker& worker = at(member);
    worker.groups.erase(std::find(worker.groups.begin(), worker.groups.end(), place));
    if (worker.groups.empty()) AddIdle(member);
  }
  Free(place);
}

// ---- who is in no group

void GroupMaker::AddIdle(int rank) {
  Workers& idle = idle_[at(rank).requests];
  at(rank).idle_at = static_cast<int>(idle.size());
  idle.push_back(rank);
}

void GroupMaker::RemoveIdle(int rank) {
  const auto found = idle_.find(at(rank).requests);
  Workers& idle = found->second;
  const int place = std::exchange(at(rank).idle_at, -1);
  at(idle.back()).idle_at = place;
  idle[static_cast<size_t>(place)] = idle.back();
  at(rank).idle_at = -1;
  idle.pop_back();
  if (idle.empty()) idle_.erase(found);
}

}  // namespace syncopate::services
