#include "live/said.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace syncopate::live {
namespace {
constexpr uint64_t kBytesMax = uint64_t{4} << 20;
}

Said::Said() : file_(memfd_create("said", MFD_CLOEXEC)) { fcntl(file_.get(), F_SETFL, O_APPEND); }

void Said::Capture() const { dup2(file_.get(), STDERR_FILENO); }

uint64_t Said::bytes() const {
  struct stat now = {};
  fstat(file_.get(), &now);
  return std::min(static_cast<uint64_t>(now.st_size), kBytesMax);
}

std::string Said::From(uint64_t offset) const {
  std::string text(std::max(bytes(), offset) - offset, '\0');
  const ssize_t got = pread(file_.get(), text.data(), text.size(), static_cast<off_t>(offset));
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

int64_t PauseMsIn(absl::string_view said) {
  int64_t longest_ms = 0;
  const std::vector<absl::string_view> parts = absl::StrSplit(said, "sentry was held up for ");
  for (size_t i = 1; i < parts.size(); ++i) {
    int64_t pause_ms = 0;
    if (absl::SimpleAtoi(parts[i].substr(0, parts[i].find(' ')), &pause_ms)) {
      longest_ms = std::max(longest_ms, pause_ms);
    }
  }
  return longest_ms;
}

}  // namespace syncopate::live
