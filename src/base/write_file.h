// Writes files that appear whole or not at all.
#ifndef SYNCOPATE_BASE_WRITE_FILE_H_
#define SYNCOPATE_BASE_WRITE_FILE_H_

#include <functional>
#include <iosfwd>
#include <string>

#include "absl/status/status.h"

namespace syncopate {

// Lets `write` fill a file beside the target, and renames it: readers never see a part of it. The
// path is in every error.
absl::Status WriteFileWith(const std::string& path,
                           const std::function<void(std::ostream&)>& write);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_WRITE_FILE_H_
