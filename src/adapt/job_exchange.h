// How the workers of a job tell each other what each has measured or decided, beside the job's own
// collectives. What carries it is given by the room above; adapt knows neither workers nor mail.
#ifndef SYNCOPATE_ADAPT_JOB_EXCHANGE_H_
#define SYNCOPATE_ADAPT_JOB_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace syncopate::adapt {

// Texts between all workers of the job, in rounds: the n-th round that a worker starts is the n-th
// of every other one, whenever they come to it. Thread-safe, but rounds are started in one order.
class JobExchange {
 public:
  static constexpr int kEverybody = -1;

  // What a worker brings to a round.
  struct Contribution {
    // What it is about, for errors; workers that bring different things to a round all fail.
    std::string what = {};
    std::string text = {};
    // kEverybody: all get the texts of all. Else the root gets them, and the others get the root's.
    int root = kEverybody;
  };

  class Round {
   public:
    virtual ~Round() = default;
    // Whether Wait() would return at once.
    virtual bool Done() = 0;
    // Waits until that is so, at most until the deadline, by the monotonic clock; returns whether it is so.
    // It may be called while another thread calls any of these.
    virtual bool WaitUntil(int64_t deadline_ns) = 0;
    // The texts by rank, with this worker's own; those that this worker does not get are empty. An
    // error names the worker that is lost, or that did not come before a timeout of the
    // implementation. To be called once.
    virtual absl::StatusOr<std::vector<std::string>> Wait() = 0;
  };

  virtual ~JobExchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Begins the next round. It waits for nobody; what is wrong shows in the round. The exchange must
  // outlive it.
  virtual std::unique_ptr<Round> Start(Contribution mine) = 0;
  // This worker starts no more rounds. The next one fails, with this reason, at all others that need
  // its text, instead of waiting for it; one that needs the root's text alone may have that before.
  virtual void Stop(absl::string_view why) = 0;
};

// Rounds that are waited for. Every call is made by all workers of the job, in the same order.

// The texts of all workers, on all of them.
absl::StatusOr<std::vector<std::string>> TextsOfAll(JobExchange& exchange, absl::string_view what,
                                                    std::string text);
// The texts of all workers on `root`, elsewhere nothing. For texts that are too long to be sent to
// everybody.
absl::StatusOr<std::vector<std::string>> TextsAtRoot(JobExchange& exchange, absl::string_view what,
                                                     std::string text, int root);
// The text of `root`, on all workers. Only the root's own matters.
absl::StatusOr<std::string> TextOfRoot(JobExchange& exchange, absl::string_view what,
                                       std::string text, int root);

// Each number becomes the largest, the smallest, or the sum, of those that the workers have in its
// place; bit for bit the same on all of them. An error if a worker has another number of numbers.
absl::Status Largest(JobExchange& exchange, absl::string_view what, std::vector<double>& numbers);
absl::Status Smallest(JobExchange& exchange, absl::string_view what, std::vector<double>& numbers);
absl::Status Sum(JobExchange& exchange, absl::string_view what, std::vector<double>& numbers);

// `what` with this digest must be the same on all workers. Otherwise an error on all of them, which
// shows the digest of rank 0 and that of the first worker that has another one.
absl::Status CompareDigests(JobExchange& exchange, absl::string_view what,
                            absl::string_view digest);

// Numbers as a text, little-endian, and back; an error unless there are `count` of them.
std::string EncodeNumbers(absl::Span<const int64_t> numbers);
std::string EncodeNumbers(absl::Span<const double> numbers);
absl::StatusOr<std::vector<int64_t>> DecodeIntegers(absl::string_view text, size_t count);
absl::StatusOr<std::vector<double>> DecodeDoubles(absl::string_view text, size_t count);

}  // namespace syncopate::adapt

#endif  // SYNCOPATE_ADAPT_JOB_EXCHANGE_H_
