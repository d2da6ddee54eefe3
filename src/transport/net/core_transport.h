// The transport between hosts, once the workers are connected: a Core that is guarded by a lock and
// driven by whichever thread waits, or else by the sentry.
//
// The sentry (a ControlThread) sends heartbeats and reads what comes while nobody waits, so that a worker
// that computes for minutes is not taken for lost; where mail is taken, it does so at once. Members of a
// group on this host meet in shared memory (`local`), which has a sentry of its own.
#ifndef SYNCOPATE_TRANSPORT_NET_CORE_TRANSPORT_H_
#define SYNCOPATE_TRANSPORT_NET_CORE_TRANSPORT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/forked_child.h"
#include "base/mutex.h"
#include "transport/control_thread.h"
#include "transport/net/core.h"
#include "transport/net/wire.h"
#include "transport/sentry_pause.h"
#include "transport/transport.h"

namespace syncopate::transport::net {

class CoreTransport final : public Transport {
 public:
  // `local_ranks` are those of this host, sorted, and `local` their shared memory, or null if this
  // worker is alone on its host. The clock must outlive the transport.
  CoreTransport(const Core::Options& core_options, const Clock& clock, std::vector<int> local_ranks,
                std::unique_ptr<Transport> local);
  ~CoreTransport() override;

  enum class Sentry : uint8_t {
    kThread,
    kNone
  };  // kNone: for tests that call StepSentry() themselves; Park() does not sleep, and the worker
      // ends without a word

  // Begins to use the wire. Nothing else may be called before.
  void Run(std::unique_ptr<Wire> wire, Sentry sentry = Sentry::kThread);
  // One round of the sentry; returns when the next one is due. For tests with Sentry::kNone.
  int64_t StepSentry();
  // For the wire that is to be made.
  WireHandler& handler() { return core_; }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  // A worker that waits for the network sleeps: polling would take the processor from those that
  // work.
  Patience patience() const override { return {.spins = 0, .yields = 1}; }

  absl::StatusOr<std::unique_ptr<GroupPort>> OpenGroup(uint64_t key,
                                                       const std::vector<int>& members) override;
  void Renounce(uint64_t key) override;

  absl::StatusOr<std::byte*> Allocate(size_t bytes) override;
  bool Populate(size_t bytes) override { return local_ == nullptr || local_->Populate(bytes); }
  void Free(std::byte* memory) override;
  bool Owns(const void* memory, size_t bytes) const override;

  bool Progress() override;
  void Flush() override;
  uint32_t PrepareToPark() override;
  void Park(uint32_t ticket, int64_t deadline_ns) override;
  void CancelPark() override;
  void Wake() override;

  absl::Status Post(int to, MailKind kind, std::string bytes) override;
  void TakeMail(std::vector<Mail>& mail) override;
  int mail_bell() const override { return mail_bell_.get(); }
  void SetControlWork(std::function<void()> work) override;
  void WakeControl() override { control_.Wake(ControlThread::kWork); }
  void WakeControlAt(int64_t when_ns) override { control_.WorkAt(when_ns); }
  void DriveBegins() override;
  void DriveEnds() override;

  uint64_t losses() const override { return losses_.load(std::memory_order_acquire); }
  std::vector<Loss> Lost() const override;
  void Expel(int rank) override;
  std::vector<Traffic> TakeTraffic() override;

  // For ports and sessions.
  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  Core& core() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return core_; }

 private:
  bool ProgressLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Draws conclusions from what the core knows now: tells shared memory and `losses_`.
  void AfterProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes mail_bell() readable if there is mail that nobody has been told of.
  void RingForMail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes the threads of this worker that are parked.
  void RingOwn();

  // The sentry reads what comes while no other thread drives. Returns why it must go on
  // (ControlThread::Reason).
  uint32_t Listen();
  // Has the sentry listen, if it should and nobody else does. Returns as Listen() does.
  uint32_t ListenNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int rank_;
  const int size_;
  const Clock& clock_;
  const std::vector<int> local_ranks_;  // of this host, sorted
  const std::unique_ptr<Transport> local_;
  const PrivateFd wake_;       // eventfd
  const PrivateFd mail_bell_;  // eventfd

  mutable Mutex mutex_;
  Core core_ ABSL_GUARDED_BY(mutex_);
  uint32_t activity_ ABSL_GUARDED_BY(mutex_) = 0;  // grows when something moved
  bool parked_ ABSL_GUARDED_BY(mutex_) = false;
  SentryPause pause_ ABSL_GUARDED_BY(mutex_);
  bool mail_told_ ABSL_GUARDED_BY(mutex_) = false;  // mail_bell_ is readable
  // Mail is taken, so that what comes is not left to lie until a thread drives.
  bool listens_ ABSL_GUARDED_BY(mutex_) = false;
  bool listening_ ABSL_GUARDED_BY(mutex_) = false;  // the sentry is in Listen()
  int drivers_ ABSL_GUARDED_BY(mutex_) = 0;
  bool armed_ ABSL_GUARDED_BY(mutex_) = false;  // the sentry waits for the wire
  std::atomic<uint64_t> losses_{0};

  bool has_work_ = false;  // used by SetControlWork() alone
  ControlThread control_;  // the sentry; started by Run()
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_CORE_TRANSPORT_H_
