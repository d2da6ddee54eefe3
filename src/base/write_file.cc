#include "base/write_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace syncopate {

absl::Status WriteFileWith(const std::string& path,
                           const std::function<void(std::ostream&)>& write) {
  const std::string beside = absl::StrCat(path, ".tmp", getpid());
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  write(file);
  file.close();
  if (!file || std::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(beside.c_str());
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
  }
  return absl::OkStatus();
}

}  // namespace syncopate
