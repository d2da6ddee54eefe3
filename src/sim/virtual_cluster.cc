// A discrete-event simulation. Two kinds of things happen in virtual time: actions of workers,
// which stand in a queue with their time, and ends of transfers, whose time is not fixed beforehand
// because each depends on what else moves. The loop always goes to the earlier of the next action
// and the next end, so between two moments all rates are constant.
#include "sim/virtual_cluster.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"

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
using strategy::Proceed;
using strategy::SetBatch;
using strategy::StartTransfer;
using strategy::TimePassed;
using strategy::TransferDone;
using strategy::Update;
using strategy::WakeAt;
using strategy::WorkerLost;

constexpr double kNever = std::numeric_limits<double>::infinity();

// A number in [-1, 1) that depends on all of these.
double Noise(uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
  Random random(seed ^ (a + 1) * 0x9e3779b97f4a7c15u ^ (b + 1) * 0xc2b2ae3d27d4eb4fu ^
                (c + 1) * 0x165667b19e3779f9u);
  random.Next();
  return 2 * random.Unit() - 1;
}

// A transfer that at least one of its members has started.
struct Moving {
  Movement movement = Movement::kAverage;
  Content content = Content::kGradients;
  int first = 0;
  int last = 0;
  std::vector<int> members;
  int target = -1;
  struct Part {
    double weight = 1;
    std::vector<double> values;
  };
  std::map<int, Part> parts;  // by rank, of those who have started it
  // All members have started it: its start-up, then its bytes, take time from now on.
  bool flows = false;
  double start_up_left = 0;  // seconds
  double bytes_left = 0;
  // By tensor of the range, once it is done.
  std::vector<double> result;
  bool done = false;
};

class Cluster {
 public:
  Cluster(const VirtualOptions& options, const StrategyFactory& make)
      : options_(options), random_(options.seed) {
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
  }

  absl::StatusOr<VirtualResult> Run() {
    // Workers begin together. What makes them drift apart is slowness, jitter and what they wait
    // for.
    for (Worker& worker : workers_) At(0, worker.rank, [this, &worker] { BeginIteration(worker); });
    if (options_.death) {
      const auto& death = *options_.death;
      At(death.at, death.rank, [this, death] { Die(death); });
    }
    while (fault_.ok() && Ended() < workers_.size()) {
      const double flow = NextFlowEnd();
      const double next = std::min(flow, queue_.empty() ? kNever : queue_.top().time);
      // No action is planned and nothing moves, so no worker will ever be told anything again.
      if (next == kNever) return Stuck();
      Advance(next);
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
    int waits_for = -1;     // tensor that the forward pass waits for
    bool draining = false;  // waits for Drained
    bool ended = false;
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

  // Told before the iteration begins, as the Synchronizer tells it: a schedule counts from a given
  // iteration on, whatever each worker is doing when it is made.
  void BeginIteration(Worker& worker) {
    for (const strategy::NewSchedule& schedule : options_.schedules) {
      if (schedule.from == worker.iteration) Tell(worker, schedule);
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
      if (++worker.iteration < options_.iterations) {
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

  // Transfers that the dead worker has not started never begin. The survivors are told of its death
  // `detection` later; what they do then is up to the strategy.
  void Die(const VirtualOptions::Death& death) {
    workers_[static_cast<size_t>(death.rank)].ended = true;
    result_.status[static_cast<size_t>(death.rank)] = absl::UnavailableError("died");
    const absl::Status why =
        WithBlast(absl::UnavailableError(absl::StrCat("worker ", death.rank, " died")),
                  BlastRadius::kGroup, death.rank);
    for (Worker& worker : workers_) {
      if (worker.ended) continue;
      At(now_ + death.detection, worker.rank, [this, &worker, death, why] {
        Tell(worker, WorkerLost{death.rank, why});
      });
    }
  }

  // ---- events and commands

  // One step of the strategy. Commands are carried out after it has returned, in order, because
  // carrying one out may tell the same strategy the next event.
  void Tell(Worker& worker, const Event& event) {
    if (worker.ended || !fault_.ok()) return;
    const size_t rank = static_cast<size_t>(worker.rank);
    std::vector<Command> commands;
    worker.strategy->Step(now_, event, commands);
    result_.log[rank].push_back(absl::StrCat(now_, " ", ToText(event)));
    for (const Command& command : commands) {
      result_.log[rank].push_back(absl::StrCat("  ", ToText(command)));
    }
    result_.told[rank].push_back({now_, event, commands});
    for (const Command& command : commands) {
      if (worker.ended) return;
      std::visit([&](const auto& c) { Carry(worker, c); }, command);
    }
  }

  bool IsRange(int first, int last) const {
    return 0 <= first && first <= last && last < options_.table.size();
  }

  void Carry(Worker& worker, const StartTransfer& start) {
    if (!IsRange(start.first, start.last)) return Fault(worker.rank, ToText(Command(start)));
    std::vector<int> members = start.members;
    if (start.movement != Movement::kAverage) {
      members = {std::min(worker.rank, start.target), std::max(worker.rank, start.target)};
    } else if (members.empty()) {
      members.resize(workers_.size());
      std::iota(members.begin(), members.end(), 0);
    }
    // All members of an average name it by the same id. A push or a pull belongs to one worker, and
    // those of two workers may have the same id without being the same transfer.
    const std::pair<int, int64_t> key = {start.movement == Movement::kAverage ? -1 : worker.rank,
                                         start.transfer};
    auto [entry, fresh] = transfers_.try_emplace(key);
    Moving& moving = entry->second;
    if (fresh) {
      moving.movement = start.movement;
      moving.content = start.content;
      moving.first = start.first;
      moving.last = start.last;
      moving.members = members;
      moving.target = start.target;
    } else if (moving.first != start.first || moving.last != start.last ||
               moving.members != members || moving.content != start.content ||
               moving.movement != start.movement) {
      return Fault(worker.rank, absl::StrCat(ToText(Command(start)), ": another member started ",
                                             "something else with this id"));
    }
    if (!std::binary_search(members.begin(), members.end(), worker.rank) ||
        moving.parts.contains(worker.rank)) {
      return Fault(worker.rank, absl::StrCat(ToText(Command(start)), ": not a member, or twice"));
    }
    Moving::Part part{.weight = start.weight, .values = {}};
    for (int tensor = start.first; tensor <= start.last; ++tensor) {
      const size_t t = static_cast<size_t>(tensor);
      part.values.push_back(start.content == Content::kGradients ? worker.gradients[t]
                                                                 : worker.parameters[t]);
    }
    moving.parts.emplace(worker.rank, std::move(part));
    // An average begins when its last member has come; a push or a pull needs nobody else.
    const size_t needed = start.movement == Movement::kAverage ? members.size() : 1;
    if (moving.parts.size() < needed) return;
    moving.flows = true;
    moving.start_up_left = options_.costs.a;
    for (int tensor = start.first; tensor <= start.last; ++tensor) {
      moving.bytes_left +=
          static_cast<double>(options_.table.tensors[static_cast<size_t>(tensor)].bytes());
    }
  }

  void Carry(Worker& worker, const ApplyUpdate& apply) {
    if (!IsRange(apply.first, apply.last)) return Fault(worker.rank, ToText(Command(apply)));
    const Moving* moving = nullptr;
    if (apply.update != Update::kStepLocal) {
      for (const int owner : {-1, worker.rank}) {
        const auto found = transfers_.find({owner, apply.transfer});
        if (found != transfers_.end()) moving = &found->second;
      }
      if (moving == nullptr || !moving->done || apply.first < moving->first ||
          apply.last > moving->last) {
        return Fault(worker.rank,
                     absl::StrCat(ToText(Command(apply)), ": there is no such result"));
      }
    }
    for (int tensor = apply.first; tensor <= apply.last; ++tensor) {
      const size_t t = static_cast<size_t>(tensor);
      const double value = moving == nullptr
                               ? worker.gradients[t]
                               : moving->result[static_cast<size_t>(tensor - moving->first)];
      if (apply.update == Update::kAdopt) {
        worker.parameters[t] = value;
      } else {
        worker.parameters[t] -= options_.learning_rate * value;
      }
    }
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
    for (Service::Answer& answer : options_.service->Ask(now_, worker.rank, ask)) {
      Worker& to = workers_[static_cast<size_t>(answer.rank)];
      At(std::max(now_, answer.at), answer.rank,
         [this, &to, event = std::move(answer.event)] { Tell(to, event); });
    }
  }

  void Carry(Worker& worker, const SetBatch& batch) { worker.samples = batch.samples; }

  void Carry(Worker& worker, const WakeAt& wake) {
    At(std::max(now_, wake.seconds), worker.rank, [this, &worker] { Tell(worker, TimePassed{}); });
  }

  void Carry(Worker& worker, const Drained&) {
    if (!worker.draining) return Fault(worker.rank, "drained, and nobody asked");
    worker.ended = true;
  }

  void Carry(Worker& worker, const Fail& fail) {
    worker.ended = true;
    result_.status[static_cast<size_t>(worker.rank)] = fail.status;
  }

  // ---- transfers

  // The number of transfers that move bytes and have a member in common with this one, itself
  // included: these share the bandwidth by gamma.
  int Beside(const Moving& moving) const {
    int count = 0;
    for (const auto& [key, other] : transfers_) {
      if (!other.flows || other.start_up_left > 0) continue;
      count += std::any_of(other.members.begin(), other.members.end(), [&](int rank) {
        return std::binary_search(moving.members.begin(), moving.members.end(), rank);
      });
    }
    return count;
  }

  // At the rates of this moment: start-up first, in which no bandwidth is used, then the bytes at
  // the bandwidth that is left beside the others.
  double SecondsLeft(const Moving& moving) const {
    if (moving.start_up_left > 0) return moving.start_up_left;
    return moving.bytes_left * options_.costs.b * options_.costs.Gamma(std::max(1, Beside(moving)));
  }

  // The first moment at which the rates change by themselves: a start-up or a transfer ends.
  double NextFlowEnd() const {
    double left = kNever;
    for (const auto& [key, moving] : transfers_) {
      if (moving.flows) left = std::min(left, SecondsLeft(moving));
    }
    return now_ + left;
  }

  // Moves all transfers on to time `to`, which is at most NextFlowEnd(). All rates are read before
  // anything changes, because each depends on what else moves.
  void Advance(double to) {
    const double seconds = to - now_;
    std::vector<std::pair<Moving*, double>> left;
    for (auto& [key, moving] : transfers_) {
      if (moving.flows) left.emplace_back(&moving, SecondsLeft(moving));
    }
    for (auto& [moving, until_end] : left) {
      const bool ends = now_ + until_end <= to;  // as NextFlowEnd() rounds it
      if (moving->start_up_left > 0) {
        moving->start_up_left = ends ? 0 : moving->start_up_left - seconds;
      } else {
        moving->bytes_left = ends ? 0 : moving->bytes_left * (1 - seconds / until_end);
      }
    }
    now_ = to;
  }

  void FinishTransfers() {
    for (auto& [key, moving] : transfers_) {
      if (!moving.flows || moving.start_up_left > 0 || moving.bytes_left > 0) continue;
      moving.flows = false;
      moving.done = true;
      Conclude(moving);
      // Members hear of it at the same time, in seeded order.
      for (const auto& [rank, part] : moving.parts) {
        Worker& worker = workers_[static_cast<size_t>(rank)];
        At(now_, rank, [this, &worker, id = key.second] { Tell(worker, TransferDone{id}); });
      }
    }
  }

  // The numbers that a transfer brings. A server applies a push at once and answers with what it
  // then holds; an average is weighted by what each member said.
  void Conclude(Moving& moving) {
    if (moving.movement != Movement::kAverage) {
      Worker& server = workers_[static_cast<size_t>(moving.target)];
      for (int tensor = moving.first; tensor <= moving.last; ++tensor) {
        double& held = server.parameters[static_cast<size_t>(tensor)];
        const Moving::Part& part = moving.parts.begin()->second;
        if (moving.movement == Movement::kPush) {
          held -= options_.learning_rate * part.weight *
                  part.values[static_cast<size_t>(tensor - moving.first)];
        }
        moving.result.push_back(held);
      }
      return;
    }
    double weights = 0;
    moving.result.assign(static_cast<size_t>(moving.last - moving.first + 1), 0);
    for (const auto& [rank, part] : moving.parts) {
      weights += part.weight;
      for (size_t i = 0; i < part.values.size(); ++i) {
        moving.result[i] += part.weight * part.values[i];
      }
    }
    for (double& value : moving.result) value /= weights;
  }

  const VirtualOptions& options_;
  Random random_;
  double now_ = 0;
  std::vector<Worker> workers_;
  std::priority_queue<Item> queue_;
  uint64_t numbers_ = 0;
  std::map<std::pair<int, int64_t>, Moving> transfers_;
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
      (!options.samples.empty() && options.samples.size() != workers)) {
    return absl::InvalidArgumentError(
        "a virtual run needs workers, iterations, and slowness and samples for each worker or "
        "none");
  }
  return Cluster(options, make).Run();
}

}  // namespace syncopate::sim
