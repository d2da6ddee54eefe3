#include "transport/terms.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::transport {
namespace {

// It came from another process: what is shown has no control characters.
std::string Shown(const std::string& terms) {
  return terms.empty() ? "nothing special" : absl::CHexEscape(terms);
}

}  // namespace

absl::Status CompareTerms(const std::vector<std::string>& terms) {
  for (size_t rank = 1; rank < terms.size(); ++rank) {
    if (terms[rank] == terms[0]) continue;
    return WithBlast(
        absl::FailedPreconditionError(absl::StrCat(
            "the workers of this job were not started alike: worker 0 has ", Shown(terms[0]),
            ", worker ", rank, " has ", Shown(terms[rank]), "; give all workers the same")),
        BlastRadius::kJob);
  }
  return absl::OkStatus();
}

}  // namespace syncopate::transport
