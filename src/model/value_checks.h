// What the Validate() of several values checks in the same way.
#ifndef SYNCOPATE_MODEL_VALUE_CHECKS_H_
#define SYNCOPATE_MODEL_VALUE_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace syncopate::value_checks {

// InvalidArgument with the place in the value before what is wrong there: "links[3].bandwidth: ...".
absl::Status Fault(absl::string_view path, absl::string_view what);

// A fault if the text has more than `bytes_max` bytes or a character that is not printable ASCII.
absl::Status CheckPrintable(absl::string_view path, absl::string_view text, uint64_t bytes_max);

// A fault if it is not a number of seconds from 0 to `max`.
absl::Status CheckSeconds(absl::string_view path, double seconds, double max);

}  // namespace syncopate::value_checks

#endif  // SYNCOPATE_MODEL_VALUE_CHECKS_H_
