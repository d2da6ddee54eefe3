// Shared memory without a name: a sealed memfd and its mapping. Nothing is left behind when the
// last process is gone.
#ifndef SYNCOPATE_TRANSPORT_SHM_MEMORY_FILE_H_
#define SYNCOPATE_TRANSPORT_SHM_MEMORY_FILE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace syncopate::transport {

class MemoryFile {
 public:
  // New zeroed memory (mode 0600, size sealed). Pages are taken from the system when they are first
  // touched.
  static absl::StatusOr<MemoryFile> Create(const std::string& name, size_t bytes);
  // A peer's memory. Refused unless it is a file of just this size whose size is sealed, so that no
  // peer can make an access fail by shrinking it.
  static absl::StatusOr<MemoryFile> Open(UniqueFd fd, size_t bytes);

  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) = delete;
  ~MemoryFile();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }

 private:
  MemoryFile(UniqueFd fd, std::byte* data, size_t bytes)
      : fd_(std::move(fd)), data_(data), bytes_(bytes) {}
  UniqueFd fd_;
  std::byte* data_;
  size_t bytes_;
};

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_SHM_MEMORY_FILE_H_
