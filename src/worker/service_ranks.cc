#include "worker/service_ranks.h"

#include <algorithm>
#include <numeric>
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
      if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) {
        return Bad(absl::StrCat("rank ", rank, " stands there twice"));
      }
      ranks.push_back(rank);
    }
  }
  return ranks;
}

absl::StatusOr<std::vector<int>> ServiceOrder(std::vector<int> ranks, int size) {
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  for (const int rank : ranks) {
    if (rank >= size) return Bad(absl::StrCat("rank ", rank, " of a job of ", size, " workers"));
  }
  return ranks;
}

std::string ServiceTerms(const std::vector<int>& ranks) {
  return ranks.empty() ? "" : absl::StrCat(kVariable, "=", absl::StrJoin(ranks, ","));
}

}  // namespace syncopate::worker
