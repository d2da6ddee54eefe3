// A file that is only in memory, for readers that take a path.
#ifndef SYNCOPATE_TESTS_FUZZ_MEMORY_FILE_H_
#define SYNCOPATE_TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace syncopate {

class MemoryFile {
 public:
  explicit MemoryFile(absl::string_view contents) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (!fd_.ok() || write(fd_.get(), contents.data(), contents.size()) !=
                         static_cast<ssize_t>(contents.size())) {
      std::abort();
    }
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

 private:
  UniqueFd fd_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_TESTS_FUZZ_MEMORY_FILE_H_
