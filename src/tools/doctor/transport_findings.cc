#include "tools/doctor/transport_findings.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/pidfd.h"
#include "base/unique_fd.h"
#include "control/interfaces.h"
#include "lab/requirements.h"
#include "transport/net/ucx_library.h"

namespace syncopate::tools {
namespace {

using Level = Finding::Level;

constexpr uint64_t kSegmentBytes = uint64_t{64} << 30;  // sparse: takes no memory
constexpr uint64_t kOpenFilesMin = 1024;
constexpr uint64_t kShmBytesMin = uint64_t{64} << 20;

Finding Broken(const char* name, absl::string_view what, absl::string_view advice) {
  return {name, Level::kBroken, absl::StrCat(what, ": ", std::strerror(errno)),
          std::string(advice)};
}

// Everything that a shared arena does with its memory, once.
Finding MemFd() {
  constexpr const char* kName = "memfd";
  const UniqueFd fd(memfd_create("syncopate-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.ok()) {
    return Broken(kName, "cannot be created",
                  "allow memfd_create in the container's seccomp filter");
  }
  const long page = sysconf(_SC_PAGESIZE);
  if (ftruncate(fd.get(), page) != 0) {
    return Broken(kName, "cannot be sized", "raise the limit on file sizes: ulimit -f unlimited");
  }
  void* map =
      mmap(nullptr, static_cast<size_t>(page), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) {
    return Broken(kName, "cannot be mapped", "raise the limit on memory: ulimit -v unlimited");
  }
  *static_cast<volatile char*>(map) = 1;
  munmap(map, static_cast<size_t>(page));
  const bool large = ftruncate(fd.get(), static_cast<off_t>(kSegmentBytes)) == 0;
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Broken(kName, "cannot be sealed", "use Linux 5.4 or later without a filter on fcntl");
  }
  if (ftruncate(fd.get(), 0) == 0) {
    errno = EINVAL;
    return Broken(kName, "shrinks in spite of its seal", "use Linux 5.4 or later");
  }
  if (!large) {
    return {kName, Level::kPoor, absl::StrCat("no segment of ", FormatBytes(kSegmentBytes)),
            "raise the limit on file sizes: ulimit -f unlimited"};
  }
  return {
      kName, Level::kOk,
      absl::StrCat("created, mapped, sealed; sizes up to ", FormatBytes(kSegmentBytes), " tried"),
      ""};
}

// Asks to wait for a value that is not there, which a working futex refuses with EAGAIN.
Finding Futex() {
  uint32_t word = 1;
  const long result = syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
  if (result != -1 || errno != EAGAIN) {
    return Broken("futex", "does not work", "allow futex in the container's seccomp filter");
  }
  return {"futex", Level::kOk, "works", ""};
}

Finding PidFd() {
  if (!OpenPidFd(getpid()).ok()) {
    return Broken("pidfd", "does not work",
                  "use Linux 5.4 or later and allow pidfd_open in the container's seccomp filter");
  }
  return {"pidfd", Level::kOk, "works", ""};
}

Finding DevShm() {
  struct statvfs info;
  if (statvfs("/dev/shm", &info) != 0) {
    return {"/dev/shm", Level::kMissing, std::strerror(errno),
            "only other systems need it (Open MPI): mount -t tmpfs tmpfs /dev/shm"};
  }
  const uint64_t total = uint64_t{info.f_blocks} * info.f_frsize;
  const uint64_t free_bytes = uint64_t{info.f_bavail} * info.f_frsize;
  Finding finding = {"/dev/shm", Level::kOk,
                     absl::StrCat(FormatBytes(total), ", ", FormatBytes(free_bytes), " free"), ""};
  if (free_bytes < kShmBytesMin) {
    finding.level = Level::kPoor;
    finding.advice =
        "only other systems need it (Open MPI): remove old files there, or docker "
        "--shm-size=1g";
  }
  return finding;
}

std::string LimitText(rlim_t limit, bool bytes) {
  if (limit == RLIM_INFINITY) return "unlimited";
  return bytes ? FormatBytes(limit) : absl::StrCat(limit);
}

Finding OpenFiles() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  Finding finding = {"open files", Level::kOk,
                     absl::StrCat(LimitText(limit.rlim_cur, false), " (hard limit ",
                                  LimitText(limit.rlim_max, false), ")"),
                     ""};
  if (limit.rlim_cur < kOpenFilesMin) {
    finding.level = Level::kPoor;
    finding.advice = absl::StrCat("ulimit -n ", std::min<rlim_t>(kOpenFilesMin, limit.rlim_max));
  }
  return finding;
}

// Shared memory of one host need not be locked, so no amount is too small.
Finding LockedMemory() {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return {"locked memory", Level::kOk, LimitText(limit.rlim_cur, true), ""};
}

// The interface that a job on several hosts would use.
Finding Network() {
  constexpr const char* kName = "network";
  const absl::StatusOr<std::vector<control::InterfaceAddress>> all = control::ListInterfaces();
  const absl::StatusOr<std::vector<control::InterfaceAddress>> chosen =
      all.ok() ? control::ChooseInterfaces("", *all) : all;
  if (!chosen.ok() || chosen->front().loopback) {
    return {kName, Level::kMissing, "no interface but the loopback",
            "workers on other hosts need one that is up"};
  }
  const control::InterfaceAddress& interface = chosen->front();
  const double bits = control::LinkBitsPerSecond(interface.name);
  return {kName, Level::kOk,
          absl::StrCat(interface.name, ", ", interface.address,
                       bits > 0 ? absl::StrCat(", ", bits / 1e9, " Gbit/s") : ""),
          ""};
}

Finding UcxFinding() {
  const absl::Status loaded = transport::net::LoadUcx().status();
  if (loaded.ok()) return {"UCX", Level::kOk, "loads", ""};
  return {"UCX", Level::kMissing, std::string(loaded.message()),
          "only RDMA between hosts needs it: apt-get install libucx0"};
}

Finding Labs() {
  const absl::Status basics = lab::CheckBasics();
  if (basics.ok()) return {"labs", Level::kOk, "this machine can carry emulated clusters", ""};
  return {"labs", Level::kMissing, std::string(basics.message()),
          "only syncopate lab and --lab of train, replay, bench and probe need it"};
}

}  // namespace

Findings NetworkFindings() { return {Network(), UcxFinding(), Labs()}; }

Findings TransportFindings() {
  Findings findings = {MemFd(), Futex(), PidFd(), DevShm(), OpenFiles(), LockedMemory()};
  const bool works = std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.level == Level::kBroken;
  });
  findings.push_back(
      works ? Finding{"transports", Level::kOk,
                      "shm (workers of one host), tcp and ucx (between hosts)", ""}
            : Finding{"transports", Level::kBroken, "none", "mend what is marked broken above"});
  return findings;
}

}  // namespace syncopate::tools
