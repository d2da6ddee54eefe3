#include "sync/transfer_check.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "strategy/record.h"

namespace syncopate::sync {
namespace {

using strategy::Content;
using strategy::Movement;
using strategy::StartTransfer;

// Why whom it names makes no sense; empty if it does.
absl::string_view FaultOfPeers(const StartTransfer& start, const TransferPlace& place) {
  const auto is_other = [&](int rank) {
    return 0 <= rank && rank < place.size && rank != place.rank;
  };
  if (start.movement == Movement::kPush || start.movement == Movement::kPull) {
    if (start.target == place.rank) {
      return place.has_store ? "" : "this worker holds no parameters for itself and others";
    }
    return is_other(start.target) ? "" : "there is no such target";
  }
  if (start.movement == Movement::kAverage && start.members.empty() && place.serves) {
    return "this worker is a server, and so none of the training ranks";
  }
  if (start.movement == Movement::kExchange) {
    const std::set<int> to(start.to.begin(), start.to.end());
    std::set<int> from;
    for (const strategy::Source& source : start.from) from.insert(source.rank);
    if (to.size() != start.to.size() || from.size() != start.from.size() ||
        !std::all_of(to.begin(), to.end(), is_other) ||
        !std::all_of(from.begin(), from.end(), is_other)) {
      return "there are no such neighbours";
    }
  }
  return "";
}

}  // namespace

absl::Status CheckTransfer(const StartTransfer& start, const TransferPlace& place,
                           const TensorLayout& layout) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InternalError(absl::StrCat(ToText(strategy::Command(start)), ": ", why));
  };
  if (const absl::string_view why = FaultOfPeers(start, place); !why.empty()) return refuse(why);
  if (start.content == Content::kGradients ? !place.moves_gradients : !place.moves_parameters) {
    return refuse("it was not announced that such values move");
  }
  if (start.end > 0) {
    const absl::Status status = layout.RangesOfBytes(start.begin, start.end).status();
    return status.ok() ? status : refuse(status.message());
  }
  if (start.first < 0 || start.first > start.last || start.last >= place.tensors) {
    return refuse("there are no such tensors");
  }
  return absl::OkStatus();
}

}  // namespace syncopate::sync
