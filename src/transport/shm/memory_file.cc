#include "transport/shm/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::transport {
namespace {
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

bool SizeIsSealed(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);  // -1 for a file that is no memfd
  return seals >= 0 && (seals & kSizeSeals) == kSizeSeals;
}

absl::StatusOr<std::byte*> Map(int fd, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot map ", FormatBytes(bytes),
                                                     " of shared memory: ", std::strerror(errno)));
  }
  madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: many systems do not have it for shared memory
  return static_cast<std::byte*>(memory);
}
}  // namespace

absl::StatusOr<MemoryFile> MemoryFile::Create(const std::string& name, size_t bytes) {
  UniqueFd fd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot make shared memory (memfd_create): ", std::strerror(errno),
                     "; `syncopate doctor` tells more"));
  }
  if (fchmod(fd.get(), 0600) != 0 || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot make ", FormatBytes(bytes),
                                                     " of shared memory: ", std::strerror(errno)));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::byte * data, Map(fd.get(), bytes));
  return MemoryFile(std::move(fd), data, bytes);
}

absl::StatusOr<MemoryFile> MemoryFile::Open(UniqueFd fd, size_t bytes) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0 || static_cast<size_t>(info.st_size) != bytes ||
      !SizeIsSealed(fd.get())) {
    return absl::InvalidArgumentError("a peer's shared memory is not what it announced");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::byte * data, Map(fd.get(), bytes));
  return MemoryFile(std::move(fd), data, bytes);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

MemoryFile::~MemoryFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace syncopate::transport
