// Which texts of which rounds have come: one worker's book of one lane, without threads or mail.
//
// Every worker brings a text to every round; the n-th round that one begins is the n-th of all. In a
// round of everybody each worker sends its text to all others and is done when it has theirs. In a
// round with a root each worker exchanges texts with the root alone: the root is done when it has
// all, another one when it has the root's. So nobody ends a round before all whose texts it needs
// have begun it, and a worker that waits for each of its rounds is never more than one ahead.
//
// Rounds may be begun before earlier ones are done. What comes for a round that this worker has not
// begun is kept, within kRoundsAheadMax and kRoundsAheadBytesMax; a worker that goes beyond,
// or sends what cannot be, has every round fail that needs it, with an error that names it.
#ifndef SYNCOPATE_WORKER_TEXT_ROUNDS_H_
#define SYNCOPATE_WORKER_TEXT_ROUNDS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapt/job_exchange.h"
#include "worker/round_mail.h"

namespace syncopate::worker {

// Not thread-safe.
class TextRounds {
 public:
  TextRounds(int rank, int size) : rank_(rank), size_(size) {}

  // The number of the next round that this worker begins.
  uint64_t next() const { return next_; }
  // Begins the next round and returns its number. Numbers count from 0.
  uint64_t Begin(adapt::JobExchange::Contribution mine);
  // To whom this worker's text of a round goes that has begun.
  std::vector<int> Receivers(uint64_t round) const;
  // The text went to `to` as a parcel: the round is not done before that one has it, since a worker
  // that left the job would take along what is still to be sent.
  void AwaitTaken(uint64_t round, int to);
  // The round cannot be done.
  void Fail(uint64_t round, const absl::Status& why);

  // Mail of this lane has come.
  void Arrived(int from, RoundMail mail);
  // Nothing more comes from `rank`, or nothing that it sends counts. One that has left in good order after
  // another was lost most likely did so for that, so the rounds that need it name the one that was lost.
  void Gone(int rank, absl::Status why, bool left = false);

  // False if its end was taken, or it was forgotten.
  bool Knows(uint64_t round) const { return rounds_.contains(round); }
  // Of rounds that have begun. A round is done when Take() would return its end.
  bool Done(uint64_t round) const;
  bool Failed(uint64_t round) const { return !rounds_.at(round).failure.ok(); }
  bool AnyDone() const;
  // Whom it still waits for.
  std::vector<int> Missing(uint64_t round) const;
  // The texts by rank, or why there are none; the round is forgotten.
  absl::StatusOr<std::vector<std::string>> Take(uint64_t round);
  // Nobody wants to know the end of it any more.
  void Forget(uint64_t round);

 private:
  struct Round {
    bool begun = false;
    std::string what;  // as the first of the workers had it that brought a text
    int root = -1;
    std::map<int, std::string> texts = {};  // by rank
    uint64_t bytes = 0;                     // of texts
    std::set<int> untaken = {};
    absl::Status failure = {};
  };

  bool Needs(const Round& round, int from) const {
    return from != rank_ && (round.root < 0 || round.root == rank_ || round.root == from);
  }
  void TakeText(int from, RoundMail mail);

  const int rank_;
  const int size_;
  uint64_t next_ = 0;
  std::map<uint64_t, Round> rounds_;     // those begun and not forgotten, and those to come
  std::map<int, uint64_t> ahead_bytes_;  // by rank: of its texts of rounds to come
  std::map<int, absl::Status> gone_;
  absl::Status first_loss_;
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_TEXT_ROUNDS_H_
