// Tells from what a job's own transfers achieve which NIC, uplink or link of its network has changed.
//
// Workers report by time how many bytes came from whom and for how long these were in flight. Whatever
// group or strategy moved them, one thing is true at any moment: a flow that has bytes in flight all the
// time is held up by *something* on its way, and that carries all that it can. So if no capacity on the way
// of a flow carries what it is known to carry, one of them is slower than it was. Which one follows from
// the flows that slowed together: what crosses all of them, carries the same amount of bytes whoever sends
// them, and has carried no more meanwhile. Where several would do, none is named, and all are suspects. So
// are the capacities of a network that nobody has measured: something may lie between hosts that the
// topology does not have.
//
// A capacity that carries clearly more than was known has become faster, which needs no explanation.
#ifndef SYNCOPATE_ADAPT_NETWORK_DETECTOR_H_
#define SYNCOPATE_ADAPT_NETWORK_DETECTOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/topology.h"

namespace syncopate::adapt {

// What came at one worker from others in consecutive slots of NetworkDetector::kSlotNs.
struct TrafficRecord {
  struct Slot {
    uint64_t bytes = 0;
    int64_t busy_ns = 0;  // in which some of it was in flight
  };
  struct Flow {
    int from = 0;  // worker
    std::vector<Slot> slots;
  };
  int to = 0;
  int64_t begin_ns = 0;  // of the first slot, by the clock of the detector
  std::vector<Flow> flows;
};

struct NetworkFindings {
  using Pair = std::pair<int, int>;  // workers
  struct Change {
    std::string id;                // of a capacity, or of a link that draws on none
    double before = 0, after = 0;  // bytes/s
    std::vector<Pair> flows;       // that showed it
  };
  std::vector<Change> changes;  // they are in the detector's topology, which has a new version then
  std::vector<std::string> suspects;  // one of these is slower; traffic cannot tell which
  std::vector<Pair> slow;             // the flows that show this

  // In words, for people; empty if nothing was found.
  std::string Reason() const;
};

// What is known of a capacity.
struct CapacityKnown {
  std::string id;
  double rate = 0;          // bytes/s; 0: nothing is known
  bool at_least = false;    // it was never full, as far as one knows
  double age_seconds = -1;  // since traffic showed it last; negative: it never did
};

// Not thread-safe. Memory grows with the number of pairs that talk, not with time.
class NetworkDetector {
 public:
  static constexpr int64_t kSlotNs = 50'000'000;

  // `placement` by worker: its device. The topology must be valid. `measured`: its rates are known, not
  // assumed.
  NetworkDetector(Topology topology, std::vector<int> placement, bool measured);

  // Records may come in any order, each once.
  void Take(const TrafficRecord& record);
  // Judges by all slots that have ended at `until_ns`: what came of them later is not looked at. A change is
  // named once, when three calls in a row come to it.
  NetworkFindings Judge(int64_t until_ns);

  // The network is this from now on, by other means, such as a measurement. Its version may be any. What was learned
  // stays for what has the same id and rate.
  void Adopt(Topology topology, std::vector<int> placement, bool measured);

  const Topology& topology() const { return topology_; }
  bool measured() const { return measured_; }
  std::vector<CapacityKnown> Known(int64_t now_ns) const;

 private:
  using Pair = std::pair<int, int>;
  struct Cell {
    double bytes = 0, busy_ns = 0;
  };
  using Slot = std::map<Pair, Cell>;
  // What a flow and the others on its way did in a slot.
  struct Sample {
    int64_t slot = 0;
    bool sustained = false;  // it was in flight in all of this slot, and of the one before
    // By element of its way: the most and the least that it carried, bytes/s, while this flow was in flight, and what
    // it carried by the clock.
    std::vector<double> most, least, carried;
  };
  struct Series {
    std::vector<int> way;  // elements; see ElementId()
    std::deque<Sample> samples;
    std::vector<double>
        usual;               // by element, where the network is not measured; empty: not known yet
    int64_t full_slot = -1;  // the last one in all of which it was in flight
  };
  struct Element {
    double rate = 0;  // 0: unknown
    double first = 0;
    bool at_least = false;
    int64_t shown_ns = -1;
  };
  // Elements that changed for one reason: one, or both directions of a cable.
  struct Cause {
    std::vector<int> elements;
    uint64_t flows = 0;  // that it explains, a bit each
  };

  std::vector<int> WayOf(const Pair& pair) const;
  std::string ElementId(int element) const;
  void SetRate(int element, double rate);
  void LearnElements();
  void Add(int64_t slot, const Slot& cells);
  void Learn(Series& series, const Sample& sample);
  bool IsShort(const Series& series, const Sample& sample) const;
  bool IsSlow(const Series& series) const;
  // Of the recent samples that are too short, what the element at this place of the way carried.
  struct Rates {
    std::vector<double> all, sustained;
    // Those of slots that a flow filled tell most, if there are some.
    const std::vector<double>& Best() const { return sustained.size() >= 4 ? sustained : all; }
  };
  Rates ShortRates(const Series& series, size_t place) const;
  // What the element at this place of the way carried by the clock since then, in the recent samples; 0: there are
  // too few.
  static double Carried(const Series& series, size_t place, int64_t since);
  // What `element` carries if the slow flows are held up by it; 0: it is not that. Where it is not steady, others
  // use it as well, or something else holds up these flows.
  struct Explanation {
    double rate = 0;
    bool steady = false;
  };
  Explanation Explains(int element, const std::vector<const Series*>& slow) const;
  std::vector<Cause> Causes(const std::vector<const Series*>& slow) const;
  void FindSlower(NetworkFindings& findings);
  void FindFaster(NetworkFindings& findings);

  Topology topology_;
  std::vector<int> placement_;
  bool measured_;
  std::vector<Element> elements_;
  std::vector<std::pair<int, int>> cables_;  // the two directions
  std::map<int64_t, Slot> slots_;            // that are not judged yet
  int64_t judged_ = INT64_MIN;               // slots before this are
  std::map<Pair, Series> series_;
  // What the last calls would have named, and how many of them in a row.
  std::map<int, double> last_named_;  // element, rate
  int named_in_a_row_ = 0;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_NETWORK_DETECTOR_H_
