// A discrete-event simulation. Two kinds of things happen in virtual time: actions of workers,
// which stand in a queue with their time, and ends of transfers, whose time is not fixed beforehand
// because each depends on what else moves. The loop always goes to the earlier of the next action
// and the next end, so between two moments all rates are constant.
#include "sim/virtual_cluster.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "sim/virtual_transfers.h"
#include "strategy/record.h"

namespace syncopate::sim {
namespace {

using strategy::ApplyUpdate;
using strategy::AskService;
using strategy::BackwardEnded;
using strategy::Command;
using strategy::Content;
using strategy::Drain;
using strategy::Drained;
using strategy::Event;
using strategy::Fail;
using strategy::ForwardNeeds;
using strategy::GradientReady;
using strategy::IterationBegan;
using strategy::Movement;
using strategy::NewValue;
using strategy::Proceed;
using strategy::SendMessage;
using strategy::SetBatch;
using strategy::SetProgress;
using strategy::StartTransfer;
using strategy::TimePassed;
using strategy::TransferDone;
using strategy::TransferFailed;
using strategy::Update;
using strategy::Updated;
using strategy::WakeAt;
using strategy::WorkerLeft;
using strategy::WorkerLost;

constexpr double kNever = std::numeric_limits<double>::infinity();

// A number in [-1, 1) that depends on all of these.
double Noise(uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
  Random random(seed ^ (a + 1) * 0x9e3779b97f4a7c15u ^ (b + 1) * 0xc2b2ae3d27d4eb4fu ^
                (c + 1) * 0x165667b19e3779f9u);
  random.Next();
  return 2 * random.Unit() - 1;
}

class Cluster {
 public:
  Cluster(const VirtualOptions& options, const StrategyFactory& make)
      : options_(options),
        random_(options.seed),
        transfers_(options.table, options.costs, options.group_costs) {
    const int tensors = options.table.size();
    for (int rank = 0; rank < options.workers; ++rank) {
      Worker worker;
      worker.rank = rank;
      worker.strategy = make({.rank = rank, .size = options.workers, .tensors = tensors});
      worker.samples = options.samples.empty() ? 1 : options.samples[static_cast<size_t>(rank)];
      for (int tensor = 0; tensor < tensors; ++tensor) {
        worker.parameters.push_back(FirstParameter(options.seed, tensor));
      }
      worker.gradients.resize(static_cast<size_t>(tensors));
      worker.may_use.assign(static_cast<size_t>(tensors), false);
      workers_.push_back(std::move(worker));
    }
    result_.log.resize(workers_.size());
    result_.told.resize(workers_.size());
    result_.begun.resize(workers_.size());
    result_.status.resize(workers_.size());
    result_.total_samples.resize(workers_.size());
  }

  absl::StatusOr<VirtualResult> Run() {
    // Workers begin together. What makes them drift apart is slowness, jitter and what they wait
    // for.
    for (Worker& worker : workers_) At(0, worker.rank, [this, &worker] { BeginIteration(worker); });
    if (options_.departure) {
      const auto& departure = *options_.departure;
      At(departure.at, departure.rank, [this, departure] { Depart(departure); });
    }
    while (fault_.ok() && Ended() < workers_.size()) {
      const double flow = transfers_.NextEnd(now_);
      const double next = std::min(flow, queue_.empty() ? kNever : queue_.top().time);
      // No action is planned and nothing moves, so no worker will ever be told anything again.
      if (next == kNever) return Stuck();
      transfers_.Advance(now_, next);
      now_ = next;
      if (!queue_.empty() && queue_.top().time <= next) {
        const Item item = queue_.top();
        queue_.pop();
        if (!workers_[static_cast<size_t>(item.rank)].ended) item.action();
      }
      FinishTransfers();
    }
    if (!fault_.ok()) return fault_;
    for (const Worker& worker : workers_) result_.parameters.push_back(worker.parameters);
    result_.seconds = now_;
    return std::move(result_);
  }

 private:
  struct Worker {
    int rank = 0;
    std::unique_ptr<strategy::Strategy> strategy;
    uint64_t samples = 1;
    int64_t iteration = 0;
    int64_t gradients_of = -1;  // the iteration that made the last gradients
    int waits_for = -1;         // tensor that the forward pass waits for
    bool draining = false;      // waits for Drained
    bool ended = false;
    bool stops = false;   // after the iteration that runs
    bool leaves = false;  // and tells the others so
    std::set<int> gone;   // of whom it was told
    std::vector<double> parameters;
    std::vector<double> gradients;
    std::vector<bool> may_use;  // by tensor, in this iteration
  };

  struct Item {
    double time;
    uint64_t order;  // seeded, among those of the same time
    uint64_t number;
    int rank;
    std::function<void()> action;
    bool operator<(const Item& other) const {
      return std::tie(time, order, number) > std::tie(other.time, other.order, other.number);
    }
  };

  // Workers that have finished, failed or died.
  size_t Ended() const {
    return static_cast<size_t>(std::count_if(workers_.begin(), workers_.end(),
                                             [](const Worker& worker) { return worker.ended; }));
  }

  // Actions of one time get a seeded order: a strategy must not count on the order of events that
  // real workers would see at nearly the same moment.
  void At(double time, int rank, std::function<void()> action) {
    queue_.push({time, random_.Next(), numbers_++, rank, std::move(action)});
  }

  // The strategy asked for something impossible. The first fault is the one to report; what follows
  // it may only be its consequence.
  void Fault(int rank, const std::string& what) {
    if (fault_.ok()) {
      fault_ = absl::FailedPreconditionError(absl::StrCat("worker ", rank, ": ", what));
    }
  }

  absl::Status Stuck() const {
    std::string text = "nothing can happen any more:";
    for (const Worker& worker : workers_) {
      if (worker.ended) continue;
      absl::StrAppend(&text, " worker ", worker.rank,
                      worker.draining ? " waits for the end of what is under way"
                                      : absl::StrCat(" waits for tensor ", worker.waits_for),
                      " in iteration ", worker.iteration, ";");
    }
    return absl::AbortedError(text);
  }

  // ---- compute

  // Jitter is drawn anew for every piece of work, slowness is the worker's for the whole run.
  double ComputeSeconds(const Worker& worker, double seconds) {
    const double slowness =
        options_.slowness.empty() ? 1 : options_.slowness[static_cast<size_t>(worker.rank)];
    return seconds * slowness * (1 + options_.jitter * random_.Unit());
  }

  // Values are told before the iteration begins, as the Synchronizer tells them: a value counts from a given
  // iteration on, whatever each worker is doing when it is made.
  void BeginIteration(Worker& worker) {
    for (const NewValue& value : options_.values) {
      if (value.from == worker.iteration) Tell(worker, value);
    }
    result_.begun[static_cast<size_t>(worker.rank)].push_back(now_);
    worker.may_use.assign(worker.may_use.size(), false);
    const uint64_t growth = static_cast<uint64_t>(worker.iteration) * options_.samples_growth;
    uint64_t all = 0;
    for (const Worker& other : workers_) all += other.samples + growth;
    Tell(worker, IterationBegan{.iteration = worker.iteration,
                                .samples = worker.samples + growth,
                                .all_samples = options_.all_samples_known ? all : 0});
    Forward(worker, 0);
  }

  // The forward pass uses the tensors in order, and before each it waits until the strategy lets it
  // proceed; the wait may be over at once, inside Tell().
  void Forward(Worker& worker, int tensor) {
    if (worker.ended) return;
    if (tensor == options_.table.size()) {
      worker.gradients_of = worker.iteration;
      Backward(worker, tensor - 1);
      return;
    }
    worker.waits_for = tensor;
    Tell(worker, ForwardNeeds{tensor});
  }

  // Goes on with the forward pass: Proceed came for the tensor that it waits for.
  void UseTensor(Worker& worker) {
    const int tensor = std::exchange(worker.waits_for, -1);
    const auto& info = options_.table.tensors[static_cast<size_t>(tensor)];
    At(now_ + ComputeSeconds(worker, info.forward_seconds), worker.rank,
       [this, &worker, tensor] { Forward(worker, tensor + 1); });
  }

  // Gradients come last tensor first. After the first tensor's the next iteration begins at once:
  // what is still under way then is what its forward pass waits for.
  void Backward(Worker& worker, int tensor) {
    if (tensor < 0) {
      Tell(worker, BackwardEnded{});
      if (worker.ended) return;
      if (++worker.iteration < options_.iterations && !worker.stops) {
        BeginIteration(worker);
      } else {
        worker.draining = true;
        Tell(worker, Drain{});
      }
      return;
    }
    const auto& info = options_.table.tensors[static_cast<size_t>(tensor)];
    At(now_ + ComputeSeconds(worker, info.backward_seconds), worker.rank, [this, &worker, tensor] {
      worker.gradients[static_cast<size_t>(tensor)] =
          GradientOf(options_.seed, worker.rank, worker.iteration, tensor);
      Tell(worker, GradientReady{tensor});
      if (!worker.ended) Backward(worker, tensor - 1);
    });
  }

  // Transfers of a dead worker that are not done never will be. A worker that leaves ends what it has
  // begun first. The others are told `detection` later; what they do then is up to the strategy.
  void Depart(const VirtualOptions::Departure& departure) {
    Worker& lost = workers_[static_cast<size_t>(departure.rank)];
    if (departure.in_good_order) {
      lost.stops = lost.leaves = true;
      return;
    }
    lost.ended = true;
    result_.status[static_cast<size_t>(departure.rank)] = absl::UnavailableError("died");
    transfers_.Lose(departure.rank);
    const absl::Status why =
        WithBlast(absl::UnavailableError(absl::StrCat("worker ", departure.rank, " died")),
                  BlastRadius::kGroup, departure.rank);
    TellOthers(departure.rank, WorkerLost{departure.rank, why});
  }

  // Survivors learn of it in the same order, each at its own moment.
  void TellOthers(int rank, const Event& event) {
    for (Worker& worker : workers_) {
      if (worker.ended || worker.rank == rank) continue;
      const double delay = options_.departure->detection * (1 + options_.jitter * random_.Unit());
      At(now_ + delay, worker.rank, [this, &worker, rank, event] {
        worker.gone.insert(rank);
        Tell(worker, event);
        FailBroken(worker);
      });
    }
  }

  void FailBroken(Worker& worker) {
    for (const int64_t id : transfers_.TakeBroken(worker.rank, worker.gone)) {
      const int gone = *worker.gone.begin();
      const absl::Status why =
          WithBlast(absl::UnavailableError(absl::StrCat("a member is gone: worker ", gone)),
                    BlastRadius::kGroup, gone);
      At(now_, worker.rank, [this, &worker, id, why] {
        if (const auto ended = transfers_.RecordOf(worker.rank, id); ended && !worker.ended) {
          Transferred(worker, *ended, why);
        }
        Tell(worker, TransferFailed{id, why});
      });
    }
  }

  // ---- events and commands

  // One step of the strategy. Commands are carried out after it has returned, in order, because
  // carrying one out may tell the same strategy the next event.
  void Tell(Worker& worker, const Event& event) {
    if (worker.ended || !fault_.ok()) return;
    const size_t rank = static_cast<size_t>(worker.rank);
    strategy::Decision decision{.now = now_, .event = event, .commands = {}};
    worker.strategy->Step(now_, event, decision.commands);
    if (strategy::Witness* const witness = WitnessOf(worker)) witness->Decided(decision);
    if (options_.keep_log) {
      result_.log[rank].push_back(absl::StrCat(now_, " ", ToText(event)));
      for (const Command& command : decision.commands) {
        result_.log[rank].push_back(absl::StrCat("  ", ToText(command)));
      }
      result_.told[rank].push_back(decision);
    }
    for (const Command& command : decision.commands) {
      if (worker.ended) return;
      std::visit([&](const auto& c) { Carry(worker, c); }, command);
    }
  }

  strategy::Witness* WitnessOf(const Worker& worker) const {
    return options_.witnesses.empty() ? nullptr
                                      : options_.witnesses[static_cast<size_t>(worker.rank)];
  }

  void Transferred(const Worker& worker, const VirtualTransfers::Record& record,
                   const absl::Status& status) const {
    strategy::Witness* const witness = WitnessOf(worker);
    if (witness == nullptr) return;
    witness->Transferred({.start = record.start,
                          .iteration = record.iteration,
                          .bytes = record.bytes,
                          .begin = record.begin,
                          .end = now_,
                          .status = status});
  }

  bool IsRange(int first, int last) const {
    return 0 <= first && first <= last && last < options_.table.size();
  }

  void Carry(Worker& worker, const StartTransfer& start) {
    if (!IsRange(start.first, start.last) || !AreRanks(worker, start)) {
      return Fault(worker.rank, ToText(Command(start)));
    }
    std::vector<int> members = start.members;
    if (members.empty()) {  // all that live, as far as this worker knows
      for (const Worker& other : workers_) {
        if (!worker.gone.contains(other.rank)) members.push_back(other.rank);
      }
    }
    const absl::Status status =
        transfers_.Start(now_, worker.rank, worker.gradients_of, start, members, [&](int tensor) {
          return start.content == Content::kGradients
                     ? worker.gradients[static_cast<size_t>(tensor)]
                     : worker.parameters[static_cast<size_t>(tensor)];
        });
    if (!status.ok()) return Fault(worker.rank, std::string(status.message()));
    FailBroken(worker);
  }

  bool IsRank(int rank) const { return 0 <= rank && rank < options_.workers; }
  bool AreRanks(const Worker& worker, const StartTransfer& start) const {
    const auto is_rank = [&](int rank) { return IsRank(rank); };
    switch (start.movement) {
      case Movement::kAverage:
        return std::all_of(start.members.begin(), start.members.end(), is_rank) &&
               std::is_sorted(start.members.begin(), start.members.end());
      case Movement::kPush:
      case Movement::kPull:
        return IsRank(start.target);
      case Movement::kExchange:
        return std::all_of(start.to.begin(), start.to.end(), is_rank) &&
               std::all_of(start.from.begin(), start.from.end(), [&](const strategy::Source& from) {
                 return IsRank(from.rank) && from.rank != worker.rank;
               });
    }
    return false;
  }

  void Carry(Worker& worker, const ApplyUpdate& apply) {
    if (!IsRange(apply.first, apply.last)) return Fault(worker.rank, ToText(Command(apply)));
    double squared = 0;
    const double rate = options_.learning_rate * apply.rate_factor;
    const auto move = [&](int tensor, double to) {
      double& parameter = worker.parameters[static_cast<size_t>(tensor)];
      squared += (to - parameter) * (to - parameter);
      parameter = to;
    };
    if (apply.update == Update::kStepLocal) {
      for (int tensor = apply.first; tensor <= apply.last; ++tensor) {
        const size_t t = static_cast<size_t>(tensor);
        move(tensor, worker.parameters[t] - rate * worker.gradients[t]);
      }
    } else {
      const auto taken = transfers_.Take(worker.rank, apply);
      if (!taken.ok()) return Fault(worker.rank, std::string(taken.status().message()));
      for (const VirtualTransfers::Taken& one : *taken) {
        const double now = worker.parameters[static_cast<size_t>(one.tensor)];
        move(one.tensor, apply.update == Update::kAdopt       ? one.value
                         : apply.update == Update::kAddChange ? now + (one.value - one.sent)
                                                              : now - rate * one.value);
      }
    }
    if (strategy::Witness* const witness = WitnessOf(worker)) {
      witness->Applied({.apply = apply,
                        .iteration = worker.gradients_of,
                        .begin = now_,
                        .end = now_,
                        .squared_distance = squared});
    }
    if (!apply.measure) return;
    At(now_, worker.rank, [this, &worker, id = apply.transfer, squared] {
      Tell(worker, Updated{id, squared});
    });
  }

  // The strategy may say so before the forward pass has come to the tensor: it is then remembered
  // for this iteration.
  void Carry(Worker& worker, const Proceed& proceed) {
    if (!IsRange(proceed.tensor, proceed.tensor)) {
      return Fault(worker.rank, ToText(Command(proceed)));
    }
    worker.may_use[static_cast<size_t>(proceed.tensor)] = true;
    if (worker.waits_for == proceed.tensor) UseTensor(worker);
  }

  void Carry(Worker& worker, const AskService& ask) {
    if (options_.service == nullptr) return Fault(worker.rank, "there is no service to ask");
    if (!Validate(ask.message, options_.workers).ok()) {
      return Fault(worker.rank, ToText(Command(ask)));
    }
    for (Service::Answer& answer : options_.service->Ask(now_, worker.rank, ask)) {
      Worker& to = workers_[static_cast<size_t>(answer.rank)];
      At(std::max(now_, answer.at), answer.rank,
         [this, &to, event = std::move(answer.event)] { Tell(to, event); });
    }
  }

  // Messages between two workers arrive in their order, those of different workers in any.
  void Carry(Worker& worker, const SendMessage& send) {
    if (!IsRank(send.to) || send.to == worker.rank ||
        !Validate(send.message, options_.workers).ok()) {
      return Fault(worker.rank, ToText(Command(send)));
    }
    auto& mail = mail_[{worker.rank, send.to}];
    mail.push(send.message);
    Worker& to = workers_[static_cast<size_t>(send.to)];
    At(now_ + options_.costs.a, send.to, [this, &mail, &to, from = worker.rank] {
      const StrategyMessage message = std::move(mail.front());
      mail.pop();
      if (!to.gone.contains(from)) Tell(to, strategy::MessageArrived{from, message});
    });
  }

  void Carry(Worker& worker, const SetBatch& batch) { worker.samples = batch.samples; }

  void Carry(Worker& worker, const SetProgress& progress) {
    result_.total_samples[static_cast<size_t>(worker.rank)] = progress.total_samples;
    worker.stops |= progress.stop;
  }

  void Carry(Worker& worker, const WakeAt& wake) {
    At(std::max(now_, wake.seconds), worker.rank, [this, &worker] { Tell(worker, TimePassed{}); });
  }

  void Carry(Worker& worker, const Drained&) {
    if (!worker.draining) return Fault(worker.rank, "drained, and nobody asked");
    worker.ended = true;
    if (!worker.leaves) return;
    transfers_.Leave(worker.rank);
    TellOthers(worker.rank, WorkerLeft{worker.rank});
  }

  void Carry(Worker& worker, const Fail& fail) {
    worker.ended = true;
    result_.status[static_cast<size_t>(worker.rank)] = fail.status;
  }

  // ---- transfers

  // Members hear of an end at the same time, in seeded order.
  void FinishTransfers() {
    for (Moving* moving : transfers_.TakeEnded()) {
      Serve(*moving);
      const TransferDone done{.transfer = moving->start.transfer,
                              .first_byte = moving->first_byte,
                              .last_byte = now_,
                              .bytes = moving->bytes};
      for (const auto& [rank, part] : moving->parts) {
        Worker& worker = workers_[static_cast<size_t>(rank)];
        const VirtualTransfers::Record record = VirtualTransfers::RecordOf(*moving, rank);
        At(now_, rank, [this, &worker, done, record] {
          Transferred(worker, record, absl::OkStatus());
          Tell(worker, done);
        });
      }
    }
  }

  // A server applies a push at once, and answers with what it then holds.
  void Serve(Moving& moving) {
    const Movement movement = moving.start.movement;
    if (movement != Movement::kPush && movement != Movement::kPull) return;
    Worker& server = workers_[static_cast<size_t>(moving.start.target)];
    const Moving::Part& part = moving.parts.begin()->second;
    for (size_t i = 0; i < moving.tensors.size(); ++i) {
      double& held = server.parameters[static_cast<size_t>(moving.tensors[i])];
      if (movement == Movement::kPush) {
        held -= options_.learning_rate * part.weight * moving.fractions[i] * part.values[i];
      }
      moving.result.push_back(held);
    }
  }

  const VirtualOptions& options_;
  Random random_;
  double now_ = 0;
  std::vector<Worker> workers_;
  std::priority_queue<Item> queue_;
  uint64_t numbers_ = 0;
  VirtualTransfers transfers_;
  std::map<std::pair<int, int>, std::queue<StrategyMessage>> mail_;  // by sender and receiver
  absl::Status fault_;
  VirtualResult result_;
};

}  // namespace

double GradientOf(uint64_t seed, int rank, int64_t iteration, int tensor) {
  return Noise(seed, static_cast<uint64_t>(rank), static_cast<uint64_t>(iteration),
               static_cast<uint64_t>(tensor));
}

double FirstParameter(uint64_t seed, int tensor) {
  return Noise(~seed, 0, 0, static_cast<uint64_t>(tensor));
}

absl::StatusOr<VirtualResult> RunVirtually(const VirtualOptions& options,
                                           const StrategyFactory& make) {
  SYNCOPATE_RETURN_IF_ERROR(Validate(options.table));
  SYNCOPATE_RETURN_IF_ERROR(Validate(options.costs));
  const size_t workers = static_cast<size_t>(options.workers);
  if (options.workers < 1 || options.iterations < 1 ||
      (!options.slowness.empty() && options.slowness.size() != workers) ||
      (!options.samples.empty() && options.samples.size() != workers) ||
      (!options.witnesses.empty() && options.witnesses.size() != workers)) {
    return absl::InvalidArgumentError(
        "a virtual run needs workers, iterations, and slowness, samples and witnesses for each "
        "worker or none");
  }
  return Cluster(options, make).Run();
}

}  // namespace syncopate::sim
