#include "sync/live_transfers.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <utility>

#include "base/status.h"

namespace syncopate::sync {

using strategy::Content;
using strategy::StartTransfer;

namespace {

// At most this many ended transfers are kept for TakeEnded(), which not every caller calls.
constexpr size_t kEndedMax = 1 << 14;

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

LiveTransfers::~LiveTransfers() {
  for (auto& [id, running] : running_) {
    for (Handle& handle : running.handles) handle.Wait().IgnoreError();
  }
}

absl::Status LiveTransfers::MakeGroups() {
  return options_.both ? groups_.Get(Content::kParameters, {}, true).status() : absl::OkStatus();
}

void LiveTransfers::Start(const StartTransfer& start, const Made& made) {
  const std::vector<TensorLayout::Range> ranges = values_.RangesOf(start);
  Running& running = running_[start.transfer];
  running = {.transfer = {.start = start,
                          .tensors = values_.TensorsOf(start),
                          .iteration = made.iteration,
                          .begin_ns = clock_.NowNs()},
             .calls_left = std::max<size_t>(1, ranges.size())};
  running.unapplied = running.transfer.tensors.size();
  absl::StatusOr<Group> group = groups_.Get(start.content, start.members, options_.both);
  if (!group.ok() || ranges.empty()) {
    running.calls_left = 1;
    return inbox_.Add(EndedCall{start.transfer, clock_.NowNs(), group.status()});
  }
  std::byte* const memory = values_.At(start.content);
  for (const TensorLayout::Range& range : ranges) {
    // With shares multiplied in, the average is a sum.
    const bool sums = made.scaled && start.content == Content::kGradients && ScalesWell(range.type);
    Call call{.collective = Collective::kAllReduce,
              .data = {memory + range.offset, range.elements, range.type},
              .op = sums ? ReduceOp::kSum : ReduceOp::kWeightedAverage,
              .weight = start.weight,
              .priority = start.priority};
    // It runs on the thread that drives the engine and must be quick, so it only leaves a note.
    // It is not called for a call that is refused, which shows at once; there is one note in any
    // case.
    const auto noted = std::make_shared<std::atomic<bool>>(false);
    const auto note = [this, noted, id = start.transfer](const absl::Status& status) {
      if (!noted->exchange(true)) inbox_.Add(EndedCall{id, clock_.NowNs(), status});
    };
    call.ended = note;
    Handle handle = group->Start(call);
    if (handle.Done()) {
      if (const absl::Status status = handle.Wait(); !status.ok()) note(status);
    }
    running.handles.push_back(std::move(handle));
    running.transfer.bytes += range.elements * SizeOf(range.type);
  }
  bytes_sent_ += running.transfer.bytes;
}

std::optional<LiveTransfers::Transfer> LiveTransfers::CallEnded(const EndedCall& ended) {
  const auto found = running_.find(ended.transfer);
  if (found == running_.end()) return std::nullopt;
  Running& running = found->second;
  if (running.transfer.status.ok()) running.transfer.status = ended.status;
  // A transfer of tensors of several types is over when the last of its calls is.
  if (--running.calls_left > 0) return std::nullopt;
  running.handles.clear();
  running.transfer.end_ns = ended.at_ns;
  if (running.transfer.status.ok()) {
    running.done = true;
    Note(running.transfer);
    return running.transfer;
  }
  Transfer failed = std::move(running.transfer);
  running_.erase(found);
  if (GetBlast(failed.status) == BlastRadius::kGroup) {
    groups_.Drop(failed.start.content, failed.start.members, options_.both);
  }
  return failed;
}

void LiveTransfers::Note(const Transfer& transfer) {
  // Half of them are dropped at a time, so that a full list costs no move for every transfer.
  if (ended_.size() >= kEndedMax) ended_.erase(ended_.begin(), ended_.begin() + kEndedMax / 2);
  ended_.push_back({.iteration = transfer.iteration,
                    .first = transfer.tensors.empty() ? 0 : transfer.tensors.front(),
                    .last = transfer.tensors.empty() ? 0 : transfer.tensors.back(),
                    .bytes = transfer.bytes,
                    .seconds = Seconds(transfer.end_ns - transfer.begin_ns)});
  if (options_.recorder == nullptr) return;
  options_.recorder->Record({.kind = SpanKind::kTransfer,
                             .iteration = static_cast<int>(transfer.iteration),
                             .id = static_cast<int>(transfer.start.transfer),
                             .begin_ns = transfer.begin_ns,
                             .end_ns = transfer.end_ns,
                             .bytes = transfer.bytes});
}

const LiveTransfers::Transfer* LiveTransfers::BroughtBy(int64_t id) const {
  const auto found = running_.find(id);
  return found != running_.end() && found->second.done ? &found->second.transfer : nullptr;
}

void LiveTransfers::Applied(Content content, const std::vector<int>& tensors) {
  for (auto entry = running_.begin(); entry != running_.end();) {
    Running& running = entry->second;
    if (running.done && running.transfer.start.content == content) {
      const std::vector<int>& own = running.transfer.tensors;
      for (const int tensor : tensors) {
        running.unapplied -= std::binary_search(own.begin(), own.end(), tensor) ? 1 : 0;
      }
    }
    entry = running.done && running.unapplied == 0 ? running_.erase(entry) : std::next(entry);
  }
}

int LiveTransfers::Of(int tensor) const {
  for (const auto& [id, running] : running_) {
    const std::vector<int>& own = running.transfer.tensors;
    if (std::binary_search(own.begin(), own.end(), tensor)) return static_cast<int>(id);
  }
  return -1;
}

bool LiveTransfers::Lose(int rank) {
  if (groups_.IsGone(rank)) return false;
  groups_.Lose(rank);
  return true;
}

std::vector<EndedTransfer> LiveTransfers::TakeEnded() { return std::exchange(ended_, {}); }

}  // namespace syncopate::sync
