// The discrete-event simulation behind RunVirtually(). Two kinds of things happen in virtual time: events
// of workers, which stand in a queue with their time, and ends of transfers, whose time is not fixed
// beforehand because each depends on what else moves. The loop always goes to the earlier of the two, so
// between two moments all rates are constant.
//
// No event costs time by the number of workers, unless it concerns all of them.
#ifndef SYNCOPATE_SIM_CLUSTER_H_
#define SYNCOPATE_SIM_CLUSTER_H_

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/random.h"
#include "sim/compute_times.h"
#include "sim/event_queue.h"
#include "sim/tensor_numbers.h"
#include "sim/virtual_cluster.h"
#include "sim/virtual_options.h"
#include "sim/virtual_service.h"
#include "sim/virtual_transfers.h"
#include "strategy/command.h"
#include "strategy/event.h"

namespace syncopate::sim {

class Cluster {
 public:
  // Both must outlive this; the options fit each other.
  Cluster(const VirtualOptions& options, const StrategyFactory& make);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  absl::StatusOr<VirtualResult> Run();

 private:
  // Somebody has gone or come, for a worker that has not been told yet.
  struct News {
    int rank = -1;
    bool joins = false;
    strategy::Event event;
    uint64_t change = 0;  // VirtualService::changes() then
  };
  struct Worker {
    int rank = 0;
    std::unique_ptr<strategy::Strategy> strategy;  // null: it has not come yet, or serves
    bool trains = true;                            // else it serves, until it dies
    bool here = false;                             // it has come
    uint64_t samples = 1;
    int64_t iteration = 0;
    int64_t gradients_of = -1;  // the iteration that made the last gradients
    int waits_for = -1;         // tensor that the forward pass waits for
    double waits_since = 0;
    bool draining = false;  // waits for Drained
    bool ended = false;
    bool stops = false;                  // after the iteration that runs
    bool leaves = false;                 // and tells the others so
    double detection = 0;                // until they know
    std::optional<int64_t> last_ticket;  // that it has asked the service with
    std::set<int> gone;                  // of whom it was told, and who has not come
    std::list<News> news;                // in the order in which it will be told
    double told_until = 0;               // when it will have been told all of it
    Members everyone;                    // all but these; null: to be looked up
    std::vector<double> parameters;
    std::vector<double> held;  // for others; empty: nobody has pushed or pulled here
    std::vector<double> gradients;
    std::vector<double> next_gradients;  // real ones of the pass that runs
    std::vector<char> may_use;           // by tensor, in this iteration
  };
  // The end of a transfer, for members that have not been told yet.
  struct DoneNews {
    strategy::TransferDone done;
    int left = 0;
  };

  absl::Status Plan();
  bool WaitsForTimersOnly();
  void Happen(const EventQueue::Entry& entry);
  void Fault(int rank, const std::string& what);
  absl::Status Stuck() const;
  VirtualResult Finish();

  // ---- computing
  void BeginIteration(Worker& worker);
  void Forward(Worker& worker, int tensor);
  void UseTensor(Worker& worker);
  void Backward(Worker& worker, int tensor);
  void HaveGradient(Worker& worker, int tensor);
  uint64_t SamplesOf(const Worker& worker) const;
  void EndWait(const Worker& worker);

  // ---- who comes and goes
  void Depart(const VirtualOptions::Departure& departure);
  void Join(const VirtualOptions::Join& join);
  void End(Worker& worker);
  void TellOthers(int rank, double detection, const strategy::Event& event, bool joins = false);
  void TakeNews(Worker& worker);
  void TellLeft(int rank);
  void FailBroken(Worker& worker);
  const Members& EveryoneOf(Worker& worker);

  // ---- events and commands
  void Tell(Worker& worker, const strategy::Event& event);
  void Note(const Worker& worker, const strategy::Event& event,
            const std::vector<strategy::Command>& commands);
  strategy::Witness* WitnessOf(int rank) const;
  void Transferred(int rank, const VirtualTransfers::Record& record,
                   const absl::Status& status) const;
  bool IsRange(int first, int last) const;
  bool IsRank(int rank) const { return 0 <= rank && rank < options_.workers; }
  bool AreRanks(const Worker& worker, const strategy::StartTransfer& start) const;
  void Carry(Worker& worker, const strategy::StartTransfer& start);
  void Carry(Worker& worker, const strategy::ApplyUpdate& apply);
  void Carry(Worker& worker, const strategy::Proceed& proceed);
  void Carry(Worker& worker, const strategy::AskService& ask);
  void Carry(Worker& worker, const strategy::SendMessage& send);
  void Carry(Worker& worker, const strategy::SetBatch& batch);
  void Carry(Worker& worker, const strategy::SetProgress& progress);
  void Carry(Worker& worker, const strategy::WakeAt& wake);
  void Carry(Worker& worker, const strategy::Drained& drained);
  void Carry(Worker& worker, const strategy::Fail& fail);
  void Answer(int rank, uint64_t ticket, const absl::StatusOr<std::string>& answer);

  // ---- transfers
  void FinishTransfers();
  void Serve(Moving& moving);

  Worker& At(int rank) { return workers_[static_cast<size_t>(rank)]; }

  const VirtualOptions& options_;
  const StrategyFactory& make_;
  const TensorNumbers numbers_;
  Random random_;
  double now_ = 0;
  std::vector<Worker> workers_;
  size_t trainers_ = 0;       // workers that train
  size_t ended_ = 0;          // of them: that have finished, failed or died
  uint64_t samples_sum_ = 0;  // of all workers' batches
  std::vector<double> first_parameters_;
  EventQueue queue_;
  ComputeTimes compute_;
  VirtualTransfers transfers_;
  VirtualTransfers::Taken taken_;
  std::unique_ptr<VirtualService> service_;  // null: none
  int timers_only_ = 0;                      // steps in a row in which only it could do something
  std::vector<DoneNews> news_;
  std::vector<int> free_news_;
  std::vector<strategy::Command> spare_;  // memory for commands
  std::map<std::set<int>, Members> everyone_but_;
  std::vector<strategy::Event> departed_;  // in the order in which it happened
  absl::flat_hash_map<std::pair<int, int>, std::shared_ptr<std::queue<StrategyMessage>>>
      mail_;  // by sender and receiver
  uint64_t digest_ = 0;
  absl::Status fault_;
  VirtualResult result_;
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_CLUSTER_H_
