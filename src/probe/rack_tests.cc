// Whether a host stands in a rack, by tests made for this question.
//
// They look at sums, not at what single flows get: flows over one bottleneck share it in any way
// that pleases them, but their sum is what it carries. So a slow host shows too, which alone could
// never fill an uplink: what others achieve falls by what it takes.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "probe/find_racks.h"

namespace syncopate::probe {
namespace {

using Flow = Oracle::Flow;

// A part of the host's own traffic that is missing when both run at once. More than this: they
// share something.
constexpr double kShares = 0.3;
// What is so near to nothing (or to all, twice as far) is believed at once.
constexpr double kClear = 0.15;

// The likeness with a host of a rack, on average, below which tests are not worth their time.
constexpr double kImpossible = -0.8;
// Of these experiments: sums of three of them are compared.
constexpr double kLength = 1.5;
// That a check takes, and those that come after all checks.
constexpr int kExperimentsPerCheck = 16;

class RackTests {
 public:
  RackTests(Experiments& experiments, FoundRacks& found)
      : experiments_(experiments), found_(found) {}

  absl::Status CheckAll();

 private:
  double Nic(int host) const {
    return std::min(found_.evidence.out(host), found_.evidence.in(host));
  }
  int RackOfHost(int host) const {
    return RackOf(found_.racks, experiments_.hosts())[static_cast<size_t>(host)];
  }
  std::vector<int> Others(int rack, int host) const;
  // What was seen does not speak much against `host` being in `rack`.
  bool Possible(int host, int rack) const;
  // The part of `probe` that is missing when it runs together with `load`.
  absl::StatusOr<double> Missing(const std::vector<Flow>& load, const std::vector<Flow>& probe);
  absl::StatusOr<double> MissingOnce(const std::vector<Flow>& load, const std::vector<Flow>& probe);
  // True: `host` is not in `rack`, for its traffic with the rack shares the rack's uplink. False:
  // nothing of that is seen. Nothing if the rack is too small for this test.
  absl::StatusOr<std::optional<bool>> CrossesUplink(int host, int rack);
  // True: traffic of `host` and of a member of `rack` to elsewhere share something, so they stand
  // in one rack.
  absl::StatusOr<std::optional<bool>> SharesUplink(int host, int rack);
  absl::Status Check(int host, int rack);
  void Move(int host, int rack);

  Experiments& experiments_;
  FoundRacks& found_;
};

std::vector<int> RackTests::Others(int rack, int host) const {
  std::vector<int> others = found_.racks[static_cast<size_t>(rack)];
  others.erase(std::remove(others.begin(), others.end(), host), others.end());
  std::stable_sort(others.begin(), others.end(), [&](int a, int b) { return Nic(a) > Nic(b); });
  return others;  // the fastest first
}

bool RackTests::Possible(int host, int rack) const {
  const std::vector<int>& members = found_.racks[static_cast<size_t>(rack)];
  const auto measured = std::count_if(members.begin(), members.end(), [&](int member) {
    return member != host && found_.evidence.Measured(host, member);
  });
  return measured > 0 &&
         found_.evidence.LikenessWith(host, members) > kImpossible * static_cast<double>(measured);
}

absl::StatusOr<double> RackTests::MissingOnce(const std::vector<Flow>& load,
                                              const std::vector<Flow>& probe) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<double> alone, experiments_.Rates(probe, kLength));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<double> before, experiments_.Rates(load, kLength));
  std::vector<Flow> all = load;
  all.insert(all.end(), probe.begin(), probe.end());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<double> together, experiments_.Rates(all, kLength));
  const double smaller = std::min(Sum(alone), Sum(before));
  return smaller <= 0 ? 0 : (Sum(alone) + Sum(before) - Sum(together)) / smaller;
}

absl::StatusOr<double> RackTests::Missing(const std::vector<Flow>& load,
                                          const std::vector<Flow>& probe) {
  std::vector<double> missing;
  do {
    SYNCOPATE_ASSIGN_OR_RETURN(const double once, MissingOnce(load, probe));
    missing.push_back(once);
    const bool nothing = -kClear < once && once < kClear;
    const bool all = 1 - 2 * kClear < once && once < 1 + kClear;
    if (missing.size() == 1 && (nothing || all)) break;
  } while (missing.size() < 3 && experiments_.TimeFor(3));
  std::sort(missing.begin(), missing.end());
  return missing[missing.size() / 2];
}

absl::StatusOr<std::optional<bool>> RackTests::CrossesUplink(int host, int rack) {
  std::vector<int> members = Others(rack, host);
  if (members.size() < 2) return std::optional<bool>();
  // The slowest that can keep up with the host talks to it; the others load the uplink.
  size_t partner = members.size() - 1;
  while (partner > 0 && Nic(members[partner]) < 0.9 * Nic(host)) --partner;
  std::vector<Flow> probe;
  AddBothWays(probe, host, members[partner]);
  members.erase(members.begin() + static_cast<std::ptrdiff_t>(partner));
  std::vector<Flow> load;
  for (const int member : members) {
    // The two racks whose hosts it reached best, by their best hosts.
    std::vector<std::pair<double, int>> best;  // minus the rate
    for (size_t other = 0; other < found_.racks.size(); ++other) {
      if (static_cast<int>(other) == rack) continue;
      std::pair<double, int> here = {0, -1};
      for (const int target : Others(static_cast<int>(other), host)) {
        here = std::min(here, {-found_.evidence.rate(member, target), target});
      }
      if (here.second >= 0) best.push_back(here);
    }
    std::sort(best.begin(), best.end());
    for (size_t i = 0; i < std::min<size_t>(2, best.size()); ++i) {
      AddBothWays(load, member, best[i].second);
    }
  }
  if (load.empty()) return std::optional<bool>();
  SYNCOPATE_ASSIGN_OR_RETURN(const double missing, Missing(load, probe));
  return std::optional<bool>(missing > kShares);
}

absl::StatusOr<std::optional<bool>> RackTests::SharesUplink(int host, int rack) {
  const std::vector<int> members = Others(rack, host);
  if (members.empty()) return std::optional<bool>();
  const int member = members.front();
  // The two must not meet at the other end: their targets stand in different racks, or both where
  // the host is held to stand, so that its traffic leaves nothing if it does.
  const int home = RackOfHost(host);
  const auto better = [&](int from, int a, int b) {
    // Rather a fast host than one that others kept busy.
    if (Nic(a) > 1.1 * Nic(b) || Nic(b) > 1.1 * Nic(a)) return Nic(a) > Nic(b);
    return found_.evidence.rate(from, a) > found_.evidence.rate(from, b);
  };
  const auto fastest = [&](int from, const std::set<int>& not_in) {
    int best = -1;
    for (size_t r = 0; r < found_.racks.size(); ++r) {
      if (not_in.count(static_cast<int>(r)) > 0) continue;
      for (const int target : Others(static_cast<int>(r), host)) {
        if (best < 0 || better(from, target, best)) best = target;
      }
    }
    return best;
  };
  const int theirs = fastest(member, {rack});
  if (theirs < 0) return std::optional<bool>();
  int mine = fastest(host, {rack, RackOfHost(theirs)});
  std::vector<Flow> load = {{member, theirs}};
  if (mine >= 0) {  // more of a load, if there is a fourth rack to take it
    const int more = fastest(member, {rack, RackOfHost(theirs), RackOfHost(mine)});
    if (more >= 0) load.push_back({member, more});
  } else if (RackOfHost(theirs) == home) {
    for (const int target : Others(home, host)) {
      if (target != theirs && (mine < 0 || better(host, target, mine))) mine = target;
    }
  }
  if (mine < 0) return std::optional<bool>();
  // One way only: on the way back they could meet in the rack of the other's target.
  SYNCOPATE_ASSIGN_OR_RETURN(const double missing, Missing(load, {{host, mine}}));
  return std::optional<bool>(missing > kShares);
}

void RackTests::Move(int host, int rack) {
  std::vector<int>& from = found_.racks[static_cast<size_t>(RackOfHost(host))];
  from.erase(std::remove(from.begin(), from.end(), host), from.end());
  std::vector<int>& to = found_.racks[static_cast<size_t>(rack)];
  to.push_back(host);
  std::sort(to.begin(), to.end());
}

absl::Status RackTests::Check(int host, int rack) {
  const int home = RackOfHost(host);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<bool> not_there, CrossesUplink(host, rack));
  if (not_there.value_or(false)) return absl::OkStatus();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<bool> not_here, CrossesUplink(host, home));
  const bool alone = found_.racks[static_cast<size_t>(home)].size() == 1;
  // A rack of one host cannot be tested; then what was seen before must speak for it.
  const bool maybe_there =
      not_there.has_value() ||
      found_.evidence.LikenessWith(host, found_.racks[static_cast<size_t>(rack)]) > 0;
  if (not_here.value_or(false) ? maybe_there : not_there.has_value() && alone) {
    Move(host, rack);
    return absl::OkStatus();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<bool> there, SharesUplink(host, rack));
  if (!there.value_or(false)) return absl::OkStatus();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<bool> here, SharesUplink(host, home));
  if (!here.value_or(false)) Move(host, rack);
  return absl::OkStatus();
}

absl::Status RackTests::CheckAll() {
  // Hosts without a rack first: mostly another one stands where it does not belong.
  for (const bool lonely : {true, false}) {
    for (int host = 0; host < experiments_.hosts(); ++host) {
      for (size_t rack = 0; rack < found_.racks.size(); ++rack) {
        const int home = RackOfHost(host);
        if (found_.racks[rack].empty() || static_cast<int>(rack) == home ||
            !Possible(host, static_cast<int>(rack))) {
          continue;
        }
        const bool one_alone =
            found_.racks[rack].size() == 1 || found_.racks[static_cast<size_t>(home)].size() == 1;
        if (one_alone != lonely) continue;
        if (!experiments_.TimeFor(kExperimentsPerCheck)) {
          found_.complete = false;
          break;
        }
        SYNCOPATE_RETURN_IF_ERROR(Check(host, static_cast<int>(rack)));
      }
    }
  }
  found_.racks.erase(std::remove_if(found_.racks.begin(), found_.racks.end(),
                                    [](const std::vector<int>& rack) { return rack.empty(); }),
                     found_.racks.end());
  std::sort(found_.racks.begin(), found_.racks.end());
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRackMembers(Experiments& experiments, FoundRacks& found) {
  if (found.racks.size() < 2) return absl::OkStatus();
  experiments.Begin("doubtful hosts");
  return RackTests(experiments, found).CheckAll();
}

}  // namespace syncopate::probe
