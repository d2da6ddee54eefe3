// Keeps a topology current from the traffic of a running job: notices that a NIC, an uplink or a
// link has become slower or faster, says why it thinks so, and makes the next version.
//
// What a job's flows achieve depends on the job as much as on the network, so it is compared with
// what they achieved before in iterations of the same kind, that is, when the job did the same. And
// they pace one another: in a ring each hop waits for the slowest. A flow that waits for others
// tells nothing about its own way, or only that it is not the narrowest: shapers and switches let
// through what comes after a pause at any speed. So what counts is the flow that takes longest. Its
// time is how long the job must wait for the network. A flow has become slow when it takes clearly
// longer than that was before, as well as longer than itself. What does not hold up the job is not
// noticed.
//
// All of this holds only while the network is what the job waits for: while the longest flow takes
// most of the time of its calls. On a network that is faster than its processors a job's flows take
// as long as those let them, and nothing is learned from that.
//
// Other work on a machine makes single measurements and short runs of them slow, on one host or on
// all, but never for long and never faster. So a change counts when every one of the last samples
// of a flow agrees.
#ifndef SYNCOPATE_PROBE_UPKEEP_H_
#define SYNCOPATE_PROBE_UPKEEP_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/topology.h"

namespace syncopate::probe {

// What moved from one worker to another in one iteration.
struct TrafficSample {
  int from = 0;  // workers
  int to = 0;
  uint64_t bytes = 0;
  double busy_seconds = 0;  // from the first to the last byte, without pauses
};

struct TopologyChange {
  struct Element {
    std::string id;                          // of the capacity, or of the link
    double before = 0, after = 0;            // bytes/s
    std::vector<std::pair<int, int>> flows;  // workers whose traffic showed it
    std::vector<std::string> or_else;        // ids of others that would explain it as well
  };
  uint64_t since = 0;  // iteration
  std::vector<Element> elements;
  std::string reason;  // in words, for people
  Topology topology;   // the next version; `source` holds the reason
};

// What is better than it was at the beginning is not noticed, only what has become better again:
// the first topology was measured when nothing disturbed it, one hopes, and a job gets faster for
// many reasons.
//
// Not thread-safe. Memory grows with the number of pairs that talk, not with time.
class Upkeep {
 public:
  // `placement` by worker: its device. The topology must be valid.
  Upkeep(Topology topology, std::vector<int> placement);

  // All that was seen in one iteration, which took `seconds` in all; iterations come in order.
  // `kind` stands for what the job did in it. A change, once it is certain. Samples that are too
  // small to tell anything are left out.
  std::optional<TopologyChange> Observe(uint64_t iteration, uint64_t kind, double seconds,
                                        absl::Span<const TrafficSample> samples);

  const Topology& topology() const { return topology_; }

 private:
  enum class Trend { kSlower, kFaster };
  using Pair = std::pair<int, int>;
  // How long flows take in iterations of one kind, seconds.
  struct Kind {
    std::vector<std::map<Pair, double>> learned;  // of each flow, by iteration, while learning
    std::vector<double> learned_all;              // of the whole iteration, while learning
    double longest = 0;                           // of all flows; 0: not known yet
    double all = 0;                               // the iteration
    std::deque<double> shares;                    // recent: of the longest in the iteration
    std::map<Pair, double> usual;
    uint64_t used = 0;  // last iteration
  };
  // What a flow did in an iteration; speeds as a part of the usual one.
  struct Sample {
    uint64_t iteration = 0;
    double speed = 0;
    double gain = 0;  // the speed that the iteration has gained by; 0: none
  };
  struct Series {
    std::deque<Sample> recent;
    double evidence = 0;        // that it is slow
    uint64_t since = 0;         // iteration, if there is any
    std::vector<int> elements;  // that it crosses; see ElementId()
  };
  // Something that may have changed: an element, or both directions of a cable.
  using Suspect = std::vector<int>;
  struct Verdict {
    Suspect suspect;
    std::vector<Suspect> others;  // that are as likely
  };

  // The flows of an iteration that are worth looking at: seconds.
  std::map<Pair, double> TimesOf(absl::Span<const TrafficSample> samples);
  Kind& KindOf(uint64_t kind, uint64_t iteration);
  static void Learn(Kind& kind, std::map<Pair, double> times, double seconds);
  // Whether the job waits for the network in recent iterations. If it clearly does not, the kind is
  // learned anew.
  static bool IsHeldUp(Kind& kind, double share);
  std::optional<TopologyChange> NoticeSlower(Kind& kind);
  std::optional<TopologyChange> NoticeFaster(Kind& kind);
  // The present kind of iterations from now on, when flows take `factor` of the speed.
  void Adjust(Kind& kind, const std::map<Pair, double>& factors);
  // Capacities first, then links that draw on none.
  std::vector<int> ElementsOf(const Pair& pair) const;
  std::string ElementId(int element) const;
  static double ElementRate(const Topology& topology, int element);
  bool IsReduced(int element) const;  // it was better once
  std::vector<Suspect> Suspects() const;
  // How many pairs of workers talk across each element.
  std::vector<int> Sharers() const;
  void Scale(Topology& topology, int element, double factor) const;
  Verdict Blame(const std::set<Pair>& left, const std::map<Pair, double>& factors,
                const std::vector<int>& sharers, Trend trend) const;
  // `factors`: the flows that changed, and their speed as a part of what it was.
  TopologyChange Explain(const std::map<Pair, double>& factors, uint64_t since, Trend trend);

  const Topology first_;
  Topology topology_;
  const std::vector<int> placement_;
  std::map<Pair, Series> series_;
  std::map<uint64_t, Kind> kinds_;
  size_t busy_iterations_ = 0;  // in a row, in which most flows were slow
};

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_UPKEEP_H_
