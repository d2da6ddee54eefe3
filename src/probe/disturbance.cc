#include "probe/disturbance.h"

#include "absl/strings/str_format.h"

namespace syncopate::probe {

std::string Describe(const Disturbance& disturbance) {
  if (disturbance.experiments == 0) return "";
  return absl::StrFormat(
      "%d measurement%s stayed disturbed: the hypervisor took up to %.0f %% of the processor time "
      "of "
      "host %s, so rates may be too low and racks wrong; probe again when the machine is quiet",
      disturbance.experiments, disturbance.experiments == 1 ? "" : "s", 100 * disturbance.stolen,
      disturbance.host);
}

}  // namespace syncopate::probe
