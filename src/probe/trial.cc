#include "probe/trial.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/units.h"

namespace syncopate::probe {
namespace {

// The part of the hosts that is slow.
constexpr double kSlowPart = 0.2;
// The hosts of a rack can send at least this many times what its uplink carries. Otherwise nobody
// could see the uplink.
constexpr double kOverload = 1.25;

// The racks as sets of their hosts' names.
std::set<std::set<std::string>> RackSets(const NetworkShape& shape) {
  std::set<std::set<std::string>> sets;
  for (const NetworkShape::Rack& rack : shape.racks) {
    std::set<std::string> names;
    for (const int host : rack.hosts) names.insert(shape.hosts[static_cast<size_t>(host)].name);
    sets.insert(std::move(names));
  }
  return sets;
}

double SumOut(const NetworkShape& shape, const NetworkShape::Rack& rack) {
  double sum = 0;
  for (const int host : rack.hosts) sum += shape.hosts[static_cast<size_t>(host)].out;
  return sum;
}

double SumIn(const NetworkShape& shape, const NetworkShape::Rack& rack) {
  double sum = 0;
  for (const int host : rack.hosts) sum += shape.hosts[static_cast<size_t>(host)].in;
  return sum;
}

}  // namespace

NetworkShape RandomNetwork(uint64_t seed, const TrialOptions& options) {
  Random random(seed);
  NetworkShape shape;
  const int racks = static_cast<int>(random.Between(2, options.racks_max));
  std::vector<int> places;  // the rack of each host
  for (int r = 0; r < racks; ++r) {
    const int64_t hosts = random.Between(2, options.rack_hosts_max);
    for (int64_t i = 0; i < hosts; ++i) places.push_back(r);
    NetworkShape::Rack rack;
    rack.name = absl::StrCat("rack", r);
    rack.up = options.nic * std::pow(2, -3 * random.Unit());
    rack.down = options.equal_ways ? rack.up : options.nic * std::pow(2, -3 * random.Unit());
    rack.latency = 1e-4;
    shape.racks.push_back(std::move(rack));
  }
  for (size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random.Below(i)]);
  for (size_t h = 0; h < places.size(); ++h) {
    NetworkShape::Host host;
    host.name = absl::StrCat("h", h);
    host.workers = {static_cast<int>(h)};
    host.rack = places[h];
    host.out = options.nic;
    if (random.Unit() < kSlowPart) host.out *= 0.4 + 0.3 * random.Unit();
    host.in = host.out;
    shape.racks[static_cast<size_t>(places[h])].hosts.push_back(static_cast<int>(h));
    shape.hosts.push_back(std::move(host));
  }
  for (const NetworkShape::Rack& rack : shape.racks) {
    for (const int host : rack.hosts) {
      if (SumOut(shape, rack) >= kOverload * std::max(rack.up, rack.down)) break;
      shape.hosts[static_cast<size_t>(host)].out = options.nic;
      shape.hosts[static_cast<size_t>(host)].in = options.nic;
    }
  }
  shape.latency_between_racks = 3e-4;
  NetworkShape::Pod pod;
  pod.name = "pod0";
  for (int r = 0; r < racks; ++r) pod.racks.push_back(r);
  shape.pods.push_back(std::move(pod));
  return shape;
}

NetworkShape Visible(const NetworkShape& truth) {
  NetworkShape visible = truth;
  const size_t racks = truth.racks.size();
  for (size_t r = 0; r < racks && racks > 1; ++r) {
    double others_up = 0, others_down = 0;
    for (size_t other = 0; other < racks; ++other) {
      if (other == r) continue;
      const NetworkShape::Rack& rack = truth.racks[other];
      others_up += std::min(rack.up, SumOut(truth, rack));
      others_down += std::min(rack.down, SumIn(truth, rack));
    }
    const NetworkShape::Rack& rack = truth.racks[r];
    visible.racks[r].up = std::min({rack.up, SumOut(truth, rack), others_down});
    visible.racks[r].down = std::min({rack.down, SumIn(truth, rack), others_up});
  }
  for (size_t h = 0; h < truth.hosts.size(); ++h) {
    const NetworkShape::Host& host = truth.hosts[h];
    const size_t rack = static_cast<size_t>(host.rack);
    const double mates_in = SumIn(truth, truth.racks[rack]) - host.in;
    const double mates_out = SumOut(truth, truth.racks[rack]) - host.out;
    const double away_out = racks > 1 ? visible.racks[rack].up : 0;
    const double away_in = racks > 1 ? visible.racks[rack].down : 0;
    visible.hosts[h].out = std::min(host.out, mates_in + away_out);
    visible.hosts[h].in = std::min(host.in, mates_out + away_in);
  }
  return visible;
}

Verdict Compare(const NetworkShape& truth, const NetworkShape& found, double tolerance) {
  Verdict verdict;
  const NetworkShape expected = Visible(truth);
  verdict.racks_right = RackSets(truth) == RackSets(found) && found.pods.size() < 2;
  if (!verdict.racks_right) {
    for (const auto& [shape, what] : {std::pair(&truth, "is"), std::pair(&found, "found")}) {
      std::vector<std::string> racks;
      for (const std::set<std::string>& rack : RackSets(*shape)) {
        racks.push_back(absl::StrCat("{", absl::StrJoin(rack, " "), "}"));
      }
      verdict.wrong.push_back(absl::StrCat(what, " ", absl::StrJoin(racks, " ")));
    }
  }
  auto check = [&](const std::string& what, double is, double should) {
    ++verdict.capacities;
    if (std::abs(is - should) <= tolerance * should) {
      ++verdict.within;
    } else {
      verdict.wrong.push_back(
          absl::StrCat(what, " ", FormatRate(is), " instead of ", FormatRate(should)));
    }
  };
  std::map<std::string, const NetworkShape::Host*> hosts;
  for (const NetworkShape::Host& host : found.hosts) hosts[host.name] = &host;
  for (const NetworkShape::Host& host : expected.hosts) {
    const auto other = hosts.find(host.name);
    check(absl::StrCat(host.name, ".out"), other == hosts.end() ? 0 : other->second->out, host.out);
    check(absl::StrCat(host.name, ".in"), other == hosts.end() ? 0 : other->second->in, host.in);
  }
  if (expected.racks.size() < 2) return verdict;
  for (const NetworkShape::Rack& rack : expected.racks) {
    // The found rack of its first host.
    const auto first = hosts.find(expected.hosts[static_cast<size_t>(rack.hosts.front())].name);
    double up = 0, down = 0;
    if (first != hosts.end() && found.racks.size() > 1) {
      up = found.racks[static_cast<size_t>(first->second->rack)].up;
      down = found.racks[static_cast<size_t>(first->second->rack)].down;
    }
    check(absl::StrCat(rack.name, ".up"), up, rack.up);
    check(absl::StrCat(rack.name, ".down"), down, rack.down);
  }
  return verdict;
}

}  // namespace syncopate::probe
