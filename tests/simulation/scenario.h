// What a simulated job does and what befalls it, drawn from a seed: the same in both worlds.
#ifndef SYNCOPATE_TESTS_SIMULATION_SCENARIO_H_
#define SYNCOPATE_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/program.h"
#include "plan/collective/request.h"
#include "simulation/simulated_network.h"
#include "syncopate/data_type.h"
#include "transport/net/core.h"

namespace syncopate::simulation {

struct Fault {
  enum class Kind : uint8_t {
    kKill,       // the process of `rank` ends
    kStop,       // `rank` has no turns, as by SIGSTOP
    kCutPair,    // nothing passes between `rank` and `other`
    kCutOneWay,  // nothing passes from `rank` to `other`
    kCutOff,     // nothing passes between `rank` and anybody
    kMute,       // nothing passes from `rank` to anybody
    kDeaf,       // nothing passes from anybody to `rank`
  };
  Kind kind = Kind::kKill;
  int rank = 0;
  int other = -1;
  // It happens at this event of the simulation or, if that is 0, this long after the fault before.
  uint64_t at_event = 0;
  int64_t after_ns = 0;
  int64_t duration_ns = 0;  // -1: for ever

  // So long that others must hold somebody for lost; if not, so short that they must not.
  bool is_long() const {
    return kind == Kind::kKill || duration_ns < 0 || duration_ns > 3 * kSecond;
  }
};
std::string ToText(const Fault& fault);

// One collective of a group.
struct CallPlan {
  plan::CollectiveRequest request;  // its workers are members of the group
  Program program;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::vector<double> weights;  // by member
  int priority = 0;
  int64_t timeout_ns = 0;
};

struct Scenario {
  uint64_t seed = 0;
  int size = 2;
  std::vector<int> hosts;                // by rank
  std::vector<std::vector<int>> groups;  // made at the start: the first is everybody
  std::vector<Fault> faults;
  // Calls may time out before lost workers are noticed, so that what their errors say depends on
  // who was late.
  bool hasty = false;
  int calls = 6;         // of each group
  int window = 4;        // calls of a worker under way in one group
  int64_t pause_ns = 0;  // the longest that a worker computes between two calls
  int mail = 0;          // how often each worker tries to send mail
  // How often each worker proposes a value for all; -1: the job has no agreement service.
  int proposals = -1;
  std::vector<int> candidates;  // that may host the service, first choice first
  int odd_checks = 0;  // of 100 looks at a value, so many come to something else or to an error
  transport::net::CoreLimits limits;
  NetworkOptions network;
};

Scenario DrawScenario(uint64_t seed);
std::string ToText(const Scenario& scenario);

// Call `index` of the group with this key: every member draws the same. The last one is an
// all-reduce of all, so that all members learn whether the group has failed.
CallPlan DrawCall(const Scenario& scenario, uint64_t group_key, int members, int index, bool last);

// The value of an element before the call.
int64_t Initial(int rank, uint64_t element, uint64_t salt);
// What `member` must hold after a call that succeeded; NaN where nothing is promised. `initial` by
// member.
std::vector<double> Expected(const CallPlan& call, int member,
                             const std::vector<std::vector<double>>& initial);

}  // namespace syncopate::simulation

#endif  // SYNCOPATE_TESTS_SIMULATION_SCENARIO_H_
