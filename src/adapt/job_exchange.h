// How the workers of a job agree on numbers and texts before all of them decide alike. What carries
// them is given by the room above; adapt knows neither workers nor groups.
#ifndef SYNCOPATE_ADAPT_JOB_EXCHANGE_H_
#define SYNCOPATE_ADAPT_JOB_EXCHANGE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncopate::adapt {

// Every call is made by all workers of the job, in the same order, and waits for all of them; a
// timeout of the implementation bounds the wait.
class JobExchange {
 public:
  virtual ~JobExchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Each number becomes the largest, or the smallest, of those that the workers have in its place.
  virtual absl::Status Largest(std::vector<double>& numbers) = 0;
  virtual absl::Status Smallest(std::vector<double>& numbers) = 0;
  // The text of rank 0, on all workers.
  virtual absl::StatusOr<std::string> FromFirst(const std::string& text) = 0;
  // An error on all workers, which shows two of the digests, unless all have the same.
  virtual absl::Status CompareDigests(const std::string& what, const std::string& digest) = 0;
};

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_JOB_EXCHANGE_H_
