// The traffic of jobs on networks that change, in virtual time, for tests of what looks at it.
#ifndef SYNCOPATE_ADAPT_NETWORK_TRAFFIC_TESTING_H_
#define SYNCOPATE_ADAPT_NETWORK_TRAFFIC_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "adapt/network_detector.h"
#include "base/random.h"
#include "cost/flow_network.h"
#include "probe/shape.h"

namespace syncopate::adapt {

// Hosts in racks, one worker on each: rates as the network has them, which tests change.
class TrafficNetwork {
 public:
  explicit TrafficNetwork(uint64_t seed) : random_(seed) {
    const int racks = static_cast<int>(random_.Between(2, 3));
    probe::NetworkShape shape;
    for (int r = 0; r < racks; ++r) {
      probe::NetworkShape::Rack rack;
      rack.name = "rack" + std::to_string(r);
      rack.latency = 50e-6;
      double sum = 0;
      const int64_t hosts = random_.Between(2, 4);
      for (int64_t h = 0; h < hosts; ++h) {
        const int number = static_cast<int>(shape.hosts.size());
        const double rate = Mbit(static_cast<double>(random_.Between(10, 20)) * 10);
        shape.hosts.push_back({.name = "h" + std::to_string(number),
                               .workers = {number},
                               .rack = r,
                               .out = rate,
                               .in = rate});
        rack.hosts.push_back(number);
        rack_of_.push_back(r);
        sum += rate;
      }
      rack.up = rack.down = sum * static_cast<double>(random_.Between(3, 8)) / 10;
      shape.racks.push_back(rack);
    }
    probe::NetworkShape::Pod pod;
    pod.name = "pod0";
    for (int r = 0; r < racks; ++r) pod.racks.push_back(r);
    shape.pods.push_back(std::move(pod));
    shape.latency_between_racks = 100e-6;
    topology_ = probe::ToTopology(shape);
    for (const Topology::Capacity& capacity : topology_.capacities) {
      rates_[capacity.id] = capacity.bandwidth;
    }
  }

  static double Mbit(double rate) { return rate * 125'000 * 0.956; }
  const Topology& topology() const { return topology_; }
  std::vector<int> placement() const { return Devices(topology_); }
  int hosts() const { return static_cast<int>(rack_of_.size()); }
  int racks() const { return rack_of_.back() + 1; }
  int rack_of(int host) const { return rack_of_[static_cast<size_t>(host)]; }
  double& rate(const std::string& id) { return rates_.at(id); }
  std::vector<double> rates() const {
    std::vector<double> rates;
    for (const Topology::Capacity& capacity : topology_.capacities) {
      rates.push_back(rates_.at(capacity.id));
    }
    return rates;
  }
  // The capacities on the way from one host to another.
  std::vector<int> Way(int from, int to) const {
    const auto name = [](const char* what, int number) { return what + std::to_string(number); };
    std::vector<std::string> ids = {name("h", from) + ".out"};
    if (rack_of(from) != rack_of(to)) {
      ids.push_back(name("rack", rack_of(from)) + ".up");
      ids.push_back(name("rack", rack_of(to)) + ".down");
    }
    ids.push_back(name("h", to) + ".in");
    std::vector<int> way;
    for (const std::string& id : ids) way.push_back(Index(id));
    return way;
  }
  int Index(const std::string& id) const {
    for (size_t i = 0; i < topology_.capacities.size(); ++i) {
      if (topology_.capacities[i].id == id) return static_cast<int>(i);
    }
    return -1;
  }
  Random& random() { return random_; }

 private:
  Random random_;
  Topology topology_;
  std::vector<int> rack_of_;
  std::map<std::string, double> rates_;
};

// A job on it: a ring, or all pairs at once, by turns with computing. It tells what workers would record.
class TrafficJob {
 public:
  enum class Program : uint8_t { kRing, kAllPairs, kLeaders };

  explicit TrafficJob(TrafficNetwork& network) : network_(network) {}

  // Others that come and go at random on these capacities: up to `most` flows at a time.
  struct Others {
    std::vector<int> capacities;
    int most = 0;
  };

  // Plays for so long, and gives the detector all records but for the last, incomplete ones.
  void Play(Program program, double seconds, const Others& others, NetworkDetector& detector,
            std::vector<NetworkFindings>& found) {
    const double end = now_ + seconds;
    in_calls_ = calls_ = 0;
    while (now_ < end) {
      now_ += 0.02 + 0.04 * network_.random().Unit();
      const double begin = now_;
      Call(program, others);
      in_calls_ += now_ - begin;
      calls_ += 1;
      while (judged_ + 0.5 < now_) {
        judged_ += 0.5;
        Report(detector);
        const double lag = 1;
        NetworkFindings findings = detector.Judge(static_cast<int64_t>((judged_ - lag) * 1e9));
        if (!findings.changes.empty() || !findings.suspects.empty()) found.push_back(findings);
      }
    }
  }

  // How long a call of the last Play() took, on average.
  double call_seconds() const { return in_calls_ / calls_; }
  double now() const { return now_; }

 private:
  using Pair = std::pair<int, int>;
  struct Transfer {
    int from = 0, to = 0;
    double bytes = 0;
    std::vector<int> after;
    int missing = 0;
    double ready = 0;
    std::vector<int> next;
  };

  std::vector<Transfer> Make(Program program) {
    constexpr int kPieces = 4;
    const int hosts = network_.hosts();
    const double piece = 128 << 10;
    std::vector<Transfer> all;
    if (program == Program::kAllPairs) {
      for (int i = 0; i < 3 * kPieces; ++i) {
        for (int from = 0; from < hosts; ++from) {
          for (int to = 0; to < hosts; ++to) {
            if (from != to) all.push_back({from, to, piece, {}, 0, 0, {}});
          }
        }
      }
    } else if (program == Program::kRing) {
      const int steps = 2 * (hosts - 1);
      for (int step = 0; step < steps; ++step) {
        for (int from = 0; from < hosts; ++from) {
          for (int i = 0; i < kPieces; ++i) {
            Transfer transfer{from, (from + 1) % hosts, piece, {}, 0, 0, {}};
            if (step > 0) {
              const int before = (from + hosts - 1) % hosts;
              transfer.after.push_back(((step - 1) * hosts + before) * kPieces + i);
            }
            all.push_back(transfer);
          }
        }
      }
    } else {
      // To the first of each rack, between these, and back.
      std::map<int, int> leaders;
      for (int host = hosts; host-- > 0;) leaders[network_.rack_of(host)] = host;
      std::map<std::pair<int, int>, std::vector<int>> up, across;  // by rack, piece
      for (int i = 0; i < 6 * kPieces; ++i) {
        for (int host = 0; host < hosts; ++host) {
          const int rack = network_.rack_of(host);
          if (leaders[rack] == host) continue;
          up[{rack, i}].push_back(static_cast<int>(all.size()));
          all.push_back({host, leaders[rack], piece, {}, 0, 0, {}});
        }
      }
      for (int i = 0; i < 6 * kPieces; ++i) {
        for (const auto& [rack, leader] : leaders) {
          const int to = (rack + 1) % network_.racks();
          across[{to, i}].push_back(static_cast<int>(all.size()));
          all.push_back({leader, leaders[to], piece, up[{rack, i}], 0, 0, {}});
        }
      }
      for (int i = 0; i < 6 * kPieces; ++i) {
        for (int host = 0; host < hosts; ++host) {
          const int rack = network_.rack_of(host);
          if (leaders[rack] == host) continue;
          all.push_back({leaders[rack], host, piece, across[{rack, i}], 0, 0, {}});
        }
      }
    }
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].missing = static_cast<int>(all[i].after.size());
      for (const int before : all[i].after) {
        all[static_cast<size_t>(before)].next.push_back(static_cast<int>(i));
      }
    }
    return all;
  }

  void Call(Program program, const Others& others) {
    std::vector<Transfer> all = Make(program);
    cost::FlowNetwork flows(network_.rates());
    std::map<Pair, std::deque<int>> waiting;
    std::map<Pair, int> running;
    size_t left = all.size();
    const auto begin = [&](int number) {
      Transfer& transfer = all[static_cast<size_t>(number)];
      std::vector<cost::FlowNetwork::Draw> draws;
      for (const int each : network_.Way(transfer.from, transfer.to)) draws.push_back({each, 1});
      flows.Start(now_, transfer.bytes, draws, number);
    };
    const auto ready = [&](int number) {
      Transfer& transfer = all[static_cast<size_t>(number)];
      transfer.ready = now_;
      const Pair pair = {transfer.from, transfer.to};
      if (running.count(pair) > 0) {
        waiting[pair].push_back(number);
      } else {
        running[pair] = number;
        begin(number);
      }
    };
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].missing == 0) ready(static_cast<int>(i));
    }
    double turn = others.most > 0 ? now_ : 1e18;
    std::vector<int> strangers;
    while (left > 0) {
      const double next = std::min(flows.NextCompletion(), turn);
      now_ = next;
      if (next == turn) {
        for (const int flow : strangers) flows.Cancel(now_, flow);
        strangers.clear();
        const int64_t many = network_.random().Between(0, others.most);
        std::vector<cost::FlowNetwork::Draw> draws;
        for (const int each : others.capacities) draws.push_back({each, 1});
        for (int64_t i = 0; i < many; ++i) strangers.push_back(flows.Start(now_, 1e15, draws, -1));
        turn = now_ + 0.03 + 0.1 * network_.random().Unit();
        continue;
      }
      for (const int number : flows.Complete(next)) {
        Transfer& transfer = all[static_cast<size_t>(number)];
        const Pair pair = {transfer.from, transfer.to};
        Arrived(pair, transfer);
        --left;
        running.erase(pair);
        if (!waiting[pair].empty()) {
          running[pair] = waiting[pair].front();
          waiting[pair].pop_front();
          begin(running[pair]);
        }
        for (const int after : transfer.next) {
          if (--all[static_cast<size_t>(after)].missing == 0) ready(after);
        }
      }
    }
  }

  // As transport/net/flight_times.h counts: bytes are even over the time in flight that was not another one's.
  void Arrived(const Pair& pair, const Transfer& transfer) {
    double& last = last_[pair];
    const double begin = std::max(transfer.ready, last), end = now_;
    last = now_;
    const double phase = Phase(pair.second);
    for (double at = begin; at < end;) {
      const int64_t slot = static_cast<int64_t>((at - phase) / kSlot + 1e-9);
      const double until = std::min(end, phase + static_cast<double>(slot + 1) * kSlot);
      TrafficRecord::Slot& cell = slots_[pair][slot];
      cell.bytes += static_cast<uint64_t>(transfer.bytes * (until - at) / (end - begin));
      cell.busy_ns += static_cast<int64_t>((until - at) * 1e9);
      at = std::max(until, at + 1e-9);
    }
  }

  double Phase(int host) const { return 0.007 * (host % 7); }

  void Report(NetworkDetector& detector) {
    std::map<int, TrafficRecord> records;
    constexpr int64_t kSlots = 10;
    for (auto& [pair, slots] : slots_) {
      const double phase = Phase(pair.second);
      const int64_t first = static_cast<int64_t>(judged_ / kSlot) - kSlots - 4;
      TrafficRecord& record = records[pair.second];
      record.to = pair.second;
      record.begin_ns = static_cast<int64_t>((phase + static_cast<double>(first) * kSlot) * 1e9);
      TrafficRecord::Flow flow = {.from = pair.first, .slots = {}};
      flow.slots.resize(kSlots);
      for (auto it = slots.begin(); it != slots.end() && it->first < first + kSlots;) {
        if (it->first >= first) flow.slots[static_cast<size_t>(it->first - first)] = it->second;
        it = slots.erase(it);
      }
      record.flows.push_back(std::move(flow));
    }
    for (const auto& [to, record] : records) detector.Take(record);
  }

  static constexpr double kSlot = static_cast<double>(NetworkDetector::kSlotNs) * 1e-9;
  TrafficNetwork& network_;
  double now_ = 1, judged_ = 1;
  double in_calls_ = 0, calls_ = 0;
  std::map<Pair, double> last_;
  std::map<Pair, std::map<int64_t, TrafficRecord::Slot>> slots_;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_NETWORK_TRAFFIC_TESTING_H_
