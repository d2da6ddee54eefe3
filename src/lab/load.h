// What the links of a lab carry just now, by the interfaces' own counters.
#ifndef SYNCOPATE_LAB_LOAD_H_
#define SYNCOPATE_LAB_LOAD_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "lab/plan.h"

namespace syncopate::lab {

// Bytes that each interface has sent, by the text of /proc/net/dev.
std::map<std::string, uint64_t> ParseSentBytes(absl::string_view text);

// By link: bit/s from a to b and from b to a, over an interval of that length from now on.
absl::StatusOr<std::vector<std::array<double, 2>>> MeasureLoad(const Plan& plan,
                                                               double interval_seconds,
                                                               const Clock& clock);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_LOAD_H_
