#include "base/own_path.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate {

absl::StatusOr<std::string> OwnPath() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("this program's own file is unknown: ", error.message()));
  }
  return path.string();
}

absl::StatusOr<std::string> OwnFolder() {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string path, OwnPath());
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace syncopate
