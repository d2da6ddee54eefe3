// What the engine asks of a transport: moving bytes among the members of a group, gates that all of
// them pass together or nobody passes, memory that peers can reach, waiting, and which workers are
// lost. A transport does not know what the bytes mean.
//
// One operation of a group is one Session on each of its members. Sessions of a group are numbered;
// the same number on all members is the same operation.
//
// Thread safety: a Transport's OpenGroup, Renounce, Allocate, Free, Owns, Wake, Post, WakeControl, losses,
// Lost and Expel may be called from any thread, and TakeMail by one thread at a time beside all others.
// Everything else, including its ports and sessions, by one thread at a time.
#ifndef SYNCOPATE_TRANSPORT_TRANSPORT_H_
#define SYNCOPATE_TRANSPORT_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/program.h"
#include "transport/mail.h"

namespace syncopate::transport {

// A place in a member's buffers.
struct Extent {
  Space space = Space::kData;
  uint64_t offset = 0;  // bytes
  uint64_t bytes = 0;
};

// How an operation ends; for optimistic ports (GroupPort::optimistic()).
enum class Ending : uint8_t {
  kLoose,    // nothing to undo: each member ends for itself
  kAwaited,  // nobody takes its result before all have it
  // All of `data` is the result at every member that has entered the finish gate: one of them can
  // give it to those that cannot finish.
  kShared,
};

struct SessionSpec {
  uint64_t sequence = 0;  // counts the operations of the group from 0
  uint64_t digest = 0;    // of all that the members must agree on
  double weight = 1;      // this member's
  bool staged = false;    // its data is a copy that only the operation uses
  Ending ending = Ending::kAwaited;
  bool awaits_start = true;  // false: this member does not wait at the start gate
  // It is opened only to be broken, for a loss that this worker knows of: `digest` says nothing, and it
  // enters no gate.
  bool hopeless = false;
  int priority = 0;  // higher goes first
  // Bytes that each member will send to this one; null: unknown. The caller keeps it until the
  // session is gone.
  const std::vector<uint64_t>* incoming = nullptr;
  // On a direct transport: memory of Allocate(), or null if peers need not reach it.
  std::byte* data = nullptr;
  uint64_t data_bytes = 0;
  std::byte* scratch = nullptr;  // the same holds for it
  uint64_t scratch_bytes = 0;
  uint32_t steps = 0;  // step numbers in use are below this
};

// What a member told about itself. Readable once the start gate has passed.
struct Hello {
  uint64_t digest = 0;
  double weight = 1;
  bool staged = false;
};

// A gate passes when every member has entered it, and breaks when somebody breaks it before that.
// Both are final, and all members see the same. Where an operation's ending is kShared, its finish
// gate also passes when one member has entered it and the others have been given the result.
enum class Gate : uint8_t { kStart, kFinish };
enum class GateState : uint8_t { kOpen, kPassed, kBroken };
// Why a member breaks a gate.
enum class BreakReason : uint8_t {
  kTime,  // its time is up, or it cannot go on
  kLoss,  // it knows that another member is lost
};

// One member's side of one operation. Destroying it is allowed once the finish gate has passed or a
// gate is broken.
class Session {
 public:
  virtual ~Session() = default;

  // Enters as `member`: this one, or one that is lost and whose part this worker has done. False:
  // not possible yet (a peer has not made the group yet, or the operation is held); try again.
  // Entering twice is entering once.
  virtual bool Enter(Gate gate, int member) = 0;
  virtual GateState State(Gate gate) = 0;
  // Breaks the gate unless it has passed. Returns what became of it; kOpen: that is being settled
  // with the others, and State() will tell.
  virtual GateState Break(Gate gate, BreakReason why) = 0;
  // The first gate that broke in a group ends it. This is why, the same for all members and for all
  // sessions with a broken gate.
  struct Failure {
    bool for_loss = false;  // of a member; this worker may not have heard of it yet
    // Else the members that had not entered the gate when it broke.
    Gate gate = Gate::kStart;
    std::vector<int> missing = {};
  };
  // `gate` of this session is broken.
  virtual Failure WhyBroken(Gate gate) = 0;
  // The operation is being settled: until it is, nothing of it may be moved.
  virtual bool Held() { return false; }
  // While it is held, or has passed without this member's doing (Ending::kShared): true once another
  // member has given its result, which then is in `data`. This member has entered the finish gate.
  virtual bool TakeResult() { return false; }
  // Where members need not wait at the start gate: when this worker had a sign of the last of those that it
  // knows to have begun, so far; by its clock. 0: of none. Of a member with which it exchanges nothing it
  // may have none, nor of one that only takes a little from it.
  virtual int64_t LastBegunNs() { return 0; }
  // A member that runs something else than this one, if that is why a gate broke.
  struct Oddity {
    int member = -1;
    uint64_t digest = 0;
  };
  virtual std::optional<Oddity> FindOddity() { return std::nullopt; }
  virtual bool Entered(Gate gate, int member) = 0;
  virtual Hello HelloOf(int member) = 0;

  // Messages between steps. The sender offers the bytes of its step, the receiver finds them, reads
  // them where Arrived() says, and consumes them under the number of its own step, which the sender
  // then sees. The bytes must not change between Offer() and Consumed().
  virtual void Offer(uint32_t step, int to, const std::byte* bytes, Extent where) = 0;
  // Null: not yet.
  virtual const std::byte* Arrived(int from, uint32_t their_step, Extent where) = 0;
  virtual void Consume(uint32_t step, int from, uint32_t their_step) = 0;
  virtual bool Consumed(int to, uint32_t step, uint32_t their_step) = 0;

  // Direct transports only: a member's buffer (after the start gate), and kNotesBytes of memory per
  // member and session that survive its death; the member itself writes them before it enters the
  // start gate.
  static constexpr size_t kNotesBytes = 768;
  virtual std::byte* Memory(int member, Space space) = 0;
  virtual std::byte* Notes(int member) = 0;
  // Wakes members that sleep: something in our memory or notes has changed.
  virtual void Nudge() = 0;
};

// A group as one of its members sees it.
class GroupPort {
 public:
  virtual ~GroupPort() = default;
  // Whether members reach each other's Allocate()d memory.
  virtual bool direct() const = 0;
  // Whether operations may begin without waiting for all at the start gate, and end before all have
  // finished (SessionSpec::ending): their messages say what they belong to.
  virtual bool optimistic() const { return false; }
  // A gate of one of its sessions has broken, so some members will begin no more of them. Optimistic
  // ports need not know: what is begun after a loss is settled at once.
  virtual bool Failed() { return false; }
  // A member has let go of the group before this worker ever saw it there, or will not make it
  // (Transport::Renounce). Optimistic ports need not know, as above.
  virtual bool Renounced() { return false; }
  // This worker begins nothing more in the group. What it puts off to tell the others, to tell more at
  // once, is told now and from now on: until then all of them keep what their last operations used. It may
  // be called by any thread.
  virtual void Hurry() {}
  // Unavailable if there is no room for this sequence yet: an earlier session is still open.
  virtual absl::StatusOr<std::unique_ptr<Session>> Open(const SessionSpec& spec) = 0;
};

struct Loss {
  int rank = -1;       // in the job
  uint64_t order = 0;  // losses are ordered, for all survivors alike; from 1
  std::string cause;   // "it died (its process ended)", ...
  bool left = false;   // it ended its part in the job in good order
};

// What has come from another worker, for estimates of the network.
struct Traffic {
  // The same by time, in slots of kSlotNs that follow one another.
  static constexpr int64_t kSlotNs = 50'000'000;
  static constexpr size_t kSlotsMax = 64;
  struct Slot {
    uint64_t bytes = 0;
    int64_t busy_ns = 0;
  };

  uint64_t bytes = 0;    // of data
  int64_t busy_ns = 0;   // how long the network took for it, without pauses of the sender
  int64_t begin_ns = 0;  // of the first slot, by the clock of the transport
  std::vector<Slot> slots = {};
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // How often a waiting worker looks again before it gives its core away, and how often after that
  // before it sleeps.
  struct Patience {
    int spins = 0;
    int yields = 0;
  };
  virtual Patience patience() const = 0;

  // A group of these ranks of the job; `key` is the same on all of them and used once.
  virtual absl::StatusOr<std::unique_ptr<GroupPort>> OpenGroup(uint64_t key,
                                                               const std::vector<int>& members) = 0;
  // This worker will not open the group with this key. Members that have done so need not wait for it
  // once a member of theirs is lost.
  virtual void Renounce(uint64_t /*key*/) {}

  virtual absl::StatusOr<std::byte*> Allocate(size_t bytes) = 0;  // aligned to 64 bytes
  // Takes a bounded piece of the memory from the system that Allocate(bytes) would take now. True: that was the
  // last one, so that Allocate() is quick. For threads that must not be held up.
  virtual bool Populate(size_t /*bytes*/) { return true; }
  virtual void Free(std::byte* memory) = 0;
  virtual bool Owns(const void* memory, size_t bytes) const = 0;

  // Moves what can be moved without waiting; true if anything did. Transports that need no help do
  // nothing.
  virtual bool Progress() { return false; }
  // Before this worker goes: tells the others at once what would otherwise be told later.
  virtual void Flush() {}

  // Sleeping without missing anything: PrepareToPark(), look once more whether there is something
  // to do, then Park() or CancelPark(). Park() returns when a peer moved, after Wake(), on a loss,
  // or at the deadline.
  virtual uint32_t PrepareToPark() = 0;
  virtual void Park(uint32_t ticket, int64_t deadline_ns) = 0;
  virtual void CancelPark() = 0;
  virtual void Wake() = 0;
  // A file descriptor that becomes readable when Park() would return, for callers that wait for
  // other things as well, or -1 if there is none. The caller that reads it empties it.
  virtual int bell() const { return -1; }

  // Sends mail (mail.h) to a worker of the job, which may be this one. Never waits: ResourceExhausted,
  // which names the worker, if more than MailQueueBytesMax() would wait for it to take; Unavailable if
  // it is not in the job any more, Aborted if this worker is not.
  virtual absl::Status Post(int to, MailKind kind, std::string bytes) = 0;
  // Appends the mail that has come since the last call; from each worker, in the order in which it
  // came. Also does what is due for mail that could not leave at once.
  virtual void TakeMail(std::vector<Mail>& mail) = 0;
  // A file descriptor that becomes readable when TakeMail() should be called, or -1 if the caller has
  // to look from time to time. TakeMail() empties it.
  virtual int mail_bell() const { return -1; }

  // Has `work` done by the transport's own thread, the one that sends its heartbeats, whenever mail has
  // come or WakeControl() was called; null: no more. When this returns, what was given before does not
  // run any more. The work must be quick: a worker whose heartbeats stop is stuck. Transports without
  // such a thread do nothing. By one thread at a time, and not from the work itself.
  virtual void SetControlWork(std::function<void()> /*work*/) {}
  virtual void WakeControl() {}
  // The work is also done at this time, once, if it is not done before: to be said anew each time. From
  // the work itself.
  virtual void WakeControlAt(int64_t /*when_ns*/) {}
  // A thread begins to call Progress() again and again, and does so no longer. In between nobody else
  // listens to the network.
  virtual void DriveBegins() {}
  virtual void DriveEnds() {}

  // How many workers of the job are lost; grows only.
  virtual uint64_t losses() const = 0;
  // All of them, in order.
  virtual std::vector<Loss> Lost() const = 0;
  // Declares a worker lost that did not finish what it had begun. Others may now do it: it will not
  // wake up and go on.
  virtual void Expel(int rank) = 0;

  // By rank, since the last call; empty if it is not counted. Any thread.
  virtual std::vector<Traffic> TakeTraffic() { return {}; }
};

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_TRANSPORT_H_
