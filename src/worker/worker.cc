// The public interface (syncopate/syncopate.h) over the planners, the engine and the transports: it
// checks a call, finds its program, and gives both to the engine.
//
// Every worker must come to the same program for the same call without asking the others. All that
// the choice depends on is therefore the same on all workers: the call, the group, the rules, the
// version of the network, and the sub-chunks that the tuner tries.
#include <unistd.h>

#include <algorithm>
#include <atomic>
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
#include "worker/call_plans.h"
#include "worker/call_request.h"
#include "worker/departures.h"
#include "worker/engine_vote.h"
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

  // The group of all workers. It is made whoever is gone already: a worker may have done its work and
  // left before another one is here, which is no error unless that one needs it in a call.
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> MakeWorld() {
    std::vector<int> everyone(static_cast<size_t>(job.size));
    std::iota(everyone.begin(), everyone.end(), 0);
    return engine.MakeGroup(KeyOf("world"), everyone);
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
  static uint64_t KeyOf(const std::string& name) {
    return DigestOf(name).low | 1;  // 0 means no group
  }
  // `name` is the same on all members, and no other group's. If the group cannot be, members that have
  // made it before they knew need not wait for this one.
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> OpenGroup(const std::string& name,
                                                                 const std::vector<int>& members) {
    const uint64_t key = KeyOf(name);
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
  // `version_in`: of the network, to plan by. `world_in`: it is the worker's world group, whose calls the
  // network watch takes its periods from, and which follows its versions instead.
  GroupImpl(std::shared_ptr<WorkerImpl> worker_in, std::shared_ptr<engine::EngineGroup> group,
            uint64_t version_in = 0, bool world_in = false)
      : worker(std::move(worker_in)),
        members(group->members),
        self(group->self),
        version(version_in != 0 || !worker->network ? version_in
                                                    : worker->network->topology.version),
        world(world_in),
        watch(worker->watch.get()),
        tuner(world ? worker->tuner.get() : nullptr),
        group_(std::move(group)),
        last_version_(version),
        odd_(worker->network ? std::make_shared<std::atomic<bool>>(false) : nullptr),
        votes_(worker->engine, worker->programs),
        plans_(worker->programs, [this](bool yes) { return StartVote(yes); }) {}

  int size() const { return static_cast<int>(members.size()); }

  // See Group::Run.
  absl::Status Run(const Call& call) {
    SYNCOPATE_ASSIGN_OR_RETURN(engine::OperationSpec spec, Prepare(call));
    // Only a call that the caller waits for tells how much time was spent on calls.
    if (watch == nullptr || !world) return worker->engine.Run(std::move(spec));
    const int64_t begin_ns = MonotonicClock().NowNs();
    absl::Status status = worker->engine.Run(std::move(spec));
    watch->Waited(MonotonicClock().NowNs() - begin_ns);
    return status;
  }

  // See Group::AwaitPlan.
  absl::Status AwaitPlan(const Call& call) {
    SYNCOPATE_RETURN_IF_ERROR(worker->CheckProcess());
    Call without_data = call;
    if (call.data.data == nullptr) without_data.data.data = this;  // it is not looked at
    SYNCOPATE_RETURN_IF_ERROR(worker::CheckCall(without_data, size(), self));
    if (!worker->network) return absl::OkStatus();
    std::shared_ptr<worker::ComingPlan> coming;
    {
      MutexLock lock(&mutex_);
      SYNCOPATE_RETURN_IF_ERROR(FindKind(call, last_version_));
      if (last_ != nullptr) {
        plans_.Order(*last_);
        coming = last_->coming;
      }
    }
    int32_t ready = coming == nullptr ? 1 : 0;
    if (coming != nullptr && coming->WaitUntil(MonotonicClock().NowNs() + TimeoutNs(call))) {
      ready = coming->result().ok() ? 1 : 0;
    }
    // All members are between the same two calls here, so this is where they can change. Those that have
    // planned wait for the others.
    SYNCOPATE_RETURN_IF_ERROR(Run({.data = Array::Of(&ready, 1),
                                   .op = ReduceOp::kMin,
                                   .timeout = absl::Nanoseconds(2 * TimeoutNs(call))}));
    if (ready == 0) {
      return WithBlast(absl::DeadlineExceededError(absl::StrCat(
                           Name(call.collective), ": not all members have planned it yet")),
                       BlastRadius::kOperation);
    }
    MutexLock lock(&mutex_);
    SYNCOPATE_RETURN_IF_ERROR(FindKind(call, last_version_));
    if (last_ != nullptr && last_->coming == coming) worker::CallPlans::Switch(*last_);
    return absl::OkStatus();
  }

  // Operations under way keep the group until they end.
  void Close() {
    std::shared_ptr<engine::EngineGroup> closed;  // is let go of after the lock
    MutexLock lock(&mutex_);
    closed.swap(group_);
    votes_.Close();
  }

  // From a call to what the engine starts. The watch counts calls between BeforeCall() and Ended(),
  // so a call that gets no program must be ended here.
  absl::StatusOr<engine::OperationSpec> Prepare(const Call& call) {
    SYNCOPATE_RETURN_IF_ERROR(worker->CheckProcess());
    SYNCOPATE_RETURN_IF_ERROR(worker::CheckCall(call, size(), self));
    uint64_t planned_by = version;
    if (watch != nullptr && world) {
      planned_by = watch->BeforeCall(call.data.elements * SizeOf(call.data.type));
    } else if (watch != nullptr) {
      watch->BesideCall();
    }
    std::shared_ptr<std::atomic<int64_t>> took;
    std::shared_ptr<engine::EngineGroup> group;
    absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> program =
        ProgramFor(call, planned_by, group, took);
    if (!program.ok()) {
      if (watch != nullptr) watch->Ended();
      return program.status();
    }
    if (watch != nullptr && world) watch->Planned((*program)->digest);
    const int64_t now_ns = MonotonicClock().NowNs();
    engine::OperationSpec spec{.group = std::move(group),
                               .program = *std::move(program),
                               .data = call.data.data,
                               .type = call.data.type,
                               .op = Reduces(call.collective) ? call.op : ReduceOp::kSum,
                               .weight = worker::IsActive(call, self) ? call.weight : 0,
                               .priority = call.priority,
                               .deadline_ns = now_ns + TimeoutNs(call)};
    if (took != nullptr || watch != nullptr || odd_ != nullptr) {
      // The pointer to the watch stays valid: the engine is destroyed before it.
      spec.completed = [took, now_ns, watch = watch, odd = odd_,
                        ended = call.ended](const absl::Status& status) {
        if (odd != nullptr && absl::IsFailedPrecondition(status)) odd->store(true);
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
  const bool world;
  adapt::NetworkWatch* const watch;  // the worker's own; null: the network is not watched
  adapt::ChunkTuner* const tuner;    // the worker's own, for its world group; null: for no other

 private:
  int64_t TimeoutNs(const Call& call) const {
    return call.timeout ? absl::ToInt64Nanoseconds(*call.timeout) : worker->timeout_ns;
  }

  absl::StatusOr<std::unique_ptr<worker::PlanVote>> StartVote(bool yes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return votes_.Start(*group_, yes, vote_timeout_ns_);
  }

  // `group` is set to what the call runs on; `took` to where the time of this call goes, if the tuner
  // wants it.
  absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> ProgramFor(
      const Call& call, uint64_t network_version, std::shared_ptr<engine::EngineGroup>& group,
      std::shared_ptr<std::atomic<int64_t>>& took) {
    MutexLock lock(&mutex_);
    if (group_ == nullptr) {
      return WithBlast(absl::FailedPreconditionError(absl::StrCat(
                           Name(call.collective), ": this worker has closed the group")),
                       BlastRadius::kOperation);
    }
    group = group_;
    last_version_ = network_version;
    if (odd_ != nullptr && odd_->load(std::memory_order_relaxed)) plans_.Freeze();
    SYNCOPATE_RETURN_IF_ERROR(FindKind(call, network_version));
    if (last_own_ != nullptr) return last_own_;
    if (!worker::CallPlans::IsSettled(*last_, network_version)) {
      vote_timeout_ns_ = TimeoutNs(call);
      SYNCOPATE_RETURN_IF_ERROR(plans_.BeforeCall(*last_, network_version));
    }
    return Refined(*last_, took);
  }

  // Sets last_ to the kind of this call, or last_own_ to the program that it brings.
  absl::Status FindKind(const Call& call, uint64_t network_version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t element_bytes = SizeOf(call.data.type);
    // Training makes the same call again and again, so the last one is compared field by field
    // before a key is built and hashed.
    const bool same =
        (last_ != nullptr || last_own_ != nullptr) && last_request_.collective == call.collective &&
        last_request_.elements == call.data.elements && last_element_bytes_ == element_bytes &&
        last_algorithm_ == call.algorithm && last_text_ == call.program &&
        (!HasRoot(call.collective) || last_request_.root == call.root) &&
        (call.collective != Collective::kSendReceive || last_request_.target == call.target) &&
        last_blocks_ == call.block_elements && last_active_ == call.active;
    if (same) return absl::OkStatus();
    const plan::ProgramKey key = KeyOf(call, network_version);
    last_ = nullptr;
    last_own_ = nullptr;
    if (call.program.empty()) {
      SYNCOPATE_ASSIGN_OR_RETURN(last_, plans_.KindOf(key));
    } else {
      SYNCOPATE_ASSIGN_OR_RETURN(const worker::PlannedProgram own,
                                 worker->own_programs.Get(key, call.program));
      last_own_ = own.program;
    }
    last_request_ = key.request;
    last_element_bytes_ = element_bytes;
    last_algorithm_ = call.algorithm;
    last_text_ = call.program;
    last_blocks_ = call.block_elements;
    last_active_ = call.active;
    return absl::OkStatus();
  }

  plan::ProgramKey KeyOf(const Call& call, uint64_t network_version) const {
    const uint64_t element_bytes = SizeOf(call.data.type);
    plan::ProgramKey key;
    key.request = worker::RequestOf(call, size());
    key.element_bytes = element_bytes;
    key.algorithm = call.algorithm;
    if (key.algorithm.empty()) {
      key.algorithm =
          std::string(worker->rules.For(call.collective, call.data.elements * element_bytes));
    }
    key.self = self;
    key.ranks = members;
    key.network_version = network_version;
    return key;
  }

  // What serves calls of this kind, with the sub-chunks that the tuner advises.
  absl::StatusOr<std::shared_ptr<const engine::CompiledProgram>> Refined(
      const worker::CallPlans::Kind& kind, std::shared_ptr<std::atomic<int64_t>>& took)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (tuner == nullptr || kind.serving.chunk_bytes == 0) return kind.serving.program;
    adapt::ChunkTuner::Advice advice = tuner->BeforeCall(kind.key, kind.serving.chunk_bytes);
    took = std::move(advice.took);
    if (advice.chunk_bytes == 0) return kind.serving.program;
    plan::ProgramKey key = kind.key;
    key.chunk_bytes = advice.chunk_bytes;
    absl::StatusOr<worker::PlannedProgram> planned = worker->programs.Get(key);
    if (planned.ok()) return planned->program;
    // The size may give too many steps, say. That is so on all workers, which then all run the
    // proposed program, and the size has no measurement.
    took = nullptr;
    return kind.serving.program;
  }

  Mutex mutex_;
  std::shared_ptr<engine::EngineGroup> group_ ABSL_GUARDED_BY(mutex_);  // null: closed
  uint64_t last_version_ ABSL_GUARDED_BY(mutex_);                       // of the last call
  // Set when members made different calls: from then on they may count calls differently. Null on one
  // host, where there is nothing to count for.
  const std::shared_ptr<std::atomic<bool>> odd_;
  int64_t vote_timeout_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // that of the call beside a vote
  worker::EngineVotes votes_ ABSL_GUARDED_BY(mutex_);
  worker::CallPlans plans_ ABSL_GUARDED_BY(mutex_);
  // The last call: its kind, or the program that it brought.
  worker::CallPlans::Kind* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::shared_ptr<const engine::CompiledProgram> last_own_ ABSL_GUARDED_BY(mutex_);
  plan::CollectiveRequest last_request_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_element_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Its fields as it had them, before defaults were filled in.
  std::string last_algorithm_ ABSL_GUARDED_BY(mutex_);
  std::string last_text_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> last_blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> last_active_ ABSL_GUARDED_BY(mutex_);
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

absl::Status Group::AwaitPlan(const Call& call) { return impl_->AwaitPlan(call); }

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

absl::Status Group::Run(const Call& call) { return impl_->Run(call); }

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
  SYNCOPATE_ASSIGN_OR_RETURN(std::shared_ptr<engine::EngineGroup> world, impl->MakeWorld());
  // The watch and the tuner are only of use between hosts.
  SYNCOPATE_ASSIGN_OR_RETURN(const bool upkeep,
                             IsOn(environment, "SYNCOPATE_UPKEEP", /*otherwise=*/true));
  if (network && upkeep) impl->WatchNetwork();
  SYNCOPATE_ASSIGN_OR_RETURN(const bool tune,
                             IsOn(environment, "SYNCOPATE_TUNE", /*otherwise=*/true));
  if (network && tune) impl->TuneChunks();
  auto group = internal::Share(
      new internal::GroupImpl(impl, std::move(world), /*version_in=*/0, /*world_in=*/true));
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
