// The private folder of one benchmark: sockets, logs, and what peers leave behind.
#ifndef SYNCOPATE_TOOLS_BENCH_WORKSPACE_H_
#define SYNCOPATE_TOOLS_BENCH_WORKSPACE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "base/unique_fd.h"

namespace syncopate::tools::bench {

// Mode 0700, removed with everything in it when the object goes. If the process is killed, the next
// benchmark removes it: a process that can take the folder's lock knows that its owner is gone.
class Workspace {
 public:
  // `base` is a folder for short-lived files, in memory if possible.
  static absl::StatusOr<std::unique_ptr<Workspace>> Make(const std::string& base);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  const std::string& path() const { return path_; }
  absl::StatusOr<std::string> MakeFolder(const std::string& name);
  // For a lab of this benchmark: as unique on this machine as the folder is.
  std::string LabName() const;

 private:
  Workspace(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  const std::string path_;
  const UniqueFd lock_;
};

// Where the user wants scratch files, else a folder in memory if there is one: peers keep their
// segments there.
std::string ScratchBase(const Environment& environment);

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_WORKSPACE_H_
