#include "sync/live_transfers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "sync/range_pieces.h"
#include "sync/serve_request.h"
#include "sync/weighted_sum.h"
#include "worker/mailbox.h"

namespace syncopate::sync {

using strategy::Content;
using strategy::Movement;
using strategy::StartTransfer;

namespace {

// At most this many ended transfers are kept for TakeEnded(), which not every caller calls.
constexpr size_t kEndedMax = 1 << 14;

}  // namespace

LiveTransfers::~LiveTransfers() {
  for (auto& [id, running] : running_) {
    for (Part& part : running.parts) part.call->Wait();
  }
}

absl::Status LiveTransfers::MakeGroups() {
  if (!options_.both || groups_.Serves(worker_.rank())) return absl::OkStatus();
  return groups_.Get({.content = Content::kParameters}, true).status();
}

// An exchange gets memory for what comes from each neighbour, in blocks that begin on pages.
bool LiveTransfers::Prepare(Worker& worker, const PackedValues& values,
                            const StartTransfer& start) {
  if (start.movement != Movement::kExchange) return true;
  constexpr size_t kPage = 4096;
  size_t bytes = 0;
  for (const TensorLayout::Range& range : values.RangesOf(start)) {
    bytes += (range.elements * SizeOf(range.type) / kPage + 1) * kPage;
  }
  return StagingMemory::Prepare(worker, bytes * start.from.size());
}

void LiveTransfers::Start(const StartTransfer& start, const Made& made) {
  Running& running = running_[start.transfer];
  running = {.transfer = {.start = start,
                          .tensors = values_.TensorsOf(start),
                          .iteration = made.iteration,
                          .begin_ns = clock_.NowNs()}};
  running.unapplied = running.transfer.tensors.size();
  const Ranges ranges = values_.RangesOf(start);
  for (const TensorLayout::Range& range : ranges) {
    running.transfer.bytes += range.elements * SizeOf(range.type);
  }
  absl::Status status;
  switch (start.movement) {
    case Movement::kAverage:
      status = StartAverage(running, ranges, made);
      break;
    case Movement::kPush:
    case Movement::kPull:
      status = StartServed(running, ranges, made);
      break;
    case Movement::kExchange:
      status = StartExchange(running, ranges, made);
      break;
  }
  // An end is told by a note, also of what could not begin or has nothing to move.
  if (status.ok() && running.calls_left > 0) return;
  running.calls_left += 1;
  inbox_.Add(EndedCall{start.transfer, clock_.NowNs(), status, running.parts.size()});
}

// The end only leaves a note: it is told on the thread that drives the engine.
void LiveTransfers::AddCall(Running& running, Group& group, Call call, std::optional<Pair> pair,
                            bool needed) {
  ++running.calls_left;
  call.priority = running.transfer.start.priority;
  const int64_t id = running.transfer.start.transfer;
  const size_t number = running.parts.size();
  auto started =
      calls_.Start(group, std::move(call), [this, id, number](const absl::Status& status) {
        inbox_.Add(EndedCall{id, clock_.NowNs(), status, number});
      });
  running.parts.push_back({std::move(started), pair, pair ? pairs_.NumberOf(*pair) : 0, needed});
}

absl::Status LiveTransfers::StartAverage(Running& running, const Ranges& ranges, const Made& made) {
  const StartTransfer& start = running.transfer.start;
  SYNCOPATE_ASSIGN_OR_RETURN(Group group, groups_.Get(start, options_.both));
  running.group = group;
  std::byte* const memory = values_.At(start.content);
  for (const TensorLayout::Range& range : ranges) {
    // With shares multiplied in, the average is a sum.
    const bool sums =
        made.share > 0 && start.content == Content::kGradients && ScalesWell(range.type);
    AddCall(running, group,
            {.collective = Collective::kAllReduce,
             .data = {memory + range.offset, range.elements, range.type},
             .op = sums ? ReduceOp::kSum : ReduceOp::kWeightedAverage,
             .weight = start.weight});
  }
  bytes_sent_ += running.transfer.bytes;
  return absl::OkStatus();
}

// The request leaves when nothing can go wrong here any more: its target will wait for the calls.
absl::Status LiveTransfers::StartServed(Running& running, const Ranges& ranges, const Made& made) {
  const StartTransfer& start = running.transfer.start;
  const bool push = start.movement == Movement::kPush;
  const double share = start.content == Content::kGradients ? made.share : 0;
  if (push) bytes_sent_ += running.transfer.bytes;
  if (start.target == worker_.rank()) {
    ServeSelf(running, ranges, {.iteration = made.iteration, .share = share});
    return absl::OkStatus();
  }
  const Pair pair{Pair::Purpose::kServing, worker_.rank(), start.target};
  SYNCOPATE_ASSIGN_OR_RETURN(Group group, pairs_.Get(pair, start.version));
  const ServeRequest request{.push = push,
                             .first = static_cast<uint32_t>(start.first),
                             .last = static_cast<uint32_t>(start.last),
                             .begin = start.begin,
                             .end = start.end,
                             .weight = start.weight,
                             .share = share,
                             .group = pairs_.NumberOf(pair),
                             .version = start.version};
  const absl::Status sent = worker::MailboxOf(worker_).Send(
      start.target, transport::MailKind::kMessage, options_.serving_topic, Encode(request));
  // A target that no mail reaches any more is gone, but it may take a moment until the others have
  // agreed on that. The calls end when they have, so that the strategy is told of the loss first.
  if (!sent.ok() && !absl::IsUnavailable(sent)) {
    return WithBlast(sent, BlastRadius::kOperation, start.target);
  }
  for (const TensorLayout::Range& range : ranges) {
    AddCall(running, group,
            {.collective = Collective::kSendReceive,
             .data = {values_.At(start.content) + range.offset, range.elements, range.type},
             .root = push ? 0 : 1,
             .target = push ? 1 : 0},
            pair);
  }
  return absl::OkStatus();
}

// On the control thread and behind what came before, as all that touches the store.
void LiveTransfers::ServeSelf(Running& running, const Ranges& ranges, const Made& made) {
  running.calls_left = 1;
  options_.work->Add([this, start = running.transfer.start, pieces = RangePieces(ranges),
                      share = made.share]() mutable {
    absl::Status status;
    if (!pieces.done()) {
      const TensorLayout::Range part = pieces.Next().part;
      std::byte* const own = values_.At(start.content) + part.offset;
      status = start.movement == Movement::kPush
                   ? options_.store->Apply(part, own, PushWeight(part.type, start.weight, share))
                   : options_.store->Read(part, own);
    }
    if (status.ok() && !pieces.done()) return false;
    inbox_.Add(EndedCall{start.transfer, clock_.NowNs(), status});
    return true;
  });
}

// This worker's values are sent from where they stand, so they are added to the others' only when all
// sends have ended.
absl::Status LiveTransfers::StartExchange(Running& running, const Ranges& ranges,
                                          const Made& made) {
  const StartTransfer& start = running.transfer.start;
  if (start.content == Content::kGradients && made.share > 0) {
    return absl::InternalError(
        "gradients that were multiplied with their share of all samples cannot be exchanged");
  }
  const int self = worker_.rank();
  std::byte* const memory = values_.At(start.content);
  // All groups first: an exchange that could begin only in part would leave its neighbours waiting.
  std::vector<std::pair<Pair, Group>> sends, receives;
  for (const int to : start.to) {
    const Pair pair{Pair::Purpose::kExchange, self, to};
    absl::StatusOr<Group> group = pairs_.Get(pair, start.version);
    // A neighbour that is gone gets nothing.
    if (group.ok()) sends.emplace_back(pair, *std::move(group));
  }
  for (const strategy::Source& source : start.from) {
    const Pair pair{Pair::Purpose::kExchange, source.rank, self};
    SYNCOPATE_ASSIGN_OR_RETURN(Group group, pairs_.Get(pair, start.version));
    receives.emplace_back(pair, std::move(group));
  }
  const auto call = [](const TensorLayout::Range& range, std::byte* data) {
    return Call{.collective = Collective::kSendReceive,
                .data = {data, range.elements, range.type},
                .root = 0,
                .target = 1};
  };
  for (auto& [pair, group] : sends) {
    for (const TensorLayout::Range& range : ranges) {
      AddCall(running, group, call(range, memory + range.offset), pair, /*needed=*/false);
    }
    bytes_sent_ += running.transfer.bytes;
  }
  auto received = std::make_shared<std::vector<Received>>();
  for (size_t i = 0; i < receives.size(); ++i) {
    auto& [pair, group] = receives[i];
    Received& from = received->emplace_back(Received{.weight = start.from[i].weight});
    for (const TensorLayout::Range& range : ranges) {
      from.memory.emplace_back(worker_, range.elements * SizeOf(range.type));
      AddCall(running, group, call(range, from.memory.back().data()), pair);
    }
  }
  running.received = std::move(received);
  return absl::OkStatus();
}

LongWork::Piece LiveTransfers::LastStep(const EndedCall& ended) const {
  const auto found = running_.find(ended.transfer);
  if (found == running_.end()) return nullptr;
  const Running& running = found->second;
  const StartTransfer& start = running.transfer.start;
  if (running.received == nullptr || running.calls_left > 1 || !running.transfer.status.ok() ||
      !StatusOf(running, ended).ok()) {
    return nullptr;
  }
  return [pieces = RangePieces(values_.RangesOf(start)), memory = values_.At(start.content),
          weight = start.weight, received = running.received]() mutable {
    if (pieces.done()) return true;
    const RangePieces::Piece next = pieces.Next();
    std::byte* const own = memory + next.part.offset;
    std::vector<SumTerm> terms = {{weight, own}};
    for (const Received& from : *received) {
      terms.push_back({from.weight, from.memory[next.range].data() + next.at});
    }
    WeightedSum(next.part.type, next.part.elements, terms, own);
    return pieces.done();
  };
}

// How a call counts for its transfer: one that it does not need may fail, unless this worker itself is
// out of the job.
absl::Status LiveTransfers::StatusOf(const Running& running, const EndedCall& ended) {
  const bool needed = ended.call >= running.parts.size() || running.parts[ended.call].needed;
  const bool forgiven = !needed && GetSuspect(ended.status) == running.parts[ended.call].pair->to &&
                        GetBlast(ended.status) != BlastRadius::kJob;
  return forgiven ? absl::OkStatus() : ended.status;
}

// Members bring all calls of a group at once, so the first one says when they had come; a transfer with
// several groups needs all of them.
int64_t LiveTransfers::FirstNs(const Running& running) {
  std::map<std::optional<Pair>, int64_t> came;
  for (const Part& part : running.parts) {
    if (!part.needed || part.first_ns == 0) continue;
    int64_t& first_ns = came.try_emplace(part.pair, part.first_ns).first->second;
    first_ns = std::min(first_ns, part.first_ns);
  }
  int64_t first_ns = running.transfer.begin_ns;
  for (const auto& [pair, came_ns] : came) first_ns = std::max(first_ns, came_ns);
  return first_ns;
}

std::optional<LiveTransfers::Transfer> LiveTransfers::CallEnded(const EndedCall& ended) {
  const auto found = running_.find(ended.transfer);
  if (found == running_.end()) return std::nullopt;
  Running& running = found->second;
  if (running.transfer.status.ok()) running.transfer.status = StatusOf(running, ended);
  int64_t end_ns = ended.at_ns;
  if (ended.call < running.parts.size()) {
    Part& part = running.parts[ended.call];
    if (ended.status.ok()) {
      const worker::CallTimes times = part.call->times();
      part.first_ns = times.first_ns;
      end_ns = times.last_ns;
    }
    if (part.pair && GetBlast(ended.status) == BlastRadius::kGroup) {
      pairs_.Drop(*part.pair, part.group);
    }
  }
  // A transfer is over when the last of its calls is.
  if (--running.calls_left > 0) return std::nullopt;
  running.transfer.end_ns = end_ns;
  running.transfer.first_ns = std::min(FirstNs(running), end_ns);
  running.parts.clear();
  running.received = nullptr;
  Transfer transfer = running.transfer;
  if (!transfer.status.ok()) {
    if (running.group && GetBlast(transfer.status) == BlastRadius::kGroup) {
      groups_.Drop(*running.group);
    }
    running_.erase(found);
    return transfer;
  }
  running.group.reset();
  Note(transfer);
  running.done = true;
  // Nothing is applied here of what was pushed.
  if (transfer.start.movement == Movement::kPush) running_.erase(found);
  return transfer;
}

void LiveTransfers::Note(const Transfer& transfer) {
  // Half of them are dropped at a time, so that a full list costs no move for every transfer.
  if (ended_.size() >= kEndedMax) ended_.erase(ended_.begin(), ended_.begin() + kEndedMax / 2);
  ended_.push_back({.iteration = transfer.iteration,
                    .first = transfer.tensors.empty() ? 0 : transfer.tensors.front(),
                    .last = transfer.tensors.empty() ? 0 : transfer.tensors.back(),
                    .bytes = transfer.bytes,
                    .seconds = SecondsOf(transfer.end_ns - transfer.begin_ns)});
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
