// The checks and the JSON form of communication costs.
#include "cost/communication_costs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/units.h"
#include "model/json_reader.h"
#include "model/value_checks.h"

namespace syncopate::cost {
namespace {

using json_reader::Json;
using json_reader::Place;
using value_checks::CheckPrintable;
using value_checks::CheckSeconds;
using value_checks::Fault;

// The document and the list of gamma.
constexpr size_t kDepthMax = 2;
constexpr size_t kGammasMax = limits::kBesideMax + 1;
constexpr double kSecondsMax = 60;

// A factor has no unit, so a text is read as the plain number that it is.
absl::StatusOr<double> ParseFactor(absl::string_view text) {
  double factor = 0;
  if (absl::SimpleAtod(text, &factor)) return factor;
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a number"));
}

}  // namespace

double CommunicationCosts::Gamma(int k) const {
  if (k <= static_cast<int>(gamma.size())) return gamma[static_cast<size_t>(k - 1)];
  // Beyond what was measured each transfer gets an equal part of a full network.
  return gamma.back() * k / static_cast<double>(gamma.size());
}

absl::Status Validate(const CommunicationCosts& costs) {
  SYNCOPATE_RETURN_IF_ERROR(CheckSeconds("a", costs.a, kSecondsMax));
  SYNCOPATE_RETURN_IF_ERROR(CheckSeconds("b", costs.b, kSecondsMax));
  if (costs.gamma.empty() || costs.gamma.size() > kGammasMax) {
    return Fault("gamma",
                 absl::StrCat(costs.gamma.size(), " entries; there must be 1 to ", kGammasMax));
  }
  if (costs.gamma[0] != 1) {
    return Fault("gamma[0]", absl::StrFormat("%.9g, but one transfer alone has 1", costs.gamma[0]));
  }
  for (size_t i = 1; i < costs.gamma.size(); ++i) {
    if (costs.gamma[i] >= costs.gamma[i - 1] && costs.gamma[i] <= kGammaMax) continue;
    return Fault(absl::StrCat("gamma[", i, "]"),
                 absl::StrFormat("%.9g is not a number from %.9g, the one before it, to %g",
                                 costs.gamma[i], costs.gamma[i - 1], kGammaMax));
  }
  return CheckPrintable("source", costs.source, limits::kTensorNameBytesMax);
}

CommunicationCosts WithRisingGamma(CommunicationCosts costs) {
  if (costs.gamma.empty()) costs.gamma.resize(1);
  costs.gamma[0] = 1;
  for (size_t i = 1; i < costs.gamma.size(); ++i) {
    costs.gamma[i] = std::max(costs.gamma[i], costs.gamma[i - 1]);
  }
  return costs;
}

std::string ToJson(const CommunicationCosts& costs) {
  Json json = {{"a", costs.a}, {"b", costs.b}, {"gamma", costs.gamma}};
  if (!costs.source.empty()) json["source"] = costs.source;
  return absl::StrCat(json_reader::Dump(json), "\n");
}

absl::StatusOr<CommunicationCosts> ParseCommunicationCosts(absl::string_view json) {
  if (json.size() > limits::kTensorTextBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the costs have ", json.size(),
                                                   " bytes, more than the limit of ",
                                                   limits::kTensorTextBytesMax));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Json parsed, json_reader::ParseJson(json, kDepthMax));
  const Place document{parsed, ""};
  SYNCOPATE_RETURN_IF_ERROR(json_reader::CheckObject(document, {"a", "b"}, {"gamma", "source"}));
  CommunicationCosts costs;
  SYNCOPATE_ASSIGN_OR_RETURN(costs.a, json_reader::ReadNumber(document.Field("a"), ParseSeconds));
  SYNCOPATE_ASSIGN_OR_RETURN(costs.b, json_reader::ReadNumber(document.Field("b"), ParseSeconds));
  if (parsed.contains("gamma")) {
    const Place list = document.Field("gamma");
    SYNCOPATE_RETURN_IF_ERROR(json_reader::CheckList(list, kGammasMax));
    costs.gamma.clear();
    for (size_t i = 0; i < list.json.size(); ++i) {
      SYNCOPATE_ASSIGN_OR_RETURN(const double factor,
                                 json_reader::ReadNumber(list.Element(i), ParseFactor));
      costs.gamma.push_back(factor);
    }
  }
  if (parsed.contains("source")) {
    SYNCOPATE_ASSIGN_OR_RETURN(costs.source, json_reader::ReadString(document.Field("source")));
  }
  SYNCOPATE_RETURN_IF_ERROR(Validate(costs));
  return costs;
}

Digest DigestOf(const CommunicationCosts& costs) {
  // Costs that were measured and costs that were read from a file give the same schedule.
  CommunicationCosts bare = costs;
  bare.source.clear();
  return syncopate::DigestOf(absl::string_view(ToJson(bare)));
}

}  // namespace syncopate::cost
