// The key by which the workers of a job know each other, as the user gave it: in SYNCOPATE_KEY, else
// in the file that SYNCOPATE_KEY_FILE names. Errors never repeat what either holds.
#ifndef SYNCOPATE_CONTROL_JOB_KEY_H_
#define SYNCOPATE_CONTROL_JOB_KEY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/environment.h"

namespace syncopate::control {

// The key, raw bytes; empty if none was given. A file is read only if nobody else can read it: a
// regular file of this user (no symbolic link) with mode 0600 or 0400.
absl::StatusOr<std::string> GivenKey(const Environment& environment);

// Where the key comes from public values, this is an error that names the variable which forbids
// that; `reason` is such a variable with its value, or empty if the job may have such a key.
absl::Status CheckKeyMayBePublic(const std::string& reason);

// What a user can do about a key from public values.
extern const char* const kKeyRemedy;

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_JOB_KEY_H_
