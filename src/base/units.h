// Rates and latencies as people write them: "10Gbit/s", "1.25GB/s", "50us".
#ifndef SYNCOPATE_BASE_UNITS_H_
#define SYNCOPATE_BASE_UNITS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate {

// Bytes per second, positive: "10Gbit/s", "200Mbit/s", "1.25GB/s", "30GiB/s", "9600bit/s". k, M, G,
// T are powers of 1000; Ki, Mi, Gi, Ti powers of 1024. A small b alone is refused: it could mean
// either.
absl::StatusOr<double> ParseRate(absl::string_view text);

// Seconds, not negative: "50us", "1.5ms", "200ns", "0s".
absl::StatusOr<double> ParseSeconds(absl::string_view text);

// Four digits and the unit that suits: "1.25 GB/s"; "12.3 us".
std::string FormatRate(double bytes_per_second);
std::string FormatSeconds(double seconds);

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_UNITS_H_
