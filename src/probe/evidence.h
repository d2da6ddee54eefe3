// What measured pairs say about who stands in one rack.
//
// The argument: a flow between two hosts of one rack crosses nothing but their NICs, so if no other
// flow uses these, it achieves the slower of the two, whatever else happens in the network. A flow
// that achieves less crosses something narrow or shared: the hosts are in different racks. A flow
// that achieves all of it proves nothing by itself, but under load few flows between racks do.
#ifndef SYNCOPATE_PROBE_EVIDENCE_H_
#define SYNCOPATE_PROBE_EVIDENCE_H_

#include <cstddef>
#include <vector>

namespace syncopate {

// Below this part of what its NICs can do a flow crosses something else. Measurements of some
// tenths of a second are a few percent off.
inline constexpr double kFullAtLeast = 0.85;

// Of pairs of "members": hosts, or on a higher level racks. Not thread-safe.
class Evidence {
 public:
  explicit Evidence(int members);

  // What a flow from one member to another achieved while the others were busy. Of measurements
  // under different loads the worst counts: one load that slows the flow is enough.
  void Saw(int from, int to, double rate);
  // Capacities that are known by other means; else the best that was seen of a member counts.
  void SetCapacities(std::vector<double> out, std::vector<double> in);

  int members() const { return members_; }
  double out(int member) const;
  double in(int member) const;
  double rate(int from, int to) const { return rates_[Index(from, to)]; }  // 0: not measured
  bool Measured(int a, int b) const;                                       // in both directions
  // How much of what their NICs can do a pair achieved, in its worse direction.
  double Fullness(int a, int b) const;
  // Likewise, of the best time that they were measured.
  double BestFullness(int a, int b) const;
  // Measured, and slower than two members of one rack could be.
  bool Apart(int a, int b) const;

  // Groups that are probably racks: no pair in them is apart, and those join first that agree best
  // about who is apart from them.
  std::vector<std::vector<int>> Cluster() const;

 private:
  double FullnessIn(const std::vector<double>& rates, int a, int b) const;
  size_t Index(int from, int to) const {
    return static_cast<size_t>(from) * static_cast<size_t>(members_) + static_cast<size_t>(to);
  }

  int members_;
  std::vector<double> rates_, best_rates_;
  std::vector<double> best_out_, best_in_;
  std::vector<double> known_out_, known_in_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_PROBE_EVIDENCE_H_
