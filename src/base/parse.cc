#include "base/parse.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/write_file.h"

namespace syncopate {
namespace {

// Digits and nothing else, with a minus before them if `negative`. absl::SimpleAtoi alone would also
// take a plus and blanks, so that several texts would name one value.
bool IsWholeNumber(absl::string_view text, bool negative) {
  if (negative) absl::ConsumePrefix(&text, "-");
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// Splits "1.5MiB" into its number and its lower-case suffix.
absl::StatusOr<std::pair<double, std::string>> NumberAndSuffix(absl::string_view text) {
  size_t end = 0;
  while (end < text.size() && (absl::ascii_isdigit(text[end]) || text[end] == '.')) ++end;
  double number = 0;
  if (end == 0 || !absl::SimpleAtod(text.substr(0, end), &number)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" does not start with a number"));
  }
  return std::make_pair(number, absl::AsciiStrToLower(text.substr(end)));
}

}  // namespace

absl::StatusOr<int64_t> ParseInt(absl::string_view text, int64_t lo, int64_t hi) {
  int64_t value = 0;
  if (!IsWholeNumber(text, lo < 0) || !absl::SimpleAtoi(text, &value) || value < lo || value > hi) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a whole number from ", lo, " to ", hi));
  }
  return value;
}

absl::StatusOr<double> ParseDouble(absl::string_view text, double lo, double hi) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value) || value < lo || value > hi) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a number from ", lo, " to ", hi));
  }
  return value;
}

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text, uint64_t max) {
  SYNCOPATE_ASSIGN_OR_RETURN(auto parts, NumberAndSuffix(text));
  auto [number, suffix] = parts;
  int shift = -1;
  if (suffix.empty() || suffix == "b") shift = 0;
  if (suffix == "k" || suffix == "kb" || suffix == "kib") shift = 10;
  if (suffix == "m" || suffix == "mb" || suffix == "mib") shift = 20;
  if (suffix == "g" || suffix == "gb" || suffix == "gib") shift = 30;
  if (shift < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a size; write 4096, 64K, 1.5M or 2G"));
  }
  const double bytes = std::ldexp(number, shift);
  if (bytes > static_cast<double>(max)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is more than the limit of ", FormatBytes(max)));
  }
  if (bytes != std::floor(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a whole number of bytes"));
  }
  return static_cast<uint64_t>(bytes);
}

absl::StatusOr<int64_t> ParseDurationNs(absl::string_view text) {
  SYNCOPATE_ASSIGN_OR_RETURN(auto parts, NumberAndSuffix(text));
  auto [number, suffix] = parts;
  double unit = 0;
  if (suffix == "us") unit = 1e3;
  if (suffix == "ms") unit = 1e6;
  if (suffix.empty() || suffix == "s") unit = 1e9;
  if (suffix == "m" || suffix == "min") unit = 60e9;
  if (suffix == "h") unit = 3600e9;
  const double ns = number * unit;
  constexpr double kYearNs = 365.0 * 24 * 3600e9;
  if (unit == 0 || ns < 1 || ns > kYearNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a time; write 500ms, 5s, 2m or 1h (up to a year)"));
  }
  return static_cast<int64_t>(ns);
}

absl::StatusOr<std::vector<int>> ParseRanks(absl::string_view text, int size) {
  // By how much rank r is named more often than rank r - 1. However often a text repeats a range,
  // this takes no more memory than the ranks themselves, and each repeat only two additions.
  std::vector<int64_t> change(static_cast<size_t>(std::max(size, 0)) + 1, 0);
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, absl::MaxSplits('-', 1));
    absl::StatusOr<int64_t> first = ParseInt(ends.front(), 0, size - 1);
    absl::StatusOr<int64_t> last = ParseInt(ends.back(), 0, size - 1);
    if (!first.ok() || !last.ok() || *first > *last) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", text, "\" is not a list of ranks from 0 to ", size - 1, "; write it as 0-3,6"));
    }
    ++change[static_cast<size_t>(*first)];
    --change[static_cast<size_t>(*last) + 1];
  }
  std::vector<int> ranks;
  int64_t named = 0;
  for (int rank = 0; rank < size; ++rank) {
    named += change[static_cast<size_t>(rank)];
    if (named > 0) ranks.push_back(rank);
  }
  return ranks;
}

std::string FormatRanks(const std::vector<int>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    absl::StrAppend(&text, text.empty() ? "" : ",", ranks[i]);
    if (j > i) absl::StrAppend(&text, "-", ranks[j]);
    i = j + 1;
  }
  return text;
}

std::string FormatBytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return absl::StrCat(absl::StrFormat("%.4g", value), " ", kUnits[unit]);
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t bytes_max) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::UnavailableError(absl::StrCat("cannot read ", path));
  // What the kernel makes up, as in /proc, says that it has no bytes; so read to the end.
  std::string contents;
  char block[1 << 16];
  while (contents.size() <= bytes_max && file.read(block, sizeof(block)).gcount() > 0) {
    contents.append(block, static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) return absl::UnavailableError(absl::StrCat("cannot read ", path));
  if (contents.size() > bytes_max) {
    const uint64_t size = std::max<uint64_t>(contents.size(), static_cast<uint64_t>(info.st_size));
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has ", FormatBytes(size), ", more than the limit of ", FormatBytes(bytes_max)));
  }
  return contents;
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  return WriteFileWith(path, [contents](std::ostream& file) {
    file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  });
}

}  // namespace syncopate
