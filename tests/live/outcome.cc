#include "live/outcome.h"

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/json_reader.h"

namespace syncopate::live {
namespace {

constexpr uint64_t kFailuresMax = 100;

bool AllAreKills(const Case& each) {
  return std::all_of(each.blows.begin(), each.blows.end(),
                     [](const Blow& blow) { return blow.fault == Fault::kKill; });
}

// What each survivor says of one loss, for messages.
std::string Tell(const std::vector<int>& survivors, const Story& story, uint64_t index) {
  return absl::StrJoin(survivors, "; ", [&](std::string* out, int rank) {
    const Loss& loss = story.accounts[rank].loss[index];
    absl::StrAppend(out, "rank ", rank, " after ", loss.rounds, " rounds: ", loss.text);
  });
}

void JudgeLoss(const JobPlan& job, const std::vector<int>& survivors, const Story& story,
               uint64_t index, Outcome& outcome) {
  std::set<int> suspects;
  std::set<uint64_t> rounds;
  std::set<Data> data;
  bool coded = true;
  for (const int rank : survivors) {
    const Loss& loss = story.accounts[rank].loss[index];
    suspects.insert(loss.suspect);
    rounds.insert(loss.rounds);
    data.insert(loss.data == Data::kNoCall ? Data::kOld : loss.data);
    const bool no_call = loss.data == Data::kNoCall;
    coded = coded && loss.code == static_cast<int>(no_call ? absl::StatusCode::kFailedPrecondition
                                                           : absl::StatusCode::kUnavailable);
  }
  const auto fail = [&](const char* what) {
    outcome.failures.push_back(absl::StrCat(what, ": ", Tell(survivors, story, index)));
  };
  if (suspects.size() > 1) fail("differing suspects");
  if (!coded) fail("other: not the error of a lost worker");
  if (job.operation == Operation::kBroadcast) return;
  if (data.count(Data::kWrong) > 0) fail("wrong element: neither old nor new");
  if (data.size() > 1 || rounds.size() > 1) fail("wrong element: some have the old, some the new");
  if (outcome.data.empty()) outcome.data = data.count(Data::kNew) > 0 ? "new" : "old";
}

}  // namespace

Outcome BeginOutcome(const JobPlan& job, int number) {
  Outcome outcome;
  outcome.job = job.number;
  outcome.number = number;
  outcome.kind = Name(job.cases[static_cast<size_t>(number)].kind);
  outcome.wire = job.wire;
  outcome.slots = job.slots;
  outcome.operation = Name(job.operation);
  return outcome;
}

void JudgeTime(const Case& each, Outcome& outcome) {
  const int64_t limit_ms = AllAreKills(each) ? kKillMsMax : kSilenceMsMax;
  if (outcome.noticed_ms <= limit_ms || outcome.pause_ms > kPauseMsMax) return;
  outcome.failures.push_back(absl::StrCat("late: noticed after ", outcome.noticed_ms,
                                          " ms, and no sentry was held up for more than ",
                                          outcome.pause_ms, " ms", outcome.times));
}

Outcome Judge(const JobPlan& job, int number, const std::vector<int>& survivors, uint64_t before,
              int64_t blow_ns, const Story& story) {
  const Case& each = job.cases[static_cast<size_t>(number)];
  const std::vector<int> victims = each.Victims();
  Outcome outcome = BeginOutcome(job, number);
  outcome.workers = static_cast<int>(survivors.size() + victims.size());
  bool complete = true;
  for (const int rank : survivors) {
    const Account& account = story.accounts[rank];
    const uint64_t losses = account.losses.load();
    complete = complete && losses >= before + victims.size();
    for (uint64_t i = before; i < losses; ++i) {
      const Loss& loss = account.loss[i];
      const int64_t noticed_ms = (loss.noticed_ns - blow_ns) / 1'000'000;
      outcome.noticed_ms = std::max(outcome.noticed_ms, noticed_ms);
      absl::StrAppend(&outcome.times, "; rank ", rank, " lost ", loss.suspect, " after ",
                      noticed_ms, " ms");
      if (std::find(victims.begin(), victims.end(), loss.suspect) != victims.end()) continue;
      outcome.failures.push_back(absl::StrCat("live worker suspected: rank ", rank, " of rank ",
                                              loss.suspect, ": ", loss.text));
    }
    const End end = account.end.load();
    if (end == End::kNone) continue;
    outcome.failures.push_back(absl::StrCat(end == End::kOut     ? "live worker suspected"
                                            : end == End::kWrong ? "wrong element"
                                                                 : "other",
                                            ": rank ", rank, " ended: ", account.why));
  }
  if (complete) {
    for (uint64_t i = before; i < before + victims.size(); ++i) {
      JudgeLoss(job, survivors, story, i, outcome);
    }
  }
  return outcome;
}

std::string ToJson(const Outcome& outcome) {
  json_reader::Json json;
  json["job"] = outcome.job;
  json["case"] = outcome.number;
  json["kind"] = outcome.kind;
  json["wire"] = outcome.wire;
  json["slots"] = outcome.slots;
  json["operation"] = outcome.operation;
  json["workers"] = outcome.workers;
  json["noticed_ms"] = outcome.noticed_ms;
  json["pause_ms"] = outcome.pause_ms;
  json["data"] = outcome.data;
  json["failures"] = outcome.failures;
  return json_reader::Dump(json);
}

absl::StatusOr<Outcome> ParseOutcome(absl::string_view line) {
  SYNCOPATE_ASSIGN_OR_RETURN(const json_reader::Json json, json_reader::ParseJson(line, 4));
  const json_reader::Place place = {json, ""};
  SYNCOPATE_RETURN_IF_ERROR(
      json_reader::CheckObject(place,
                               {"job", "case", "kind", "wire", "slots", "operation", "workers",
                                "noticed_ms", "pause_ms", "data", "failures"},
                               {}));
  Outcome outcome;
  SYNCOPATE_ASSIGN_OR_RETURN(outcome.job, json_reader::ReadCount(place.Field("job")));
  const auto read_int = [&](const char* key, auto& value) -> absl::Status {
    SYNCOPATE_ASSIGN_OR_RETURN(const uint64_t count, json_reader::ReadCount(place.Field(key)));
    if (count > 1'000'000'000) return absl::InvalidArgumentError(absl::StrCat(key, ": too large"));
    value = static_cast<std::remove_reference_t<decltype(value)>>(count);
    return absl::OkStatus();
  };
  SYNCOPATE_RETURN_IF_ERROR(read_int("case", outcome.number));
  SYNCOPATE_RETURN_IF_ERROR(read_int("slots", outcome.slots));
  SYNCOPATE_RETURN_IF_ERROR(read_int("workers", outcome.workers));
  SYNCOPATE_RETURN_IF_ERROR(read_int("noticed_ms", outcome.noticed_ms));
  SYNCOPATE_RETURN_IF_ERROR(read_int("pause_ms", outcome.pause_ms));
  SYNCOPATE_ASSIGN_OR_RETURN(outcome.kind, json_reader::ReadString(place.Field("kind")));
  SYNCOPATE_ASSIGN_OR_RETURN(outcome.wire, json_reader::ReadString(place.Field("wire")));
  SYNCOPATE_ASSIGN_OR_RETURN(outcome.operation, json_reader::ReadString(place.Field("operation")));
  SYNCOPATE_ASSIGN_OR_RETURN(outcome.data, json_reader::ReadString(place.Field("data")));
  const json_reader::Place failures = place.Field("failures");
  SYNCOPATE_RETURN_IF_ERROR(json_reader::CheckList(failures, kFailuresMax));
  for (size_t i = 0; i < failures.json.size(); ++i) {
    SYNCOPATE_ASSIGN_OR_RETURN(std::string failure, json_reader::ReadString(failures.Element(i)));
    outcome.failures.push_back(std::move(failure));
  }
  return outcome;
}

}  // namespace syncopate::live
