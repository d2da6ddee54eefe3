// The names and properties of the collectives.
#include "syncopate/collective.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace syncopate {

absl::string_view Name(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all-reduce";
    case Collective::kReduce:
      return "reduce";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kAllGather:
      return "all-gather";
    case Collective::kReduceScatter:
      return "reduce-scatter";
    case Collective::kGather:
      return "gather";
    case Collective::kScatter:
      return "scatter";
    case Collective::kAllToAll:
      return "all-to-all";
    case Collective::kBarrier:
      return "barrier";
    case Collective::kSendReceive:
      return "send-receive";
  }
  return "?";
}

absl::StatusOr<Collective> ParseCollective(absl::string_view name) {
  std::string names;
  for (Collective collective : kCollectives) {
    const absl::string_view full = Name(collective);
    if (name == full || name == absl::StrReplaceAll(full, {{"-", ""}})) return collective;
    absl::StrAppend(&names, names.empty() ? "" : ", ", full);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is not a collective; choose one of ", names));
}

bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kReduceScatter;
}

bool HasBlocks(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
         collective == Collective::kGather || collective == Collective::kScatter ||
         collective == Collective::kAllToAll;
}

bool HasRoot(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kBroadcast ||
         collective == Collective::kGather || collective == Collective::kScatter ||
         collective == Collective::kSendReceive;
}

}  // namespace syncopate
