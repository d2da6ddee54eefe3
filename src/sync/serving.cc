#include "sync/serving.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "sync/packed_values.h"
#include "sync/range_pieces.h"
#include "worker/mailbox.h"

namespace syncopate::sync {
namespace {

// Ranges begin on lines of their own.
size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

std::string Serving::Topic(int number) {
  return absl::StrCat(worker::Mailbox::kOwnTopics, "serve/", number);
}

Serving::Serving(Worker& worker, std::string topic, const TensorLayout& layout, int tensors,
                 ParameterStore* store, ControlTasks& tasks, LongWork& work, absl::Duration timeout,
                 std::function<void(const absl::Status&)> fail)
    : worker_(worker),
      topic_(std::move(topic)),
      layout_(layout),
      tensors_(tensors),
      store_(store),
      tasks_(tasks),
      work_(work),
      fail_(std::move(fail)),
      groups_(worker),
      calls_(
          [this] {
            tasks_.DoAt(MonotonicClock().NowNs() + CallQueue::kTryAgainNs,
                        [this] { calls_.StartHeld(); });
          },
          timeout) {}

Serving::~Serving() {
  for (auto& [from, queue] : queues_) {
    for (Served& served : queue) {
      for (const auto& call : served.calls) call->Wait();
    }
  }
}

absl::Status Serving::Open() {
  open_ = true;
  return worker::MailboxOf(worker_).Receive(topic_, [this](const Mail& mail) {
    if (mail.kind == Mail::Kind::kMessage) Came(mail.from, mail.bytes);
  });
}

void Serving::Close() {
  if (std::exchange(open_, false))
    worker::MailboxOf(worker_).Receive(topic_, nullptr).IgnoreError();
}

void Serving::Came(int from, const std::string& bytes) {
  if (store_ == nullptr) {
    return fail_(absl::FailedPreconditionError(
        absl::StrCat("worker ", from, " pushes to worker ", worker_.rank(),
                     " or pulls from it, which holds no parameters for others")));
  }
  const absl::StatusOr<ServeRequest> request = DecodeServeRequest(bytes);
  if (!request.ok()) return fail_(At(absl::StrCat("worker ", from), request.status()));
  auto ranges = RangesOf(*request, layout_, tensors_);
  if (!ranges.ok()) return fail_(At(absl::StrCat("worker ", from), ranges.status()));
  if (ranges->empty()) return;  // bytes between tensors: the worker that asks makes no call either
  Served served{.number = numbers_++, .request = *request, .ranges = *std::move(ranges)};
  queues_[from].push_back(std::move(served));
  Advance(from);
}

void Serving::Advance(int from) {
  std::list<Served>& queue = queues_[from];
  bool pushes = false;  // one before is not applied yet
  for (Served& served : queue) {
    if (served.stage == Served::Stage::kOver) continue;
    if (served.stage == Served::Stage::kWaits) {
      if (!served.request.push && pushes) break;
      Start(from, served);
    }
    // The calls of one that is being prepared start before those of the next.
    if (served.stage == Served::Stage::kPrepares) break;
    pushes |= served.request.push && served.stage != Served::Stage::kOver;
  }
  while (!queue.empty() && queue.front().stage == Served::Stage::kOver) queue.pop_front();
}

void Serving::Start(int from, Served& served) {
  size_t bytes = 0;
  for (const TensorLayout::Range& range : served.ranges) {
    served.places.push_back(bytes);
    bytes += RoundUp(range.elements * SizeOf(range.type));
  }
  served.stage = Served::Stage::kPrepares;
  if (StagingMemory::Prepare(worker_, bytes)) return StartIn(from, served, bytes);
  work_.Add([this, from, &served, bytes] {
    if (!StagingMemory::Prepare(worker_, bytes)) return false;
    StartIn(from, served, bytes);
    Advance(from);
    return true;
  });
}

void Serving::StartIn(int from, Served& served, size_t bytes) {
  served.memory.emplace(worker_, bytes);
  if (served.request.push) {
    StartCalls(from, served);
  } else {
    Read(from, served);
  }
}

void Serving::Read(int from, Served& served) {
  work_.Add([this, from, &served, pieces = RangePieces(served.ranges)]() mutable {
    if (!pieces.done()) {
      const RangePieces::Piece next = pieces.Next();
      std::byte* const to = served.memory->data() + served.places[next.range] + next.at;
      if (const absl::Status status = store_->Read(next.part, to); !status.ok()) {
        fail_(status);
        return true;
      }
    }
    if (!pieces.done()) return false;
    StartCalls(from, served);
    Advance(from);
    return true;
  });
}

// What cannot start is over: the worker that asked for it is lost, and learns nothing from it.
void Serving::StartCalls(int from, Served& served) {
  served.stage = Served::Stage::kMoves;
  if (!TryStartCalls(from, served).ok()) served.stage = Served::Stage::kOver;
}

absl::Status Serving::TryStartCalls(int from, Served& served) {
  const Pair pair{Pair::Purpose::kServing, from, worker_.rank()};
  SYNCOPATE_ASSIGN_OR_RETURN(Group group,
                             groups_.Get(pair, served.request.version, served.request.group));
  served.calls_left = served.ranges.size();
  for (size_t i = 0; i < served.ranges.size(); ++i) {
    const TensorLayout::Range& range = served.ranges[i];
    served.calls.push_back(calls_.Start(
        group,
        {.collective = Collective::kSendReceive,
         .data = {served.memory->data() + served.places[i], range.elements, range.type},
         .root = served.request.push ? 0 : 1,
         .target = served.request.push ? 1 : 0},
        [this, from, number = served.number](const absl::Status& status) {
          tasks_.Do([=, this] { CallEnded(from, number, status); });
        }));
  }
  return absl::OkStatus();
}

void Serving::CallEnded(int from, uint64_t number, const absl::Status& status) {
  std::list<Served>& queue = queues_[from];
  const auto found = std::find_if(queue.begin(), queue.end(),
                                  [&](const Served& served) { return served.number == number; });
  if (found == queue.end()) return;
  if (found->status.ok()) found->status = status;
  if (--found->calls_left > 0) return;
  found->calls.clear();
  if (found->status.ok() && found->request.push) return ApplyPush(from, *found);
  End(from, *found);
}

void Serving::ApplyPush(int from, Served& served) {
  work_.Add([this, from, &served, pieces = RangePieces(served.ranges)]() mutable {
    absl::Status status;
    if (!pieces.done()) {
      const auto [range, at, part] = pieces.Next();
      status = store_->Apply(part, served.memory->data() + served.places[range] + at,
                             PushWeight(part.type, served.request.weight, served.request.share));
    }
    if (!status.ok()) fail_(status);
    if (status.ok() && !pieces.done()) return false;
    End(from, served);
    return true;
  });
}

void Serving::End(int from, Served& served) {
  served.stage = Served::Stage::kOver;
  Advance(from);
}

}  // namespace syncopate::sync
