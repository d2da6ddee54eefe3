#include "worker/service_ranks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::worker {
namespace {

constexpr char kVariable[] = "SYNCOPATE_SERVICE_RANKS";

bool Contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(kVariable, ": ", what,
                   "; give ranks of the job, first choice first, such as 4,0-3, or leave it out"));
}

}  // namespace

absl::StatusOr<std::vector<int>> ServiceRanksFromEnvironment(const Environment& environment) {
  std::vector<int> ranks;
  const std::optional<std::string> text = environment(kVariable);
  if (!text) return ranks;
  for (const absl::string_view part : absl::StrSplit(*text, ',')) {
    // Each part is sorted by itself: the order of the parts stays.
    const absl::StatusOr<std::vector<int>> some = ParseRanks(part, limits::kWorkersMax);
    if (!some.ok()) return Bad(some.status().message());
    for (const int rank : *some) {
      if (Contains(ranks, rank)) return Bad(absl::StrCat("rank ", rank, " stands there twice"));
      ranks.push_back(rank);
    }
  }
  return ranks;
}

absl::StatusOr<std::vector<int>> ServiceOrder(std::vector<int> ranks,
                                              const std::vector<int>& servers, int size) {
  for (const int server : servers) {
    if (server < 0 || server >= size) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", server, " is named as a server, in a job of ", size, " workers"));
    }
  }
  for (const int rank : ranks) {
    if (rank >= size) return Bad(absl::StrCat("rank ", rank, " of a job of ", size, " workers"));
    if (Contains(servers, rank)) {
      return Bad(absl::StrCat("rank ", rank, " is a server, which hosts no services"));
    }
  }
  if (!ranks.empty()) return ranks;
  for (int rank = 0; rank < size; ++rank) {
    if (!Contains(servers, rank)) ranks.push_back(rank);
  }
  if (ranks.empty()) return ServiceOrder({}, {}, size);
  return ranks;
}

std::string ServiceTerms(const std::vector<int>& ranks, const std::vector<int>& servers) {
  std::vector<std::string> parts;
  if (!ranks.empty()) parts.push_back(absl::StrCat(kVariable, "=", absl::StrJoin(ranks, ",")));
  if (!servers.empty()) {
    parts.push_back(absl::StrCat("the server ranks ", absl::StrJoin(servers, ",")));
  }
  return absl::StrJoin(parts, " and ");
}

}  // namespace syncopate::worker
