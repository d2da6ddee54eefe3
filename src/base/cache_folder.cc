#include "base/cache_folder.h"

#include "absl/strings/str_cat.h"

namespace syncopate {

absl::StatusOr<std::string> CacheFolder(const Environment& environment) {
  const auto set = [&](const char* name) { return environment(name).value_or(""); };
  if (const std::string folder = set("SYNCOPATE_CACHE"); !folder.empty()) return folder;
  if (const std::string folder = set("XDG_CACHE_HOME"); !folder.empty()) {
    return absl::StrCat(folder, "/syncopate");
  }
  if (const std::string folder = set("HOME"); !folder.empty()) {
    return absl::StrCat(folder, "/.cache/syncopate");
  }
  return absl::InvalidArgumentError(
      "no folder for data: set SYNCOPATE_CACHE, since HOME is not set either");
}

}  // namespace syncopate
