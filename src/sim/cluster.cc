#include "sim/cluster.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "sim/fluid_bandwidth.h"
#include "sim/gamma_bandwidth.h"

namespace syncopate::sim {
namespace {

using strategy::BackwardEnded;
using strategy::Drain;
using strategy::Event;
using strategy::ForwardNeeds;
using strategy::GradientReady;
using strategy::IterationBegan;
using strategy::NewValue;
using strategy::TransferDone;
using strategy::TransferFailed;
using strategy::WorkerJoined;
using strategy::WorkerLeft;
using strategy::WorkerLost;
using Kind = EventQueue::Kind;

constexpr double kNever = std::numeric_limits<double>::infinity();
// Timers of the service that may pass, one after the other, while nothing else is going to happen. One that
// waits for a moment answers after one of them; a service that always names another moment would let a run
// that cannot go on never end.
constexpr int kTimersOnlyMax = 10'000;

std::unique_ptr<Bandwidth> MakeBandwidth(const VirtualOptions& options) {
  if (options.topology == nullptr) {
    return std::make_unique<GammaBandwidth>(options.costs, options.workers);
  }
  return std::make_unique<FluidBandwidth>(
      std::make_unique<GroupFlows>(options.topology, options.placement, options.table.bytes(),
                                   options.planned),
      options.buckets);
}

}  // namespace

Cluster::Cluster(const VirtualOptions& options, const StrategyFactory& make)
    : options_(options),
      make_(make),
      numbers_(options.table, options.gradients != nullptr),
      random_(options.seed),
      workers_(static_cast<size_t>(options.workers)),
      queue_(random_),
      compute_(options, random_),
      transfers_(options.table, numbers_, MakeBandwidth(options), options.workers) {
  first_parameters_ = options.first_parameters;
  for (size_t i = first_parameters_.size(); i < numbers_.size(); ++i) {
    first_parameters_.push_back(FirstParameter(options.seed, static_cast<int>(i)));
  }
  std::set<int> absent;
  for (const VirtualOptions::Join& join : options.joins) absent.insert(join.rank);
  for (int rank = 0; rank < options.workers; ++rank) {
    Worker& worker = At(rank);
    worker.rank = rank;
    worker.gone = absent;
    worker.here = !absent.contains(rank);
    worker.trains = options.Trains(rank);
    if (!worker.trains) continue;
    ++trainers_;
    if (worker.here) {
      worker.strategy =
          make({.rank = rank, .size = options.workers, .tensors = options.table.size()});
    }
    worker.samples = options.samples.empty() ? 1 : options.samples[static_cast<size_t>(rank)];
    samples_sum_ += worker.samples;
    worker.parameters = first_parameters_;
    worker.gradients.resize(numbers_.size());
    worker.may_use.assign(static_cast<size_t>(options.table.size()), 0);
  }
  if (options.keep_log) {
    result_.log.resize(workers_.size());
    result_.told.resize(workers_.size());
  }
  result_.begun.resize(workers_.size());
  result_.status.resize(workers_.size());
  result_.total_samples.resize(workers_.size());
  result_.iterations.resize(workers_.size());
  result_.ended.resize(workers_.size());
  result_.waiting.resize(workers_.size());
  if (options.keep_waits) result_.waits.resize(workers_.size());
}

// Workers begin together. What makes them drift apart is slowness, jitter and what they wait for.
absl::Status Cluster::Plan() {
  if (options_.make_service) {
    service_ = std::make_unique<VirtualService>(
        options_, now_, queue_,
        VirtualService::Listener{
            .answered =
                [this](int rank, uint64_t tag, const absl::StatusOr<std::string>& answer) {
                  Answer(rank, tag, answer);
                },
            .may_leave = [this](int rank) { TellLeft(rank); }});
    SYNCOPATE_RETURN_IF_ERROR(service_->Begin());
  }
  for (Worker& worker : workers_) {
    if (worker.strategy == nullptr) continue;
    queue_.Call(0, worker.rank, [this, &worker] { BeginIteration(worker); });
  }
  for (const VirtualOptions::Departure& departure : options_.departures) {
    queue_.Call(departure.at, departure.rank, [this, departure] { Depart(departure); });
  }
  for (const VirtualOptions::Join& join : options_.joins) {
    queue_.Call(join.at, join.rank, [this, join] { Join(join); });
  }
  return absl::OkStatus();
}

bool Cluster::WaitsForTimersOnly() {
  const bool only =
      service_ != nullptr && queue_.size() == service_->timers() && transfers_.NextEnd() == kNever;
  timers_only_ = only ? timers_only_ + 1 : 0;
  return timers_only_ > kTimersOnlyMax;
}

absl::StatusOr<VirtualResult> Cluster::Run() {
  SYNCOPATE_RETURN_IF_ERROR(Plan());
  while (fault_.ok() && ended_ < trainers_) {
    if (WaitsForTimersOnly()) return Stuck();
    // All that happens at one moment happens before the network is looked at: what begins then begins
    // together, and its rates are found once.
    if (queue_.NextTime() <= now_) {
      Happen(queue_.Take());
      continue;
    }
    const double next = std::min(transfers_.NextEnd(), queue_.NextTime());
    // No event is planned and nothing moves, so no worker will ever be told anything again.
    if (next == kNever) return Stuck();
    now_ = std::max(now_, next);
    transfers_.Advance(now_);
    FinishTransfers();
  }
  if (!fault_.ok()) return fault_;
  return Finish();
}

void Cluster::Happen(const EventQueue::Entry& entry) {
  if (entry.kind == Kind::kCall) {
    const std::function<void()> action = queue_.TakeCall(entry.value);
    if (entry.rank < 0 || !At(entry.rank).ended) action();
    return;
  }
  Worker& worker = At(entry.rank);
  switch (entry.kind) {
    case Kind::kForward:
      if (!worker.ended) Forward(worker, entry.value);
      break;
    case Kind::kGradient:
      if (!worker.ended) HaveGradient(worker, entry.value);
      break;
    case Kind::kDone: {
      DoneNews& news = news_[static_cast<size_t>(entry.value)];
      const TransferDone done = news.done;
      if (--news.left == 0) free_news_.push_back(entry.value);
      Tell(worker, done);
      break;
    }
    case Kind::kCall:
      break;
  }
}

// The strategy asked for something impossible. The first fault is the one to report; what follows it may
// only be its consequence.
void Cluster::Fault(int rank, const std::string& what) {
  if (fault_.ok()) {
    fault_ = absl::FailedPreconditionError(absl::StrCat("worker ", rank, ": ", what));
  }
}

absl::Status Cluster::Stuck() const {
  std::string text = "nothing can happen any more:";
  for (const Worker& worker : workers_) {
    if (worker.ended || !worker.trains) continue;
    absl::StrAppend(&text, " worker ", worker.rank,
                    worker.draining ? " waits for the end of what is under way"
                                    : absl::StrCat(" waits for tensor ", worker.waits_for),
                    " in iteration ", worker.iteration, ";");
  }
  return absl::AbortedError(text);
}

VirtualResult Cluster::Finish() {
  uint64_t numbers = 0;
  for (Worker& worker : workers_) {
    for (const std::vector<double>* all : {&worker.parameters, &worker.held}) {
      for (const double number : *all) {
        numbers = (numbers ^ std::bit_cast<uint64_t>(number)) * 0x9e3779b97f4a7c15u;
        numbers ^= numbers >> 29;
      }
    }
    result_.parameters.push_back(std::move(worker.parameters));
    result_.held.push_back(std::move(worker.held));
  }
  result_.digest = DigestOf(absl::StrCat(digest_, " ", numbers, " ", now_));
  result_.seconds = now_;
  result_.link_bytes = transfers_.LinkBytes();
  result_.transfers_max = transfers_.kept_max();
  return std::move(result_);
}

// ---- computing

uint64_t Cluster::SamplesOf(const Worker& worker) const {
  return worker.samples + static_cast<uint64_t>(worker.iteration) * options_.samples_growth;
}

// Values are told before the iteration begins, as the Synchronizer tells them: a value counts from a given
// iteration on, whatever each worker is doing when it is made.
void Cluster::BeginIteration(Worker& worker) {
  for (const NewValue& value : options_.values) {
    if (value.from == worker.iteration) Tell(worker, value);
  }
  result_.begun[static_cast<size_t>(worker.rank)].push_back(now_);
  worker.may_use.assign(worker.may_use.size(), 0);
  const uint64_t growth = static_cast<uint64_t>(worker.iteration) * options_.samples_growth;
  const uint64_t all = samples_sum_ + growth * trainers_;
  Tell(worker, IterationBegan{.iteration = worker.iteration,
                              .samples = SamplesOf(worker),
                              .all_samples = options_.all_samples_known ? all : 0});
  Forward(worker, 0);
}

// The forward pass uses the tensors in order, and before each it waits until the strategy lets it
// proceed; the wait may be over at once, inside Tell().
void Cluster::Forward(Worker& worker, int tensor) {
  if (worker.ended) return;
  if (tensor == options_.table.size()) {
    worker.gradients_of = worker.iteration;
    if (options_.gradients) {
      worker.next_gradients = options_.gradients(worker.rank, worker.iteration, worker.parameters);
      if (worker.next_gradients.size() != numbers_.size()) {
        return Fault(worker.rank, absl::StrCat("there are ", worker.next_gradients.size(),
                                               " gradients of ", numbers_.size()));
      }
    }
    Backward(worker, tensor - 1);
    return;
  }
  worker.waits_for = tensor;
  worker.waits_since = now_;
  Tell(worker, ForwardNeeds{tensor});
}

void Cluster::EndWait(const Worker& worker) {
  if (now_ == worker.waits_since) return;
  const size_t rank = static_cast<size_t>(worker.rank);
  result_.waiting[rank] += now_ - worker.waits_since;
  if (options_.keep_waits) result_.waits[rank].emplace_back(worker.waits_since, now_);
}

// Goes on with the forward pass: Proceed came for the tensor that it waits for.
void Cluster::UseTensor(Worker& worker) {
  const int tensor = std::exchange(worker.waits_for, -1);
  EndWait(worker);
  const double seconds = options_.table.tensors[static_cast<size_t>(tensor)].forward_seconds;
  queue_.Add(now_ + compute_.Seconds(now_, worker.rank, SamplesOf(worker), seconds), worker.rank,
             Kind::kForward, tensor + 1);
}

// Gradients come last tensor first. After the first tensor's the next iteration begins at once: what is
// still under way then is what its forward pass waits for.
void Cluster::Backward(Worker& worker, int tensor) {
  if (tensor >= 0) {
    const double seconds = options_.table.tensors[static_cast<size_t>(tensor)].backward_seconds;
    queue_.Add(now_ + compute_.Seconds(now_, worker.rank, SamplesOf(worker), seconds), worker.rank,
               Kind::kGradient, tensor);
    return;
  }
  ++result_.iterations[static_cast<size_t>(worker.rank)];
  Tell(worker, BackwardEnded{});
  if (worker.ended) return;
  if (++worker.iteration < options_.iterations && !worker.stops) {
    BeginIteration(worker);
  } else {
    worker.draining = true;
    worker.waits_since = now_;
    Tell(worker, Drain{});
  }
}

void Cluster::HaveGradient(Worker& worker, int tensor) {
  for (size_t i = numbers_.first(tensor); i < numbers_.end(tensor); ++i) {
    worker.gradients[i] = options_.gradients
                              ? worker.next_gradients[i]
                              : GradientOf(options_.seed, worker.rank, worker.iteration, tensor);
  }
  Tell(worker, GradientReady{tensor});
  if (!worker.ended) Backward(worker, tensor - 1);
}

// ---- who comes and goes

void Cluster::End(Worker& worker) {
  if (std::exchange(worker.ended, true)) return;
  ended_ += worker.trains;
  if (worker.waits_for >= 0 || worker.draining) EndWait(worker);
  result_.ended[static_cast<size_t>(worker.rank)] = now_;
  transfers_.End(worker.rank);
}

// Transfers of a dead worker that are not done never will be. A worker that leaves ends what it has
// begun first. The others are told `detection` later; what they do then is up to the strategy.
void Cluster::Depart(const VirtualOptions::Departure& departure) {
  Worker& lost = At(departure.rank);
  if (departure.in_good_order) {
    lost.stops = lost.leaves = true;
    lost.detection = departure.detection;
    return;
  }
  result_.status[static_cast<size_t>(departure.rank)] = absl::UnavailableError("died");
  transfers_.Lose(now_, departure.rank);
  End(lost);
  const absl::Status why =
      WithBlast(absl::UnavailableError(absl::StrCat("worker ", departure.rank, " died")),
                BlastRadius::kGroup, departure.rank);
  TellOthers(departure.rank, departure.detection, WorkerLost{departure.rank, why});
}

void Cluster::Join(const VirtualOptions::Join& join) {
  Worker& worker = At(join.rank);
  if (service_ != nullptr) {
    if (const absl::Status status = service_->Join(join.rank); !status.ok()) {
      return Fault(join.rank, std::string(status.message()));
    }
  }
  worker.here = true;
  worker.strategy =
      make_({.rank = join.rank, .size = options_.workers, .tensors = options_.table.size()});
  const auto model = std::find_if(workers_.begin(), workers_.end(), [&](const Worker& other) {
    return other.rank != join.rank && other.strategy != nullptr && !other.ended;
  });
  if (model != workers_.end()) worker.parameters = model->parameters;
  worker.gone.erase(join.rank);
  worker.everyone = nullptr;
  for (const Event& event : departed_) Tell(worker, event);
  TellOthers(join.rank, join.detection, WorkerJoined{join.rank}, /*joins=*/true);
  // Those who joined before it: the others were told, or will be; it knows at once.
  for (const Worker& other : workers_) {
    if (other.rank == join.rank || other.strategy == nullptr || other.ended) continue;
    if (worker.gone.erase(other.rank) == 0) continue;
    worker.everyone = nullptr;
    Tell(worker, WorkerJoined{other.rank});
  }
  BeginIteration(worker);
}

// All learn of it in the same order, each at its own moment: who hears late of one change hears no
// earlier of the next. A worker that has done its iterations may still host the service.
void Cluster::TellOthers(int rank, double detection, const Event& event, bool joins) {
  if (!joins) departed_.push_back(event);
  if (!joins && service_ != nullptr) {
    service_->Depart(rank, /*in_good_order=*/std::holds_alternative<WorkerLeft>(event));
  }
  const uint64_t change = service_ != nullptr ? service_->changes() : 0;
  for (Worker& worker : workers_) {
    if (worker.rank == rank) continue;
    if (!worker.here) {
      // Who has not come yet is told when it comes.
      if (!joins) worker.gone.insert(rank);
      continue;
    }
    if (worker.ended && (service_ == nullptr || !service_->Runs(worker.rank))) continue;
    const double delay = detection * (1 + options_.jitter * random_.Unit());
    worker.told_until = std::max(worker.told_until, now_ + delay);
    worker.news.push_back({.rank = rank, .joins = joins, .event = event, .change = change});
    queue_.Call(worker.told_until, -1, [this, &worker] { TakeNews(worker); });
  }
}

void Cluster::TakeNews(Worker& worker) {
  const News news = std::move(worker.news.front());
  worker.news.pop_front();
  if (service_ != nullptr) service_->Learn(worker.rank, news.change);
  if (worker.ended) return;
  if (news.joins) {
    worker.gone.erase(news.rank);
  } else {
    worker.gone.insert(news.rank);
  }
  worker.everyone = nullptr;
  Tell(worker, news.event);
  FailBroken(worker);
}

void Cluster::TellLeft(int rank) { TellOthers(rank, At(rank).detection, WorkerLeft{rank}); }

void Cluster::FailBroken(Worker& worker) {
  if (worker.gone.empty()) return;
  for (const VirtualTransfers::Record& broken : transfers_.TakeBroken(worker.rank, worker.gone)) {
    const absl::Status why =
        WithBlast(absl::UnavailableError(absl::StrCat("a member is gone: worker ", broken.missing)),
                  BlastRadius::kGroup, broken.missing);
    queue_.Call(now_, worker.rank, [this, &worker, broken, why] {
      Transferred(worker.rank, broken, why);
      Tell(worker, TransferFailed{broken.start.transfer, why});
    });
  }
}

// Very many workers know the same, so the list is made once for what they know.
const Members& Cluster::EveryoneOf(Worker& worker) {
  if (worker.everyone != nullptr) return worker.everyone;
  Members& known = everyone_but_[worker.gone];
  if (known == nullptr) {
    std::vector<int> ranks;
    for (int rank = 0; rank < options_.workers; ++rank) {
      const bool serves = std::find(options_.servers.begin(), options_.servers.end(), rank) !=
                          options_.servers.end();
      if (!serves && options_.Trains(rank) && !worker.gone.contains(rank)) ranks.push_back(rank);
    }
    known = std::make_shared<const MemberList>(std::move(ranks));
  }
  return worker.everyone = known;
}

// ---- transfers

// Members hear of an end at the same time, in seeded order.
void Cluster::FinishTransfers() {
  for (Moving* moving : transfers_.TakeEnded(now_)) {
    Serve(*moving);
    const TransferDone done{.transfer = moving->start.transfer,
                            .first_byte = moving->first_byte,
                            .last_byte = now_,
                            .bytes = moving->bytes};
    int number = -1;
    for (size_t i = 0; i < moving->parts.size(); ++i) {
      const int rank = moving->owner >= 0 ? moving->owner : moving->members->ranks[i];
      if (!moving->parts[i].started || At(rank).ended) continue;
      if (WitnessOf(rank) != nullptr) {
        const VirtualTransfers::Record record = VirtualTransfers::RecordOf(*moving, rank);
        queue_.Call(now_, rank, [this, rank, done, record] {
          Transferred(rank, record, absl::OkStatus());
          Tell(At(rank), done);
        });
        continue;
      }
      if (number < 0) {
        if (free_news_.empty()) {
          free_news_.push_back(static_cast<int>(news_.size()));
          news_.emplace_back();
        }
        number = free_news_.back();
        free_news_.pop_back();
        news_[static_cast<size_t>(number)] = {done, 0};
      }
      ++news_[static_cast<size_t>(number)].left;
      queue_.Add(now_, rank, Kind::kDone, number);
    }
    transfers_.Close(*moving);
  }
}

// A server applies a push at once; a pull brings what it then holds. That is not what it trains with, if it
// does: its own pulls bring it.
void Cluster::Serve(Moving& moving) {
  const strategy::Movement movement = moving.start.movement;
  if (movement != strategy::Movement::kPush && movement != strategy::Movement::kPull) return;
  Worker& server = At(moving.start.target);
  const Moving::Part& part = moving.parts[0];
  if (server.held.empty()) server.held = first_parameters_;
  moving.result.reserve(moving.numbers);
  for (const TensorCut& cut : moving.cuts) {
    for (size_t i = 0; i < cut.count; ++i) {
      double& held = server.held[cut.first + i];
      if (movement == strategy::Movement::kPush) {
        held -=
            options_.learning_rate * part.start.weight * cut.share * part.values[cut.offset + i];
      }
      moving.result.push_back(held);
    }
  }
}

}  // namespace syncopate::sim
