// Where a user's data sets and measurements are kept.
#ifndef SYNCOPATE_BASE_CACHE_FOLDER_H_
#define SYNCOPATE_BASE_CACHE_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/environment.h"

namespace syncopate {

// SYNCOPATE_CACHE, else syncopate in XDG_CACHE_HOME, else ~/.cache/syncopate. It need not be there.
absl::StatusOr<std::string> CacheFolder(const Environment& environment);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_CACHE_FOLDER_H_
