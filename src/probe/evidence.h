// What measured pairs say about who stands in one rack.
//
// The argument: a flow between two hosts of one rack crosses nothing but their NICs, so if no other
// flow uses these, it achieves the slower of the two, whatever else happens in the network. A flow
// that achieves less crosses something narrow or shared: the hosts are in different racks. A flow
// that achieves all of it proves little by itself, but under load few flows between racks do.
//
// Any measurement may be disturbed, so none decides: each adds to the likeness of its pair, and
// racks are the groups with the greatest likeness inside.
#ifndef SYNCOPATE_PROBE_EVIDENCE_H_
#define SYNCOPATE_PROBE_EVIDENCE_H_

#include <cstddef>
#include <vector>

namespace syncopate::probe {

// Of pairs of "members": hosts, or on a higher level racks. Not thread-safe.
class Evidence {
 public:
  explicit Evidence(int members);

  // What a flow from one member to another achieved while others were busy. Where more met than
  // usual, it counts for as many as `weight`.
  void Saw(int from, int to, double rate, double weight = 1);
  // Capacities that are known by other means; else the best that was seen of a member counts.
  void SetCapacities(std::vector<double> out, std::vector<double> in);

  int members() const { return members_; }
  double out(int member) const;
  double in(int member) const;
  // The least that was seen; 0: not measured.
  double rate(int from, int to) const;
  bool Measured(int a, int b) const;  // in both directions
  // How much more likely what was seen is if the two stand in one rack, as a sum of logarithms.
  // Positive: they probably do. 0 if nothing was measured.
  double Likeness(int a, int b) const;
  // The sum over the pairs of `member` with all others of `group`.
  double LikenessWith(int member, const std::vector<int>& group) const;

  // The most likely racks: groups with the greatest sum of likenesses inside.
  std::vector<std::vector<int>> Cluster() const;

 private:
  size_t Index(int from, int to) const {
    return static_cast<size_t>(from) * static_cast<size_t>(members_) + static_cast<size_t>(to);
  }

  int members_;
  struct Seen {
    double rate, weight;
  };
  std::vector<std::vector<Seen>> seen_;  // by pair
  std::vector<double> best_out_, best_in_;
  std::vector<double> known_out_, known_in_;
};

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_EVIDENCE_H_
