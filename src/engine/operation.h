// One collective under way on one worker: a state machine that the driving thread polls. It never
// blocks.
//
//   queued -> staging -> entering -> starting -> working -> finishing -> done
//
// Staging copies data into memory that peers reach, where that is needed. At the start gate all
// members commit to the operation together or not at all: if one is missing, all data stays as it
// was. What happens when a member is lost after that depends on how the program runs
// (docs/failure.md):
//   one-shot  everything needed lies in the scratch memory of all: the survivors finish
//   exchange  a survivor does the lost worker's share, whose journal says how far it came: the
//             survivors finish
//   steps     reductions run on a copy that becomes the data only when the finish gate has passed;
//             else it is dropped
#ifndef SYNCOPATE_ENGINE_OPERATION_H_
#define SYNCOPATE_ENGINE_OPERATION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/copy_count.h"
#include "engine/compiled_program.h"
#include "engine/fold_journal.h"
#include "engine/kernels.h"
#include "engine/scratch_pool.h"
#include "syncopate/data_type.h"
#include "transport/transport.h"

namespace syncopate::engine {

// A group as the engine sees it.
struct EngineGroup {
  uint64_t key = 0;          // the transport's
  std::vector<int> members;  // ranks in the job
  int self = 0;              // index in members
  std::unique_ptr<transport::GroupPort> port;
  uint64_t next_sequence = 0;  // guarded by the engine's mutex
  absl::Status failure;        // why the group is lost; used by the driving thread only
};

// When an operation moved its bytes at this worker, by the engine's clock. `first_ns`: all members had come,
// as far as this worker waits for them or has heard of them, so that bytes could move
// (transport::Session::LastBegunNs). `last_ns`: it ended.
struct OperationTimes {
  int64_t first_ns = 0;
  int64_t last_ns = 0;
};

struct OperationSpec {
  std::shared_ptr<EngineGroup> group;
  std::shared_ptr<const CompiledProgram> program;
  void* data = nullptr;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  double weight = 1;
  int priority = 0;
  int64_t deadline_ns = 0;
  // A member of the group is lost, and what this worker would run is not known yet. The operation is begun
  // only to fail with the error that all survivors get, and so that none of them waits for this one. The
  // program is one of its collective without data.
  bool hopeless = false;
  // The driving thread calls it once, before any other thread sees that the operation is done. It
  // must be quick. Only operations that have it keep their times.
  std::function<void(const absl::Status&)> completed = nullptr;
};

// How many bytes are moved before other operations get a turn: small enough that an urgent one
// waits for some tens of microseconds, large enough that turns cost nothing.
inline constexpr uint64_t kQuantumBytes = 1 << 20;

class Operation {
 public:
  // `clock`, `transport` and `pool` must outlive it, or its retirement.
  Operation(OperationSpec spec, uint64_t sequence, transport::Transport& transport,
            ScratchPool& pool, const Clock& clock);
  ~Operation();
  Operation(const Operation&) = delete;

  enum class Outcome : uint8_t {
    kBlocked,  // nothing to do now
    kMoved,    // something small was done
    kWorked,   // a quantum of bytes was moved: others may want a turn
  };
  // Moves the operation on as far as it can go now. Called by the driving thread only.
  Outcome Poll();
  // A loss or the deadline may have changed what this operation waits for. Called by the driving
  // thread only, when the operation is blocked.
  Outcome CheckTroubles(int64_t now_ns, absl::Span<const transport::Loss> losses);
  // Ends the operation unless it is done, because the engine goes away.
  void CallOff(const absl::Status& why);

  // Whether the caller may have its data back. Any thread may ask.
  bool done() const { return done_.load(std::memory_order_acquire); }
  // How it ended; valid only once done().
  const absl::Status& status() const { return status_; }
  // Of one that has gone well and was given `completed`; valid from that call on.
  const OperationTimes& times() const { return times_; }
  // Nothing is left to do for the peers either, so the object can go. Called by the driving thread
  // only.
  bool retired() const { return state_ == State::kRetired; }
  // It is done here, but its result may have to be given to others.
  bool OthersMayNeed() const {
    return state_ == State::kLingering && spec_.group->port->optimistic();
  }
  int priority() const { return spec_.priority; }
  const EngineGroup& group() const { return *spec_.group; }
  int64_t deadline_ns() const { return deadline_ns_.load(std::memory_order_relaxed); }
  // Brings the deadline forward to this time, if it is later. Any thread may ask (Engine::Hasten).
  void Hasten(int64_t deadline_ns) {
    int64_t now = deadline_ns_.load(std::memory_order_relaxed);
    while (deadline_ns < now && !deadline_ns_.compare_exchange_weak(now, deadline_ns)) {
    }
  }
  std::string Describe() const;

 private:
  enum class State : uint8_t {
    kQueued,
    kStaging,
    kEntering,
    kStarting,
    kWorking,
    kFinishing,
    kCopyingOut,
    kLingering,  // done for the caller; peers may still need our memory
    kRetired,
  };
  // What the notes of a member hold in an exchange.
  struct ShareNotes {
    FoldJournal journal;
    std::atomic<uint32_t> rescuer;  // 1 + index of the member that does this member's share
  };
  static_assert(sizeof(ShareNotes) <= transport::Session::kNotesBytes);

  using Shape = CompiledProgram::Shape;
  const Program& program() const { return spec_.program->program; }
  size_t element_bytes() const { return SizeOf(spec_.type); }
  uint64_t data_bytes() const { return program().elements() * element_bytes(); }
  uint64_t scratch_bytes() const { return program().scratch_elements() * element_bytes(); }
  int members() const { return static_cast<int>(spec_.group->members.size()); }
  int self() const { return spec_.group->self; }
  FoldOp fold_op() const;
  bool averages() const {
    return spec_.op == ReduceOp::kAverage || spec_.op == ReduceOp::kWeightedAverage;
  }
  std::byte* Base(Space space) const { return space == Space::kData ? work_ : scratch_; }

  Outcome Prepare();
  // Copies elements of the caller's data into staged_, times `factor`.
  void CopyIn(uint64_t begin, uint64_t count, double factor);
  // Steps that work on a copy take the caller's data in only where they need it, so that the first
  // send does not wait for the copy of all. Returns whether no chunk of a run has been taken in.
  bool IsUntaken(Space space, uint32_t chunk, uint32_t count) const;
  // Takes in what is missing of a run, as far as the budget of bytes goes. True once all is there.
  bool TakeIn(Space space, uint32_t chunk, uint32_t count, uint64_t& budget);
  // Notes that the copy of a run has been written, so the caller's data is not taken in any more.
  void Overwritten(Space space, uint32_t chunk, uint32_t count);
  void Copy(void* to, const void* from, size_t bytes, CopyStage stage) const;
  bool past_cache() const;  // all members' data together is larger than what stays in the cache
  Outcome Stage();
  Outcome EnterStart();
  Outcome AwaitStart();
  absl::Status ReadHellos();
  absl::Status BeginWork();
  Outcome Work();
  Outcome WorkOneShot();
  Outcome WorkExchange();
  // Brings what other members have folded so far to the caller's data. True if there was anything.
  bool TakeResults();
  // How far the share of `member` has been folded, in elements of data.
  uint64_t FoldedUpTo(int member);
  Outcome WorkSteps();
  Outcome PollStep(uint32_t index, uint64_t& budget);
  void StepDone(uint32_t index);
  bool FinishWork();
  Outcome AwaitFinish();
  Outcome CopyOut();
  // The elements of data that hold the result on this member; empty if there are none.
  std::pair<uint64_t, uint64_t> ResultRange() const;

  // Folds `count` elements at `begin` of the share of `member` into all members' data, on record in
  // its journal.
  void FoldShare(int member, uint64_t begin, uint64_t count);
  absl::InlinedVector<void*, 8> Destinations(int member, uint64_t begin) const;
  // Does what is left of the share of a lost member, unless another survivor is at it. True once it
  // is done.
  bool Rescue(int member, absl::Span<const transport::Loss> losses);
  bool IsLost(int member, absl::Span<const transport::Loss> losses) const;
  ShareNotes& NotesOf(int member) {
    return *reinterpret_cast<ShareNotes*>(session_->Notes(member));
  }

  // Takes note of when the operation moved its bytes, if anybody wants to know.
  void NoteEnd();
  void Complete(absl::Status status);
  void Retire();
  Outcome Fail(absl::Status status, bool breaks_group);
  // Fails because `gate` broke, with the reason for it; blocked while that is not known here.
  Outcome FailBroken(transport::Gate gate);
  absl::Status OddityStatus(int member, uint64_t digest) const;
  // Why `gate` broke: the first loss among the members, or the members that had not entered it; the
  // same for all. Nothing: it broke for a loss of which this worker has not heard yet.
  std::optional<absl::Status> BrokenStatus(transport::Gate gate) const;
  absl::Status LateStatus(const transport::Session::Failure& failure) const;

  const OperationSpec spec_;
  std::atomic<int64_t> deadline_ns_{spec_.deadline_ns};
  const uint64_t sequence_;
  transport::Transport& transport_;
  ScratchPool& pool_;
  const Clock& clock_;
  const Shape shape_;  // how it runs on this transport
  const transport::Ending ending_;
  const bool awaits_start_;
  std::vector<uint64_t> incoming_;  // bytes from each member
  State state_ = State::kQueued;
  std::unique_ptr<transport::Session> session_;
  std::byte* work_ = nullptr;    // what the program calls data: the caller's memory or our copy
  std::byte* staged_ = nullptr;  // our copy, if there is one
  std::byte* scratch_ = nullptr;
  // Exchange, when all members' data is staged: results stay in the copy of the member that folded
  // them, and each member takes them from there to its caller's data while they are in the cache.
  // Otherwise they are written to all.
  bool pulls_ = false;
  uint64_t moved_ = 0;  // elements staged, folded or copied out in the present state
  // Exchange: the members' data; one-shot: the members' scratch.
  absl::InlinedVector<std::byte*, 8> memory_;
  absl::InlinedVector<uint64_t, 8> taken_;  // exchange that pulls: by member, elements taken up to
  absl::InlinedVector<double, 8> factors_;  // by member, when averaging floating numbers
  // Steps only.
  bool begun_ = false;
  std::vector<bool> untaken_;          // by chunk of data, if there is a copy: not in it yet
  std::vector<uint32_t> waiting_for_;  // by step: how many of `after` are not done
  std::vector<uint64_t> step_moved_;   // by step: elements received so far
  std::vector<uint32_t> running_;      // steps that have started and are not done
  std::vector<uint32_t> started_;      // running_ while it is gone through
  uint32_t steps_left_ = 0;

  absl::Status status_;
  OperationTimes times_;
  std::atomic<bool> done_{false};
};

}  // namespace syncopate::engine

#endif  // SYNCOPATE_ENGINE_OPERATION_H_
