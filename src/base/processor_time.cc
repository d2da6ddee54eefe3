#include "base/processor_time.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate {
namespace {

constexpr char kPath[] = "/proc/stat";
constexpr size_t kLineBytesMax = 512;
// The columns: user, nice, system, idle, iowait, irq, softirq, steal. What comes after them (guest)
// is part of user and nice already.
constexpr size_t kColumnsMin = 4, kColumnsMax = 8;
constexpr size_t kIdleColumn = 3, kDiskColumn = 4, kStolenColumn = 7;
constexpr int64_t kTicksMax = int64_t{1} << 56;

}  // namespace

absl::StatusOr<ProcessorTime> ParseProcessorTime(absl::string_view stat) {
  const absl::string_view line = stat.substr(0, stat.find('\n'));
  std::vector<absl::string_view> words;
  if (line.size() <= kLineBytesMax) words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() < 1 + kColumnsMin || words[0] != "cpu") {
    return absl::InvalidArgumentError(
        absl::StrCat("the first line of ", kPath, " does not tell the time of all processors"));
  }
  ProcessorTime time;
  const size_t columns = std::min(words.size() - 1, kColumnsMax);
  for (size_t column = 0; column < columns; ++column) {
    const absl::StatusOr<int64_t> ticks = ParseInt(words[1 + column], 0, kTicksMax);
    if (!ticks.ok()) return At(kPath, ticks.status());
    time.total += static_cast<uint64_t>(*ticks);
    if (column == kIdleColumn || column == kDiskColumn) time.idle += static_cast<uint64_t>(*ticks);
    if (column == kStolenColumn) time.stolen = static_cast<uint64_t>(*ticks);
  }
  return time;
}

absl::StatusOr<ProcessorTime> ReadProcessorTime() {
  std::ifstream file(kPath);
  std::string text(kLineBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return ParseProcessorTime(text);
}

namespace {

// What part of the time between two readings one of its kinds was.
double Share(const ProcessorTime& before, const ProcessorTime& after,
             uint64_t ProcessorTime::*kind) {
  if (after.total <= before.total || after.*kind <= before.*kind) return 0;
  const double share = static_cast<double>(after.*kind - before.*kind) /
                       static_cast<double>(after.total - before.total);
  return std::min(share, 1.0);
}

}  // namespace

double StolenShare(const ProcessorTime& before, const ProcessorTime& after) {
  return Share(before, after, &ProcessorTime::stolen);
}

double BusyShare(const ProcessorTime& before, const ProcessorTime& after) {
  if (after.total <= before.total) return 0;
  return 1 - Share(before, after, &ProcessorTime::idle);
}

}  // namespace syncopate
