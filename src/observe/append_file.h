// A file to which whole lines are appended, each by one system call: what was appended is there
// after a crash of the process.
#ifndef SYNCOPATE_OBSERVE_APPEND_FILE_H_
#define SYNCOPATE_OBSERVE_APPEND_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace syncopate::observe {

class AppendFile {
 public:
  AppendFile() = default;  // no file; Append() fails
  // `empty`: what was there before is deleted.
  static absl::StatusOr<AppendFile> Open(const std::string& path, bool empty);

  absl::Status Append(absl::string_view text);
  // Replaces the last `count` bytes, which this object appended, by `text`.
  absl::Status ReplaceEnd(uint64_t count, absl::string_view text);
  uint64_t size() const { return size_; }
  bool is_open() const { return fd_.get() >= 0; }

 private:
  std::string path_;
  UniqueFd fd_;
  uint64_t size_ = 0;
};

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_APPEND_FILE_H_
