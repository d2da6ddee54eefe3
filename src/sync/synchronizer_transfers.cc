// How transfers start and end, and what the strategy hears of them, of losses and from outside.
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "sync/synchronizer_impl.h"
#include "worker/departures.h"

namespace syncopate::sync {

void Synchronizer::Impl::RunPendingStarts() {
  if (carrying_ || pending_.empty() || !failure_.ok() ||
      !std::holds_alternative<StartTransfer>(pending_.front().command)) {
    return;
  }
  const StartTransfer start = std::get<StartTransfer>(std::move(pending_.front().command));
  pending_.pop_front();
  carrying_ = true;
  std::vector<int> tensors;
  if (MustPack(start)) tensors = values_.TensorsOf(start);
  work_.Add(
      [this, start, tensors = std::move(tensors), next = size_t{0}, allocated = false]() mutable {
        if (!allocated) {
          if (!values_.Prepare(Content::kParameters)) return false;
          MutexLock lock(&mutex_);
          FailIfNot(values_.Allocate(Content::kParameters, start.keep_sent));
          allocated = true;
          if (failure_.ok()) return false;
          carrying_ = false;
          inbox_.Ring();
          return true;
        }
        if (next < tensors.size()) {
          values_.PackParameters(start, tensors[next++]);
          return false;
        }
        if (!LiveTransfers::Prepare(worker_, values_, start)) return false;
        MutexLock lock(&mutex_);
        carrying_ = false;
        inbox_.Ring();
        if (failure_.ok()) StartCalls(start);
        RunPendingStarts();
        return true;
      });
}

absl::Status Synchronizer::Impl::PackParameters(const StartTransfer& start) {
  carrying_ = true;
  mutex_.Unlock();
  while (!values_.Prepare(Content::kParameters)) {
  }
  mutex_.Lock();
  const absl::Status allocated = values_.Allocate(Content::kParameters, start.keep_sent);
  mutex_.Unlock();
  if (allocated.ok() && MustPack(start)) values_.PackParameters(start);
  while (allocated.ok() && !LiveTransfers::Prepare(worker_, values_, start)) {
  }
  mutex_.Lock();
  carrying_ = false;
  return allocated;
}

void Synchronizer::Impl::StartCalls(const StartTransfer& start) {
  transfers_.Start(start, {.iteration = gradients_of_, .share = gradients_factor_});
}

void Synchronizer::Impl::StartHeldLater() {
  control_.DoAt(NowNs() + CallQueue::kTryAgainNs, [this] {
    MutexLock lock(&mutex_);
    transfers_.StartHeld();
  });
}

void Synchronizer::Impl::CallEnded(const EndedCall& ended) {
  LongWork::Piece last_step = transfers_.LastStep(ended);
  if (last_step == nullptr) return EndCall(ended);
  work_.Add([this, ended, last_step = std::move(last_step)] {
    if (!last_step()) return false;
    MutexLock lock(&mutex_);
    EndCall(ended);
    RunPendingStarts();
    return true;
  });
}

void Synchronizer::Impl::EndCall(const EndedCall& ended) {
  const std::optional<LiveTransfers::Transfer> transfer = transfers_.CallEnded(ended);
  if (!transfer) return;
  const double begin = SecondsOf(transfer->begin_ns), end = SecondsOf(transfer->end_ns);
  if (options_.witness != nullptr) {
    options_.witness->Transferred({.start = transfer->start,
                                   .iteration = transfer->iteration,
                                   .bytes = transfer->bytes,
                                   .begin = begin,
                                   .end = end,
                                   .status = transfer->status});
  }
  if (!transfer->status.ok()) return TransferFailed(ended.transfer, transfer->status);
  Tell(strategy::TransferDone{.transfer = ended.transfer,
                              .first_byte = SecondsOf(transfer->first_ns),
                              .last_byte = end,
                              .bytes = transfer->bytes});
}

void Synchronizer::Impl::TransferFailed(int64_t id, const absl::Status& status) {
  if (!GetSuspect(status) || GetBlast(status) == BlastRadius::kJob) return Fail(status);
  TellLosses(status);
  Tell(strategy::TransferFailed{id, status});
}

void Synchronizer::Impl::TellLosses(const absl::Status& why) {
  for (const worker::Departure& departure : worker::DeparturesOf(worker_)) {
    const int rank = departure.rank;
    if (!transfers_.Lose(rank)) continue;
    if (rank == worker_.rank()) {
      Fail(WithBlast(absl::AbortedError("this worker is out of the job"), BlastRadius::kJob, rank));
      return;
    }
    if (departure.left) {
      Tell(strategy::WorkerLeft{rank});
      continue;
    }
    Tell(strategy::WorkerLost{rank, GetSuspect(why) == rank
                                        ? why
                                        : WithBlast(absl::UnavailableError(absl::StrCat(
                                                        "worker ", rank, " ", departure.cause)),
                                                    BlastRadius::kGroup, rank)});
  }
}

void Synchronizer::Impl::TellFromOutside(const Event& event) {
  if (const auto* left = std::get_if<strategy::WorkerLeft>(&event)) transfers_.Lose(left->rank);
  Tell(event);
}

void Synchronizer::Impl::TellNews() {
  for (const TransferInbox::Item& item : inbox_.Take()) {
    if (const auto* ended = std::get_if<EndedCall>(&item)) {
      CallEnded(*ended);
    } else if (const auto* failure = std::get_if<absl::Status>(&item)) {
      FailIfNot(*failure);
    } else {
      TellFromOutside(std::get<Event>(item));
    }
  }
}

}  // namespace syncopate::sync
