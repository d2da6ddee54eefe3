// Reads files of /proc and /sys, whose size is not known before.
#ifndef SYNCOPATE_LAB_PROC_FILE_H_
#define SYNCOPATE_LAB_PROC_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::lab {

// At most 16 MiB.
absl::StatusOr<std::string> ReadProcFile(const std::string& path);
// Writes all of `text` at once, as such files want it.
absl::Status WriteProcFile(const std::string& path, absl::string_view text);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_PROC_FILE_H_
