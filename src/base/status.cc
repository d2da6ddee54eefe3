#include "base/status.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace syncopate {
namespace {
constexpr absl::string_view kBlastUrl = "syncopate/blast";
constexpr absl::string_view kSuspectUrl = "syncopate/suspect";

std::optional<int> IntPayload(const absl::Status& status, absl::string_view url) {
  absl::optional<absl::Cord> payload = status.GetPayload(url);
  int value = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &value)) return std::nullopt;
  return value;
}
}  // namespace

absl::string_view Name(BlastRadius radius) {
  switch (radius) {
    case BlastRadius::kOperation:
      return "operation";
    case BlastRadius::kGroup:
      return "group";
    case BlastRadius::kJob:
      return "job";
  }
  return "?";
}

absl::Status WithBlast(absl::Status status, BlastRadius radius, int suspect) {
  status.SetPayload(kBlastUrl, absl::Cord(absl::StrCat(static_cast<int>(radius))));
  if (suspect >= 0) status.SetPayload(kSuspectUrl, absl::Cord(absl::StrCat(suspect)));
  return status;
}

std::optional<BlastRadius> GetBlast(const absl::Status& status) {
  std::optional<int> value = IntPayload(status, kBlastUrl);
  if (!value) return std::nullopt;
  return static_cast<BlastRadius>(*value);
}

std::optional<int> GetSuspect(const absl::Status& status) {
  return IntPayload(status, kSuspectUrl);
}

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::Status At(absl::string_view place, const absl::Status& status) {
  if (status.ok()) return status;
  absl::Status placed(status.code(), absl::StrCat(place, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { placed.SetPayload(url, payload); });
  return placed;
}

}  // namespace syncopate
