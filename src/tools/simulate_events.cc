#include "tools/simulate_events.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"

namespace syncopate::tools {
namespace {

constexpr double kSlowerLeast = 1e-3, kSlowerMax = 1e3;
constexpr char kForms[] =
    "expected TIME:kill:RANKS, TIME:leave:RANKS, TIME:join:RANKS or TIME:slow:RANKS:Kx, such as "
    "2.5s:kill:3 or 1s:slow:0-3:2x";

struct SimulatedEvent {
  double at = 0;
  std::string what;
  std::vector<int> ranks;
  double factor = 1;  // of slow
};

absl::StatusOr<SimulatedEvent> ParseEvent(const std::string& text, int workers) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  const bool slow = parts.size() == 4 && parts[1] == "slow";
  const bool other =
      parts.size() == 3 && (parts[1] == "kill" || parts[1] == "leave" || parts[1] == "join");
  if (!slow && !other) return absl::InvalidArgumentError(kForms);
  SimulatedEvent event;
  SYNCOPATE_ASSIGN_OR_RETURN(event.at, ParseSeconds(parts[0]));
  event.what = std::string(parts[1]);
  SYNCOPATE_ASSIGN_OR_RETURN(event.ranks, ParseRanks(parts[2], workers));
  if (event.ranks.empty()) return absl::InvalidArgumentError("it names no rank");
  if (slow) {
    absl::string_view factor = parts[3];
    if (!absl::ConsumeSuffix(&factor, "x")) {
      return absl::InvalidArgumentError(absl::StrCat("\"", factor, "\" is no factor, such as 3x"));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(event.factor, ParseDouble(factor, kSlowerLeast, kSlowerMax));
  }
  return event;
}

// When each worker comes and goes, for workers that do.
struct Presence {
  std::map<int, double> joins, goes;

  absl::Status Note(const SimulatedEvent& event, int rank) {
    const auto refuse = [&](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat("worker ", rank, " ", why));
    };
    if (event.what == "join" && !joins.emplace(rank, event.at).second) {
      return refuse("joins twice");
    }
    if ((event.what == "kill" || event.what == "leave") && !goes.emplace(rank, event.at).second) {
      return refuse("goes twice");
    }
    const auto joined = joins.find(rank), gone = goes.find(rank);
    if (joined != joins.end() && gone != goes.end() && gone->second <= joined->second) {
      return refuse("would go before it joins");
    }
    return absl::OkStatus();
  }
};

void AddTo(const SimulatedEvent& event, int rank, double detection, sim::VirtualOptions& options) {
  if (event.what == "join") {
    options.joins.push_back(
        {.rank = rank, .at = event.at, .detection = options.message_delay.value_or(0)});
  } else if (event.what == "slow") {
    const double pace = options.slowness.empty() ? 1 : options.slowness[static_cast<size_t>(rank)];
    options.slowdowns.push_back({.rank = rank, .from = event.at, .factor = pace * event.factor});
  } else {
    const bool leaves = event.what == "leave";
    options.departures.push_back(
        {.rank = rank,
         .at = event.at,
         .detection = leaves ? options.message_delay.value_or(0) : detection,
         .in_good_order = leaves});
  }
}

}  // namespace

absl::Status AddEvents(const std::vector<std::string>& events, double detection,
                       sim::VirtualOptions& options) {
  if (events.size() > kSimulatedEventsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--event: at most ", kSimulatedEventsMax, " of them"));
  }
  Presence presence;
  for (const std::string& text : events) {
    const std::string place = absl::StrCat("--event ", text);
    const absl::StatusOr<SimulatedEvent> event = ParseEvent(text, options.workers);
    if (!event.ok()) return At(place, event.status());
    for (const int rank : event->ranks) {
      if (const absl::Status status = presence.Note(*event, rank); !status.ok()) {
        return At(place, status);
      }
      AddTo(*event, rank, detection, options);
    }
  }
  if (presence.joins.size() == static_cast<size_t>(options.workers)) {
    return absl::InvalidArgumentError("--event: all workers join, so nobody is there to begin");
  }
  return absl::OkStatus();
}

}  // namespace syncopate::tools
