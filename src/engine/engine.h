// Runs operations, many at once, on one transport.
//
// One thread at a time drives, which means that it polls the operations that are under way. A
// thread that waits for its own operation drives if no other thread does; a pump thread drives for
// operations that nobody waits for. So a blocking call costs no thread switch, and an idle engine
// no processor time: the pump sleeps.
//
// Operations of higher priority come first; within a priority each gets a quantum in turn, so that
// a small one does not wait for a large one.
//
// Thread-safe.
#ifndef SYNCOPATE_ENGINE_ENGINE_H_
#define SYNCOPATE_ENGINE_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "engine/operation.h"
#include "engine/scratch_pool.h"
#include "transport/transport.h"

namespace syncopate::engine {

class Engine {
 public:
  enum class Pump : uint8_t {
    kThread,
    kNone
  };  // kNone: for tests that call DriveOnce() themselves

  // The transport and the clock must outlive the engine.
  Engine(transport::Transport& transport, const Clock& clock, Pump pump = Pump::kThread);
  // Gives other members some time to finish what is done here, then calls off what is under way.
  ~Engine();
  Engine(const Engine&) = delete;

  absl::StatusOr<std::shared_ptr<EngineGroup>> MakeGroup(uint64_t key, std::vector<int> members);

  // Starts an operation. Operations of one group start in the order of these calls.
  std::shared_ptr<Operation> Start(OperationSpec spec);
  // Waits until it is done, which its deadline bounds. Returns its status.
  absl::Status Wait(const std::shared_ptr<Operation>& operation);
  // From now on the operation has this deadline, unless its own is earlier.
  void Hasten(Operation& operation, int64_t deadline_ns);
  // Start and Wait, without waking the pump.
  absl::Status Run(OperationSpec spec);

  // One round over all operations; true if anything moved. For tests with Pump::kNone.
  bool DriveOnce();

 private:
  std::shared_ptr<Operation> MakeOperation(OperationSpec spec)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Operation> Submit(OperationSpec spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The driving thread runs this until `until` is done or, if that is null, until nothing is under
  // way.
  void Drive(const Operation* until);
  void DriveUntil(const Operation* until);
  // `lingering`: operations that are done here and only wait for the others are polled, too.
  Operation::Outcome PollAll(bool lingering);
  // Tells the operations that are concerned about lost workers and about deadlines that have
  // passed.
  Operation::Outcome LookAround(int64_t now_ns);
  void TakeInbox();
  void Enqueue(std::shared_ptr<Operation> operation);
  void Retire();
  void Linger();
  bool Rest(int& idle_rounds, bool patient);
  void PumpLoop();
  void StopDriving() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  transport::Transport& transport_;
  const Clock& clock_;
  ScratchPool scratch_;  // used by the driving thread only
  const transport::Transport::Patience patience_;

  Mutex mutex_;
  bool driving_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar pump_wanted_;                // the pump should drive, or end
  CondVar news_;                       // an operation got done, or nobody drives any more
  std::atomic<bool> stopping_{false};  // written under the mutex
  std::atomic<int> waiters_{0};        // threads in Wait() or Run(); written under the mutex
  std::vector<std::shared_ptr<Operation>> inbox_ ABSL_GUARDED_BY(mutex_);
  // An operation that no thread waits for is under way.
  bool pump_needed_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> inbox_full_{false};  // inbox_ is not empty; to look without the mutex

  // Used by the driving thread only.
  std::vector<std::shared_ptr<Operation>> operations_;  // by priority, highest first
  bool completed_ = false;  // an operation got done since waiters were last told
  uint32_t rounds_ = 0;

  std::thread pump_;
};

}  // namespace syncopate::engine

#endif  // SYNCOPATE_ENGINE_ENGINE_H_
