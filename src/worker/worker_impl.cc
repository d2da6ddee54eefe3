#include "worker/worker_impl.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/status.h"

namespace syncopate::internal {

WorkerImpl::WorkerImpl(worker::StartedTransport started,
                       const std::optional<worker::Network>& network_in,
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
      versions(services, {.name = "topology",
                          .scale = worker::LiveAgreement::Scale::kCall,
                          .further = adapt::NetworkWatch::kCallsFurther,
                          .check = adapt::NetworkWatch::DigestOfVersion,
                          .long_check = true}),
      chunk_sizes(services, {.name = "chunk sizes",
                             .scale = worker::LiveAgreement::Scale::kCall,
                             .further = adapt::ChunkTuner::kCallsFurther,
                             .check = adapt::ChunkTuner::DigestOfSizes}),
      exchange(mailbox, job.rank, job.size, timeout_ns, MonotonicClock()),
      engine(*transport, MonotonicClock()) {}

absl::Status WorkerImpl::CheckProcess() const {
  if (!made_here.InChild()) return absl::OkStatus();
  return WithBlast(
      absl::FailedPreconditionError(absl::StrCat(
          "this process was forked from rank ", job.rank,
          " and is no worker of the job: make the call in the parent, or have the child start "
          "another program (exec)")),
      BlastRadius::kOperation);
}

absl::Status WorkerImpl::CheckMembers(const std::vector<int>& members) const {
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

absl::Status WorkerImpl::CheckVersion(uint64_t version) {
  absl::Status known = programs.CheckVersion(version);
  if (known.ok() || watch == nullptr) return known;
  // It may have been agreed on without this worker having looked.
  watch->Newest();
  return programs.CheckVersion(version);
}

absl::StatusOr<std::shared_ptr<engine::EngineGroup>> WorkerImpl::MakeWorld() {
  std::vector<int> everyone(static_cast<size_t>(job.size));
  std::iota(everyone.begin(), everyone.end(), 0);
  return engine.MakeGroup(KeyOf("world"), everyone);
}

absl::StatusOr<std::shared_ptr<engine::EngineGroup>> WorkerImpl::MakeGroup(
    const std::vector<int>& members) {
  MutexLock lock(&mutex);
  const std::string name =
      absl::StrCat("group ", absl::StrJoin(members, ","), " ", group_instances.Of(members));
  if (absl::Status room = group_instances.CheckRoom(members); !room.ok()) {
    transport->Renounce(KeyOf(name));  // others that make it need not wait for this worker
    return room;
  }
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> group = OpenGroup(name, members);
  if (group.ok()) group_instances.Add(members);
  return group;
}

absl::StatusOr<std::shared_ptr<engine::EngineGroup>> WorkerImpl::MakeGroup(
    const std::vector<int>& members, const GroupKey& key) {
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

namespace {

constexpr absl::string_view kWatchTopic = "syncopate/network";

}  // namespace

int WorkerImpl::Host() const {
  std::vector<transport::Loss> lost;
  if (transport->losses() > 0) lost = transport->Lost();
  for (const int rank : services.host_order()) {
    const bool gone = std::any_of(lost.begin(), lost.end(),
                                  [&](const transport::Loss& loss) { return loss.rank == rank; });
    if (!gone) return rank;
  }
  return -1;
}

void WorkerImpl::WatchNetwork(std::optional<worker::KnownNetwork> known) {
  watch = std::make_unique<adapt::NetworkWatch>(
      job.rank, network->topology, network->placement, network->measured,
      adapt::NetworkWatch::Seams{
          .take_traffic = [this] { return transport->TakeTraffic(); },
          .send =
              [this](int to, const std::string& message) {
                // Where that is not possible now, the next one tells as much.
                mailbox.Send(to, kWatchTopic, message).IgnoreError();
              },
          .host = [this] { return Host(); },
          .beside = [this](std::function<void()> work) { watch_thread.Do(std::move(work)); },
          .new_plans = [this](uint64_t version,
                              const Topology& topology) { programs.Publish(version, topology); }},
      versions, MonotonicClock());
  if (known) watch->Know(std::move(known->topology), known->reason);
  mailbox
      .Receive(kWatchTopic,
               [this](const Mail& mail) {
                 if (mail.kind == Mail::Kind::kMessage) watch->Received(mail.from, mail.bytes);
               })
      .IgnoreError();  // it fails only in a worker that has ended
  mailbox.DoAt(MonotonicClock().NowNs() + adapt::NetworkWatch::kTickNs, [this] { TickWatch(); });
}

void WorkerImpl::TickWatch() {
  watch->Tick();
  mailbox.DoAt(MonotonicClock().NowNs() + adapt::NetworkWatch::kTickNs, [this] { TickWatch(); });
}

void WorkerImpl::TuneChunks() {
  tuner = std::make_unique<adapt::ChunkTuner>(exchange.lane(worker::RoundLane::kChunkTuner),
                                              chunk_sizes);
}

absl::Status WorkerImpl::ReachCall(int64_t number, int64_t deadline_ns) {
  SYNCOPATE_RETURN_IF_ERROR(versions.Reach(number, deadline_ns));
  return chunk_sizes.Reach(number, deadline_ns);
}

bool WorkerImpl::MayReachCall(int64_t number) {
  return versions.MayReach(number) && chunk_sizes.MayReach(number);
}

uint64_t WorkerImpl::KeyOf(const std::string& name) {
  return DigestOf(name).low | 1;  // 0 means no group
}

absl::StatusOr<std::shared_ptr<engine::EngineGroup>> WorkerImpl::OpenGroup(
    const std::string& name, const std::vector<int>& members) {
  const uint64_t key = KeyOf(name);
  if (absl::Status status = CheckMembers(members); !status.ok()) {
    if (absl::IsFailedPrecondition(status)) transport->Renounce(key);
    return status;
  }
  return engine.MakeGroup(key, members);
}

}  // namespace syncopate::internal
