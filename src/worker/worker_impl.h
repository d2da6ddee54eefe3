// What a worker is made of, for the parts of the public interface (syncopate/syncopate.h).
#ifndef SYNCOPATE_WORKER_WORKER_IMPL_H_
#define SYNCOPATE_WORKER_WORKER_IMPL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapt/chunk_tuner.h"
#include "adapt/network_watch.h"
#include "base/forked_child.h"
#include "base/limits.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "plan/collective/algorithm_rules.h"
#include "syncopate/syncopate.h"
#include "worker/group_instances.h"
#include "worker/job_services.h"
#include "worker/known_network.h"
#include "worker/live_values.h"
#include "worker/mail_exchange.h"
#include "worker/mailbox.h"
#include "worker/network.h"
#include "worker/own_programs.h"
#include "worker/program_cache.h"
#include "worker/side_thread.h"
#include "worker/start_transport.h"
#include "worker/used_keys.h"

namespace syncopate::internal {

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
// destroyed before them: operations under way use them. The tuner has rounds under way in the exchange, which is
// destroyed after it.
class WorkerImpl {
 public:
  WorkerImpl(worker::StartedTransport started, const std::optional<worker::Network>& network_in,
             plan::AlgorithmRules rules_in, std::vector<int> service_order);

  // Handlers and tasks of the mailbox use all the rest.
  ~WorkerImpl() { mailbox.Stop(); }

  // An error in a forked child. It must be asked before any lock is taken: a thread of the parent
  // may have held it while the process forked, and would never give it back here.
  absl::Status CheckProcess() const;

  // Refuses a group that cannot be: with ranks that there are not, or with a lost worker, since it would
  // fail at its first call.
  absl::Status CheckMembers(const std::vector<int>& members) const;

  // OK if programs may be planned by this version of the network.
  absl::Status CheckVersion(uint64_t version);

  // The group of all workers. It is made whoever is gone already: a worker may have done its work and
  // left before another one is here, which is no error unless that one needs it in a call.
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> MakeWorld();

  // The same members may make several groups. They make them in the same order, so the instance gives
  // each the same name on all of them.
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> MakeGroup(const std::vector<int>& members);

  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> MakeGroup(const std::vector<int>& members,
                                                                 const GroupKey& key);

  // Looks for changes of the network from now on. `known`: what this worker knows of it that the others do not.
  void WatchNetwork(std::optional<worker::KnownNetwork> known);
  // Lets the watch look at what has come, and does so again and again.
  void TickWatch();
  // The rank that hosts services, as far as this worker knows.
  int Host() const;

  // Looks for the best sub-chunks of forests from now on.
  void TuneChunks();

  // This worker is about to make a call of the world group, from 1: what was agreed on for it is here
  // when this returns.
  absl::Status ReachCall(int64_t number, int64_t deadline_ns);
  // Whether ReachCall() would return at once.
  bool MayReachCall(int64_t number);

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
  worker::LiveValues versions;     // of the network, by calls of the world group
  worker::LiveValues chunk_sizes;  // of its forests
  worker::MailExchange exchange;
  std::unique_ptr<adapt::NetworkWatch> watch;  // null: the network is not watched
  worker::SideThread watch_thread;             // where it decides; it ends before the watch
  std::unique_ptr<adapt::ChunkTuner> tuner;    // null: sub-chunks are not tuned
  engine::Engine engine;
  Mutex mutex;
  worker::GroupInstances group_instances ABSL_GUARDED_BY(mutex){limits::kClosedGroupsMax};
  worker::UsedKeys used_keys ABSL_GUARDED_BY(mutex){limits::kClosedGroupsMax};

 private:
  static uint64_t KeyOf(const std::string& name);
  // `name` is the same on all members, and no other group's. If the group cannot be, members that have
  // made it before they knew need not wait for this one.
  absl::StatusOr<std::shared_ptr<engine::EngineGroup>> OpenGroup(const std::string& name,
                                                                 const std::vector<int>& members);
};

}  // namespace syncopate::internal

#endif  // SYNCOPATE_WORKER_WORKER_IMPL_H_
