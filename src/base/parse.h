// Bounded readers for what comes from outside: text numbers, sizes, times, rank lists, files. Bad
// input becomes an InvalidArgument status that quotes the text and says what was expected, never an
// assertion.
#ifndef SYNCOPATE_BASE_PARSE_H_
#define SYNCOPATE_BASE_PARSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate {

// A whole number in [lo, hi], all of `text`, no sign unless lo < 0.
absl::StatusOr<int64_t> ParseInt(absl::string_view text, int64_t lo, int64_t hi);

// A finite number in [lo, hi].
absl::StatusOr<double> ParseDouble(absl::string_view text, double lo, double hi);

// Bytes: "4096", "4K", "64KiB", "1.5M", "100MB". Suffixes are powers of 1024, as nccl-tests has
// them.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text, uint64_t max);

// Nanoseconds: "500ms", "5s", "2m", "1h"; a bare number is seconds. Positive.
absl::StatusOr<int64_t> ParseDurationNs(absl::string_view text);

// Ranks below `size`: "0-3,6,7". Sorted, without repeats.
absl::StatusOr<std::vector<int>> ParseRanks(absl::string_view text, int size);
// The shortest such text for sorted ranks.
std::string FormatRanks(const std::vector<int>& ranks);

// "4 KiB", "1.5 MiB", "100 MiB", "17 B".
std::string FormatBytes(uint64_t bytes);

// The whole file, refused before it is read if it is larger than `bytes_max`. The path is in every
// error.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t bytes_max);
// Writes the file beside the target and renames it, so that nothing half-written stays.
absl::Status WriteFile(const std::string& path, absl::string_view contents);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_PARSE_H_
