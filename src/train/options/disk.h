// What checkpoints ask of a file system. It is a seam: tests put a disk in its place that loses what
// was not forced to it.
#ifndef SYNCOPATE_TRAIN_OPTIONS_DISK_H_
#define SYNCOPATE_TRAIN_OPTIONS_DISK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::train {

// Nothing is certain to outlive a loss of power before Sync() of it: a file's bytes before its own,
// and that it is there, has another name or is gone, before that of its folder. Thread-safe.
class Disk {
 public:
  virtual ~Disk() = default;
  // Makes the folder and those above it that are missing. Fine if it is there.
  virtual absl::Status MakeFolder(const std::string& path) = 0;
  // Makes or replaces a file.
  virtual absl::Status Write(const std::string& path, absl::string_view bytes) = 0;
  // Forces the bytes of a file, or the names in a folder, to disk.
  virtual absl::Status Sync(const std::string& path) = 0;
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // A file, or a folder with all that is in it. It may be gone already.
  virtual absl::Status Remove(const std::string& path) = 0;
  // NotFound if there is no such file.
  virtual absl::StatusOr<std::string> Read(const std::string& path, uint64_t bytes_max) = 0;
  // The names in a folder, sorted; none if it cannot be read.
  virtual std::vector<std::string> List(const std::string& folder) = 0;
};

// That of this machine.
Disk& RealDisk();

// Writes the file beside its place, forces it to disk, renames it and forces that to disk: at every
// moment the old file is there or the new one, and the new one once this returns OK.
absl::Status WriteDurably(const std::string& path, absl::string_view bytes, Disk& disk);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_OPTIONS_DISK_H_
