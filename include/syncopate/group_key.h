// The name of a group for the whole life of a job.
#ifndef SYNCOPATE_GROUP_KEY_H_
#define SYNCOPATE_GROUP_KEY_H_

#include <compare>
#include <cstdint>

namespace syncopate {

// Names a group of workers for the whole job. Whoever decides on the group makes the key: a service
// of its incarnation and a number, a pattern of its version and the round. (0, 0): no key.
struct GroupKey {
  uint64_t maker = 0;   // who decided: a pattern's version, a service's incarnation
  uint64_t number = 0;  // which of its groups: the round, a number that only grows

  // In the order of makers, then of numbers.
  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

}  // namespace syncopate

#endif  // SYNCOPATE_GROUP_KEY_H_
