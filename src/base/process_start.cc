#include "base/process_start.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/parse.h"

namespace syncopate {

absl::StatusOr<uint64_t> ParseStartTicks(absl::string_view stat) {
  // The second field, the program's name in parentheses, may hold anything; the start is the 22nd.
  constexpr size_t kStartAfterName = 22 - 3;
  const size_t name_end = stat.rfind(')');
  if (name_end != stat.npos) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(stat.substr(name_end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
    uint64_t ticks = 0;
    if (fields.size() > kStartAfterName && absl::SimpleAtoi(fields[kStartAfterName], &ticks)) {
      return ticks;
    }
  }
  return absl::InvalidArgumentError("/proc/PID/stat has no start of the process");
}

int64_t ProcessStartNs() {
  const int64_t now_ns = MonotonicClock().NowNs();
  constexpr uint64_t kStatBytesMax = 4096;
  const absl::StatusOr<std::string> stat = ReadFile("/proc/self/stat", kStatBytesMax);
  if (!stat.ok()) return now_ns;
  const absl::StatusOr<uint64_t> ticks = ParseStartTicks(*stat);
  timespec since_boot = {};
  const int64_t ticks_per_second = sysconf(_SC_CLK_TCK);
  if (!ticks.ok() || ticks_per_second <= 0 || clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) {
    return now_ns;
  }
  const double age = static_cast<double>(since_boot.tv_sec) +
                     static_cast<double>(since_boot.tv_nsec) * 1e-9 -
                     static_cast<double>(*ticks) / static_cast<double>(ticks_per_second);
  return now_ns - static_cast<int64_t>(std::max(0.0, age) * 1e9);
}

}  // namespace syncopate
