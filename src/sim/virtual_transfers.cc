#include "sim/virtual_transfers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "strategy/record.h"

namespace syncopate::sim {
namespace {

using strategy::ApplyUpdate;
using strategy::Command;
using strategy::Movement;
using strategy::StartTransfer;
using State = Moving::State;

constexpr double kNeverEnds = std::numeric_limits<double>::infinity();

// Those who are gone are few; members may be very many.
template <typename Ranks>
bool Meet(const MemberList& members, const Ranks& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return members.PositionOf(rank) >= 0; });
}

bool Contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// Takes one entry out; most are near the end. The order of the others stays.
void Drop(std::vector<int>& list, int entry) {
  const auto found = std::find(list.rbegin(), list.rend(), entry);
  if (found != list.rend()) list.erase(std::next(found).base());
}

// Whose bytes go where, if `rank` starts this and it is not an average.
Travel TravelOf(int rank, const StartTransfer& start) {
  Travel travel;
  travel.average = false;
  travel.to = start.movement == Movement::kPush ? start.target : rank;
  if (start.movement == Movement::kPush) travel.from = {rank};
  if (start.movement == Movement::kPull) travel.from = {start.target};
  for (const strategy::Source& source : start.from) travel.from.push_back(source.rank);
  std::set<int> movers(travel.from.begin(), travel.from.end());
  movers.insert(travel.to);
  travel.members =
      std::make_shared<const MemberList>(std::vector<int>(movers.begin(), movers.end()));
  return travel;
}

absl::Status Fault(const StartTransfer& start, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(ToText(Command(start)), ": ", why));
}

bool SameShape(const StartTransfer& one, const StartTransfer& two) {
  return one.movement == two.movement && one.content == two.content && one.first == two.first &&
         one.last == two.last && one.begin == two.begin && one.end == two.end &&
         one.key == two.key && one.version == two.version;
}

// What it moves of the tensor, or null. Most transfers move a run of tensors.
const TensorCut* CutOf(const Moving& moving, int tensor) {
  const auto& cuts = moving.cuts;
  const size_t guess = static_cast<size_t>(tensor - cuts.front().tensor);
  if (tensor >= cuts.front().tensor && guess < cuts.size() && cuts[guess].tensor == tensor) {
    return &cuts[guess];
  }
  const auto found =
      std::lower_bound(cuts.begin(), cuts.end(), tensor,
                       [](const TensorCut& cut, int wanted) { return cut.tensor < wanted; });
  return found != cuts.end() && found->tensor == tensor ? &*found : nullptr;
}

}  // namespace

VirtualTransfers::Key VirtualTransfers::KeyOf(const Moving& moving) {
  return {moving.owner, moving.start.transfer, moving.owner >= 0 ? nullptr : moving.members};
}

int VirtualTransfers::FindOwned(int owner, int64_t id) const {
  const auto found = index_.find(Key{owner, id, nullptr});
  return found == index_.end() ? -1 : found->second;
}

absl::Status VirtualTransfers::Start(double now, int rank, int64_t iteration,
                                     const StartTransfer& start, const Members& members,
                                     absl::Span<const double> values) {
  if (start.end > 0) {
    if (const auto ranges = layout_.RangesOfBytes(start.begin, start.end); !ranges.ok()) {
      return Fault(start, ranges.status().message());
    }
  }
  const bool average = start.movement == Movement::kAverage;
  const int position = average ? members->PositionOf(rank) : 0;
  if (position < 0) return Fault(start, "not a member");
  // All members of an average name it by the same id. Other transfers belong to one worker, and
  // those of two workers may have the same id without being the same.
  const Key key{average ? -1 : rank, start.transfer, average ? members : nullptr};
  int transfer = -1;
  if (const auto found = index_.find(key); found != index_.end()) {
    transfer = found->second;
    if (!SameShape(At(transfer).start, start)) {
      return Fault(start, "another member started something else with this id");
    }
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(transfer, Create(now, rank, start, key));
  }
  Moving& moving = At(transfer);
  Moving::Part& part = moving.parts[static_cast<size_t>(position)];
  if (part.started) return Fault(start, "started twice");
  part.start = start;
  part.iteration = iteration;
  part.begin = now;
  part.started = part.open = true;
  part.untaken = static_cast<int>(moving.cuts.size());
  part.values.reserve(moving.numbers);
  for (const TensorCut& cut : moving.cuts) {
    const auto from = values.begin() + static_cast<ptrdiff_t>(cut.first);
    part.values.insert(part.values.end(), from, from + static_cast<ptrdiff_t>(cut.count));
  }
  ++moving.started;
  ++moving.open;
  RankOf(rank).started.push_back(transfer);
  if (start.movement == Movement::kExchange) return BeginExchanges(now, transfer);
  // An average begins when its last member has come; a push or a pull needs nobody else.
  if (static_cast<size_t>(moving.started) == moving.parts.size()) Begin(now, transfer);
  return absl::OkStatus();
}

absl::StatusOr<int> VirtualTransfers::Create(double now, int rank, const StartTransfer& start,
                                             const Key& key) {
  auto moving = std::make_unique<Moving>();
  moving->start = start;
  moving->owner = key.owner;
  moving->serial = ++serials_;
  moving->cuts = numbers_.Cut(layout_, start);
  if (start.end > 0) {
    moving->bytes = start.end - start.begin;
  } else {
    for (const TensorCut& cut : moving->cuts) moving->bytes += layout_.BytesOf(cut.tensor);
  }
  moving->numbers = moving->cuts.back().offset + moving->cuts.back().count;
  Travel travel =
      key.owner < 0 ? Travel{.members = key.members, .from = {}} : TravelOf(rank, start);
  travel.bytes = moving->bytes;
  moving->members = travel.members;
  moving->parts.resize(key.owner < 0 ? travel.members->ranks.size() : 1);
  if (key.owner < 0) SYNCOPATE_RETURN_IF_ERROR(CheckAgreement(*moving, start));
  if (free_.empty()) {
    free_.push_back(static_cast<int>(transfers_.size()));
    transfers_.emplace_back();
  }
  const int transfer = free_.back();
  SYNCOPATE_ASSIGN_OR_RETURN(moving->start_up, bandwidth_->Add(transfer, travel));
  free_.pop_back();
  moving->first_byte = now + moving->start_up;
  const bool dead = Meet(*moving->members, dead_);
  transfers_[static_cast<size_t>(transfer)] = std::move(moving);
  index_.emplace(key, transfer);
  kept_max_ = std::max(kept_max_, index_.size());
  if (dead) {
    At(transfer).state = State::kDead;
  } else {
    for (const int member : travel.members->ranks) RankOf(member).needed.push_back(transfer);
  }
  if (start.movement == Movement::kExchange) {
    for (const int to : start.to) {
      if (RankOf(to).ended) continue;
      RankOf(to).unread.push_back(transfer);
      ++At(transfer).unread;
    }
  }
  return transfer;
}

// Members that have not all heard of a loss may disagree about who takes part; with nobody gone they may
// not.
absl::Status VirtualTransfers::CheckAgreement(const Moving& moving, const StartTransfer& start) {
  if (Meet(*moving.members, gone_)) return absl::OkStatus();
  for (const int member : moving.members->ranks) {
    for (const std::vector<int>* list : {&RankOf(member).needed, &RankOf(member).started}) {
      for (const int index : *list) {
        const Moving& other = At(index);
        if (other.owner >= 0 || other.start.transfer != start.transfer) continue;
        if (Meet(*other.members, gone_)) continue;
        return Fault(start, "another member started something else with this id");
      }
    }
  }
  return absl::OkStatus();
}

void VirtualTransfers::Begin(double now, int transfer) {
  Moving& moving = At(transfer);
  if (moving.state != State::kWaits) return;
  moving.state = State::kStartUp;
  if (moving.start_up > 0) {
    start_ups_.push({now + moving.start_up, moving.serial, transfer});
  } else {
    BeginBytes(now, transfer);
  }
}

void VirtualTransfers::BeginBytes(double now, int transfer) {
  Moving& moving = At(transfer);
  moving.state = State::kMoves;
  moving.first_byte = now;
  bandwidth_->Begin(now, transfer);
}

// An exchange begins when all that it receives from have started theirs, to this worker among others.
// What others sent was fixed when they started, so it is added up then, and they can be forgotten.
absl::Status VirtualTransfers::TryExchange(double now, int transfer) {
  Moving& moving = At(transfer);
  if (moving.state != State::kWaits) return absl::OkStatus();
  std::vector<int> sources;
  for (const strategy::Source& source : moving.start.from) {
    sources.push_back(FindOwned(source.rank, moving.start.transfer));
    if (sources.back() < 0 || !Contains(At(sources.back()).start.to, moving.owner)) {
      return absl::OkStatus();
    }
  }
  moving.result = moving.parts[0].values;
  for (double& value : moving.result) value *= moving.start.weight;
  for (size_t s = 0; s < sources.size(); ++s) {
    const Moving& other = At(sources[s]);
    if (!SameShape(other.start, moving.start)) {
      return Fault(moving.start, absl::StrCat("worker ", other.owner, " exchanges something else"));
    }
    for (size_t i = 0; i < moving.result.size(); ++i) {
      moving.result[i] += moving.start.from[s].weight * other.parts[0].values[i];
    }
  }
  const int owner = moving.owner;
  Begin(now, transfer);
  for (const int source : sources) MarkRead(source, owner);
  return absl::OkStatus();
}

absl::Status VirtualTransfers::BeginExchanges(double now, int transfer) {
  const StartTransfer start = At(transfer).start;
  SYNCOPATE_RETURN_IF_ERROR(TryExchange(now, transfer));
  for (const int to : start.to) {
    const int other = FindOwned(to, start.transfer);
    if (other >= 0 && At(other).start.movement == Movement::kExchange) {
      SYNCOPATE_RETURN_IF_ERROR(TryExchange(now, other));
    }
  }
  return absl::OkStatus();
}

void VirtualTransfers::MarkRead(int transfer, int reader) {
  std::vector<int>& unread = RankOf(reader).unread;
  if (!Contains(unread, transfer)) return;
  Drop(unread, transfer);
  --At(transfer).unread;
  ForgetIfOver(transfer);
}

double VirtualTransfers::NextEnd() {
  while (!start_ups_.empty()) {
    const StartUp& next = start_ups_.top();
    const auto& moving = transfers_[static_cast<size_t>(next.transfer)];
    if (moving != nullptr && moving->serial == next.serial && moving->state == State::kStartUp) {
      break;
    }
    start_ups_.pop();
  }
  return std::min(start_ups_.empty() ? kNeverEnds : start_ups_.top().end, bandwidth_->NextEnd());
}

void VirtualTransfers::Advance(double now) {
  NextEnd();  // only valid start-ups are in front then
  while (!start_ups_.empty() && start_ups_.top().end <= now) {
    const int transfer = start_ups_.top().transfer;
    start_ups_.pop();
    BeginBytes(now, transfer);
    NextEnd();
  }
}

std::vector<Moving*> VirtualTransfers::TakeEnded(double now) {
  std::vector<Moving*> ended;
  if (bandwidth_->NextEnd() > now) return ended;
  for (const int transfer : bandwidth_->TakeEnded(now)) {
    Finish(transfer);
    ended.push_back(&At(transfer));
  }
  // The order in which members hear of them must not depend on rounding.
  std::sort(ended.begin(), ended.end(), [](const Moving* one, const Moving* two) {
    return std::tie(one->owner, one->start.transfer, one->serial) <
           std::tie(two->owner, two->start.transfer, two->serial);
  });
  return ended;
}

void VirtualTransfers::Finish(int transfer) {
  Moving& moving = At(transfer);
  StopNeeding(transfer);
  moving.state = State::kDone;
  if (moving.owner >= 0) return;
  double weights = 0;
  moving.result.assign(moving.numbers, 0);
  for (const Moving::Part& part : moving.parts) {
    weights += part.start.weight;
    for (size_t i = 0; i < part.values.size(); ++i) {
      moving.result[i] += part.start.weight * part.values[i];
    }
  }
  for (double& value : moving.result) value /= weights;
  for (Moving::Part& part : moving.parts) {
    if (!part.start.keep_sent) std::vector<double>().swap(part.values);
  }
}

// A push brings its worker nothing.
void VirtualTransfers::Close(Moving& moving) {
  const auto found = index_.find(KeyOf(moving));
  const int transfer = found->second;
  if (moving.start.movement == Movement::kPush && moving.parts[0].open) {
    ClosePart(transfer, moving.owner);
  } else {
    ForgetIfOver(transfer);
  }
}

void VirtualTransfers::StopNeeding(int transfer) {
  for (const int member : At(transfer).members->ranks) Drop(RankOf(member).needed, transfer);
}

// The part's worker has nothing to do with the transfer any more.
void VirtualTransfers::ClosePart(int transfer, int rank) {
  Moving& moving = At(transfer);
  moving.PartOf(rank).open = false;
  --moving.open;
  Drop(RankOf(rank).started, transfer);
  ForgetIfOver(transfer);
}

void VirtualTransfers::ForgetIfOver(int transfer) {
  Moving& moving = At(transfer);
  const bool broken = !moving.flows() && moving.failed == moving.started;
  if (moving.open > 0 || moving.unread > 0 || !(moving.ended() || broken)) return;
  if (!moving.ended()) StopNeeding(transfer);
  index_.erase(KeyOf(moving));
  const std::unique_ptr<Moving> last = std::move(transfers_[static_cast<size_t>(transfer)]);
  free_.push_back(transfer);
  // An exchange that never began has read nothing, and never will.
  if (last->start.movement != Movement::kExchange || last->state == State::kDone) return;
  for (const strategy::Source& source : last->start.from) {
    const int other = FindOwned(source.rank, last->start.transfer);
    if (other >= 0) MarkRead(other, last->owner);
  }
}

void VirtualTransfers::Lose(double now, int rank) {
  RankOf(rank).dead = true;
  dead_.push_back(rank);
  Leave(rank);
  while (!RankOf(rank).needed.empty()) {
    const int transfer = RankOf(rank).needed.back();
    Moving& moving = At(transfer);
    if (moving.state == State::kMoves) bandwidth_->Cancel(now, transfer);
    StopNeeding(transfer);
    moving.state = State::kDead;
    ForgetIfOver(transfer);
  }
  End(rank);
}

void VirtualTransfers::Leave(int rank) {
  if (!std::exchange(RankOf(rank).gone, true)) gone_.push_back(rank);
}

void VirtualTransfers::End(int rank) {
  RankOf(rank).ended = true;
  for (const int transfer : std::vector<int>(RankOf(rank).started)) ClosePart(transfer, rank);
  for (const int transfer : std::vector<int>(RankOf(rank).unread)) MarkRead(transfer, rank);
}

std::vector<VirtualTransfers::Record> VirtualTransfers::TakeBroken(int rank,
                                                                   const std::set<int>& gone) {
  std::vector<Record> broken;
  if (gone.empty()) return broken;
  for (const int transfer : std::vector<int>(RankOf(rank).started)) {
    Moving& moving = At(transfer);
    if (moving.state == State::kDone || moving.flows()) continue;
    const auto missing = std::find_if(gone.begin(), gone.end(), [&](int other) {
      return moving.members->PositionOf(other) >= 0;
    });
    if (missing == gone.end()) continue;
    broken.push_back(RecordOf(moving, rank));
    broken.back().missing = *missing;
    ++moving.failed;
    ClosePart(transfer, rank);
  }
  std::sort(broken.begin(), broken.end(), [](const Record& one, const Record& two) {
    return one.start.transfer < two.start.transfer;
  });
  return broken;
}

VirtualTransfers::Record VirtualTransfers::RecordOf(Moving& moving, int rank) {
  const Moving::Part& part = moving.PartOf(rank);
  return {
      .start = part.start, .iteration = part.iteration, .bytes = moving.bytes, .begin = part.begin};
}

// Adds what one transfer brought of a part of a tensor, and counts that it was taken.
void VirtualTransfers::AddCut(Moving& moving, int rank, const TensorCut& cut, size_t first,
                              Taken& taken) const {
  Moving::Part& part = moving.PartOf(rank);
  for (size_t i = 0; i < cut.count; ++i) {
    const size_t at = cut.first + i - first;
    taken.values[at] += cut.share * moving.result[cut.offset + i];
    if (!taken.sent.empty()) taken.sent[at] += cut.share * part.values[cut.offset + i];
  }
  --part.untaken;
}

// A tensor may have come by several transfers of bytes. If the named one has all of it, no other counts.
absl::Status VirtualTransfers::TakeTensor(int rank, int tensor, Moving& named, size_t first,
                                          Taken& taken) {
  const TensorCut* const whole = CutOf(named, tensor);
  if (whole != nullptr && whole->fraction == 1 && named.PartOf(rank).untaken > 0) {
    AddCut(named, rank, *whole, first, taken);
    return absl::OkStatus();
  }
  double covered = 0;
  for (const int transfer : RankOf(rank).started) {
    Moving& moving = At(transfer);
    if (moving.state != State::kDone || moving.start.content != named.start.content ||
        moving.PartOf(rank).untaken == 0) {
      continue;
    }
    const TensorCut* const cut = CutOf(moving, tensor);
    if (cut == nullptr) continue;
    if (!taken.sent.empty() && !moving.PartOf(rank).start.keep_sent) {
      return absl::FailedPreconditionError("what was sent was not kept");
    }
    covered += cut->fraction;
    AddCut(moving, rank, *cut, first, taken);
  }
  if (std::abs(covered - 1) <= 1e-9) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("of tensor ", tensor, " only ", covered, " has come"));
}

absl::Status VirtualTransfers::Take(int rank, const ApplyUpdate& apply, Taken& taken) {
  const auto fault = [&](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(ToText(Command(apply)), ": ", why));
  };
  Moving* named = nullptr;
  for (const int transfer : RankOf(rank).started) {
    Moving& moving = At(transfer);
    if (moving.start.transfer == apply.transfer && moving.state == State::kDone) named = &moving;
  }
  if (named == nullptr) return fault("there is no such result");
  const size_t first = numbers_.first(apply.first);
  taken.values.assign(numbers_.end(apply.last) - first, 0);
  taken.sent.clear();
  if (apply.update == strategy::Update::kAddChange) {
    if (!named->PartOf(rank).start.keep_sent) return fault("what was sent was not kept");
    taken.sent.resize(taken.values.size(), 0);
  }
  for (int tensor = apply.first; tensor <= apply.last; ++tensor) {
    const absl::Status status = TakeTensor(rank, tensor, *named, first, taken);
    if (!status.ok()) return fault(status.message());
  }
  const std::vector<int> mine = RankOf(rank).started;
  for (const int transfer : mine) {
    if (At(transfer).state == State::kDone && At(transfer).PartOf(rank).untaken == 0) {
      ClosePart(transfer, rank);
    }
  }
  return absl::OkStatus();
}

}  // namespace syncopate::sim
