// How the workers of a job agree that a value counts from a point of their course on, such as a call of
// the world group or an iteration: the same point on all of them, without a barrier. What does it is given
// by the room above; adapt knows neither workers nor services.
#ifndef SYNCOPATE_ADAPT_VALUE_AGREEMENT_H_
#define SYNCOPATE_ADAPT_VALUE_AGREEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::adapt {

// Values of one kind. Thread-safe.
class ValueAgreement {
 public:
  struct Value {
    uint64_t version = 0;
    std::string bytes = {};
    int64_t from = 0;  // the first position that it counts for
  };

  virtual ~ValueAgreement() = default;
  // This worker, which is at `position`, takes part from now on. Every worker comes to it, at a time of its
  // own; until it does, others cannot agree on anything. A second time it does nothing.
  virtual void Begin(int64_t position) = 0;
  // Has all workers use `bytes` from some position on that none of them has reached. Returns at once. If
  // that fails, nobody uses it. Versions grow.
  virtual void Propose(uint64_t version, std::string bytes) = 0;
  // The values that were agreed on since it was last asked, in order. All that count for a position are
  // here before this worker goes there: that is seen to by whoever makes it go.
  virtual std::vector<Value> TakeNew() = 0;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_VALUE_AGREEMENT_H_
