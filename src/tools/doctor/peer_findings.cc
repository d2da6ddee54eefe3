#include "tools/doctor/peer_findings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/own_path.h"

namespace syncopate::tools {
namespace {

using Level = Finding::Level;

struct Peer {
  const char* name;
  const char* launcher;  // null: it needs none
  const char* driver;
  const char* packages;
};

constexpr Peer kPeers[] = {
    {"Open MPI", "mpirun.openmpi", "bench_openmpi", "openmpi-bin libopenmpi-dev"},
    {"MPICH", "mpirun.mpich", "bench_mpich", "mpich libmpich-dev"},
    {"Gloo", nullptr, "bench_gloo", "libgloo-dev"},
};

std::optional<std::string> FindExecutable(const std::vector<std::string>& folders,
                                          const std::string& name) {
  for (const std::string& folder : folders) {
    const std::string path = absl::StrCat(folder, "/", name);
    struct stat info;
    if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return std::nullopt;
}

}  // namespace

Findings PeerFindings(const Environment& environment, const std::string& program_folder) {
  const std::vector<std::string> path =
      absl::StrSplit(environment("PATH").value_or(""), ':', absl::SkipEmpty());
  const std::vector<std::string> driver_folders = {
      absl::StrCat(program_folder, "/../peers"),
      absl::StrCat(program_folder, "/../libexec/syncopate")};
  Findings findings;
  for (const Peer& peer : kPeers) {
    const std::string install = absl::StrCat("apt-get install ", peer.packages);
    if (peer.launcher != nullptr && !FindExecutable(path, peer.launcher).has_value()) {
      findings.push_back({absl::StrCat("peer ", peer.name), Level::kMissing,
                          absl::StrCat("no ", peer.launcher), install});
    } else if (!FindExecutable(driver_folders, peer.driver).has_value()) {
      findings.push_back({absl::StrCat("peer ", peer.name), Level::kMissing,
                          absl::StrCat("no driver ", peer.driver),
                          absl::StrCat(install, ", then build Syncopate again")});
    } else {
      findings.push_back({absl::StrCat("peer ", peer.name), Level::kOk, "ready", ""});
    }
  }
  return findings;
}

std::string ProgramFolder() { return OwnFolder().value_or(""); }

}  // namespace syncopate::tools
