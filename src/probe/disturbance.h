// What is left to say of measurements that were disturbed because a hypervisor took processor time
// from the hosts that took part.
#ifndef SYNCOPATE_PROBE_DISTURBANCE_H_
#define SYNCOPATE_PROBE_DISTURBANCE_H_

#include <string>

namespace syncopate::probe {

struct Disturbance {
  int experiments = 0;  // whose least disturbed measurement was still disturbed
  std::string host;     // that lost most in one of them
  double stolen = 0;    // the part of its processor time, 0 to 1
};

// One line that says so and what to do. Empty if there were none.
std::string Describe(const Disturbance& disturbance);

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_DISTURBANCE_H_
