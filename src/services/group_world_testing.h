// Workers that ask a GroupMaker for groups, in an order that a seed draws from very uneven speeds, with deaths. It is
// copied through its bytes before every call. What must hold for any order is checked on the way. For tests.
#ifndef SYNCOPATE_SERVICES_GROUP_WORLD_TESTING_H_
#define SYNCOPATE_SERVICES_GROUP_WORLD_TESTING_H_

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "services/group_maker.h"

namespace syncopate::services {

// Whether the groups of a window connect its workers: from some moment until each has asked `requests` times.
class ConnectionWindow {
 public:
  ConnectionWindow(const std::set<int>& live, int64_t requests) : requests_(requests) {
    Begin(live);
  }
  void Begin(const std::set<int>& live) {
    parts_.clear();
    asked_.clear();
    for (const int rank : live) {
      parts_[rank] = rank;
      asked_[rank] = 0;
    }
  }
  void Join(const std::vector<int>& members) {
    const int to = parts_[members.front()];
    std::set<int> from;
    for (const int member : members) from.insert(parts_[member]);
    for (auto& [rank, part] : parts_) {
      if (from.contains(part)) part = to;
    }
  }
  // Whether the window is over.
  bool Asked(int rank) {
    ++asked_[rank];
    return std::all_of(asked_.begin(), asked_.end(),
                       [&](const auto& each) { return each.second >= requests_; });
  }
  bool Connected() const {
    return std::all_of(parts_.begin(), parts_.end(),
                       [&](const auto& each) { return each.second == parts_.begin()->second; });
  }

 private:
  const int64_t requests_;
  std::map<int, int> parts_;
  std::map<int, int64_t> asked_;
};

class GroupWorld {
 public:
  GroupWorld(const GroupRules& rules, const GroupJob& job, uint64_t seed, bool through_bytes = true)
      : rules_(rules), job_(job), random_(seed), through_bytes_(through_bytes), maker_(rules, job) {
    for (int rank = 0; rank < job.workers; ++rank) {
      live_.insert(rank);
      // Up to three orders of magnitude apart.
      speed_.push_back(1 + random_.Below(uint64_t{1} << random_.Below(11)));
    }
    const int64_t lag = rules.lag_max > 0 ? rules.lag_max : 4;
    for (int i = 0; i < 3; ++i) windows_.emplace_back(live_, 8 * lag);
  }

  // Whether anybody could move.
  bool Move() {
    std::vector<std::pair<int, uint64_t>> movers;
    uint64_t all = 0;
    for (const int rank : live_) {
      if (!waits_.contains(rank) && !stopped_.contains(rank))
        movers.emplace_back(rank, all += speed_[Place(rank)]);
    }
    if (movers.empty()) return false;
    now_ns_ += 1000;
    const uint64_t drawn = random_.Below(all);
    const int rank = std::find_if(movers.begin(), movers.end(), [&](const auto& m) {
                       return drawn < m.second;
                     })->first;
    CopyThroughBytes();
    std::vector<GivenGroup> given;
    const auto group = in_.find(rank);
    if (group == in_.end()) {
      waits_.insert(rank);
      Asked(rank);
      const absl::Status wants =
          maker_.Want(Moment(), rank,
                      {.iteration = 0,
                       .samples = 8,
                       .busy_seconds = 1.0 / static_cast<double>(speed_[Place(rank)])},
                      given);
      EXPECT_TRUE(wants.ok()) << wants;
    } else {
      const GroupKey key = group->second;
      in_.erase(group);
      running_[key].erase(rank);
      if (!maker_.Done(Moment(), rank, key, given)) waits_.insert(rank);
      // Told twice, it is ignored.
      EXPECT_TRUE(waits_.contains(rank) || maker_.Done(Moment(), rank, key, given));
    }
    Take(given);
    return true;
  }

  void Kill(int rank) {
    CopyThroughBytes();
    live_.erase(rank);
    waits_.erase(rank);
    if (const auto in = in_.find(rank); in != in_.end()) {
      running_[in->second].erase(rank);
      in_.erase(in);
    }
    std::vector<GivenGroup> given;
    maker_.Gone(Moment(), rank, given);
    for (ConnectionWindow& window : windows_) window.Begin(live_);
    Take(given);
  }

  // Of each worker, in its order.
  const std::map<int, std::vector<GivenGroup>>& told() const { return told_; }
  const std::set<int>& live() const { return live_; }
  const std::set<int>& stopped() const { return stopped_; }
  int windows_seen() const { return windows_seen_; }
  GroupMaker& maker() { return maker_; }

  // Two workers see the groups that they have in common in the same order.
  void CheckCommonOrder() const {
    for (const auto& [a, of_a] : told_) {
      for (const auto& [b, of_b] : told_) {
        if (a < b) {
          EXPECT_EQ(Common(of_a, b), Common(of_b, a)) << a << " and " << b;
        }
      }
    }
  }

 private:
  GroupMaker::Moment Moment() const { return {.now_ns = now_ns_, .maker = 1}; }
  size_t Place(int rank) const { return static_cast<size_t>(rank); }

  void CopyThroughBytes() {
    if (!through_bytes_) return;
    std::string state, again;
    maker_.AppendState(state);
    GroupMaker copy(rules_, job_);
    ByteReader reader(state);
    copy.ReadState(reader);
    ASSERT_TRUE(reader.AtEnd());
    copy.AppendState(again);
    ASSERT_EQ(state, again);
    maker_.~GroupMaker();
    new (&maker_) GroupMaker(copy);
  }

  void Asked(int rank) {
    // Windows that begin at different moments.
    for (size_t i = 0; i < windows_.size(); ++i) {
      if (random_.Below(200) == 0 && i > 0) windows_[i].Begin(live_);
      if (!windows_[i].Asked(rank)) continue;
      ++windows_seen_;
      EXPECT_TRUE(windows_[i].Connected() || live_.size() < 2);
      windows_[i].Begin(live_);
    }
  }

  void Take(const std::vector<GivenGroup>& given) {
    std::map<GroupKey, std::set<int>> told;
    for (const GivenGroup& each : given) {
      ASSERT_EQ(waits_.erase(each.rank), 1u) << "rank " << each.rank << " did not wait";
      ASSERT_TRUE(std::binary_search(each.members.begin(), each.members.end(), each.rank));
      told_[each.rank].push_back(each);
      if (each.stop) stopped_.insert(each.rank);
      if (each.members.size() < 2) continue;
      ASSERT_FALSE(in_.contains(each.rank)) << "rank " << each.rank << " is in two groups at once";
      in_[each.rank] = each.key;
      running_[each.key].insert(each.rank);
      if (each.first) {
        for (ConnectionWindow& window : windows_) window.Join(each.members);
      }
      told[each.key].insert(each.rank);
    }
    // All members are told together.
    for (const auto& [key, ranks] : told) {
      EXPECT_EQ(std::vector<int>(ranks.begin(), ranks.end()), told_[*ranks.begin()].back().members);
    }
  }

  static std::vector<GroupKey> Common(const std::vector<GivenGroup>& groups, int other) {
    std::vector<GroupKey> keys;
    for (const GivenGroup& each : groups) {
      if (std::binary_search(each.members.begin(), each.members.end(), other))
        keys.push_back(each.key);
    }
    return keys;
  }

  const GroupRules rules_;
  const GroupJob job_;
  Random random_;
  const bool through_bytes_;
  GroupMaker maker_;
  int64_t now_ns_ = 0;
  std::vector<uint64_t> speed_;
  std::set<int> live_, waits_, stopped_;
  std::map<int, GroupKey> in_;
  std::map<GroupKey, std::set<int>> running_;
  std::map<int, std::vector<GivenGroup>> told_;
  std::vector<ConnectionWindow> windows_;
  int windows_seen_ = 0;
};

}  // namespace syncopate::services

#endif  // SYNCOPATE_SERVICES_GROUP_WORLD_TESTING_H_
