#include "lab/scenario.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/units.h"
#include "lab/toml_reader.h"

namespace syncopate::lab {
namespace {

constexpr double kScenarioSecondsMax = 7 * 86'400;

// The name of a change that the file gives none.
std::string UnnamedChange(size_t index) { return absl::StrCat("event", index + 1); }

}  // namespace

absl::StatusOr<std::vector<Event>> ParseScenario(const Spec& spec, absl::string_view text,
                                                 absl::string_view place) {
  SYNCOPATE_ASSIGN_OR_RETURN(const toml::table table, ParseToml(text, place));
  TableReader file(table, place, "the file");
  const std::vector<const toml::table*> tables = file.Tables("event");
  SYNCOPATE_RETURN_IF_ERROR(file.Finish());
  if (tables.empty() || tables.size() > kEventsMax) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": a scenario has 1 to ", kEventsMax,
                                                   " [[event]]s, this one ", tables.size()));
  }
  std::vector<Event> events;
  std::set<std::string> names;
  for (size_t i = 0; i < tables.size(); ++i) {
    TableReader reader(*tables[i], place, "[[event]]");
    const double at = reader.Seconds("at", -1);
    const bool timed = reader.Has("at");
    const bool passing = reader.Has("for");
    const double lasts = reader.Seconds("for", 0);
    Event event;
    event.text = reader.NeededText("do", "\"cut h0\"");
    event.name = reader.Text("name", "");
    SYNCOPATE_RETURN_IF_ERROR(reader.Finish());
    if (!timed || at > kScenarioSecondsMax || lasts > kScenarioSecondsMax) {
      return reader.Fault("at says when, as in at = \"10s\"; a week at most");
    }
    event.at_ns = static_cast<int64_t>(at * 1e9);
    const std::vector<std::string> words = absl::StrSplit(event.text, ' ', absl::SkipEmpty());
    if (words.size() == 2 && words[0] == "undo") {
      event.undo = true;
      event.name = words[1];
      events.push_back(event);
      continue;
    }
    const absl::StatusOr<Change> change = ParseChange(spec, words);
    if (!change.ok()) return reader.Fault(change.status().message());
    event.change = *change;
    if (event.name.empty()) event.name = UnnamedChange(i);
    const absl::Status named = CheckName(event.name, kLabNameBytesMax);
    if (!named.ok()) return reader.Fault(named.message());
    if (!names.insert(event.name).second) {
      return reader.Fault(absl::StrCat("two events make a change called ", event.name));
    }
    events.push_back(event);
    if (!passing) continue;
    Event end;
    end.at_ns = event.at_ns + static_cast<int64_t>(lasts * 1e9);
    end.undo = true;
    end.name = event.name;
    end.text = absl::StrCat("undo ", event.name);
    events.push_back(end);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.at_ns < b.at_ns; });
  std::set<std::string> standing;
  for (const Event& event : events) {
    if (!event.undo) {
      standing.insert(event.name);
    } else if (standing.erase(event.name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": \"", event.text, "\" at ",
                       FormatSeconds(static_cast<double>(event.at_ns) * 1e-9),
                       ": no change of that name stands at that time"));
    }
  }
  return events;
}

}  // namespace syncopate::lab
