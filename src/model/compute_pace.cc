#include "model/compute_pace.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"

namespace syncopate {
namespace {

constexpr double kDelaySecondsMax = 3600;
constexpr double kRateLeast = 1e-3, kRateMax = 1e9;  // samples a second
constexpr double kSlowMax = 1000;

// One entry of a list, with its place for messages.
struct Entry {
  std::string place;
  std::optional<std::vector<int>> ranks;  // nothing: for all that no other entry is for
  std::string value;
};

absl::StatusOr<std::vector<Entry>> SplitEntries(absl::string_view option,
                                                const std::vector<std::string>& texts, int size) {
  std::vector<Entry> entries;
  for (const std::string& text : texts) {
    for (const absl::string_view part : absl::StrSplit(text, ';')) {
      const absl::string_view each = absl::StripAsciiWhitespace(part);
      Entry entry{.place = absl::StrCat(option, " ", each), .ranks = {}, .value = ""};
      const size_t colon = each.find(':');
      if (colon == absl::string_view::npos) {
        entry.value = std::string(each);
      } else {
        const absl::string_view named = each.substr(0, colon);
        const absl::StatusOr<std::vector<int>> ranks = ParseRanks(named, size);
        if (!ranks.ok() || ranks->empty()) {
          return At(entry.place,
                    absl::InvalidArgumentError(absl::StrCat("\"", named, "\" names no ranks of ",
                                                            size, " workers, such as 3 or 0-3,6")));
        }
        entry.ranks = *ranks;
        entry.value = std::string(each.substr(colon + 1));
      }
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

// Which workers have an entry so far.
class Told {
 public:
  // Whether there was none for these workers; now there is.
  bool Add(const Entry& entry) {
    if (!entry.ranks) return !std::exchange(others_, true);
    return std::all_of(entry.ranks->begin(), entry.ranks->end(),
                       [&](int rank) { return ranks_.insert(rank).second; });
  }
  bool Contains(int rank) const { return ranks_.contains(rank); }

 private:
  std::set<int> ranks_;
  bool others_ = false;
};

bool IsOf(const Entry& entry, int rank) {
  return entry.ranks && std::binary_search(entry.ranks->begin(), entry.ranks->end(), rank);
}

struct Pace {
  double delay_seconds = 0;
  double rate = 0;
};

absl::StatusOr<Pace> ParsePace(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() != 2) {
    return absl::InvalidArgumentError(
        "expected DELAY,RATE or RANKS:DELAY,RATE, such as 20ms,800 or 0-3,6:20ms,400");
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
  Told paced, slowed;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Entry> paces,
                             SplitEntries("--pace", options.pace, size));
  for (const Entry& entry : paces) {
    const absl::StatusOr<Pace> each = ParsePace(entry.value);
    if (!each.ok()) return At(entry.place, each.status());
    if (!paced.Add(entry)) {
      return At(entry.place,
                absl::InvalidArgumentError("there is another pace for the same workers"));
    }
    if (IsOf(entry, rank) || (!entry.ranks && !paced.Contains(rank))) {
      pace.delay_seconds_ = each->delay_seconds;
      pace.rate_ = each->rate;
    }
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Entry> slows,
                             SplitEntries("--slow", options.slow, size));
  for (const Entry& entry : slows) {
    if (!entry.ranks) {
      return At(entry.place, absl::InvalidArgumentError("expected RANKS:K, such as 3:2 or 0-1:2"));
    }
    const absl::StatusOr<double> factor = ParseDouble(entry.value, 0, kSlowMax);
    if (!factor.ok()) return At(entry.place, factor.status());
    if (!slowed.Add(entry)) {
      return At(entry.place, absl::InvalidArgumentError("one of these workers is slowed twice"));
    }
    if (IsOf(entry, rank)) pace.slow_ = *factor;
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
