#include "control/slurm_nodes.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"

namespace syncopate::control {

absl::StatusOr<std::string> FirstSlurmNode(absl::string_view list) {
  const absl::Status bad =
      absl::InvalidArgumentError(absl::StrCat("\"", list.substr(0, limits::kHostNameBytesMax),
                                              "\" is no list of nodes as Slurm writes it"));
  std::string node;
  bool inside = false;    // of brackets
  bool skipping = false;  // the rest of a bracket after its first number
  for (const char c : list) {
    if (node.size() > limits::kHostNameBytesMax) return bad;
    if (c == '[') {
      if (inside) return bad;
      inside = true;
    } else if (c == ']') {
      if (!inside) return bad;
      inside = skipping = false;
    } else if (inside) {
      skipping = skipping || c == '-' || c == ',';
      if (!skipping) node.push_back(c);
    } else if (c == ',') {
      break;
    } else {
      node.push_back(c);
    }
  }
  if (inside || node.empty()) return bad;
  return node;
}

}  // namespace syncopate::control
