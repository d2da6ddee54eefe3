// What a virtual worker does with the commands of its strategy.
#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "sim/cluster.h"
#include "strategy/record.h"

namespace syncopate::sim {

using strategy::ApplyUpdate;
using strategy::AskService;
using strategy::Command;
using strategy::Event;
using strategy::Movement;
using strategy::StartTransfer;
using strategy::Update;

// One step of the strategy. Commands are carried out after it has returned, in order, because carrying
// one out may tell the same strategy the next event.
void Cluster::Tell(Worker& worker, const Event& event) {
  if (worker.ended || worker.strategy == nullptr || !fault_.ok()) return;
  std::vector<Command> commands = std::exchange(spare_, {});
  commands.clear();
  worker.strategy->Step(now_, event, commands);
  Note(worker, event, commands);
  for (const Command& command : commands) {
    if (worker.ended) break;
    std::visit([&](const auto& c) { Carry(worker, c); }, command);
  }
  spare_ = std::move(commands);
}

void Cluster::Note(const Worker& worker, const Event& event, const std::vector<Command>& commands) {
  const auto mix = [this](uint64_t word) {
    digest_ = (digest_ ^ word) * 0x9e3779b97f4a7c15u;
    digest_ ^= digest_ >> 29;
  };
  mix(std::bit_cast<uint64_t>(now_));
  mix(static_cast<uint64_t>(worker.rank) << 16 | event.index() << 8);
  for (const Command& command : commands) {
    const StartTransfer* const start = std::get_if<StartTransfer>(&command);
    mix(command.index() | (start != nullptr ? static_cast<uint64_t>(start->transfer) << 8 : 0));
  }
  const size_t rank = static_cast<size_t>(worker.rank);
  strategy::Witness* const witness = WitnessOf(worker.rank);
  if (witness == nullptr && !options_.keep_log) return;
  const strategy::Decision decision{.now = now_, .event = event, .commands = commands};
  if (witness != nullptr) witness->Decided(decision);
  if (!options_.keep_log) return;
  result_.log[rank].push_back(absl::StrCat(now_, " ", ToText(event)));
  for (const Command& command : commands) {
    result_.log[rank].push_back(absl::StrCat("  ", ToText(command)));
  }
  result_.told[rank].push_back(decision);
}

strategy::Witness* Cluster::WitnessOf(int rank) const {
  return options_.witnesses.empty() ? nullptr : options_.witnesses[static_cast<size_t>(rank)];
}

void Cluster::Transferred(int rank, const VirtualTransfers::Record& record,
                          const absl::Status& status) const {
  strategy::Witness* const witness = WitnessOf(rank);
  if (witness == nullptr) return;
  witness->Transferred({.start = record.start,
                        .iteration = record.iteration,
                        .bytes = record.bytes,
                        .begin = record.begin,
                        .end = now_,
                        .status = status});
}

bool Cluster::IsRange(int first, int last) const {
  return 0 <= first && first <= last && last < options_.table.size();
}

bool Cluster::AreRanks(const Worker& worker, const StartTransfer& start) const {
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

// No members: all training ranks that live, as far as this worker knows.
void Cluster::Carry(Worker& worker, const StartTransfer& start) {
  if (!IsRange(start.first, start.last) || !AreRanks(worker, start)) {
    return Fault(worker.rank, ToText(Command(start)));
  }
  Members members;
  if (start.movement == Movement::kAverage) {
    members = start.members.empty() ? EveryoneOf(worker)
                                    : std::make_shared<const MemberList>(start.members);
  }
  const absl::Status status = transfers_.Start(
      now_, worker.rank, worker.gradients_of, start, members,
      start.content == strategy::Content::kGradients ? worker.gradients : worker.parameters);
  if (!status.ok()) return Fault(worker.rank, std::string(status.message()));
  FailBroken(worker);
}

void Cluster::Carry(Worker& worker, const ApplyUpdate& apply) {
  if (!IsRange(apply.first, apply.last)) return Fault(worker.rank, ToText(Command(apply)));
  double squared = 0;
  const double rate = options_.learning_rate * apply.rate_factor;
  const size_t first = numbers_.first(apply.first), end = numbers_.end(apply.last);
  if (apply.update != Update::kStepLocal) {
    const absl::Status status = transfers_.Take(worker.rank, apply, taken_);
    if (!status.ok()) return Fault(worker.rank, std::string(status.message()));
  }
  for (size_t i = first; i < end; ++i) {
    double& parameter = worker.parameters[i];
    const double before = parameter;
    switch (apply.update) {
      case Update::kStepLocal:
        parameter -= rate * worker.gradients[i];
        break;
      case Update::kStepAveraged:
        parameter -= rate * taken_.values[i - first];
        break;
      case Update::kAdopt:
        parameter = taken_.values[i - first];
        break;
      case Update::kAddChange:
        parameter += taken_.values[i - first] - taken_.sent[i - first];
        break;
    }
    squared += (parameter - before) * (parameter - before);
  }
  if (strategy::Witness* const witness = WitnessOf(worker.rank)) {
    witness->Applied({.apply = apply,
                      .iteration = worker.gradients_of,
                      .begin = now_,
                      .end = now_,
                      .squared_distance = squared});
  }
  if (!apply.measure) return;
  queue_.Call(now_, worker.rank, [this, &worker, id = apply.transfer, squared] {
    Tell(worker, strategy::Updated{id, squared});
  });
}

// The strategy may say so before the forward pass has come to the tensor: it is then remembered
// for this iteration.
void Cluster::Carry(Worker& worker, const strategy::Proceed& proceed) {
  if (!IsRange(proceed.tensor, proceed.tensor)) {
    return Fault(worker.rank, ToText(Command(proceed)));
  }
  worker.may_use[static_cast<size_t>(proceed.tensor)] = 1;
  if (worker.waits_for == proceed.tensor) UseTensor(worker);
}

// Each worker's part in the service is another machine, which knows how often it has asked.
void Cluster::Carry(Worker& worker, const AskService& ask) {
  if (service_ == nullptr) return Fault(worker.rank, "there is no service to ask");
  if (ask.service != service_->name()) {
    return Fault(worker.rank, absl::StrCat("it asks the service ", ask.service,
                                           ", and there is only ", service_->name()));
  }
  if (!Validate(ask.message, options_.workers).ok()) {
    return Fault(worker.rank, ToText(Command(ask)));
  }
  if (worker.last_ticket && ask.ticket <= *worker.last_ticket) {
    return Fault(worker.rank, absl::StrCat(ToText(Command(ask)), ": ticket ", *worker.last_ticket,
                                           " was before it"));
  }
  worker.last_ticket = ask.ticket;
  const absl::Status asked =
      service_->Ask(worker.rank, static_cast<uint64_t>(ask.ticket), Encode(ask.message));
  if (asked.ok()) return;
  result_.status[static_cast<size_t>(worker.rank)] = asked;
  End(worker);
}

void Cluster::Answer(int rank, uint64_t ticket, const absl::StatusOr<std::string>& answer) {
  queue_.Call(
      now_, rank,
      [this, rank,
       answered = strategy::Answered{.service = service_->name(),
                                     .ticket = static_cast<int64_t>(ticket),
                                     .message = MessageOfAnswer(answer, options_.workers)}] {
        Tell(At(rank), answered);
      });
}

// Messages between two workers arrive in their order, those of different workers in any.
void Cluster::Carry(Worker& worker, const strategy::SendMessage& send) {
  if (!IsRank(send.to) || send.to == worker.rank ||
      !Validate(send.message, options_.workers).ok()) {
    return Fault(worker.rank, ToText(Command(send)));
  }
  auto& mail = mail_[{worker.rank, send.to}];
  if (mail == nullptr) mail = std::make_shared<std::queue<StrategyMessage>>();
  mail->push(send.message);
  Worker& to = At(send.to);
  queue_.Call(now_ + options_.message_delay.value_or(options_.costs.a), send.to,
              [this, mail, &to, from = worker.rank] {
                const StrategyMessage message = std::move(mail->front());
                mail->pop();
                if (!to.gone.contains(from)) Tell(to, strategy::MessageArrived{from, message});
              });
}

void Cluster::Carry(Worker& worker, const strategy::SetBatch& batch) {
  samples_sum_ += batch.samples - worker.samples;
  worker.samples = batch.samples;
}

void Cluster::Carry(Worker& worker, const strategy::SetProgress& progress) {
  result_.total_samples[static_cast<size_t>(worker.rank)] = progress.total_samples;
  worker.stops |= progress.stop;
}

void Cluster::Carry(Worker& worker, const strategy::WakeAt& wake) {
  queue_.Call(std::max(now_, wake.seconds), worker.rank,
              [this, &worker] { Tell(worker, strategy::TimePassed{}); });
}

void Cluster::Carry(Worker& worker, const strategy::Drained&) {
  if (!worker.draining) return Fault(worker.rank, "drained, and nobody asked");
  if (worker.leaves) transfers_.Leave(worker.rank);
  End(worker);
  if (!worker.leaves) return;
  // What it knows of the service is handed over first.
  if (service_ != nullptr) return service_->Leave(worker.rank);
  TellLeft(worker.rank);
}

void Cluster::Carry(Worker& worker, const strategy::Fail& fail) {
  result_.status[static_cast<size_t>(worker.rank)] = fail.status;
  End(worker);
}

}  // namespace syncopate::sim
