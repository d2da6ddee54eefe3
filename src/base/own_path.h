// Where the running program's own file is.
#ifndef SYNCOPATE_BASE_OWN_PATH_H_
#define SYNCOPATE_BASE_OWN_PATH_H_

#include <string>

#include "absl/status/statusor.h"

namespace syncopate {

absl::StatusOr<std::string> OwnPath();
// The folder that it is in.
absl::StatusOr<std::string> OwnFolder();

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_OWN_PATH_H_
