// One service of a running job: this worker's part in it (services/service_host.h) on the control
// thread, over a topic of the mailbox.
//
// Its host, its standby and the incarnation follow from the job's departures in their agreed order,
// which comes with the mail. A worker that has not added the service yet keeps what comes for it until
// it does. A service that nobody asks sends nothing.
#ifndef SYNCOPATE_WORKER_LIVE_SERVICE_H_
#define SYNCOPATE_WORKER_LIVE_SERVICE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "services/service_host.h"
#include "syncopate/service.h"
#include "syncopate/syncopate.h"
#include "worker/mailbox.h"

namespace syncopate::worker {

inline constexpr uint64_t kServiceNameBytesMax = 32;

// Thread-safe.
class LiveService {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    std::vector<int> candidates = {};  // that may host, first choice first
    std::string name = {};             // by which workers know it; empty: the service's own
  };
  using Answered = std::function<void(absl::StatusOr<std::string>)>;
  // What this worker knows of the service, for its rebuilding. On the control thread.
  using Report = std::function<std::string()>;

  // The mailbox and the clock must outlive it, and the mailbox must be stopped before its end.
  static absl::StatusOr<std::unique_ptr<LiveService>> Start(Mailbox& mailbox, const Clock& clock,
                                                            const Options& options,
                                                            std::unique_ptr<Service> service,
                                                            Report report);
  LiveService(const LiveService&) = delete;

  // Asks it. `answered` is called once, on the control thread, unless this returns an error: that the
  // service has ended, or that too many requests are open.
  absl::Status Ask(std::string request, Answered answered);
  // The same, and waits for the answer.
  absl::StatusOr<std::string> AskAndWait(std::string request, int64_t deadline_ns);
  // How the service is now, with all that was answered before this call (services/service_state.h has the
  // bytes). Waits for the answer.
  absl::StatusOr<std::string> StateAndWait(int64_t deadline_ns);
  // What a caller that waited in vain gets.
  absl::Status TooLate() const;

  // This worker wants to leave the job: what it knows is handed over. WaitUntilMayLeave()
  // returns true when that is done, or when there is nobody to hand it to.
  void Leave();
  bool WaitUntilMayLeave(int64_t deadline_ns);
  // The mailbox is stopped: requests without an answer get this one.
  void Close(const absl::Status& status);

  const std::string& name() const { return name_; }
  // Not OK: it has ended, which is what every later request gets.
  absl::Status status() const;

 private:
  struct Request {
    uint16_t number = 0;  // of the only service, or that for its state
    std::string bytes;
    Answered answered;
  };
  // What a peer did not take yet; messages and parcels keep their order each.
  struct Outbox {
    std::deque<std::string> waiting[transport::kMailKinds];
  };

  LiveService(Mailbox& mailbox, const Clock& clock, int rank, std::string name,
              std::unique_ptr<services::ServiceHost> host, Report report);

  absl::Status Enqueue(Request request);
  absl::StatusOr<std::string> EnqueueAndWait(uint16_t number, std::string bytes,
                                             int64_t deadline_ns);

  // All of these on the control thread.
  void Handle(const Mail& mail);
  void TakeRequests();
  // Does what the host wants done, until it wants nothing.
  void Drain();
  void Carry(services::Send& command);
  void Carry(services::SendParcel& command);
  void Carry(services::Answered& command);
  void Carry(services::ReportWanted& command);
  void Carry(services::MayLeave& command);
  void Carry(services::EndJob& command);
  void Carry(services::Remark& command);
  void Post(int to, transport::MailKind kind, std::string bytes);
  void PostAgain();
  void TickLater();

  Answered TakeAnswered(uint64_t tag);

  Mailbox& mailbox_;
  const Clock& clock_;
  const int rank_;
  const std::string name_;
  const std::string topic_;
  const Report report_;

  // Used by the control thread alone.
  const std::unique_ptr<services::ServiceHost> host_;
  std::map<int, Outbox> outboxes_;  // by peer, of those that something waits for
  bool posts_again_ = false;        // PostAgain() will be called
  int64_t tick_at_ns_ = INT64_MAX;  // the earliest time at which Tick() will be called
  uint64_t next_tag_ = 1;

  mutable Mutex mutex_;
  CondVar changed_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::deque<Request> requests_ ABSL_GUARDED_BY(mutex_);           // not taken by the host yet
  std::map<uint64_t, Answered> answered_ ABSL_GUARDED_BY(mutex_);  // by tag
  bool may_leave_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_LIVE_SERVICE_H_
