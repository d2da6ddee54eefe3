// The public interface (syncopate/syncopate.h) over the planners, the engine and the transports: how a
// worker starts and leaves, and what each call of the interface reaches (worker_impl.h, group_impl.h).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/status.h"
#include "base/switch.h"
#include "syncopate/syncopate.h"
#include "worker/algorithm_terms.h"
#include "worker/call_times.h"
#include "worker/departures.h"
#include "worker/group_impl.h"
#include "worker/memory_pieces.h"
#include "worker/service_ranks.h"
#include "worker/start_transport.h"
#include "worker/worker_impl.h"

namespace syncopate {
namespace internal {

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

class HandleAccess {
 public:
  static const OperationState& Of(const Handle& handle) { return *handle.state_; }
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

namespace {

// What rank 0 knows of a network whose rates are only assumed; nothing on the others.
absl::StatusOr<std::optional<worker::KnownNetwork>> FindKnownNetwork(
    const worker::ProbeChoice& probe, const Environment& environment,
    const std::optional<worker::Network>& network, const worker::StartedTransport& started) {
  using Mode = worker::ProbeChoice::Mode;
  if (!network || network->measured) return std::optional<worker::KnownNetwork>();
  if (probe.mode == Mode::kStart) {
    return worker::ProbeAtStart(*started.transport, MonotonicClock(), environment, started.hosts);
  }
  if (probe.mode == Mode::kKept && started.job.rank == 0) {
    return worker::LoadKnownNetwork(environment, started.hosts);
  }
  return std::optional<worker::KnownNetwork>();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(const Options& options) {
  const Environment environment = ProcessEnvironment();
  SYNCOPATE_ASSIGN_OR_RETURN(plan::AlgorithmRules rules,
                             worker::ResolveAlgorithmRules(options, environment));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> service_ranks,
                             worker::ServiceRanksFromEnvironment(environment));
  const std::vector<int>& servers = options.server_ranks;
  SYNCOPATE_ASSIGN_OR_RETURN(const bool upkeep,
                             IsOn(environment, "SYNCOPATE_UPKEEP", /*otherwise=*/true));
  worker::ProbeChoice probe = worker::ResolveProbe(environment);
  if (!upkeep && probe.mode != worker::ProbeChoice::Mode::kFile) {
    probe.mode = worker::ProbeChoice::Mode::kOff;
  }
  const std::string terms = worker::AlgorithmTerms(
      rules, absl::StrCat(worker::ServiceTerms(service_ranks, servers), worker::ProbeTerms(probe)));
  SYNCOPATE_ASSIGN_OR_RETURN(worker::StartedTransport started,
                             worker::StartTransport(options, environment, terms));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<int> service_order,
                             worker::ServiceOrder(service_ranks, servers, started.job.size));
  std::optional<syncopate::worker::Network> network;
  if (!started.hosts.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(network, worker::LoadNetwork(environment, started.hosts));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::optional<worker::KnownNetwork> known,
                             FindKnownNetwork(probe, environment, network, started));
  auto impl = internal::Share(new internal::WorkerImpl(std::move(started), network,
                                                       std::move(rules), std::move(service_order)));
  SYNCOPATE_ASSIGN_OR_RETURN(std::shared_ptr<engine::EngineGroup> world, impl->MakeWorld());
  // The watch and the tuner are only of use between hosts.
  if (network && upkeep) impl->WatchNetwork(std::move(known));
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

absl::StatusOr<Group> Worker::NewGroup(std::vector<int> members, uint64_t version) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  const std::string name = absl::StrCat("group {", absl::StrJoin(members, ","), "}");
  // Before the group is counted: it may be made again when the version is known.
  if (const absl::Status known = impl_->CheckVersion(version); !known.ok()) return At(name, known);
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> group = impl_->MakeGroup(members);
  if (!group.ok()) return At(name, group.status());
  return Group(internal::Share(new internal::GroupImpl(impl_, *std::move(group), version)));
}

absl::StatusOr<Group> Worker::NewGroup(std::vector<int> members, const GroupKey& key,
                                       uint64_t version) {
  SYNCOPATE_RETURN_IF_ERROR(impl_->CheckProcess());
  const std::string name = absl::StrCat("group {", absl::StrJoin(members, ","), "} by key (",
                                        key.maker, ", ", key.number, ")");
  if (key == GroupKey{}) return At(name, absl::InvalidArgumentError("(0, 0) is no key"));
  if (const absl::Status known = impl_->CheckVersion(version); !known.ok()) return At(name, known);
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

std::vector<int> Worker::Live() const {
  std::vector<int> ranks;
  if (impl_->made_here.InChild()) return ranks;
  const std::vector<int> lost = Lost();
  for (int rank = 0; rank < size(); ++rank) {
    if (!std::binary_search(lost.begin(), lost.end(), rank)) ranks.push_back(rank);
  }
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

absl::Status AddServiceFor(Worker& worker, int owner, std::unique_ptr<Service> service) {
  internal::WorkerImpl& impl = internal::WorkerAccess::Of(worker);
  SYNCOPATE_RETURN_IF_ERROR(impl.CheckProcess());
  return impl.services.Add(std::move(service), nullptr, owner);
}

Mailbox& MailboxOf(Worker& worker) { return internal::WorkerAccess::Of(worker).mailbox; }

bool TakePiece(Worker& worker, size_t bytes) {
  internal::WorkerImpl& impl = internal::WorkerAccess::Of(worker);
  return impl.made_here.InChild() || impl.transport->Populate(bytes);
}

CallTimes TimesOf(const Handle& handle) {
  const internal::OperationState& state = internal::HandleAccess::Of(handle);
  if (state.operation == nullptr) return {};
  const engine::OperationTimes& times = state.operation->times();
  return {.first_ns = times.first_ns, .last_ns = times.last_ns};
}

std::vector<Departure> DeparturesOf(const Worker& worker) {
  internal::WorkerImpl& impl = internal::WorkerAccess::Of(worker);
  std::vector<Departure> departures;
  if (impl.made_here.InChild()) return departures;
  for (transport::Loss& loss : impl.transport->Lost()) {
    departures.push_back({.rank = loss.rank, .left = loss.left, .cause = std::move(loss.cause)});
  }
  return departures;
}

std::optional<uint64_t> WatchedNetworkVersion(const Worker& worker) {
  const internal::WorkerImpl& impl = internal::WorkerAccess::Of(worker);
  if (impl.watch == nullptr || impl.made_here.InChild()) return std::nullopt;
  return impl.watch->NewestNumber();
}

std::optional<uint64_t> FirstNetworkVersion(const Worker& worker) {
  const internal::WorkerImpl& impl = internal::WorkerAccess::Of(worker);
  if (!impl.network) return std::nullopt;
  return impl.network->topology.version;
}

adapt::JobExchange& ExchangeOf(Worker& worker) {
  return internal::WorkerAccess::Of(worker).exchange.lane(RoundLane::kJob);
}

}  // namespace worker
}  // namespace syncopate
