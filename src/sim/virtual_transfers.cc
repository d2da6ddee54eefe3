#include "sim/virtual_transfers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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

constexpr double kNever = std::numeric_limits<double>::infinity();

bool Meet(const std::vector<int>& members, const std::set<int>& ranks) {
  return std::any_of(members.begin(), members.end(),
                     [&](int rank) { return ranks.contains(rank); });
}

bool Contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// Who move bytes for a transfer that `rank` starts.
std::vector<int> MoversOf(int rank, const StartTransfer& start, const std::vector<int>& members) {
  std::set<int> movers;
  switch (start.movement) {
    case Movement::kAverage:
      movers.insert(members.begin(), members.end());
      break;
    case Movement::kPush:
    case Movement::kPull:
      movers = {rank, start.target};
      break;
    case Movement::kExchange:
      movers = {rank};
      for (const strategy::Source& source : start.from) movers.insert(source.rank);
      break;
  }
  return {movers.begin(), movers.end()};
}

absl::Status Fault(const StartTransfer& start, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(ToText(Command(start)), ": ", why));
}

bool SameShape(const StartTransfer& one, const StartTransfer& two) {
  return one.movement == two.movement && one.content == two.content && one.first == two.first &&
         one.last == two.last && one.begin == two.begin && one.end == two.end && one.key == two.key;
}

}  // namespace

void VirtualTransfers::Cut(const StartTransfer& start, Moving& moving) const {
  const bool by_bytes = start.end > 0;
  if (by_bytes) {
    moving.tensors = layout_.TensorsIn(start.begin, start.end);
  } else {
    moving.tensors.resize(static_cast<size_t>(start.last - start.first + 1));
    std::iota(moving.tensors.begin(), moving.tensors.end(), start.first);
  }
  for (const int tensor : moving.tensors) {
    const uint64_t at = layout_.Offset(tensor), bytes = layout_.BytesOf(tensor);
    const uint64_t moved =
        by_bytes ? std::min(start.end, at + bytes) - std::max(start.begin, at) : bytes;
    moving.fractions.push_back(static_cast<double>(moved) / static_cast<double>(bytes));
    moving.bytes += moved;
  }
}

absl::Status VirtualTransfers::Start(double now, int rank, int64_t iteration,
                                     const StartTransfer& start, const std::vector<int>& members,
                                     const std::function<double(int)>& value) {
  if (start.end > 0) {
    if (const auto ranges = layout_.RangesOfBytes(start.begin, start.end); !ranges.ok()) {
      return Fault(start, ranges.status().message());
    }
  }
  const bool average = start.movement == Movement::kAverage;
  if (average && !Contains(members, rank)) return Fault(start, "not a member");
  // All members of an average name it by the same id. Other transfers belong to one worker, and
  // those of two workers may have the same id without being the same.
  auto [entry, fresh] = transfers_.try_emplace(
      {average ? -1 : rank, start.transfer, average ? members : std::vector<int>()});
  Moving& moving = entry->second;
  if (fresh) {
    moving.start = start;
    moving.members = MoversOf(rank, start, members);
    moving.costs = costs_;
    if (group_costs_) {
      SYNCOPATE_ASSIGN_OR_RETURN(moving.costs, group_costs_(moving.members));
    }
    Cut(start, moving);
    // Members that have not all heard of a loss may disagree about who takes part; with nobody gone
    // they may not.
    for (const auto& [key, other] : transfers_) {
      if (&other == &moving || std::get<0>(key) != std::get<0>(entry->first) ||
          std::get<1>(key) != start.transfer) {
        continue;
      }
      if (Meet(other.members, gone_) || Meet(moving.members, gone_)) continue;
      return Fault(start, "another member started something else with this id");
    }
  } else if (!SameShape(moving.start, start)) {
    return Fault(start, "another member started something else with this id");
  }
  Moving::Part part{.start = start,
                    .iteration = iteration,
                    .begin = now,
                    .weight = start.weight,
                    .keep_sent = start.keep_sent,
                    .values = {}};
  for (const int tensor : moving.tensors) part.values.push_back(value(tensor));
  if (!moving.parts.emplace(rank, std::move(part)).second) return Fault(start, "started twice");
  moving.untaken[rank] = static_cast<int>(moving.tensors.size());
  moving.first_byte = now + moving.costs.a;
  if (Meet(moving.members, dead_)) moving.dead = true;
  if (start.movement == Movement::kExchange) {
    BeginExchanges(start.transfer);
  } else if (moving.parts.size() == (average ? members.size() : 1)) {
    // An average begins when its last member has come; a push or a pull needs nobody else.
    Begin(moving);
  }
  return absl::OkStatus();
}

void VirtualTransfers::Begin(Moving& moving) {
  if (moving.dead) return;
  moving.flows = true;
  moving.start_up_left = moving.costs.a;
  moving.bytes_left = static_cast<double>(moving.bytes);
}

// An exchange begins when all that it receives from have started theirs, to this worker among others.
void VirtualTransfers::BeginExchanges(int64_t id) {
  for (auto& [key, moving] : transfers_) {
    if (std::get<1>(key) != id || moving.start.movement != Movement::kExchange || moving.flows ||
        moving.done) {
      continue;
    }
    const int owner = std::get<0>(key);
    bool all = true;
    for (const strategy::Source& source : moving.start.from) {
      const auto other = transfers_.find({source.rank, id, {}});
      all &= other != transfers_.end() && Contains(other->second.start.to, owner);
    }
    if (all) Begin(moving);
  }
}

// The number of transfers that move bytes and have a member in common with this one, itself
// included: these share the bandwidth by gamma.
int VirtualTransfers::Beside(const Moving& moving) const {
  int count = 0;
  for (const auto& [key, other] : transfers_) {
    if (!other.flows || other.start_up_left > 0) continue;
    count += std::any_of(other.members.begin(), other.members.end(), [&](int rank) {
      return std::binary_search(moving.members.begin(), moving.members.end(), rank);
    });
  }
  return count;
}

// At the rates of this moment.
double VirtualTransfers::SecondsLeft(const Moving& moving) const {
  if (moving.start_up_left > 0) return moving.start_up_left;
  return moving.bytes_left * moving.costs.b * moving.costs.Gamma(std::max(1, Beside(moving)));
}

double VirtualTransfers::NextEnd(double now) const {
  double left = kNever;
  for (const auto& [key, moving] : transfers_) {
    if (moving.flows) left = std::min(left, SecondsLeft(moving));
  }
  return now + left;
}

// All rates are read before anything changes, because each depends on what else moves.
void VirtualTransfers::Advance(double now, double to) {
  const double seconds = to - now;
  std::vector<std::pair<Moving*, double>> left;
  for (auto& [key, moving] : transfers_) {
    if (moving.flows) left.emplace_back(&moving, SecondsLeft(moving));
  }
  for (auto& [moving, until_end] : left) {
    const bool ends = now + until_end <= to;  // as NextEnd() rounds it
    if (moving->start_up_left > 0) {
      moving->start_up_left = ends ? 0 : moving->start_up_left - seconds;
      moving->first_byte = to;
    } else {
      moving->bytes_left = ends ? 0 : moving->bytes_left * (1 - seconds / until_end);
    }
  }
}

std::vector<Moving*> VirtualTransfers::TakeEnded() {
  std::vector<Moving*> ended;
  for (auto& [key, moving] : transfers_) {
    if (!moving.flows || moving.start_up_left > 0 || moving.bytes_left > 0) continue;
    moving.flows = false;
    moving.done = true;
    if (moving.start.movement == Movement::kAverage) {
      double weights = 0;
      moving.result.assign(moving.tensors.size(), 0);
      for (const auto& [rank, part] : moving.parts) {
        weights += part.weight;
        for (size_t i = 0; i < part.values.size(); ++i) {
          moving.result[i] += part.weight * part.values[i];
        }
      }
      for (double& value : moving.result) value /= weights;
    } else if (moving.start.movement == Movement::kExchange) {
      moving.result = moving.parts.begin()->second.values;
      for (double& value : moving.result) value *= moving.start.weight;
      for (const strategy::Source& source : moving.start.from) {
        const Moving& other = transfers_.at({source.rank, moving.start.transfer, {}});
        for (size_t i = 0; i < moving.result.size(); ++i) {
          moving.result[i] += source.weight * other.parts.begin()->second.values[i];
        }
      }
    }
    ended.push_back(&moving);
  }
  return ended;
}

void VirtualTransfers::Lose(int rank) {
  dead_.insert(rank);
  gone_.insert(rank);
  for (auto& [key, moving] : transfers_) {
    if (moving.done || !Contains(moving.members, rank)) continue;
    moving.dead = true;
    moving.flows = false;
  }
}

std::vector<int64_t> VirtualTransfers::TakeBroken(int rank, const std::set<int>& gone) {
  std::vector<int64_t> ids;
  for (auto& [key, moving] : transfers_) {
    if (moving.done || moving.flows || !moving.parts.contains(rank) ||
        !Meet(moving.members, gone) || !moving.failed_at.insert(rank).second) {
      continue;
    }
    ids.push_back(moving.start.transfer);
  }
  return ids;
}

VirtualTransfers::Record VirtualTransfers::RecordOf(const Moving& moving, int rank) {
  const Moving::Part& part = moving.parts.at(rank);
  return {part.start, part.iteration, moving.bytes, part.begin};
}

std::optional<VirtualTransfers::Record> VirtualTransfers::RecordOf(int rank, int64_t id) const {
  for (const auto& [key, moving] : transfers_) {
    if (std::get<1>(key) == id && moving.parts.contains(rank)) return RecordOf(moving, rank);
  }
  return std::nullopt;
}

Moving* VirtualTransfers::DoneOf(int rank, int64_t id) {
  for (auto& [key, moving] : transfers_) {
    if (std::get<1>(key) == id && moving.done && moving.parts.contains(rank)) return &moving;
  }
  return nullptr;
}

absl::StatusOr<std::vector<VirtualTransfers::Taken>> VirtualTransfers::Take(
    int rank, const ApplyUpdate& apply) {
  const auto fault = [&](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(ToText(Command(apply)), ": ", why));
  };
  const Moving* named = DoneOf(rank, apply.transfer);
  if (named == nullptr) return fault("there is no such result");
  std::vector<Taken> taken;
  for (int tensor = apply.first; tensor <= apply.last; ++tensor) {
    Taken one{.tensor = tensor};
    double covered = 0;
    // A tensor may have come by several transfers of bytes. If the named one has all of it, no other
    // counts.
    const auto of = std::find(named->tensors.begin(), named->tensors.end(), tensor);
    const bool whole = of != named->tensors.end() &&
                       named->fractions[static_cast<size_t>(of - named->tensors.begin())] == 1;
    for (auto& [key, moving] : transfers_) {
      const auto left = moving.untaken.find(rank);
      if (!moving.done || left == moving.untaken.end() || left->second == 0 ||
          moving.start.content != named->start.content || (whole && &moving != named)) {
        continue;
      }
      const auto at = std::find(moving.tensors.begin(), moving.tensors.end(), tensor);
      if (at == moving.tensors.end()) continue;
      const size_t i = static_cast<size_t>(at - moving.tensors.begin());
      const Moving::Part& part = moving.parts.at(rank);
      if (apply.update == strategy::Update::kAddChange && !part.keep_sent) {
        return fault("what was sent was not kept");
      }
      covered += moving.fractions[i];
      one.value += moving.fractions[i] * moving.result[i];
      one.sent += moving.fractions[i] * part.values[i];
      --left->second;
    }
    if (std::abs(covered - 1) > 1e-9) {
      return fault(absl::StrCat("of tensor ", tensor, " only ", covered, " has come"));
    }
    taken.push_back(one);
  }
  // An average that all have applied is needed no more. Exchanges are read by others.
  std::erase_if(transfers_, [](const auto& entry) {
    const Moving& moving = entry.second;
    return moving.done && moving.start.movement == Movement::kAverage &&
           std::all_of(moving.untaken.begin(), moving.untaken.end(),
                       [](const auto& left) { return left.second == 0; });
  });
  return taken;
}

}  // namespace syncopate::sim
