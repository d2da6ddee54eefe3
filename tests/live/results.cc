#include "live/results.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace syncopate::live {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{256} << 20;

std::string FirstLine(uint64_t seed) { return absl::StrCat("{\"live_campaign\":", seed, "}"); }

// One write, so that lines of several processes do not mix.
absl::Status Append(const std::string& path, const std::string& text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (file.ok() && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()))
    return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": cannot be written: ", strerror(errno)));
}

bool HeldUp(const Outcome& outcome) { return outcome.pause_ms > kPauseMsMax; }

std::string Row(const std::string& name, const std::vector<const Outcome*>& outcomes) {
  std::vector<int64_t> noticed;
  int held_up = 0, kept = 0, replaced = 0, failures = 0;
  for (const Outcome* outcome : outcomes) {
    held_up += HeldUp(*outcome) ? 1 : 0;
    if (!HeldUp(*outcome)) noticed.push_back(outcome->noticed_ms);
    kept += outcome->data == "old" ? 1 : 0;
    replaced += outcome->data == "new" ? 1 : 0;
    failures += outcome->failures.empty() ? 0 : 1;
  }
  std::sort(noticed.begin(), noticed.end());
  return absl::StrFormat(
      "| %s | %d | %d | %d | %.2f s | %.2f s | %d | %d |\n", name, outcomes.size(), kept, replaced,
      noticed.empty() ? 0 : static_cast<double>(noticed[noticed.size() / 2]) / 1e3,
      noticed.empty() ? 0 : static_cast<double>(noticed.back()) / 1e3, held_up, failures);
}

}  // namespace

absl::StatusOr<Results> Results::Open(const std::string& path, uint64_t seed) {
  Results results;
  results.path_ = path;
  if (!std::filesystem::exists(path)) {
    SYNCOPATE_RETURN_IF_ERROR(Append(path, FirstLine(seed) + "\n"));
    return results;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.empty() || lines[0] != FirstLine(seed)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not the results of a live campaign with", " seed ", seed,
                     "; its first line is not ", FirstLine(seed)));
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    absl::StatusOr<Outcome> outcome = ParseOutcome(lines[i]);
    if (!outcome.ok()) return At(absl::StrCat(path, ":", i + 1), outcome.status());
    results.outcomes_.push_back(*std::move(outcome));
  }
  return results;
}

absl::Status Results::Add(const std::vector<Outcome>& outcomes) {
  std::string lines;
  for (const Outcome& outcome : outcomes) absl::StrAppend(&lines, ToJson(outcome), "\n");
  return Append(path_, lines);
}

absl::Status CheckHeldUp(const std::vector<Outcome>& outcomes) {
  const size_t held_up =
      static_cast<size_t>(std::count_if(outcomes.begin(), outcomes.end(), HeldUp));
  if (outcomes.size() < kHeldUpCasesMin || held_up * 100 <= outcomes.size() * kHeldUpPercentMax) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("in ", held_up, " of ", outcomes.size(),
                   " cases a survivor's sentry was held up for more than ", kPauseMsMax,
                   " ms, which may be so in ", kHeldUpPercentMax,
                   " % of them: use fewer lanes or a quieter machine"));
}

std::string Table(const std::vector<Outcome>& outcomes) {
  std::map<std::string, std::vector<const Outcome*>> by_kind;
  std::map<std::string, int> by_wire, by_operation, by_failure;
  std::vector<const Outcome*> all;
  for (const Outcome& outcome : outcomes) {
    by_kind[outcome.kind].push_back(&outcome);
    ++by_wire[absl::StrCat(outcome.wire, " with ", outcome.slots, " a host")];
    ++by_operation[outcome.operation];
    all.push_back(&outcome);
    for (const std::string& failure : outcome.failures) {
      ++by_failure[failure.substr(0, failure.find(':'))];
    }
  }
  std::string table =
      "| fault | cases | old | new | noticed, median | at most | held up | failures |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const auto& [kind, those] : by_kind) table += Row(kind, those);
  table += Row("all", all);
  const auto counts = [](const std::map<std::string, int>& by) {
    return absl::StrJoin(by, ", ", absl::PairFormatter(": "));
  };
  absl::StrAppend(&table, "\ncases by wire and workers: ", counts(by_wire),
                  "\ncases by operation: ", counts(by_operation), "\n");
  if (!by_failure.empty()) absl::StrAppend(&table, "failures: ", counts(by_failure), "\n");
  return table;
}

}  // namespace syncopate::live
