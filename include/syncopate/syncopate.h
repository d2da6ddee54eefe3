// Syncopate's C++ interface: start as a worker of a job, make groups, run collectives.
//
//   auto worker = syncopate::Worker::Start();              // rank and size from the environment
//   auto buffer = (*worker)->Allocate(n * sizeof(float));  // shared with the peers: no staging
//   absl::Status status = (*worker)->world().AllReduce(
//       syncopate::Array::Of(buffer->as<float>(), n), syncopate::ReduceOp::kAverage);
//
// Thread safety: a Worker, a Group and a Handle may be used from several threads. The members of a
// group must start the same collectives on it in the same order; different groups are independent
// of each other.
//
// Errors: every call returns an absl::Status; syncopate/status.h tells how much is lost and whom to
// blame. No call waits longer than its timeout. A failed reduction leaves the data of every
// survivor at its old value or at its new one, and all survivors agree which; after other failed
// collectives the data that the call would have written is unspecified.
#ifndef SYNCOPATE_SYNCOPATE_H_
#define SYNCOPATE_SYNCOPATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "syncopate/collective.h"
#include "syncopate/data_type.h"
#include "syncopate/group_key.h"
#include "syncopate/service.h"
#include "syncopate/status.h"

namespace syncopate {

namespace internal {
class WorkerImpl;
class WorkerAccess;
class GroupImpl;
class OperationState;
class HandleAccess;
struct BufferOwner;
}  // namespace internal

// The identity of this worker in its job. It is normally read from the environment (docs/launch.md
// lists the variables).
struct Job {
  // The same on all workers of the job, different from every other job on the machine.
  std::string id;
  int rank = 0;        // of this worker: 0 to size - 1
  int size = 1;        // workers of the job
  int local_rank = 0;  // of this worker among those of its host
  int local_size = 1;  // workers of the job on this host
};

// How a worker starts; all of it has defaults.
struct Options {
  // The worker's identity. By default it is read from the environment; if that says nothing either,
  // this worker is alone.
  std::optional<Job> job;
  // The timeout of every wait. By default SYNCOPATE_TIMEOUT, else 5 minutes.
  std::optional<absl::Duration> timeout;
  // The memory for Allocate(). By default SYNCOPATE_ARENA_BYTES, else a quarter of the machine's
  // memory, divided by the number of workers on it.
  std::optional<uint64_t> arena_bytes;
  // Rules that override the choice of an algorithm, as "allreduce:0-64K:recursive-doubling".
  // By default SYNCOPATE_ALGORITHM (docs/selection.md). They must be the same on all workers.
  std::optional<std::string> algorithms = {};
  // Ranks that serve the others beside services, such as one that holds the parameters of a parameter
  // server: they host no services (docs/services.md), unless the job has no other ranks. They must be
  // the same on all workers.
  std::vector<int> server_ranks = {};
};

// Numbers in memory. The memory may come from Allocate() or from anywhere else; from Allocate() is
// faster.
struct Array {
  void* data = nullptr;                // aligned for its type
  uint64_t elements = 0;               // how many numbers, not bytes
  DataType type = DataType::kFloat32;  // of each number

  // `T` is float, double, int32_t or int64_t; for 16-bit types fill the struct.
  template <typename T>
  static Array Of(T* data, uint64_t elements) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                  std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>);
    constexpr DataType kType = std::is_same_v<T, float>     ? DataType::kFloat32
                               : std::is_same_v<T, double>  ? DataType::kFloat64
                               : std::is_same_v<T, int32_t> ? DataType::kInt32
                                                            : DataType::kInt64;
    return {data, elements, kType};
  }

  // An array of `elements` numbers without memory, for a worker that is not active.
  static Array Absent(uint64_t elements, DataType type) { return {nullptr, elements, type}; }
};

// One call of a collective. Ranks in it are ranks of the group.
struct Call {
  Collective collective = Collective::kAllReduce;  // what is to be done
  Array data = {};                                 // this worker's, in place
  ReduceOp op = ReduceOp::kSum;                    // where Reduces(collective)
  double weight = 1;  // this worker's, for ReduceOp::kWeightedAverage; finite, not negative
  int root = 0;       // where HasRoot(collective)
  int target = 0;     // send-receive only
  std::vector<uint64_t> block_elements = {};   // where HasBlocks(collective); empty: equal blocks
  int priority = 0;                            // higher goes first
  std::optional<absl::Duration> timeout = {};  // nothing: Options::timeout
  // The algorithm. Empty: the one that SYNCOPATE_ALGORITHM names for such calls, else the one that
  // the cost model prefers.
  std::string algorithm = {};
  // The text of a Program (docs/program.md) to run instead of one of the library's; empty: one of
  // these. It must be for this collective, group, root and number of elements, the same on all
  // members, and is validated before it runs; then it is remembered, so that the same call again
  // does not read it again.
  std::string program = {};
  // All-reduce only: whose data is added up and replaced by the result; empty: everybody's. All
  // members make the call, with the same list. The others may pass on data of the active ones; what
  // they have themselves stays as it is, and their `data` may be Array::Absent().
  std::vector<int> active = {};
  // Called once when the operation has ended here, on a thread of the library's, before Wait()
  // returns; not if it could not even start, which Wait() tells at once. Must be quick and call
  // nothing of Syncopate.
  std::function<void(const absl::Status&)> ended = {};
};

// Memory that all workers on this host can reach, so that collectives on it copy nothing. Freed
// with the object. Not thread-safe.
class Buffer {
 public:
  Buffer(Buffer&& other) noexcept = default;             // the memory changes its owner
  Buffer& operator=(Buffer&& other) noexcept = default;  // frees what was held before

  void* data() const { return data_; }     // aligned to 64 bytes
  size_t bytes() const { return bytes_; }  // as many as were asked for
  // The memory as numbers of type T.
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  friend class Worker;
  Buffer(std::shared_ptr<internal::BufferOwner> owner, void* data, size_t bytes)
      : owner_(std::move(owner)), data_(data), bytes_(bytes) {}
  std::shared_ptr<internal::BufferOwner> owner_;
  void* data_;
  size_t bytes_;
};

// An operation under way. Copies refer to the same operation. An operation goes on if all its
// handles are dropped.
class Handle {
 public:
  // True once Wait() would return at once.
  bool Done() const;
  // Waits for the end of the operation (at most its timeout) and returns how it ended.
  absl::Status Wait();

 private:
  friend class Group;
  friend class internal::HandleAccess;
  explicit Handle(std::shared_ptr<internal::OperationState> state) : state_(std::move(state)) {}
  std::shared_ptr<internal::OperationState> state_;
};

// Some workers of the job that run collectives together. Copies refer to the same group. A worker lets
// go of it when its last copy is gone, or by Close().
class Group {
 public:
  int rank() const;  // of this worker in the group
  int size() const;  // how many members it has
  // Ranks of the members in the job, in the order of their group ranks.
  const std::vector<int>& members() const;

  // This worker lets go of the group; the others are not asked. Operations under way go on, and what is
  // started after this, on any copy, is refused. What comes late for it from others is dropped.
  void Close();

  // Returns at once; the data belongs to the operation until it is done.
  Handle Start(const Call& call);
  // Does what Start() and Wait() do, without waking another thread.
  absl::Status Run(const Call& call);

  // Between hosts a call of a new kind (collective, size, ...) runs by a quick choice until all members
  // have its plan, some calls later. This waits until all have it, each at most for the call's timeout, and
  // changes to it: for what measures calls like this one. All members call it, in the order of the
  // group's calls; it moves no data, and call.data.data may be null.
  absl::Status AwaitPlan(const Call& call);

  // Everybody's data becomes the reduction of all; `weight` is for ReduceOp::kWeightedAverage.
  absl::Status AllReduce(Array data, ReduceOp op, double weight = 1) {
    return Run({.collective = Collective::kAllReduce, .data = data, .op = op, .weight = weight});
  }
  // Only `active` add up their data and get the result; the others help (Call::active).
  absl::Status AllReduceAmong(std::vector<int> active, Array data, ReduceOp op, double weight = 1) {
    return Run({.collective = Collective::kAllReduce,
                .data = data,
                .op = op,
                .weight = weight,
                .active = std::move(active)});
  }
  // Only `root` gets the reduction; the others' data is undefined after.
  absl::Status Reduce(Array data, ReduceOp op, int root) {
    return Run({.collective = Collective::kReduce, .data = data, .op = op, .root = root});
  }
  // Everybody's data becomes that of `root`.
  absl::Status Broadcast(Array data, int root) {
    return Run({.collective = Collective::kBroadcast, .data = data, .root = root});
  }
  // The data consists of a block for each member; each brings its own and gets all.
  absl::Status AllGather(Array data) {
    return Run({.collective = Collective::kAllGather, .data = data});
  }
  // Each member's own block becomes the reduction of all members' blocks of that place.
  absl::Status ReduceScatter(Array data, ReduceOp op) {
    return Run({.collective = Collective::kReduceScatter, .data = data, .op = op});
  }
  // `root` gets each member's own block.
  absl::Status Gather(Array data, int root) {
    return Run({.collective = Collective::kGather, .data = data, .root = root});
  }
  // Each member gets its block of the data of `root`.
  absl::Status Scatter(Array data, int root) {
    return Run({.collective = Collective::kScatter, .data = data, .root = root});
  }
  // Member i's block j and member j's block i change places.
  absl::Status AllToAll(Array data) {
    return Run({.collective = Collective::kAllToAll, .data = data});
  }
  // Returns when all members have called it.
  absl::Status Barrier() { return Run({.collective = Collective::kBarrier}); }
  // Moves `from`'s data to `to`. Called by both; in a group of more than two by all.
  absl::Status SendReceive(Array data, int from, int to) {
    return Run({.collective = Collective::kSendReceive, .data = data, .root = from, .target = to});
  }

 private:
  friend class Worker;
  explicit Group(std::shared_ptr<internal::GroupImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<internal::GroupImpl> impl_;
};

// What a handler of Worker::Receive() gets: a message or a parcel from a worker (which may be this
// one), or, last of all, that it is gone.
struct Mail {
  // What it is.
  enum class Kind {
    kMessage,  // of Worker::Send()
    kParcel,   // of Worker::SendParcel()
    kLost,     // `from` is lost: dead, stuck or cut off
    kLeft,     // `from` has left the job in good order
  };
  int from = -1;               // whose mail it is: a rank of the job
  Kind kind = Kind::kMessage;  // message, parcel, or the end of both
  std::string bytes;           // as they were sent; kLost and kLeft: why, for people
  // Of kLost and kLeft: the place of this departure among all those of the job, from 1, the same at all
  // workers; 0 of a worker that finds out by itself that it is out.
  uint64_t order = 0;
};
// Takes the mail of a topic.
using MailHandler = std::function<void(Mail)>;

// What is known about the network between the hosts of a job.
struct NetworkVersion {
  uint64_t version = 0;       // grows by 1 with every change; 0: the job is on one host
  std::string reason;         // why there is this version, for people
  std::string topology_json;  // docs/topology.md
};

// This process's part in the job. It leaves the job when the Worker and all its groups, buffers and
// handles are gone.
class Worker {
 public:
  // Joins the job: returns when all its workers have come, or with an error that names the missing
  // ones.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(const Options& options = {});
  ~Worker();

  int rank() const;        // of this worker in the job
  int size() const;        // workers of the job when it began, whoever is gone since
  int local_rank() const;  // of this worker among those of its host
  int local_size() const;  // workers of the job on this host

  // All workers of the job.
  Group& world() { return world_; }
  // A group of these ranks of the job (this worker among them), made by its members alone: no
  // message is sent. Members that make groups of the same ranks several times must do so in the
  // same order. `version`: as below.
  absl::StatusOr<Group> NewGroup(std::vector<int> members, uint64_t version = 0);
  // The same, by a key that whoever decided on the group has made: members that bring it meet at the
  // group's first operation, whatever groups each of them has made before. A key is used once in a job,
  // and all bring it with the same members in the same order. AlreadyExists if this worker has brought it
  // before (65,536 blocks of 64 numbers of a maker are remembered, those that were begun last).
  //
  // `version` is that of the network (Network()) by which all of its programs are planned, the same for
  // all members; 0: the one that the job began with. FailedPrecondition if this worker does not plan by
  // it (the first version and the last 64 are kept), or if a member is lost. What Network() has returned here
  // may be named here at once. Another member may not have heard of that version yet: then it is refused there,
  // the key is not used up, and it can be brought again a little later.
  //
  // A job may make any number of groups. A worker may have 2,048 at a time among the workers of its host,
  // and 8,192 with other hosts; ResourceExhausted beyond.
  absl::StatusOr<Group> NewGroup(std::vector<int> members, const GroupKey& key,
                                 uint64_t version = 0);
  // The network as this worker knows it now. Changes are noticed from the traffic of all groups,
  // and all workers come to the same versions, if not at the
  // same moment. The world group's programs follow them, from the same call on for all; another group
  // keeps to the version that it was made with. With SYNCOPATE_UPKEEP=0 the first version stays.
  NetworkVersion Network() const;
  // Workers that are not in the job any more as far as this one knows, sorted: dead, stuck or cut off, or
  // they have left. It may be among them itself, if the others have given it up.
  std::vector<int> Lost() const;
  // The others of 0 to size() - 1, sorted: those that still take part.
  std::vector<int> Live() const;

  // Sends at most 4 KiB to a worker of the job, which may be this one, ahead of all data of collectives.
  // `topic` (1 to 64 bytes) says for which handler there; those that begin with "syncopate/" are the
  // library's own. Never waits: ResourceExhausted, which names the worker (GetSuspect()), if 1 MiB
  // waits for it to take; Unavailable if it is not in the job any more. Between two workers messages
  // arrive exactly once and in the order in which they were sent, while both are in the job.
  absl::Status Send(int to, absl::string_view topic, absl::string_view bytes);
  // The same for at most 64 MiB, which travel beside the data of collectives and which messages may
  // overtake; 128 MiB may wait.
  absl::Status SendParcel(int to, absl::string_view topic, absl::string_view bytes);
  // From now on `handler` gets the mail of this topic, also what has come before (up to 128 MiB in all
  // are kept for topics without a handler); null: nobody does. Each handler also hears once of every
  // worker that is lost or leaves, after all mail of that worker; nothing comes from it after that. A
  // worker that the others have given up hears so of itself. When this returns, a handler that it
  // replaces does not run any more; what a handler refers to must live until then, or longer than the
  // Worker.
  //
  // Handlers run one after the other on the worker's control thread, whatever other threads do. That
  // thread also sends the worker's heartbeats, so a handler must be quick (milliseconds): one that
  // hangs makes its worker a stuck one (docs/failure.md). It may call Send(), SendParcel() and
  // Receive(), and must not run collectives or end the Worker.
  absl::Status Receive(absl::string_view topic, MailHandler handler);

  // Adds a service of one's own (syncopate/service.h), to be done by every worker of the job, best right
  // after Start(): one worker hosts it, the first live one of SYNCOPATE_SERVICE_RANKS, else the one of
  // the lowest rank that is not one of Options::server_ranks, and requests wait until it has added the
  // service. `report`, of services that CanRebuild(), is called on the control thread and says what this
  // worker knows.
  absl::Status AddService(std::unique_ptr<Service> service,
                          std::function<std::string()> report = nullptr);
  // Asks a service that has been added here, and waits for its answer, at most Options::timeout. The
  // answer comes once, whatever becomes of the service's host. Not from a handler.
  absl::StatusOr<std::string> Ask(absl::string_view service, std::string request);
  // The same without waiting: `answered` is called once, on the control thread as handlers of
  // Receive(), if this returns OK; where the worker ends before, with Cancelled. At most 64 requests
  // of a worker to a service may be open: ResourceExhausted.
  absl::Status StartAsking(absl::string_view service, std::string request,
                           std::function<void(absl::StatusOr<std::string>)> answered);

  // Memory that the workers of this host share, from the arena (Options::arena_bytes). Its content is
  // undefined. ResourceExhausted if too little is left.
  absl::StatusOr<Buffer> Allocate(size_t bytes);

 private:
  friend class internal::WorkerAccess;
  Worker(std::shared_ptr<internal::WorkerImpl> impl, Group world);
  std::shared_ptr<internal::WorkerImpl> impl_;
  Group world_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_SYNCOPATE_H_
