#include "observe/clock_offset.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace syncopate::observe {
namespace {

constexpr int64_t kClockNsMax = int64_t{1} << 61;  // so that no sum overflows

bool Plausible(const ClockExchange& each) {
  for (const int64_t time : {each.sent_ns, each.received_ns, each.answered_ns, each.returned_ns}) {
    if (time < 0 || time > kClockNsMax) return false;
  }
  const int64_t there = each.answered_ns - each.received_ns;  // time spent at rank 0
  return there >= 0 && each.returned_ns - each.sent_ns >= there;
}

}  // namespace

absl::StatusOr<ClockOffset> EstimateClockOffset(const std::vector<ClockExchange>& exchanges) {
  std::optional<ClockOffset> best;
  for (const ClockExchange& each : exchanges) {
    if (!Plausible(each)) continue;
    const int64_t low = each.answered_ns - each.returned_ns;
    const int64_t high = each.received_ns - each.sent_ns;
    const int64_t error = (high - low + 1) / 2;
    if (!best || error < best->error_ns) best = ClockOffset{low + (high - low) / 2, error};
  }
  if (!best) {
    return absl::InvalidArgumentError(
        absl::StrCat("none of ", exchanges.size(), " exchanges of clock times can be used"));
  }
  return *best;
}

}  // namespace syncopate::observe
