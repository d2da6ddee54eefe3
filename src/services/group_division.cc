// Which groups a GroupMaker makes: drawn by its seed among workers that may be in them.
#include <algorithm>
#include <map>
#include <utility>

#include "services/group_maker.h"

namespace syncopate::services {
namespace {

void Shuffle(std::vector<int>& workers, Random& random) {
  for (size_t i = workers.size(); i > 1; --i) std::swap(workers[i - 1], workers[random.Below(i)]);
}

}  // namespace

int GroupMaker::Make(const Moment& moment, Workers members, GroupPhase phase) {
  std::sort(members.begin(), members.end());
  int place = static_cast<int>(groups_.size());
  if (free_.empty()) {
    groups_.emplace_back();
  } else {
    place = free_.back();
    free_.pop_back();
  }
  Group& made = group(place);
  made.key = {moment.maker, ++made_};
  made.phase = phase;
  made.open = static_cast<int>(members.size());
  bool conflict = false;
  for (const int member : members) {
    Worker& worker = at(member);
    if (worker.groups.empty()) RemoveIdle(member);
    conflict |= !worker.groups.empty();
    worker.groups.push_back(place);
    made.ready += worker.waits && worker.groups.size() == 1;
  }
  counts_.conflicts += conflict && members.size() > 1;
  made.members = std::move(members);
  touched_.push_back(place);
  return place;
}

void GroupMaker::MakeGroups(const Moment& moment, int rank) {
  if (union_.Overdue() && joined_epoch_ != union_.epoch()) MakeJoining(moment);
  if (!rules_.buffer) return MakeAnyGroup(moment, rank);
  if (!at(rank).groups.empty()) return;
  if (rules_.arrival) {
    arrived_.push_back(rank);
    return MakeArrived(moment);
  }
  rules_.division ? Divide(moment, rank) : MakeAnyGroup(moment, rank);
}

bool GroupMaker::Lags(const Worker& worker, const Worker& maker) const {
  if (rules_.slowness_max > 0) {
    return maker.busy_seconds > 0 &&
           worker.busy_seconds >= rules_.slowness_max * maker.busy_seconds;
  }
  return rules_.lag_max > 0 && maker.requests - worker.requests >= rules_.lag_max;
}

bool GroupMaker::ComesSoon(const Moment& moment, const Worker& worker) const {
  if (!rules_.aware || worker.waits) return true;
  const double since = static_cast<double>(moment.now_ns - worker.told_ns) * 1e-9;
  return worker.busy_seconds - since <= average_seconds_;
}

GroupMaker::Workers GroupMaker::Eligible(const Moment& moment, int rank) const {
  const Worker& maker = at(rank);
  const bool any_lag = maker.alone >= rules_.alone_max;
  Workers members;
  // Those that have asked most often first, so that workers that lag are not even looked at.
  for (auto idle = idle_.rbegin(); idle != idle_.rend(); ++idle) {
    if (!any_lag && rules_.slowness_max == 0 && rules_.lag_max > 0 &&
        maker.requests - idle->first >= rules_.lag_max) {
      break;
    }
    for (const int each : idle->second) {
      const Worker& worker = at(each);
      if (each == rank || ((any_lag || !Lags(worker, maker)) && ComesSoon(moment, worker))) {
        members.push_back(each);
      }
    }
  }
  std::sort(members.begin(), members.end());
  return members;
}

void GroupMaker::Divide(const Moment& moment, int rank) {
  Workers members = Eligible(moment, rank);
  if (members.size() < 2) return;
  Random random = Draw();
  if (!rules_.inter_intra || job_.node.empty()) {
    return MakeRandomGroups(moment, std::move(members), rules_.group_size, GroupPhase::kDivided,
                            random);
  }
  DivideInPhases(moment, members, random);
}

void GroupMaker::DivideInPhases(const Moment& moment, const Workers& members, Random& random) {
  std::map<int, Workers> nodes;
  int64_t most = 0;
  for (const int member : members) {
    nodes[NodeOf(member)].push_back(member);
    most = std::max(most, at(member).requests);
  }
  Workers heads;
  std::vector<Workers> others;
  for (const auto& [node, in_it] : nodes) {
    const size_t head = random.Below(in_it.size());
    heads.push_back(in_it[head]);
    others.push_back(in_it);
    others.back().erase(others.back().begin() + static_cast<ptrdiff_t>(head));
  }
  MakeRandomGroups(moment, std::move(heads), rules_.head_group_size, GroupPhase::kHeads, random);
  for (Workers& rest : others) {
    MakeRandomGroups(moment, std::move(rest), rules_.group_size, GroupPhase::kNode, random);
  }
  // Who lags would hold up its node a second time.
  Worker foremost;
  foremost.requests = most;
  foremost.busy_seconds = 0;
  for (auto& [node, in_it] : nodes) {
    std::erase_if(in_it, [&](int each) { return Lags(at(each), foremost); });
    if (!in_it.empty()) Make(moment, std::move(in_it), GroupPhase::kNode);
  }
}

void GroupMaker::MakeRandomGroups(const Moment& moment, Workers members, int size, GroupPhase phase,
                                  Random& random) {
  if (members.empty()) return;
  Shuffle(members, random);
  const size_t groups = std::max<size_t>(1, members.size() / static_cast<size_t>(size));
  size_t begin = 0;
  for (size_t i = 0; i < groups; ++i) {
    const size_t end = members.size() * (i + 1) / groups;
    Make(moment,
         Workers(members.begin() + static_cast<ptrdiff_t>(begin),
                 members.begin() + static_cast<ptrdiff_t>(end)),
         phase);
    begin = end;
  }
}

// With workers that may be in other groups already.
void GroupMaker::MakeAnyGroup(const Moment& moment, int rank) {
  Random random = Draw();
  const Worker& maker = at(rank);
  const bool any_lag = maker.alone >= rules_.alone_max;
  const auto may = [&](int each) {
    return each != rank && (any_lag || !Lags(at(each), maker)) && ComesSoon(moment, at(each));
  };
  const size_t wanted = std::min(static_cast<size_t>(rules_.group_size), live_.size());
  Workers members = {rank};
  for (int tries = 8 * rules_.group_size; tries > 0 && members.size() < wanted; --tries) {
    const int each = live_[random.Below(live_.size())];
    if (may(each) && std::find(members.begin(), members.end(), each) == members.end()) {
      members.push_back(each);
    }
  }
  if (members.size() < wanted) {
    // Few are left, or chance missed some: all are looked at.
    Workers rest;
    for (const int each : live_) {
      if (may(each) && std::find(members.begin(), members.end(), each) == members.end()) {
        rest.push_back(each);
      }
    }
    Shuffle(rest, random);
    for (size_t i = 0; i < rest.size() && members.size() < wanted; ++i) members.push_back(rest[i]);
  }
  if (members.size() > 1) Make(moment, std::move(members), GroupPhase::kAny);
}

void GroupMaker::MakeArrived(const Moment& moment) {
  std::erase_if(arrived_, [&](int each) { return !at(each).waits || !at(each).groups.empty(); });
  const size_t wanted = std::min(static_cast<size_t>(rules_.group_size), live_.size());
  if (arrived_.size() >= wanted) Make(moment, std::exchange(arrived_, {}), GroupPhase::kArrived);
}

// One worker of each part, idle ones before others, in groups of the usual size that have one in common with the next.
void GroupMaker::MakeJoining(const Moment& moment) {
  joined_epoch_ = union_.epoch();
  Random random = Draw();
  Workers chosen;
  for (const Workers& part : union_.Parts()) {
    Workers idle;
    for (const int each : part) {
      if (at(each).groups.empty()) idle.push_back(each);
    }
    const Workers& from = idle.empty() ? part : idle;
    chosen.push_back(from[random.Below(from.size())]);
  }
  Shuffle(chosen, random);
  const size_t step = static_cast<size_t>(rules_.group_size) - 1;
  for (size_t begin = 0; begin + 1 < chosen.size(); begin += step) {
    const size_t end = std::min(begin + step + 1, chosen.size());
    Make(moment,
         Workers(chosen.begin() + static_cast<ptrdiff_t>(begin),
                 chosen.begin() + static_cast<ptrdiff_t>(end)),
         GroupPhase::kJoining);
  }
}

}  // namespace syncopate::services
