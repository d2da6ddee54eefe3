// Sees what a worker's strategy decides and what becomes of it, live or in virtual time.
#ifndef SYNCOPATE_STRATEGY_WITNESS_H_
#define SYNCOPATE_STRATEGY_WITNESS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "strategy/command.h"
#include "strategy/record.h"
#include "strategy/registry.h"

namespace syncopate::strategy {

// Told in the order in which things happen. Live it is called on any thread, while the strategy
// waits.
class Witness {
 public:
  virtual ~Witness() = default;
  // What the strategy was made from, before anything else.
  struct Job {
    std::string name = {};
    StrategyOptions values = {};
    int64_t first_iteration = 0;
    std::string state = {};  // that it went on from; empty: none
  };
  virtual void Began(const Job& /*job*/) {}
  // The strategy was told an event.
  virtual void Decided(const Decision& decision) = 0;
  // A transfer has ended here, well or not. Times in seconds, as those of decisions.
  struct Transfer {
    StartTransfer start = {};
    int64_t iteration = 0;  // that made what it moved
    uint64_t bytes = 0;
    double begin = 0;
    double end = 0;
    absl::Status status = {};
  };
  virtual void Transferred(const Transfer& /*transfer*/) {}
  // An update has been applied here.
  struct Update {
    ApplyUpdate apply = {};
    int64_t iteration = 0;
    double begin = 0;
    double end = 0;
    double squared_distance = 0;  // if it was to be measured
  };
  virtual void Applied(const Update& /*update*/) {}
};

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_WITNESS_H_
