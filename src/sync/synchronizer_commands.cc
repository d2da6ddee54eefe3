// What is done with the strategy's events and commands, and updates.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "sync/synchronizer_impl.h"
#include "sync/transfer_check.h"

namespace syncopate::sync {

std::string Synchronizer::Impl::LossTopic() const {
  return absl::StrCat(worker::Mailbox::kOwnTopics, "losses/", number_);
}

void Synchronizer::Impl::Tell(const Event& event) {
  if (!failure_.ok()) return;
  strategy::Decision decision{.now = SecondsOf(NowNs()), .event = event, .commands = {}};
  strategy_->Step(decision.now, event, decision.commands);
  if (options_.witness != nullptr) options_.witness->Decided(decision);
  for (Command& command : decision.commands) std::visit([&](auto& c) { Take(c); }, command);
}

void Synchronizer::Impl::TellValue(strategy::NewValue value) {
  if (const auto* schedule = std::get_if<std::shared_ptr<const Schedule>>(&value.value)) {
    // Those that count for no iteration any more are let go of.
    while (schedules_.size() > 1 && schedules_[1].first <= iteration_) schedules_.pop_front();
    schedules_.emplace_back(value.from, *schedule);
  }
  Tell(value);
}

void Synchronizer::Impl::Fail(absl::Status status) {
  if (failure_.ok()) failure_ = std::move(status);
  inbox_.Ring();
}

void Synchronizer::Impl::FailIfNot(const absl::Status& status) {
  if (!status.ok()) Fail(At(absl::StrCat("strategy ", strategy_->name()), status));
}

void Synchronizer::Impl::AddPending(Pending pending) {
  pending_.push_back(std::move(pending));
  inbox_.Ring();
}

void Synchronizer::Impl::Take(StartTransfer& start) {
  FailIfNot(CheckTransfer(start,
                          {.rank = worker_.rank(),
                           .size = worker_.size(),
                           .tensors = tensors_,
                           .moves_gradients = options_.moves_gradients,
                           .moves_parameters = options_.moves_parameters,
                           .has_store = options_.store != nullptr,
                           .serves = serves_},
                          values_.layout()));
  if (!failure_.ok()) return;
  // Gradients are packed already. Parameters must be packed after the updates that come before
  // this command, so the transfer goes through the same queue.
  if (start.content == Content::kParameters) return AddPending({std::move(start)});
  StartCalls(start);
}

void Synchronizer::Impl::Take(ApplyUpdate& apply) {
  std::vector<int> tensors(static_cast<size_t>(apply.last - apply.first + 1));
  std::iota(tensors.begin(), tensors.end(), apply.first);
  AddPending({apply, std::move(tensors)});
}

void Synchronizer::Impl::Take(strategy::SetBatch& batch) { AddPending({batch}); }

void Synchronizer::Impl::Take(strategy::SetProgress& progress) { AddPending({progress}); }

void Synchronizer::Impl::Take(strategy::Drained& drained) { AddPending({drained}); }

void Synchronizer::Impl::Take(strategy::WakeAt& wake) {
  control_.DoAt(static_cast<int64_t>(wake.seconds * 1e9), [this] {
    MutexLock lock(&mutex_);
    Tell(strategy::TimePassed{});
    RunPendingStarts();
  });
}

void Synchronizer::Impl::Take(strategy::AskService& ask) {
  FailIfNot(options_.messenger != nullptr
                ? options_.messenger->Ask(ask)
                : absl::UnimplementedError(absl::StrCat("it asks the service ", ask.service,
                                                        ", and this job has no services yet")));
}

void Synchronizer::Impl::Take(strategy::SendMessage& send) {
  FailIfNot(options_.messenger != nullptr
                ? options_.messenger->Send(send)
                : absl::UnimplementedError(
                      absl::StrCat("it sends a message to worker ", send.to,
                                   ", and this job carries no messages between strategies yet")));
}

bool Synchronizer::Impl::HasUrgent() const {
  return std::any_of(pending_.begin(), pending_.end(), [](const Pending& pending) {
    return std::holds_alternative<StartTransfer>(pending.command) ||
           std::holds_alternative<strategy::SetBatch>(pending.command) ||
           std::holds_alternative<strategy::SetProgress>(pending.command);
  });
}

void Synchronizer::Impl::RunPending() {
  if (pending_.empty()) return;
  const int64_t deadline_ns = DeadlineNs();
  while (carrying_) {
    if (!AwaitNews(deadline_ns)) return FailLate("the control thread, which packs parameters");
  }
  std::vector<bool> left(static_cast<size_t>(tensors_), false);
  bool starts_are_held = false;
  for (size_t i = 0; i < pending_.size() && failure_.ok();) {
    Pending& pending = pending_[i];
    if (const auto* start = std::get_if<StartTransfer>(&pending.command)) {
      for (const int tensor : values_.TensorsOf(*start)) {
        starts_are_held |= left[static_cast<size_t>(tensor)];
      }
      if (starts_are_held) {
        ++i;
        continue;
      }
    }
    Pending taken = std::move(pending);
    if (std::holds_alternative<ApplyUpdate>(taken.command)) {
      const std::vector<int> later = TakeThoseInUse(taken.tensors);
      if (!later.empty()) {
        for (const int tensor : later) left[static_cast<size_t>(tensor)] = true;
        // Its place in the queue, and the result that it needs, stay.
        pending_[i] = {taken.command, later, taken.squared};
        if (!taken.tensors.empty()) {
          const double squared = ApplyRuns(taken);
          pending_[i].squared += squared;
        }
        ++i;
        continue;
      }
    }
    pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
    Carry(taken);
  }
}

void Synchronizer::Impl::Carry(Pending& taken) {
  if (auto* apply = std::get_if<ApplyUpdate>(&taken.command)) {
    const double squared = taken.squared + ApplyRuns(taken);
    if (apply->measure) Tell(strategy::Updated{apply->transfer, squared});
  } else if (auto* proceed = std::get_if<Proceed>(&taken.command)) {
    may_use_[static_cast<size_t>(proceed->tensor)] = true;
  } else if (auto* batch = std::get_if<strategy::SetBatch>(&taken.command)) {
    if (options_.agrees_on_batches) {
      wanted_batch_ = batch->samples;
    } else {
      FailIfNot(replica_.SetBatch(batch->samples));
    }
  } else if (auto* progress = std::get_if<strategy::SetProgress>(&taken.command)) {
    FailIfNot(replica_.SetProgress(*progress));
  } else if (std::holds_alternative<strategy::Drained>(taken.command)) {
    drained_ = true;
  } else if (auto* start = std::get_if<StartTransfer>(&taken.command)) {
    FailIfNot(PackParameters(*start));
    if (failure_.ok()) StartCalls(*start);
  }
}

std::vector<int> Synchronizer::Impl::TakeThoseInUse(std::vector<int>& tensors) const {
  std::vector<int> used;
  std::erase_if(tensors, [&](int tensor) {
    if (!in_use_[static_cast<size_t>(tensor)]) return false;
    used.push_back(tensor);
    return true;
  });
  return used;
}

double Synchronizer::Impl::ApplyRuns(const Pending& pending) {
  const ApplyUpdate& apply = std::get<ApplyUpdate>(pending.command);
  const bool local = apply.update == strategy::Update::kStepLocal;
  const LiveTransfers::Transfer* const transfer = transfers_.BroughtBy(apply.transfer);
  const bool add = apply.update == strategy::Update::kAddChange;
  if (!local && transfer == nullptr) {
    Refuse(apply, "that transfer has brought nothing");
    return 0;
  }
  if (add && !transfer->start.keep_sent) {
    Refuse(apply, "what that transfer sent was not kept");
    return 0;
  }
  const Content content = local ? Content::kGradients : transfer->start.content;
  const int64_t iteration = local ? iteration_ : transfer->iteration;
  const Brought brought = values_.BroughtOf(apply, content);
  // Updating takes long, so the lock is released and transfers go on meanwhile.
  carrying_ = true;
  mutex_.Unlock();
  const int64_t begin_ns = NowNs();
  double squared = 0;
  std::vector<Witness::Update> runs;
  for (size_t i = 0; i < pending.tensors.size();) {
    ApplyUpdate run = apply;
    run.first = run.last = pending.tensors[i];
    while (++i < pending.tensors.size() && pending.tensors[i] == run.last + 1) ++run.last;
    Witness::Update update{.apply = run, .iteration = iteration, .begin = SecondsOf(NowNs())};
    update.squared_distance = replica_.Apply(run, brought);
    update.end = SecondsOf(NowNs());
    squared += update.squared_distance;
    runs.push_back(update);
  }
  const int64_t end_ns = NowNs();
  if (options_.recorder != nullptr) {
    options_.recorder->Record({.kind = SpanKind::kUpdate,
                               .iteration = static_cast<int>(iteration),
                               .id = static_cast<int>(apply.transfer),
                               .begin_ns = begin_ns,
                               .end_ns = end_ns});
  }
  mutex_.Lock();
  carrying_ = false;
  if (!local) transfers_.Applied(content, pending.tensors);
  for (const Witness::Update& run : runs) {
    if (options_.witness != nullptr) options_.witness->Applied(run);
  }
  return squared;
}

void Synchronizer::Impl::Refuse(const ApplyUpdate& apply, absl::string_view why) {
  Fail(absl::InternalError(
      absl::StrCat("strategy ", strategy_->name(), ": ", ToText(Command(apply)), ": ", why)));
}

bool Synchronizer::Impl::MustPack(const StartTransfer& start) {
  return start.movement != Movement::kPull || start.keep_sent;
}

}  // namespace syncopate::sync
