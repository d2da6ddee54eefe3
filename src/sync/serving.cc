#include "sync/serving.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "sync/packed_values.h"
#include "sync/started_call.h"
#include "worker/mailbox.h"

namespace syncopate::sync {
namespace {

// Ranges begin on lines of their own.
size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

std::string Serving::Topic(int number) {
  return absl::StrCat(worker::Mailbox::kOwnTopics, "serve/", number);
}

Serving::~Serving() {
  for (auto& [from, queue] : queues_) {
    for (Served& served : queue) {
      for (Handle& handle : served.handles) handle.Wait().IgnoreError();
    }
  }
}

absl::Status Serving::Open() {
  open_ = true;
  // On the worker's control thread, which must not wait: a task does the rest.
  return worker::MailboxOf(worker_).Receive(topic_, [this](Mail mail) {
    if (mail.kind != Mail::Kind::kMessage) return;
    inbox_.Add(TransferInbox::Task{
        [this, from = mail.from, bytes = std::move(mail.bytes)] { Came(from, bytes); }});
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
  Served served{.number = numbers_++, .request = *request, .ranges = *std::move(ranges)};
  queues_[from].push_back(std::move(served));
  Advance(from);
}

void Serving::Advance(int from) {
  std::list<Served>& queue = queues_[from];
  bool pushes = false;  // one before is not applied yet
  for (Served& served : queue) {
    if (served.over) continue;
    if (!served.started) {
      if (!served.request.push && pushes) break;
      Start(from, served);
    }
    pushes |= served.request.push && !served.over;
  }
  while (!queue.empty() && queue.front().over) queue.pop_front();
}

// What cannot start is over: the worker that asked for it is lost, and learns nothing from it.
void Serving::Start(int from, Served& served) {
  served.started = true;
  size_t bytes = 0;
  for (const TensorLayout::Range& range : served.ranges) {
    served.places.push_back(bytes);
    bytes += RoundUp(range.elements * SizeOf(range.type));
  }
  served.memory.emplace(worker_, bytes);
  for (size_t i = 0; !served.request.push && i < served.ranges.size(); ++i) {
    const absl::Status status =
        store_->Read(served.ranges[i], served.memory->data() + served.places[i]);
    if (!status.ok()) return fail_(status);
  }
  if (!StartCalls(from, served).ok()) served.over = true;
}

absl::Status Serving::StartCalls(int from, Served& served) {
  const Pair pair{Pair::Purpose::kServing, from, worker_.rank()};
  SYNCOPATE_ASSIGN_OR_RETURN(Group group, groups_.Get(pair, served.request.group));
  served.calls_left = served.ranges.size();
  for (size_t i = 0; i < served.ranges.size(); ++i) {
    const TensorLayout::Range& range = served.ranges[i];
    served.handles.push_back(
        StartCall(group,
                  {.collective = Collective::kSendReceive,
                   .data = {served.memory->data() + served.places[i], range.elements, range.type},
                   .root = served.request.push ? 0 : 1,
                   .target = served.request.push ? 1 : 0},
                  [this, from, number = served.number](const absl::Status& status) {
                    inbox_.Add(TransferInbox::Task{[=, this] { CallEnded(from, number, status); }});
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
  if (found->status.ok() && found->request.push) {
    if (const absl::Status applied = ApplyPush(*found); !applied.ok()) fail_(applied);
  }
  found->over = true;
  found->handles.clear();
  Advance(from);
}

absl::Status Serving::ApplyPush(const Served& served) {
  for (size_t i = 0; i < served.ranges.size(); ++i) {
    const TensorLayout::Range& range = served.ranges[i];
    SYNCOPATE_RETURN_IF_ERROR(
        store_->Apply(range, served.memory->data() + served.places[i],
                      PushWeight(range.type, served.request.weight, served.request.share)));
  }
  return absl::OkStatus();
}

}  // namespace syncopate::sync
