// How a process moves to a host of a lab.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "lab/cpu_share.h"
#include "lab/lab.h"
#include "lab/netns.h"
#include "lab/state.h"

namespace syncopate::lab {
namespace {

absl::Status Failed(absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(what, ": ", strerror(errno)));
}

// /sys shows the interfaces of the namespace that it was mounted in; libraries read it to find
// theirs. Control groups stay where they were.
absl::Status MountSys() {
  const UniqueFd groups(
      open_tree(AT_FDCWD, "/sys/fs/cgroup", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    // Busy: it is there already, because this process is on that host, as a job's launcher is.
    if (errno == EBUSY) return absl::OkStatus();
    return Failed("the host's own /sys cannot be mounted");
  }
  if (groups.ok()) {  // else the machine has none
    move_mount(groups.get(), "", AT_FDCWD, "/sys/fs/cgroup", MOVE_MOUNT_F_EMPTY_PATH);
  }
  return absl::OkStatus();
}

absl::Status KeepToOwnCore(const std::string& lab, const std::string& host) {
  SYNCOPATE_ASSIGN_OR_RETURN(const State state, LoadState(lab));
  if (!state.spec.fixed_cores) return absl::OkStatus();
  const std::vector<int> hosts = Hosts(state.spec);
  const int machine = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (state.spec.nodes[static_cast<size_t>(hosts[i])].name != host) continue;
    return KeepToCore(CoreOf(static_cast<int>(i), machine));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BecomeHost(const std::string& lab, const std::string& host) {
  SYNCOPATE_RETURN_IF_ERROR(KeepToOwnCore(lab, host));
  SYNCOPATE_RETURN_IF_ERROR(JoinCpuLimit(lab, host));
  SYNCOPATE_ASSIGN_OR_RETURN(const UniqueFd network, OpenNamespace(HostNamespace(lab, host)));
  if (setns(network.get(), CLONE_NEWNET) != 0)
    return Failed("the host's network cannot be entered");
  if (unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0) return Failed("no namespace for mounts and names");
  if (mount("", "/", "none", MS_SLAVE | MS_REC, nullptr) != 0) {
    return Failed("mounts cannot be kept to this process");
  }
  SYNCOPATE_RETURN_IF_ERROR(MountSys());
  if (access("/etc/hosts", F_OK) == 0 &&
      mount(HostsPath(lab).c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) {
    return Failed("the names of the lab's hosts cannot be put into /etc/hosts");
  }
  if (sethostname(host.data(), host.size()) != 0) return Failed("the host's name cannot be set");
  return absl::OkStatus();
}

}  // namespace syncopate::lab
