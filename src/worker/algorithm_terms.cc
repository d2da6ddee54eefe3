#include "worker/algorithm_terms.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/status.h"
#include "plan/collective/planners.h"
#include "transport/terms.h"

namespace syncopate::worker {

absl::StatusOr<plan::AlgorithmRules> ResolveAlgorithmRules(const Options& options,
                                                           const Environment& environment) {
  const char* const place = options.algorithms ? "Options::algorithms" : "SYNCOPATE_ALGORITHM";
  absl::StatusOr<plan::AlgorithmRules> rules = plan::AlgorithmRules::Parse(
      options.algorithms ? *options.algorithms : environment("SYNCOPATE_ALGORITHM").value_or(""));
  if (!rules.ok()) return At(place, rules.status());
  return rules;
}

std::string AlgorithmTerms(const plan::AlgorithmRules& rules, const std::string& others) {
  std::vector<std::string> parts;
  if (std::string text = rules.ToText(); !text.empty()) {
    parts.push_back(absl::StrCat("the rules SYNCOPATE_ALGORITHM=", text));
  }
  std::vector<std::string> names;
  for (const plan::PlannerInfo* planner : plan::AllPlanners()) {
    if (planner->own) names.push_back(absl::StrCat(Name(planner->collective), ":", planner->name));
  }
  if (!names.empty()) {
    parts.push_back(absl::StrCat("planners of its own ", absl::StrJoin(names, ",")));
  }
  if (!others.empty()) parts.push_back(others);
  std::string terms = absl::StrJoin(parts, " and ");
  if (terms.size() <= transport::kTermsBytesMax) return terms;
  const std::string end = absl::StrCat("... (digest ", DigestOf(terms).ToString(), ")");
  return terms.substr(0, transport::kTermsBytesMax - end.size()) + end;
}

}  // namespace syncopate::worker
