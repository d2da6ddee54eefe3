// Agreement in a running job: "from this point on all use v", without a barrier. It is what topology
// versions, chunk sizes, schedules and batch sizes of a job change by (services/agreement.h has the
// protocol, docs/services.md the reasons, live_values.h what most users take).
//
//   agreement.Register({.name = "topology", .scale = Scale::kCall, .check = ..., .adopt = ...}, n);
//   agreement.Propose("topology", version, digest, bytes, decided);      // one worker or several
//   SYNCOPATE_RETURN_IF_ERROR(agreement.Reach("topology", n, deadline_ns));  // each, before call n
//
// Every worker of the job starts it, registers the same kinds and says where it is. What is proposed
// is brought to the `check` of its kind on every live worker; if all compute the same digest, all get
// it by `adopt` with the position from which it counts, before any of them may reach that position.
// So what a kind needs is a list of (from, value), and to take the last with from <= position. Nobody
// waits, unless it comes to the end of the units that it may go without knowing the outcome, which the
// kind says and which are 64 at most: then Reach() waits, as long as others need to answer or to be
// found lost (docs/failure.md).
#ifndef SYNCOPATE_WORKER_LIVE_AGREEMENT_H_
#define SYNCOPATE_WORKER_LIVE_AGREEMENT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/mutex.h"
#include "services/agreement_member.h"
#include "worker/live_service.h"
#include "worker/mailbox.h"

namespace syncopate::worker {

// Thread-safe.
class LiveAgreement {
 public:
  using Scale = services::Scale;  // what a kind counts its positions in: calls, iterations, samples

  // To be called once, at once or later, from any thread: the digest of the value, or why this worker
  // cannot use it.
  using Checked = std::function<void(absl::StatusOr<Digest>)>;
  struct Kind {
    std::string name = {};  // at most limits::kAgreementKindBytesMax
    Scale scale = Scale::kCall;
    // A worker goes at most `further` units without an outcome. A value counts from a point on that lies
    // so far beyond all positions; so this is as much as they can go while a question and its answers
    // are on their way, and no more.
    uint64_t unit = 1;
    uint8_t further = services::kUnitsFurtherMax;
    // Reads a value that was proposed. On the control thread, so that what takes longer than a
    // millisecond goes elsewhere (JobServices::DoBeside); but soon, since others may wait for it.
    std::function<void(uint64_t version, std::string value, Checked checked)> check = {};
    // The value counts from position `from` on. On the control thread; quick, and it must not wait for
    // a thread that may be in Reach().
    std::function<void(uint64_t version, std::string value, int64_t from)> adopt = {};
  };
  // What became of a proposal: the position from which it counts, or why it does not.
  using Decided = std::function<void(absl::StatusOr<int64_t>)>;

  // Both must outlive it; the mailbox must be stopped before its end.
  static absl::StatusOr<std::unique_ptr<LiveAgreement>> Start(Mailbox& mailbox, const Clock& clock,
                                                              const LiveService::Options& options);
  LiveAgreement(const LiveAgreement&) = delete;

  // AlreadyExists if there is this kind. `position`: where this worker is. A question about a kind waits
  // until it is registered.
  absl::Status Register(Kind kind, int64_t position);
  // This worker uses values of the kind no more: nothing is checked or adopted after this. When all workers have
  // let go of it the job forgets it; until then nobody can propose any. Names are not used again.
  void Release(absl::string_view kind);
  // Versions of a kind grow. The same proposal of several workers is one; another value of the same
  // version is refused, with both digests. `decided` is called once, on the control thread, if this
  // returns OK.
  absl::Status Propose(absl::string_view kind, uint64_t version, const Digest& digest,
                       std::string value, Decided decided);
  // This worker is about to go to `position`, as the kind counts it, which never goes back. Waits while
  // it may not. DeadlineExceeded if that is so at the deadline; Aborted, with the job as what is lost, if it
  // will never know whether it may; another error if the agreement has ended: this worker is out of the job,
  // or nobody is left that may host services.
  absl::Status Reach(absl::string_view kind, int64_t position, int64_t deadline_ns);
  // Whether Reach() would return at once.
  bool MayReach(absl::string_view kind, int64_t position);

  LiveService& service() { return *service_; }

 private:
  using Member = services::AgreementMember;
  LiveAgreement(Mailbox& mailbox, const Clock& clock) : mailbox_(mailbox), clock_(clock) {}

  // What the member wants done is put beside the rest, and carried out on the control thread.
  void TakeCommands() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Carry();
  void Carry(Member::Ask& ask);
  void Carry(Member::Check& check);
  void Carry(Member::Adopt& adopt);
  void Carry(Member::Decided& decided);
  void Answer(uint64_t tag, const absl::StatusOr<std::string>& answer);
  int64_t Limit(absl::string_view kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a worker at its limit waits for.
  std::string WhatIsOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mailbox& mailbox_;
  const Clock& clock_;
  std::unique_ptr<LiveService> service_;

  mutable Mutex mutex_;
  CondVar changed_;
  Member member_ ABSL_GUARDED_BY(mutex_);
  std::deque<Member::Command> commands_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Kind, std::less<>> kinds_ ABSL_GUARDED_BY(mutex_);
  std::vector<Member::Check> unknown_
      ABSL_GUARDED_BY(mutex_);  // checks of kinds that are not there
  std::optional<services::ValueTitle> asked_ ABSL_GUARDED_BY(mutex_);  // the last question
  // Values that are being adopted: nobody may reach them before they are.
  std::vector<std::pair<std::string, int64_t>> adopting_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Decided> decided_ ABSL_GUARDED_BY(mutex_);  // by proposal
};

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_LIVE_AGREEMENT_H_
