// Transfers cost a line of start-up and bytes, and those that have a member in common share bandwidth by
// the gamma of the cost model: while k of them move, each byte of each takes gamma(k) times as long.
#ifndef SYNCOPATE_SIM_GAMMA_BANDWIDTH_H_
#define SYNCOPATE_SIM_GAMMA_BANDWIDTH_H_

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "cost/communication_costs.h"
#include "sim/bandwidth.h"

namespace syncopate::sim {

// A begin or an end costs what the transfers cost that it slows or speeds up, however many others move.
class GammaBandwidth : public Bandwidth {
 public:
  GammaBandwidth(cost::CommunicationCosts costs, int workers)
      : costs_(std::move(costs)), moving_of_(static_cast<size_t>(workers)) {}

  absl::StatusOr<double> Add(int transfer, const Travel& travel) override;
  void Begin(double now, int transfer) override;
  void Cancel(double now, int transfer) override { Remove(now, transfer); }
  double NextEnd() override;
  std::vector<int> TakeEnded(double now) override;

 private:
  struct Moving {
    Members members;
    double bytes_left = 0;
    double updated = 0;           // the time of `bytes_left`
    double seconds_per_byte = 0;  // since then
    int beside = 0;      // transfers that move and have a member in common, itself included
    uint64_t stamp = 0;  // of the newest entry in `ends_`; 0: it does not move
    uint64_t seen = 0;   // the Neighbours() that last met it
  };
  struct End {
    double time;
    int transfer;
    uint64_t stamp;
    bool operator>(const End& other) const {
      return std::pair(time, transfer) > std::pair(other.time, other.transfer);
    }
  };

  // Those that move and have a member in common with this one, without itself.
  const std::vector<int>& Neighbours(int transfer);
  void Remove(double now, int transfer);
  // Counts what has moved at the old rate and goes on at that of `beside` transfers.
  void SetBeside(double now, int transfer, int beside);

  const cost::CommunicationCosts costs_;
  std::vector<Moving> transfers_;
  std::vector<std::vector<int>> moving_of_;  // by rank
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
  std::vector<int> neighbours_;
  uint64_t stamps_ = 0;
  uint64_t seen_ = 0;
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_GAMMA_BANDWIDTH_H_
