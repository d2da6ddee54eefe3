#include "lab/cpu_share.h"

#include <dirent.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "lab/netns.h"
#include "lab/plan.h"
#include "lab/proc_file.h"

namespace syncopate::lab {
namespace {

constexpr int kQuotaUsMin = 1000;
constexpr int kQuotaUsUsual = 5000;
constexpr int kPeriodUsUsual = 50'000;
constexpr int kPeriodUsMax = 1'000'000;
constexpr char kVersion1[] = "/sys/fs/cgroup/cpu";
constexpr int kRoundsMax = 50;

struct Hierarchy {
  std::string folder;  // empty: none
  bool version2 = false;
};

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

Hierarchy FindHierarchy() {
  for (const char* folder : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    const absl::StatusOr<std::string> text =
        ReadProcFile(absl::StrCat(folder, "/cgroup.controllers"));
    if (!text.ok()) continue;
    for (const absl::string_view name : absl::StrSplit(*text, absl::ByAnyChar(" \n"))) {
      if (name == "cpu") return {folder, true};
    }
  }
  if (Exists(absl::StrCat(kVersion1, "/cgroup.procs")) &&
      Exists(absl::StrCat(kVersion1, "/cpu.shares"))) {
    return {kVersion1, false};
  }
  return {};
}

std::string GroupName(absl::string_view lab, absl::string_view host) {
  return HostNamespace(lab, host);  // as unique as the namespace
}

absl::Status SetQuota(const Hierarchy& hierarchy, const std::string& group, double cores) {
  const CpuQuota quota = QuotaFor(cores);
  if (hierarchy.version2) {
    return WriteProcFile(
        group + "/cpu.max",
        cores > 0 ? absl::StrCat(quota.quota_us, " ", quota.period_us) : std::string("max"));
  }
  if (cores <= 0) return WriteProcFile(group + "/cpu.cfs_quota_us", "-1");
  // The old quota must fit the new period at every moment.
  SYNCOPATE_RETURN_IF_ERROR(WriteProcFile(group + "/cpu.cfs_quota_us", "-1"));
  SYNCOPATE_RETURN_IF_ERROR(
      WriteProcFile(group + "/cpu.cfs_period_us", absl::StrCat(quota.period_us)));
  return WriteProcFile(group + "/cpu.cfs_quota_us", absl::StrCat(quota.quota_us));
}

}  // namespace

double FairCores(int machine_cores, int hosts) {
  return std::min(1.0, static_cast<double>(machine_cores) / std::max(1, hosts));
}

CpuQuota QuotaFor(double cores) {
  if (cores <= 0) return {};
  int quota = std::max(kQuotaUsMin, static_cast<int>(std::lround(cores * kPeriodUsUsual)));
  int period = kPeriodUsUsual;
  if (quota <= kQuotaUsUsual && cores * kPeriodUsUsual < quota) {
    period = std::min(kPeriodUsMax, static_cast<int>(std::lround(quota / cores)));
  }
  return {quota, period};
}

absl::Status CanLimitCpu() {
  if (!FindHierarchy().folder.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "lab slow, and cores = in a lab's file, need control groups for CPU time, which this machine "
      "does not have: neither "
      "\"cpu\" in /sys/fs/cgroup/cgroup.controllers nor /sys/fs/cgroup/cpu");
}

absl::Status LimitCpu(absl::string_view lab, absl::string_view host, double cores) {
  SYNCOPATE_RETURN_IF_ERROR(CanLimitCpu());
  const Hierarchy hierarchy = FindHierarchy();
  const std::string group = absl::StrCat(hierarchy.folder, "/", GroupName(lab, host));
  if (hierarchy.version2) {
    SYNCOPATE_RETURN_IF_ERROR(WriteProcFile(hierarchy.folder + "/cgroup.subtree_control", "+cpu"));
  }
  if (mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(
        absl::StrCat("the control group ", group, " cannot be made: ", strerror(errno)));
  }
  SYNCOPATE_RETURN_IF_ERROR(SetQuota(hierarchy, group, cores));
  // Processes may start others while they are being moved: go on until all are in.
  const std::vector<std::string> netns = {HostNamespace(lab, host)};
  for (int round = 0; round < kRoundsMax; ++round) {
    const absl::StatusOr<std::string> inside = ReadProcFile(group + "/cgroup.procs");
    if (!inside.ok()) return inside.status();
    const std::vector<std::string> lines = absl::StrSplit(*inside, '\n');
    bool moved = false;
    for (const pid_t pid : ProcessesIn(netns)) {
      const std::string text = absl::StrCat(pid);
      if (std::find(lines.begin(), lines.end(), text) != lines.end()) continue;
      // One that has ended meanwhile need not be moved.
      moved = WriteProcFile(group + "/cgroup.procs", text).ok() || moved;
    }
    if (!moved) break;
  }
  return absl::OkStatus();
}

absl::Status JoinCpuLimit(absl::string_view lab, absl::string_view host) {
  const Hierarchy hierarchy = FindHierarchy();
  if (hierarchy.folder.empty()) return absl::OkStatus();
  const std::string path =
      absl::StrCat(hierarchy.folder, "/", GroupName(lab, host), "/cgroup.procs");
  if (!Exists(path)) return absl::OkStatus();
  return WriteProcFile(path, "0");
}

int CoreOf(int host, int machine_cores) { return host % std::max(1, machine_cores); }

absl::Status KeepToCore(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<size_t>(core), &cores);
  if (sched_setaffinity(0, sizeof(cores), &cores) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the lab wants fixed cores, but this process may not use core ", core, ": ",
                   strerror(errno), "; take fixed_cores out of the lab's file"));
}

void RemoveCpuLimits(absl::string_view lab) {
  const Hierarchy hierarchy = FindHierarchy();
  if (hierarchy.folder.empty()) return;
  DIR* const dir = opendir(hierarchy.folder.c_str());
  if (dir == nullptr) return;
  std::vector<std::string> groups;
  while (const dirent* entry = readdir(dir)) {
    if (IsNamespaceOf(lab, entry->d_name)) groups.emplace_back(entry->d_name);
  }
  closedir(dir);
  for (const std::string& group : groups) rmdir(absl::StrCat(hierarchy.folder, "/", group).c_str());
}

}  // namespace syncopate::lab
