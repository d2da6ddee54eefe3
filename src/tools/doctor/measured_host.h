// What `syncopate doctor` measured on a machine, as it is kept for `syncopate plan`: a file of the
// cache folder for each kind of machine, so that a home folder that several machines share, or that
// was copied to another one, does not mislead.
//
// Only predictions for people use it. A job chooses its algorithms by fixed costs, because its
// workers must all choose alike (docs/selection.md).
#ifndef SYNCOPATE_TOOLS_DOCTOR_MEASURED_HOST_H_
#define SYNCOPATE_TOOLS_DOCTOR_MEASURED_HOST_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/environment.h"
#include "model/topology_makers.h"
#include "tools/doctor/system_limits.h"

namespace syncopate::tools {

struct MeasuredHost {
  std::string machine;  // DescribeMachine() of the one that was measured
  std::string date;     // when, as 2026-03-14
  HostCosts costs;
  bool busy = false;  // other programs ran meanwhile
};

// What tells kinds of machines apart: "AMD EPYC, 2 cores of 2, 7.8 GiB".
std::string DescribeMachine(const SystemRoot& root, int cores);

// The first fault: costs that no machine has.
absl::Status Validate(const MeasuredHost& host);
// Parsing gives back what was written. Errors say what is wrong.
std::string ToJson(const MeasuredHost& host);
absl::StatusOr<MeasuredHost> ParseMeasuredHost(absl::string_view json);

// The file of a machine in the cache folder (train/data/load.h says where that is).
absl::StatusOr<std::string> MeasuredHostFile(const Environment& environment,
                                             absl::string_view machine);
// Writes it, folder included; readers never see a part of it. What was measured on a busy machine
// does not replace what was measured on a quiet one. True if it was written.
absl::StatusOr<bool> SaveMeasuredHost(const Environment& environment, const MeasuredHost& host);
// What was measured on `machine`; nothing if nothing was. A file that cannot be read or is of
// another machine counts as nothing.
std::optional<MeasuredHost> LoadMeasuredHost(const Environment& environment,
                                             absl::string_view machine);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_DOCTOR_MEASURED_HOST_H_
