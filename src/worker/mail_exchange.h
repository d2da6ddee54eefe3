// Carries the rounds of texts of a job (text_rounds.h) by mail. Each lane is a JobExchange: one for
// the chunk tuner, one for whatever the training thread tells the others.
//
// What arrives is put into the book of its lane on the control thread, whatever other threads do. A
// text of up to 4 KiB is a message; a longer one is a parcel, which travels like data. When mail
// cannot be sent because too much waits for a worker, it is tried again until the round's deadline.
#ifndef SYNCOPATE_WORKER_MAIL_EXCHANGE_H_
#define SYNCOPATE_WORKER_MAIL_EXCHANGE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapt/job_exchange.h"
#include "base/clock.h"
#include "base/forked_child.h"
#include "base/mutex.h"
#include "syncopate/syncopate.h"
#include "worker/mailbox.h"
#include "worker/round_mail.h"
#include "worker/text_rounds.h"

namespace syncopate::worker {

// Thread-safe.
class MailExchange {
 public:
  static constexpr absl::string_view kTopic = "syncopate/rounds";

  // Whoever waits for a round waits at most `timeout_ns`. Mailbox and clock must outlive it.
  MailExchange(Mailbox& mailbox, int rank, int size, int64_t timeout_ns, const Clock& clock);
  ~MailExchange();
  MailExchange(const MailExchange&) = delete;

  // No more rounds: those under way and later ones fail here, and at the others that need this
  // worker for a later one.
  void Close();

  // Lives as long as this.
  adapt::JobExchange& lane(RoundLane lane);

 private:
  class Lane;
  class LaneRound;
  class RefusedRound;
  // Mail that could not be sent yet. To each worker it leaves in order.
  struct Unsent {
    int to = -1;
    RoundLane lane = RoundLane::kJob;
    uint64_t round = 0;
    std::shared_ptr<const std::string> bytes;
  };

  TextRounds& rounds(RoundLane lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return rounds_[static_cast<size_t>(lane)];
  }
  // From the first round on mail is listened to: a job without rounds needs no thread for it.
  absl::Status Listen();
  uint64_t Start(RoundLane lane, adapt::JobExchange::Contribution mine);
  bool Done(RoundLane lane, uint64_t round);
  bool WaitUntil(RoundLane lane, uint64_t round, int64_t deadline_ns);
  void Stop(RoundLane lane, absl::string_view why);
  absl::StatusOr<std::vector<std::string>> Wait(RoundLane lane, uint64_t round);
  void Forget(RoundLane lane, uint64_t round);
  void Receive(Mail mail);
  void Send(Unsent mail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendUnsent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AllSent(RoundLane lane, uint64_t round) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the round is over, or known no more since its end was taken. Until it is, or until the
  // deadline, AwaitOver() waits.
  bool Over(RoundLane lane, uint64_t round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AwaitOver(RoundLane lane, uint64_t round, int64_t deadline_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the next round of the lane, which this worker will not begin, fail at the others.
  void SendFault(RoundLane lane, absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: too much waits for the receiver.
  bool TrySend(const Unsent& mail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ForkMark made_here_;
  Mailbox& mailbox_;
  const int rank_;
  const int size_;
  const int64_t timeout_ns_;
  const Clock& clock_;
  std::vector<std::unique_ptr<Lane>> lanes_;

  Mutex listen_mutex_;
  bool listening_ ABSL_GUARDED_BY(listen_mutex_) = false;

  Mutex mutex_;
  CondVar changed_;
  std::vector<TextRounds> rounds_ ABSL_GUARDED_BY(mutex_);  // by lane
  std::deque<Unsent> unsent_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// The lane of whoever trains on this worker, for the rooms that stand above this one. It lives as
// long as the worker.
adapt::JobExchange& ExchangeOf(Worker& worker);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_MAIL_EXCHANGE_H_
