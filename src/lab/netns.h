// Network namespaces by name, as `ip netns` keeps them.
#ifndef SYNCOPATE_LAB_NETNS_H_
#define SYNCOPATE_LAB_NETNS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace syncopate::lab {

absl::StatusOr<UniqueFd> OpenNamespace(const std::string& name);

// The calling thread is in another network namespace while this lives.
class NamespaceVisit {
 public:
  static absl::StatusOr<NamespaceVisit> Enter(const std::string& name);
  NamespaceVisit(NamespaceVisit&&) = default;
  NamespaceVisit& operator=(NamespaceVisit&&) = delete;
  ~NamespaceVisit();

 private:
  explicit NamespaceVisit(UniqueFd home) : home_(std::move(home)) {}

  UniqueFd home_;
};

// All names, sorted.
std::vector<std::string> ListNamespaces();

// Processes that are in one of these namespaces, without ourselves.
std::vector<pid_t> ProcessesIn(const std::vector<std::string>& names);
// Whether the calling process is in one of them.
bool AreWeIn(const std::vector<std::string>& names);

// Takes the name away; the namespace goes when the last process in it has.
absl::Status RemoveNamespace(const std::string& name);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_NETNS_H_
