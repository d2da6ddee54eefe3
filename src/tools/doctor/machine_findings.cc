#include "tools/doctor/machine_findings.h"

#include <hwloc.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/parse.h"
#include "base/units.h"
#include "tools/doctor/system_limits.h"

namespace syncopate::tools {
namespace {

using Level = Finding::Level;

constexpr uint64_t kFreeBytesMin = uint64_t{1} << 30;
const SystemRoot kRoot = {};

Finding Kernel() {
  utsname name;
  if (uname(&name) != 0) return {"kernel", Level::kPoor, "unknown", "Linux 5.4 or later is needed"};
  return {"kernel", Level::kOk, absl::StrCat(name.sysname, " ", name.release, " ", name.machine),
          ""};
}

Finding CoresFinding() {
  const int online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int allowed = AllowedCpus();
  const std::optional<double> quota = CgroupCpus(kRoot);
  Finding finding = {"cores", Level::kOk, absl::StrCat(online, " online, ", allowed, " allowed"),
                     ""};
  if (quota.has_value()) {
    absl::StrAppend(&finding.value, ", control group gives the time of ",
                    absl::StrFormat("%.3g", *quota));
  }
  if (quota.has_value() && *quota < allowed) {
    finding.level = Level::kPoor;
    finding.advice =
        absl::StrFormat("start at most %d workers, or raise the container's limit (docker --cpus)",
                        std::max(1, static_cast<int>(*quota)));
  } else if (allowed < online) {
    finding.level = Level::kPoor;
    finding.advice = "this process is bound to some cores only; look for taskset or cpuset";
  } else if (allowed == 1) {
    finding.level = Level::kPoor;
    finding.advice = "workers take turns on one core; expect correct results, not speed";
  }
  return finding;
}

Finding Vectors() {
  const std::vector<std::string> extensions = VectorExtensions(kRoot);
  if (extensions.empty()) {
    return {"vectors", Level::kPoor, "none known",
            "reductions run with the compiler's baseline; a CPU with AVX2 or NEON is faster"};
  }
  return {"vectors", Level::kOk, absl::StrJoin(extensions, ", "), ""};
}

// "2 x 32 KiB L1, 2 x 1 MiB L2, 1 x 32 MiB L3".
std::string Caches(hwloc_topology_t topology) {
  std::vector<std::string> caches;
  const std::pair<hwloc_obj_type_t, const char*> kinds[] = {
      {HWLOC_OBJ_L1CACHE, "L1"}, {HWLOC_OBJ_L2CACHE, "L2"}, {HWLOC_OBJ_L3CACHE, "L3"}};
  for (const auto& [type, name] : kinds) {
    const int count = hwloc_get_nbobjs_by_type(topology, type);
    if (count <= 0) continue;
    const uint64_t bytes = hwloc_get_obj_by_type(topology, type, 0)->attr->cache.size;
    caches.push_back(absl::StrCat(count, " x ", FormatBytes(bytes), " ", name));
  }
  return caches.empty() ? "unknown" : absl::StrJoin(caches, ", ");
}

Findings Layout() {
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) {
    return {{"layout", Level::kPoor, "hwloc failed", "check that /sys is mounted"}};
  }
  Findings findings;
  if (hwloc_topology_load(topology) == 0) {
    const int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    findings.push_back({"NUMA nodes", Level::kOk, absl::StrCat(nodes), ""});
    findings.push_back({"caches", Level::kOk, Caches(topology), ""});
  } else {
    findings.push_back({"layout", Level::kPoor, "hwloc failed", "check that /sys is mounted"});
  }
  hwloc_topology_destroy(topology);
  return findings;
}

Finding Memory() {
  const uint64_t total = MemInfoBytes(kRoot, "MemTotal").value_or(0);
  const uint64_t available = MemInfoBytes(kRoot, "MemAvailable").value_or(0);
  const std::optional<uint64_t> limit = CgroupMemoryBytes(kRoot);
  Finding finding = {"memory", Level::kOk,
                     absl::StrCat(FormatBytes(total), ", ", FormatBytes(available), " available"),
                     ""};
  if (limit.has_value() && *limit < total) {
    absl::StrAppend(&finding.value, ", control group gives ", FormatBytes(*limit));
  }
  if (std::min(available, limit.value_or(available)) < kFreeBytesMin) {
    finding.level = Level::kPoor;
    finding.advice = "end other programs or lower SYNCOPATE_ARENA_BYTES";
  }
  return finding;
}

// What predictions are made of.
Findings Measured(const Clock& clock, std::optional<HostMeasurement>* measured) {
  const uint64_t available = MemInfoBytes(kRoot, "MemAvailable").value_or(0);
  const uint64_t free_bytes = std::min(available, CgroupMemoryBytes(kRoot).value_or(available));
  *measured = MeasureHost(clock, AllowedCpus(), free_bytes / 4);
  if (!measured->has_value()) {
    return {{"memory bandwidth", Level::kPoor, "not measured",
             "there is too little free memory; end other programs"}};
  }
  const HostCosts& found = (*measured)->costs;
  std::string bandwidth =
      absl::StrFormat("%.3g GB/s read + written by reducing", found.memory_bandwidth * 1e-9);
  if (found.cache_bytes > 0) {
    absl::StrAppend(&bandwidth,
                    absl::StrFormat(", %.3g GB/s within %s of cache", found.cached_bandwidth * 1e-9,
                                    FormatBytes(found.cache_bytes)));
  }
  Findings findings = {{"memory bandwidth", Level::kOk, std::move(bandwidth), ""}};
  if ((*measured)->busy) {
    findings[0].level = Level::kPoor;
    findings[0].advice =
        "other programs keep the cores busy; run syncopate doctor again when they have ended";
  }
  const int crowd = 2 * found.cores;
  findings.push_back(
      {"meetings", Level::kOk,
       absl::StrFormat("%s of %d workers, %s of %d, more than there are cores",
                       FormatSeconds(HandoverSeconds(found, found.cores)), found.cores,
                       FormatSeconds(HandoverSeconds(found, crowd)), crowd),
       ""});
  return findings;
}

}  // namespace

int AllowedCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

Findings MachineFindings(const Clock& clock, std::optional<HostMeasurement>* measured) {
  Findings findings = {Kernel(), CoresFinding(), Vectors()};
  for (Finding& finding : Layout()) findings.push_back(std::move(finding));
  findings.push_back(Memory());
  for (Finding& finding : Measured(clock, measured)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace syncopate::tools
