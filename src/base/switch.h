// Environment variables that are on or off.
#ifndef SYNCOPATE_BASE_SWITCH_H_
#define SYNCOPATE_BASE_SWITCH_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/environment.h"

namespace syncopate {

// Whether a variable that is 1 or 0 is 1; if it is not set, `otherwise`.
absl::StatusOr<bool> IsOn(const Environment& environment, const std::string& name, bool otherwise);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_SWITCH_H_
