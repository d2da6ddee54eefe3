// How the workers of a job tell each other what each has measured, beside the job's own
// collectives.
#ifndef SYNCOPATE_ADAPT_RECORD_EXCHANGE_H_
#define SYNCOPATE_ADAPT_RECORD_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncopate::adapt {

// An all-gather of records of one size among all workers. Thread-safe.
class RecordExchange {
 public:
  using Record = std::vector<int64_t>;
  class Pending {
   public:
    virtual ~Pending() = default;
    virtual bool Done() = 0;
    // Waits until it is done; a timeout bounds that.
    virtual absl::Status Wait() = 0;
    // The records of all workers, one after the other; once it is done and went well.
    virtual const Record& All() = 0;
  };

  virtual ~RecordExchange() = default;
  // It may stay unmoved until the next call of the world group.
  virtual absl::StatusOr<std::unique_ptr<Pending>> Start(Record mine) = 0;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_RECORD_EXCHANGE_H_
