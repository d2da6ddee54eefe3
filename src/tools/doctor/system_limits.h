// What the kernel and a container around us allow: read from /proc and /sys.
#ifndef SYNCOPATE_TOOLS_DOCTOR_SYSTEM_LIMITS_H_
#define SYNCOPATE_TOOLS_DOCTOR_SYSTEM_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace syncopate::tools {

// Where /proc and /sys are; tests have their own.
struct SystemRoot {
  std::string path;  // "" for the real ones
};

// The tightest limit among this process's control group and those around it, in both versions of
// control groups; nothing if there is none.
std::optional<double> CgroupCpus(const SystemRoot& root);
std::optional<uint64_t> CgroupMemoryBytes(const SystemRoot& root);

// A line of /proc/meminfo ("MemAvailable") in bytes.
std::optional<uint64_t> MemInfoBytes(const SystemRoot& root, absl::string_view name);

// The CPU's vector extensions that matter to us, best first: "AVX-512", "AVX2", "SVE", "NEON" …
std::vector<std::string> VectorExtensions(const SystemRoot& root);

// What the processor calls itself, as "AMD EPYC 7763"; "unknown processor" if it does not say.
std::string ProcessorName(const SystemRoot& root);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_DOCTOR_SYSTEM_LIMITS_H_
