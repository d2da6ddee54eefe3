// Keeps a topology current from the traffic of a running job: notices that a NIC, an uplink or a
// link has become slower or faster, says why it thinks so, and makes the next version.
//
// What a job's flows achieve depends on the job as much as on the network, so they are compared
// with themselves: with what the same pair achieved before. Other work on a machine makes single
// measurements and short runs of them slow, on one host or on all, but never for long and never
// faster. So a change counts when every one of the last samples of a flow agrees.
#ifndef SYNCOPATE_PROBE_UPKEEP_H_
#define SYNCOPATE_PROBE_UPKEEP_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/topology.h"

namespace syncopate {

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
  };
  uint64_t since = 0;  // iteration
  std::vector<Element> elements;
  std::string reason;  // in words, for people
  Topology topology;   // the next version; `source` holds the reason
};

// Not thread-safe. Memory grows with the number of pairs that talk, not with time.
class Upkeep {
 public:
  // `placement` by worker: its device. The topology must be valid.
  Upkeep(Topology topology, std::vector<int> placement);

  // All that was seen in one iteration; iterations come in order. A change, once it is certain.
  // Samples that are too small to tell anything are left out.
  std::optional<TopologyChange> Observe(uint64_t iteration,
                                        absl::Span<const TrafficSample> samples);

  // The job moves its data in another way from now on: what it achieved before says nothing.
  void Forget();

  const Topology& topology() const { return topology_; }

 private:
  enum class Trend { kNone, kSlower, kFaster };
  struct Series {
    std::vector<double> learned;                     // samples until the reference is known
    double reference = 0;                            // bytes/s; 0: not known yet
    std::deque<std::pair<uint64_t, double>> recent;  // iteration, bytes/s
    std::vector<int> elements;                       // that it crosses; see ElementId()
  };
  using Pair = std::pair<int, int>;

  void Learn(Series& series, double rate);
  Trend TrendOf(const Series& series) const;
  double Steadiness(const Series& series, Trend trend) const;
  // Capacities first, then links that draw on none.
  std::vector<int> ElementsOf(const Pair& pair) const;
  std::string ElementId(int element) const;
  double ElementRate(int element) const;
  void Scale(Topology& topology, int element, double factor) const;
  TopologyChange Explain(std::vector<Pair> changed, Trend trend);

  Topology topology_;
  const std::vector<int> placement_;
  std::map<Pair, Series> series_;
  size_t busy_iterations_ = 0;  // in a row, in which most flows were slow
};

}  // namespace syncopate

#endif  // SYNCOPATE_PROBE_UPKEEP_H_
