#include "plan/collective/algorithm_rules.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "plan/collective/planners.h"

namespace syncopate::plan {
namespace {

constexpr uint64_t kBytesMax = uint64_t{1} << 50;
constexpr char kForm[] = "write COLLECTIVE:ALGORITHM or COLLECTIVE:FROM-TO:ALGORITHM";

}  // namespace

// The algorithm must be known here: a misspelt name that no rule ever matches would leave the user
// with measurements of something else.
absl::StatusOr<AlgorithmRules::Rule> AlgorithmRules::ParseRule(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts.size() != 2 && parts.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", parts.size(), parts.size() == 1 ? " part; " : " parts; ", kForm));
  }
  Rule rule;
  SYNCOPATE_ASSIGN_OR_RETURN(rule.collective, ParseCollective(parts[0]));
  if (parts.size() == 3) {
    const std::pair<absl::string_view, absl::string_view> range =
        absl::StrSplit(parts[1], absl::MaxSplits('-', 1));
    if (parts[1].find('-') == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", parts[1], "\" is not a range of bytes; write 0-64K, or 1M- for all ",
                       "from 1M on"));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(rule.from, ParseBytes(range.first, kBytesMax));
    if (!range.second.empty()) {
      SYNCOPATE_ASSIGN_OR_RETURN(rule.to, ParseBytes(range.second, kBytesMax));
      if (rule.to <= rule.from) {
        return absl::InvalidArgumentError(absl::StrCat(
            "\"", parts[1], "\" holds no size: the end is not included, and must be the larger"));
      }
    }
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const PlannerInfo* planner,
                             FindPlanner(rule.collective, parts.back()));
  rule.algorithm = planner->name;
  return rule;
}

absl::StatusOr<AlgorithmRules> AlgorithmRules::Parse(absl::string_view text) {
  AlgorithmRules rules;
  if (text.size() > limits::kEnvironmentValueBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", text.size(),
                                                   " characters, but at most ",
                                                   limits::kEnvironmentValueBytesMax, " are read"));
  }
  if (absl::StripAsciiWhitespace(text).empty()) return rules;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::string_view trimmed = absl::StripAsciiWhitespace(part);
    absl::StatusOr<Rule> rule = ParseRule(trimmed);
    if (!rule.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("rule ", rules.rules_.size() + 1, ", \"",
                                                     trimmed, "\": ", rule.status().message()));
    }
    rules.rules_.push_back(*std::move(rule));
  }
  return rules;
}

absl::string_view AlgorithmRules::For(Collective collective, uint64_t bytes) const {
  for (const Rule& rule : rules_) {
    if (rule.collective == collective && bytes >= rule.from && bytes < rule.to) {
      return rule.algorithm;
    }
  }
  return "";
}

// Canonical, with sizes in bytes, since workers compare it with each other.
std::string AlgorithmRules::ToText() const {
  std::string text;
  for (const Rule& rule : rules_) {
    if (!text.empty()) text += ',';
    absl::StrAppend(&text, Name(rule.collective), ":");
    if (rule.from > 0 || rule.to < UINT64_MAX) {
      absl::StrAppend(&text, rule.from, "-");
      if (rule.to < UINT64_MAX) absl::StrAppend(&text, rule.to);
      text += ':';
    }
    absl::StrAppend(&text, rule.algorithm);
  }
  return text;
}

}  // namespace syncopate::plan
