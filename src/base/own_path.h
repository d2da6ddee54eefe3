// Finds the file of the running program itself.
#ifndef SYNCOPATE_BASE_OWN_PATH_H_
#define SYNCOPATE_BASE_OWN_PATH_H_

#include <string>

#include "absl/status/statusor.h"

namespace syncopate {

absl::StatusOr<std::string> OwnPath();
// The folder that the program's file is in.
absl::StatusOr<std::string> OwnFolder();

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_OWN_PATH_H_
