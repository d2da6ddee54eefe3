// The public interface (syncopate/syncopate.h) over the planners, the engine and the transports: it
// checks a call, finds its program, and gives both to the engine.
//
// Every worker must come to the same program for the same call without asking the others. All that
// the choice depends on is therefore the same on all workers: the call, the group, the rules, the
// version of the network, and the sub-chunks that the tuner tries.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapt/chunk_tuner.h"
#include "adapt/network_watch.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/environment.h"
#include "base/forked_child.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/switch.h"
#include "engine/engine.h"
#include "syncopate/syncopate.h"
#include "worker/algorithm_terms.h"
#include "worker/departures.h"
#include "worker/job_services.h"
#include "worker/mail_exchange.h"
#include "worker/mailbox.h"
#include "worker/network.h"
#include "worker/own_programs.h"
#include "worker/program_cache.h"
#include "worker/service_ranks.h"
#include "worker/start_transport.h"
#include "worker/used_keys.h"

namespace syncopate {
namespace internal {

// Shares an object that belongs to this process: a forked child's copy of it is never destroyed,
// since that would say goodbye to the others or wait for threads that only the parent has.
template <typename T>
std::shared_ptr<T> Share(T* object) {
  return std::shared_ptr<T>(object, [made_here = ForkMark()](T* mine) {
    if (!made_here.InChild()) delete mine;
  });
}

// What a worker is made of. Groups, buffers and handles keep it alive.
//
// The engine is declared after the transport, the programs, the watch and the tuner, so that it is
// destroyed before them: operations under way use them. The watch and the tuner have rounds under
// way in the exchange, which is destroyed after them.
class WorkerImpl {
 public:
  WorkerImpl(worker::StartedTransport started, const std::optional<worker::Network>& network_in,
             plan::AlgorithmRules rules_in, std::vector<int> service_order)
      : rules(std::move(rules_in)),
        job(std::move(started.job)),
        timeout_ns(started.timeout_ns),
        transport(std::move(started.transport)),
        network(network_in),
        programs(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), network_in),
        mailbox(*transport, MonotonicClock()),
        services(mailbox, MonotonicClock(),
                 {.rank = job.rank, .size = job.size, .candidates = std::move(service_order)}),
        exchange(mailbox, job.rank, job.size, timeout_ns, MonotonicClock()),
        engine(*transport, MonotonicClock()) {}

  // Handlers and tasks of the mailbox use all the rest.
  ~WorkerImpl() { mailbox.Stop(); }

  // An error in a forked child. It must be asked before any lock is taken: a thread of the parent
  // may have held it while the process forked, and would never give it back here.
  absl::Status CheckProcess() const {
    if (!made_here.InChild()) return absl::OkStatus();
    return WithBlast(
        absl::FailedPreconditionError(absl::StrCat(
            "this process was forked from rank ", job.rank,
            " and is no worker of the job: make the call in the parent, or have the child start "
            "another program (exec)")),
        BlastRadius::kOperation);
  }

  // Refuses a group that cannot be: with ranks that there are not, or with a lost worker, since it would
  // fail at its first call.
  absl::Status CheckMembers(const std::vector<int>& members) const {
    for (const int member : members) {
      if (member < 0 || member >= job.size) {
        return absl::InvalidArgumentError(
            absl::StrCat(member, " is not a rank of a job of ", job.size));
      }
    }
    if (std::set<int>(members.begin(), members.end()).size() != members.size()) {
      return absl::InvalidArgumentError("a rank stands there twice");
    }
    for (const transport::Loss& loss : transport->Lost()) {
      if (std::find(members.begin(), members.end(), loss.rank) == members.end()) continue;
      return WithBlast(
          absl::FailedPreconditionError(absl::StrCat("worker ", loss.rank, " ", loss.cause)),
          loss.rank == job.rank ? BlastRadius::kJob : BlastRadius::kOperation, loss.rank);
    }
    return absl::OkStatus();
  }

  // The same members may make several groups. They make them in the same order, so the instance gives
  // each the same name on all of them.
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> MakeGroup(const std::vector<int>& members) {
    MutexLock lock(&mutex);
    uint64_t& instance = group_instances[members];
    absl::StatusOr<std::shared_ptr<engine::EngineGroup>> group =
        OpenGroup(absl::StrCat("group ", absl::StrJoin(members, ","), " ", instance), members);
    if (group.ok()) ++instance;
    return group;
  }

  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> MakeGroup(const std::vector<int>& members,
                                                                 const GroupKey& key) {
    MutexLock lock(&mutex);
    if (used_keys.Contains(key)) {
      return absl::AlreadyExistsError(
          "this worker has brought the key before; a key is used once in a job");
    }
    // Members that disagree on who they are must not meet: each would take another's place for its own.
    absl::StatusOr<std::shared_ptr<engine::EngineGroup>> group = OpenGroup(
        absl::StrCat("key ", key.maker, " ", key.number, " of ", absl::StrJoin(members, ",")),
        members);
    if (group.ok()) used_keys.Add(key);
    return group;
  }

  // Looks for changes of the network from now on.
  void WatchNetwork() {
    watch = std::make_unique<adapt::NetworkWatch>(
        network->topology, network->placement, [this] { return transport->TakeTraffic(); },
        exchange.lane(worker::RoundLane::kNetworkWatch),
        [this](uint64_t version, const Topology& topology) { programs.Publish(version, topology); },
        MonotonicClock());
  }

  // Looks for the best sub-chunks of forests from now on.
  void TuneChunks() {
    tuner = std::make_unique<adapt::ChunkTuner>(exchange.lane(worker::RoundLane::kChunkTuner));
  }

  const ForkMark made_here;
  const plan::AlgorithmRules rules;
  const Job job;
  const int64_t timeout_ns;
  const std::unique_ptr<transport::Transport> transport;
  // The network that the job began with, if it is on several hosts.
  const std::optional<worker::Network> network;
  worker::ProgramCache programs;
  worker::OwnPrograms own_programs;
  worker::Mailbox mailbox;
  worker::JobServices services;
  worker::MailExchange exchange;
  std::unique_ptr<adapt::NetworkWatch> watch;  // null: the network is not watched
  std::unique_ptr<adapt::ChunkTuner> tuner;    // null: sub-chunks are not tuned
  engine::Engine engine;
  Mutex mutex;
  std::map<std::vector<int>, uint64_t> group_instances ABSL_GUARDED_BY(mutex);
  worker::UsedKeys used_keys ABSL_GUARDED_BY(mutex){limits::kClosedGroupsMax};

 private:
  // `name` is the same on all members, and no other group's. If the group cannot be, members that have
  // made it before they knew need not wait for this one.
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> OpenGroup(const std::string& name,
                                                                 const std::vector<int>& members) {
    const uint64_t key = DigestOf(name).low | 1;  // 0 means no group
    if (absl::Status status = CheckMembers(members); !status.ok()) {
      if (absl::IsFailedPrecondition(status)) transport->Renounce(key);
      return status;
    }
    return engine.MakeGroup(key, members);
  }
};

// For the rooms above: what a worker is made of.
class WorkerAccess {
 public:
  static WorkerImpl& Of(const Worker& worker) { return *worker.impl_; }
};

// Keeps the transport alive that the memory belongs to, and gives the memory back to it.
struct BufferOwner {
  BufferOwner(std::shared_ptr<WorkerImpl> worker_in, std::byte* memory_in)
      : worker(std::move(worker_in)), memory(memory_in) {}
  BufferOwner(const BufferOwner&) = delete;
  ~BufferOwner() {
    if (!worker->made_here.InChild()) worker->transport->Free(memory);
  }
  const std::shared_ptr<WorkerImpl> worker;
  std::byte* const memory;
};

// What a Handle points to: an operation, or why there is none.
class OperationState {
 public:
  const std::shared_ptr<WorkerImpl> worker;
  const std::shared_ptr<engine::Operation> operation;  // null: the call was refused
  const absl::Status refusal;                          // why it was
};

class GroupImpl {
 public:
  // `version_in`: of the network, to plan by. `watch_in`: follows the versions of the network instead;
  // `tuner_in`: refines plans. May be null.
  GroupImpl(std::shared_ptr<WorkerImpl> worker_in, std::shared_ptr<engine::EngineGroup> group,
            uint64_t version_in = 0, adapt::NetworkWatch* watch_in = nullptr,
            adapt::ChunkTuner* tuner_in = nullptr)
      : worker(std::move(worker_in)),
        members(group->members),
        self(group->self),
        version(version_in),
        watch(watch_in),
        tuner(tuner_in),
        group_(std::move(group)) {}

  int size() const { return static_cast<int>(members.size()); }

  // Operations under way keep the group until they end.
  void Close() {
    std::shared_ptr<engine::EngineGroup> closed;  // is let go of after the lock
    MutexLock lock(&mutex_);
    closed.swap(group_);
  }

  // From a call to what the engine starts. The watch counts calls between BeforeCall() and Ended(),
  // so a call that gets no program must be ended here.
  absl::StatusOr<engine::OperationSpec> Prepare(const Call& call) {
    SYNCOPATE_RETURN_IF_ERROR(worker->CheckProcess());
    SYNCOPATE_RETURN_IF_ERROR(Check(call));
    const uint64_t planned_by =
        watch == nullptr ? version : watch->BeforeCall(call.data.elements * SizeOf(call.data.type));
    std::shared_ptr<std::atomic<int64_t>> took;
    std::shared_ptr<engine::EngineGroup> group;
    absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> program =
        ProgramFor(call, planned_by, group, took);
    if (!program.ok()) {
      if (watch != nullptr) watch->Ended();
      return program.status();
    }
    if (watch != nullptr) watch->Planned((*program)->digest);
    const int64_t timeout_ns =
        call.timeout ? absl::ToInt64Nanoseconds(*call.timeout) : worker->timeout_ns;
    const int64_t now_ns = MonotonicClock().NowNs();
    engine::OperationSpec spec{.group = std::move(group),
                               .program = *std::move(program),
                               .data = call.data.data,
                               .type = call.data.type,
                               .op = Reduces(call.collective) ? call.op : ReduceOp::kSum,
                               .weight = IsActive(call) ? call.weight : 0,
                               .priority = call.priority,
                               .deadline_ns = now_ns + timeout_ns};
    if (took != nullptr || watch != nullptr) {
      // The pointer to the watch stays valid: the engine is destroyed before it.
      spec.completed = [took, now_ns, watch = watch,
                        ended = call.ended](const absl::Status& status) {
        if (took != nullptr && status.ok()) took->store(MonotonicClock().NowNs() - now_ns);
        if (watch != nullptr) watch->Ended();
        if (ended) ended(status);
      };
    } else {
      spec.completed = call.ended;
    }
    return spec;
  }

  const std::shared_ptr<WorkerImpl> worker;
  const std::vector<int> members;  // ranks of the job
  const int self;                  // this worker's place among them
  const uint64_t version;          // of the network, to plan by where it is not watched
  // The worker's own, for its world group; null for other groups.
  adapt::NetworkWatch* const watch;
  adapt::ChunkTuner* const tuner;

 private:
  bool IsActive(const Call& call) const {
    return call.active.empty() ||
           std::find(call.active.begin(), call.active.end(), self) != call.active.end();
  }

  // Refuses what the caller got wrong before any other worker hears of the call.
  absl::Status Check(const Call& call) const {
    auto refuse = [&](const auto&... why) {
      return WithBlast(
          absl::InvalidArgumentError(absl::StrCat(Name(call.collective), ": ", why...)),
          BlastRadius::kOperation);
    };
    if (call.data.elements > limits::kElementsMax) {
      return refuse(call.data.elements, " elements are more than the limit of ",
                    limits::kElementsMax);
    }
    if (!call.active.empty()) {
      if (call.collective != Collective::kAllReduce) {
        return refuse("only an all-reduce can do without some of the workers' data");
      }
      std::vector<int> sorted = call.active;
      std::sort(sorted.begin(), sorted.end());
      if (sorted.front() < 0 || sorted.back() >= size()) {
        return refuse("active rank ", sorted.front() < 0 ? sorted.front() : sorted.back(),
                      " is not a rank of a group of ", size());
      }
      const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
      if (twice != sorted.end()) return refuse("active rank ", *twice, " stands there twice");
    }
    const bool active = IsActive(call);
    if (active && call.data.elements > 0 && call.data.data == nullptr) {
      return refuse("data is null");
    }
    if (HasRoot(call.collective) && (call.root < 0 || call.root >= size())) {
      return refuse("root ", call.root, " is not a rank of a group of ", size());
    }
    if (call.collective == Collective::kSendReceive && (call.target < 0 || call.target >= size())) {
      return refuse("target ", call.target, " is not a rank of a group of ", size());
    }
    if (Reduces(call.collective) && call.op == ReduceOp::kWeightedAverage) {
      if (!IsFloating(call.data.type)) {
        return refuse("a weighted average needs a floating type, not ", Name(call.data.type));
      }
      if (active && (!std::isfinite(call.weight) || call.weight < 0)) {
        return refuse("weight ", call.weight, " is not a finite number of 0 or more");
      }
    }
    if (HasBlocks(call.collective)) {
      const uint64_t n = static_cast<uint64_t>(size());
      if (call.block_elements.empty() && call.data.elements % n != 0) {
        return refuse(call.data.elements, " elements cannot be cut into ", n,
                      " equal blocks; give block_elements");
      }
      if (!call.block_elements.empty() &&
          (call.block_elements.size() != n ||
           std::accumulate(call.block_elements.begin(), call.block_elements.end(), uint64_t{0}) !=
               call.data.elements)) {
        return refuse("block_elements must have ", n, " entries that add up to the ",
                      call.data.elements, " elements of data");
      }
    }
    if (!call.algorithm.empty() && !call.program.empty()) {
      return refuse("both an algorithm and a program are given; give one of the two");
    }
    if (call.timeout && *call.timeout <= absl::ZeroDuration())
      return refuse("the timeout is not positive");
    return absl::OkStatus();
  }

  // `group` is set to what the call runs on; `took` to where the time of this call goes, if the tuner
  // wants it.
  absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> ProgramFor(
      const Call& call, uint64_t network_version, std::shared_ptr<engine::EngineGroup>& group,
      std::shared_ptr<std::atomic<int64_t>>& took) {
    const uint64_t element_bytes = SizeOf(call.data.type);
    MutexLock lock(&mutex_);
    if (group_ == nullptr) {
      return WithBlast(absl::FailedPreconditionError(absl::StrCat(
                           Name(call.collective), ": this worker has closed the group")),
                       BlastRadius::kOperation);
    }
    group = group_;
    // Training makes the same call again and again, so the last one is compared field by field
    // before a key is built and hashed.
    const bool same =
        last_.program != nullptr && last_key_.request.collective == call.collective &&
        last_key_.request.elements == call.data.elements &&
        last_key_.network_version == network_version && last_key_.element_bytes == element_bytes &&
        last_algorithm_ == call.algorithm && last_text_ == call.program &&
        (!HasRoot(call.collective) || last_key_.request.root == call.root) &&
        (call.collective != Collective::kSendReceive || last_key_.request.target == call.target) &&
        last_blocks_ == call.block_elements && last_active_ == call.active;
    if (same) return Refined(took);
    plan::ProgramKey key;
    key.request.collective = call.collective;
    key.request.workers = size();
    key.request.active = call.active;
    std::sort(key.request.active.begin(), key.request.active.end());
    if (call.active.empty()) {
      key.request.active.resize(static_cast<size_t>(size()));
      std::iota(key.request.active.begin(), key.request.active.end(), 0);
    }
    if (HasRoot(call.collective)) key.request.root = call.root;
    if (call.collective == Collective::kSendReceive) key.request.target = call.target;
    key.request.elements = call.data.elements;
    if (HasBlocks(call.collective)) {
      key.request.block_elements = call.block_elements;
      if (call.block_elements.empty()) {
        key.request.block_elements.assign(static_cast<size_t>(size()),
                                          call.data.elements / static_cast<uint64_t>(size()));
      }
    }
    key.element_bytes = element_bytes;
    key.algorithm = call.algorithm;
    if (key.algorithm.empty()) {
      key.algorithm =
          std::string(worker->rules.For(call.collective, call.data.elements * element_bytes));
    }
    key.self = self;
    key.ranks = members;
    key.network_version = network_version;
    SYNCOPATE_ASSIGN_OR_RETURN(last_, call.program.empty()
                                          ? worker->programs.Get(key)
                                          : worker->own_programs.Get(key, call.program));
    last_key_ = std::move(key);
    last_algorithm_ = call.algorithm;
    last_text_ = call.program;
    last_blocks_ = call.block_elements;
    last_active_ = call.active;
    return Refined(took);
  }

  // The last program with the sub-chunks that the tuner advises.
  absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> Refined(
      std::shared_ptr<std::atomic<int64_t>>& took) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (tuner == nullptr || last_.chunk_bytes == 0) return last_.program;
    adapt::ChunkTuner::Advice advice = tuner->BeforeCall(last_key_, last_.chunk_bytes);
    took = std::move(advice.took);
    if (advice.chunk_bytes == 0) return last_.program;
    plan::ProgramKey key = last_key_;
    key.chunk_bytes = advice.chunk_bytes;
    absl::StatusOr<worker::PlannedProgram> planned = worker->programs.Get(key);
    if (planned.ok()) return planned->program;
    // The size may give too many steps, say. That is so on all workers, which then all run the
    // proposed program, and the size has no measurement.
    took = nullptr;
    return last_.program;
  }

  Mutex mutex_;
  std::shared_ptr<engine::EngineGroup> group_ ABSL_GUARDED_BY(mutex_);  // null: closed
  plan::ProgramKey last_key_ ABSL_GUARDED_BY(mutex_);
  // The fields of the last call as it had them, before defaults were filled in.
  std::string last_algorithm_ ABSL_GUARDED_BY(mutex_);
  std::string last_text_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> last_blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> last_active_ ABSL_GUARDED_BY(mutex_);
  worker::PlannedProgram last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace internal

bool Handle::Done() const {
  return state_->operation == nullptr || state_->operation->done() ||
         state_->worker->made_here.InChild();
}

absl::Status Handle::Wait() {
  if (state_->operation == nullptr) return state_->refusal;
  SYNCOPATE_RETURN_IF_ERROR(state_->worker->CheckProcess());
  return state_->worker->engine.Wait(state_->operation);
}

int Group::rank() const { return impl_->self; }
int Group::size() const { return impl_->size(); }
const std::vector<int>& Group::members() const { return impl_->members; }

void Group::Close() {
  if (!impl_->worker->made_here.InChild()) impl_->Close();
}

Handle Group::Start(const Call& call) {
  absl::StatusOr<engine::OperationSpec> spec = impl_->Prepare(call);
  std::shared_ptr<engine::Operation> operation;
  if (spec.ok()) operation = impl_->worker->engine.Start(*std::move(spec));
  return Handle(internal::Share(new internal::OperationState{
      .worker = impl_->worker, .operation = std::move(operation), .refusal = spec.status()}));
}

absl::Status Group::Run(const Call& call) {
  SYNCOPATE_ASSIGN_OR_RETURN(engine::OperationSpec spec, impl_->Prepare(call));
  // Only a call that the caller waits for tells how much time was spent on calls.
  if (impl_->watch == nullptr) return impl_->worker->engine.Run(std::move(spec));
  const int64_t begin_ns = MonotonicClock().NowNs();
  absl::Status status = impl_->worker->engine.Run(std::move(spec));
  impl_->watch->Waited(MonotonicClock().NowNs() - begin_ns);
  return status;
}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(const Options& options) {
  const Environment environment = ProcessEnvironment();
  SYNCOPATE_ASSIGN_OR_RETURN(plan::AlgorithmRules rules,
                             worker::ResolveAlgorithmRules(options, environment));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> service_ranks,
                             worker::ServiceRanksFromEnvironment(environment));
  SYNCOPATE_ASSIGN_OR_RETURN(
      worker::StartedTransport started,
      worker::StartTransport(options, environment,
                             worker::AlgorithmTerms(rules, worker::ServiceTerms(service_ranks))));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<int> service_order,
                             worker::ServiceOrder(service_ranks, started.job.size));
  std::optional<syncopate::worker::Network> network;
  if (!started.hosts.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(network, worker::LoadNetwork(environment, started.hosts));
  }
  auto impl = internal::Share(new internal::WorkerImpl(std::move(started), network,
                                                       std::move(rules), std::move(service_order)));
  std::vector<int> everyone(static_cast<size_t>(impl->job.size));
  std::iota(everyone.begin(), everyone.end(), 0);
  SYNCOPATE_ASSIGN_OR_RETURN(std::shared_ptr<engine::EngineGroup> world, impl->MakeGroup(everyone));
  // The watch and the tuner are only of use between hosts.
  SYNCOPATE_ASSIGN_OR_RETURN(const bool upkeep,
                             IsOn(environment, "SYNCOPATE_UPKEEP", /*otherwise=*/true));
  if (network && upkeep) impl->WatchNetwork();
  SYNCOPATE_ASSIGN_OR_RETURN(const bool tune,
                             IsOn(environment, "SYNCOPATE_TUNE", /*otherwise=*/true));
  if (network && tune) impl->TuneChunks();
  auto group = internal::Share(
      new internal::GroupImpl(impl, std::move(world), 0, impl->watch.get(), impl->tuner.get()));
  return std::unique_ptr<Worker>(new Worker(std::move(impl), Group(std::move(group))));
}

namespace {

// The longest that a worker that leaves waits until others have what its services know.
constexpr int64_t kHandOverNs = 2'000'000'000;

}  // namespace

Worker::Worker(std::shared_ptr<internal::WorkerImpl> impl, Group world)
    : impl_(std::move(impl)), world_(std::move(world)) {}
Worker::~Worker() {
  if (impl_->made_here.InChild()) return;
  impl_->services.Leave(MonotonicClock().NowNs() + kHandOverNs);
  // Groups may still be used, without the watch and the tuner.
  impl_->exchange.Close();
  // What handlers refer to may be gone after this.
  impl_->mailbox.Stop();
  impl_->services.Close(absl::CancelledError("this worker leaves the job"));
}

int Worker::rank() const { return impl_->job.rank; }
int Worker::size() const { return impl_->job.size; }
int Worker::local_rank() const { return impl_->job.local_rank; }
int Worker::local_size() const { return impl_->job.local_size; }

absl::StatusOr<Group> Worker::NewGroup(std::vector<int> members) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> group = impl_->MakeGroup(members);
  if (!group.ok()) {
    return At(absl::StrCat("group {", absl::StrJoin(members, ","), "}"), group.status());
  }
  return Group(internal::Share(new internal::GroupImpl(impl_, *std::move(group))));
}

absl::StatusOr<Group> Worker::NewGroup(std::vector<int> members, const GroupKey& key,
                                       uint64_t version) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  const std::string name = absl::StrCat("group {", absl::StrJoin(members, ","), "} by key (",
                                        key.maker, ", ", key.number, ")");
  if (key == GroupKey{}) return At(name, absl::InvalidArgumentError("(0, 0) is no key"));
  if (absl::Status known = impl_->programs.CheckVersion(version); !known.ok()) {
    return At(name, known);
  }
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> group = impl_->MakeGroup(members, key);
  if (!group.ok()) return At(name, group.status());
  return Group(internal::Share(new internal::GroupImpl(impl_, *std::move(group), version)));
}

namespace {

// Users do not meddle with the library's own mail.
absl::Status CheckOwnTopic(absl::string_view topic) {
  if (!absl::StartsWith(topic, worker::Mailbox::kOwnTopics)) return absl::OkStatus();
  return WithBlast(absl::InvalidArgumentError(
                       absl::StrCat("topic \"", topic, "\": those that begin with \"",
                                    worker::Mailbox::kOwnTopics, "\" are the library's own")),
                   BlastRadius::kOperation);
}

}  // namespace

NetworkVersion Worker::Network() const {
  if (impl_->made_here.InChild()) return {};
  if (impl_->watch != nullptr) return impl_->watch->Newest();
  if (!impl_->network) return {};
  const Topology& topology = impl_->network->topology;
  return {
      .version = topology.version, .reason = topology.source, .topology_json = ToJson(topology)};
}

std::vector<int> Worker::Lost() const {
  std::vector<int> ranks;
  if (impl_->made_here.InChild()) return ranks;
  for (const transport::Loss& loss : impl_->transport->Lost()) ranks.push_back(loss.rank);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

absl::Status Worker::Send(int to, absl::string_view topic, absl::string_view bytes) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  SYNCOPATE_RETURN_IF_ERROR(CheckOwnTopic(topic));
  return impl_->mailbox.Send(to, transport::MailKind::kMessage, topic, bytes);
}

absl::Status Worker::SendParcel(int to, absl::string_view topic, absl::string_view bytes) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  SYNCOPATE_RETURN_IF_ERROR(CheckOwnTopic(topic));
  return impl_->mailbox.Send(to, transport::MailKind::kParcel, topic, bytes);
}

absl::Status Worker::Receive(absl::string_view topic, MailHandler handler) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  SYNCOPATE_RETURN_IF_ERROR(CheckOwnTopic(topic));
  return impl_->mailbox.Receive(topic, std::move(handler));
}

absl::Status Worker::AddService(std::unique_ptr<Service> service,
                                std::function<std::string()> report) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  return impl_->services.Add(std::move(service), std::move(report));
}

absl::StatusOr<std::string> Worker::Ask(absl::string_view service, std::string request) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  SYNCOPATE_ASSIGN_OR_RETURN(worker::LiveService * live, impl_->services.Find(service));
  return live->AskAndWait(std::move(request), MonotonicClock().NowNs() + impl_->timeout_ns);
}

absl::Status Worker::StartAsking(absl::string_view service, std::string request,
                                 std::function<void(absl::StatusOr<std::string>)> answered) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  SYNCOPATE_ASSIGN_OR_RETURN(worker::LiveService * live, impl_->services.Find(service));
  return live->Ask(std::move(request), std::move(answered));
}

absl::StatusOr<Buffer> Worker::Allocate(size_t bytes) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  SYNCOPATE_ASSIGN_OR_RETURN(std::byte * memory, impl_->transport->Allocate(bytes));
  return Buffer(std::make_shared<internal::BufferOwner>(impl_, memory), memory, bytes);
}

namespace worker {

JobServices& ServicesOf(Worker& worker) { return internal::WorkerAccess::Of(worker).services; }

Mailbox& MailboxOf(Worker& worker) { return internal::WorkerAccess::Of(worker).mailbox; }

std::vector<Departure> DeparturesOf(const Worker& worker) {
  internal::WorkerImpl& impl = internal::WorkerAccess::Of(worker);
  std::vector<Departure> departures;
  if (impl.made_here.InChild()) return departures;
  for (transport::Loss& loss : impl.transport->Lost()) {
    departures.push_back({.rank = loss.rank, .left = loss.left, .cause = std::move(loss.cause)});
  }
  return departures;
}

adapt::JobExchange& ExchangeOf(Worker& worker) {
  return internal::WorkerAccess::Of(worker).exchange.lane(RoundLane::kJob);
}

}  // namespace worker
}  // namespace syncopate
