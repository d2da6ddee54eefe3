#include "model/compute_pace.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"

namespace syncopate {
namespace {

constexpr double kDelaySecondsMax = 3600;
constexpr double kRateLeast = 1e-3, kRateMax = 1e9;  // samples a second
constexpr double kSlowMax = 1000;

struct Entry {
  std::optional<int> rank;  // nothing: for all
  std::string value;
};

absl::StatusOr<Entry> SplitEntry(const std::string& text, int size) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  if (text.find(':') == std::string::npos) return Entry{.rank = {}, .value = text};
  const absl::StatusOr<int64_t> rank = ParseInt(parts.first, 0, size - 1);
  if (!rank.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", parts.first, "\" is no rank of ", size, " workers"));
  }
  return Entry{.rank = static_cast<int>(*rank), .value = parts.second};
}

struct Pace {
  double delay_seconds = 0;
  double rate = 0;
};

absl::StatusOr<Pace> ParsePace(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() != 2) {
    return absl::InvalidArgumentError(
        "expected DELAY,RATE or RANK:DELAY,RATE, such as 20ms,800 or 3:20ms,400");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const double delay, ParseSeconds(parts[0]));
  if (delay > kDelaySecondsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a delay of more than ", kDelaySecondsMax, " s"));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const double rate, ParseDouble(parts[1], kRateLeast, kRateMax));
  return Pace{.delay_seconds = delay, .rate = rate};
}

}  // namespace

absl::StatusOr<ComputePace> ComputePace::Make(const PaceOptions& options, int rank, int size) {
  ComputePace pace;
  std::set<std::optional<int>> told;  // ranks that have entries of their own; nothing: all others
  for (const std::string& text : options.pace) {
    const std::string place = absl::StrCat("--pace ", text);
    const absl::StatusOr<Entry> entry = SplitEntry(text, size);
    if (!entry.ok()) return At(place, entry.status());
    const absl::StatusOr<Pace> each = ParsePace(entry->value);
    if (!each.ok()) return At(place, each.status());
    if (!told.insert(entry->rank).second) {
      return At(place, absl::InvalidArgumentError("there is another pace for the same workers"));
    }
    const bool own = entry->rank == rank;
    if (own || (!entry->rank && !told.contains(rank))) {
      pace.delay_seconds_ = each->delay_seconds;
      pace.rate_ = each->rate;
    }
  }
  told.clear();
  for (const std::string& text : options.slow) {
    const std::string place = absl::StrCat("--slow ", text);
    const absl::StatusOr<Entry> entry = SplitEntry(text, size);
    if (!entry.ok()) return At(place, entry.status());
    if (!entry->rank) {
      return At(place, absl::InvalidArgumentError("expected RANK:K, such as 3:2"));
    }
    const absl::StatusOr<double> factor = ParseDouble(entry->value, 0, kSlowMax);
    if (!factor.ok()) return At(place, factor.status());
    if (!told.insert(entry->rank).second) {
      return At(place, absl::InvalidArgumentError("that worker is slowed twice"));
    }
    if (*entry->rank == rank) pace.slow_ = *factor;
  }
  return pace;
}

double ComputePace::Seconds(double computed_seconds, double samples) const {
  double seconds = computed_seconds;
  if (rate_ > 0) seconds = std::max(seconds, delay_seconds_ + samples / rate_);
  return (1 + slow_) * seconds;
}

int64_t PacedIteration::EndNs(int64_t now_ns, double samples) const {
  const double computed = static_cast<double>(now_ns - begin_ns_ - held_ns_) * 1e-9;
  const double left = pace_.Seconds(computed, samples) - computed;
  return now_ns + static_cast<int64_t>(left * 1e9);
}

}  // namespace syncopate
