#include "lab/netns.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::lab {
namespace {

constexpr char kNamespaceFolder[] = "/run/netns";

using Identity = std::pair<dev_t, ino_t>;

std::string PathOf(const std::string& name) { return absl::StrCat(kNamespaceFolder, "/", name); }

// Which namespace a file stands for; {0, 0} if none.
Identity IdentityOf(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return {0, 0};
  return {status.st_dev, status.st_ino};
}

std::set<Identity> IdentitiesOf(const std::vector<std::string>& names) {
  std::set<Identity> identities;
  for (const std::string& name : names) identities.insert(IdentityOf(PathOf(name)));
  identities.erase({0, 0});
  return identities;
}

std::vector<std::string> Entries(const char* folder) {
  std::vector<std::string> names;
  DIR* const dir = opendir(folder);
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::StatusOr<UniqueFd> OpenNamespace(const std::string& name) {
  UniqueFd fd(open(PathOf(name).c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.ok()) return fd;
  return absl::NotFoundError(absl::StrCat("network namespace ", name, ": ", strerror(errno)));
}

absl::StatusOr<NamespaceVisit> NamespaceVisit::Enter(const std::string& name) {
  SYNCOPATE_ASSIGN_OR_RETURN(const UniqueFd there, OpenNamespace(name));
  UniqueFd home(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!home.ok() || setns(there.get(), CLONE_NEWNET) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("network namespace ", name, " cannot be entered: ", strerror(errno)));
  }
  return NamespaceVisit(std::move(home));
}

NamespaceVisit::~NamespaceVisit() {
  if (home_.ok()) setns(home_.get(), CLONE_NEWNET);
}

std::vector<std::string> ListNamespaces() { return Entries(kNamespaceFolder); }

std::vector<pid_t> ProcessesIn(const std::vector<std::string>& names) {
  const std::set<Identity> wanted = IdentitiesOf(names);
  std::vector<pid_t> found;
  if (wanted.empty()) return found;
  for (const std::string& entry : Entries("/proc")) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry, &pid) || pid == getpid()) continue;
    if (wanted.count(IdentityOf(absl::StrCat("/proc/", pid, "/ns/net"))) != 0) found.push_back(pid);
  }
  return found;
}

bool AreWeIn(const std::vector<std::string>& names) {
  return IdentitiesOf(names).count(IdentityOf("/proc/self/ns/net")) != 0;
}

absl::Status RemoveNamespace(const std::string& name) {
  const std::string path = PathOf(name);
  // A name without a mount on it is what an interrupted `ip netns add` leaves.
  if (umount2(path.c_str(), MNT_DETACH) != 0 && errno != EINVAL && errno != ENOENT) {
    return absl::InternalError(
        absl::StrCat("network namespace ", name, " cannot be unmounted: ", strerror(errno)));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return absl::InternalError(
        absl::StrCat("network namespace ", name, " cannot be removed: ", strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace syncopate::lab
