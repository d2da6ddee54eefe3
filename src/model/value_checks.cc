#include "model/value_checks.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncopate::value_checks {

absl::Status Fault(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::Status CheckPrintable(absl::string_view path, absl::string_view text, uint64_t bytes_max) {
  if (text.size() > bytes_max) {
    return Fault(path, absl::StrCat(text.size(), " bytes are more than the limit of ", bytes_max));
  }
  if (!std::all_of(text.begin(), text.end(), absl::ascii_isprint)) {
    return Fault(path, "there is a character that is not printable ASCII");
  }
  return absl::OkStatus();
}

absl::Status CheckSeconds(absl::string_view path, double seconds, double max) {
  if (seconds >= 0 && seconds <= max) return absl::OkStatus();  // false for what is not a number
  return Fault(path, absl::StrFormat("%.9g is not a number of seconds from 0 to %g", seconds, max));
}

}  // namespace syncopate::value_checks
