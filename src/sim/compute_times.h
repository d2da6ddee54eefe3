// How long virtual workers compute: the times of the tensor table or a line by samples, times slowness
// and jitter.
#ifndef SYNCOPATE_SIM_COMPUTE_TIMES_H_
#define SYNCOPATE_SIM_COMPUTE_TIMES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "sim/virtual_options.h"

namespace syncopate::sim {

class ComputeTimes {
 public:
  // Both must outlive this.
  ComputeTimes(const VirtualOptions& options, Random& random)
      : options_(options),
        random_(random),
        table_seconds_(options.table.forward_seconds() + options.table.backward_seconds()),
        slow_(static_cast<size_t>(options.workers)) {
    for (size_t rank = 0; rank < slow_.size(); ++rank) {
      slow_[rank].factor = options.slowness.empty() ? 1 : options.slowness[rank];
    }
    for (const VirtualOptions::Slowdown& change : options.slowdowns) {
      slow_[static_cast<size_t>(change.rank)].changes.push_back(change);
    }
    for (Slow& slow : slow_) {
      std::stable_sort(slow.changes.begin(), slow.changes.end(),
                       [](const auto& one, const auto& two) { return one.from < two.from; });
    }
  }

  // Of a piece of work that begins now and has `seconds` in the table. Jitter is drawn anew for each.
  double Seconds(double now, int rank, uint64_t samples, double seconds) {
    Slow& slow = slow_[static_cast<size_t>(rank)];
    while (slow.next < slow.changes.size() && slow.changes[slow.next].from <= now) {
      slow.factor = slow.changes[slow.next++].factor;
    }
    if (!options_.compute.empty()) {
      const auto& line =
          options_.compute[options_.compute.size() == 1 ? 0 : static_cast<size_t>(rank)];
      const double all = line.alpha + line.beta * static_cast<double>(samples);
      // The line is of a whole iteration, of which each piece has its part of the table.
      seconds = table_seconds_ > 0 ? all * (seconds / table_seconds_)
                                   : all / (2.0 * options_.table.size());
    }
    return seconds * slow.factor * (1 + options_.jitter * random_.Unit());
  }

 private:
  struct Slow {
    double factor = 1;
    size_t next = 0;  // change that has not come yet
    std::vector<VirtualOptions::Slowdown> changes;
  };

  const VirtualOptions& options_;
  Random& random_;
  const double table_seconds_;
  std::vector<Slow> slow_;  // by worker
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_COMPUTE_TIMES_H_
