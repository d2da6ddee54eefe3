#include "tools/probe/probe_job.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/processor_time.h"
#include "base/status.h"
#include "probe/live_oracle.h"

namespace syncopate::tools {
namespace {

// Of the group that all experiments run in. The engine's groups have other names.
uint64_t GroupKey() { return DigestOf("probe").low | 1; }

}  // namespace

absl::StatusOr<std::optional<probe::Inference>> ProbeTogether(transport::Transport& transport,
                                                              const Clock& clock,
                                                              const std::string& host,
                                                              const std::string& machine,
                                                              const probe::InferOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<probe::Member> member,
                             probe::Member::Make(transport, clock,
                                                 {.host = host,
                                                  .machine = machine,
                                                  .group_key = GroupKey(),
                                                  .processor_time = ReadProcessorTime}));
  if (transport.rank() != 0) {
    SYNCOPATE_RETURN_IF_ERROR(probe::ServeProbe(*member));
    return std::optional<probe::Inference>();
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<probe::LiveOracle> oracle,
                             probe::LiveOracle::Make(*member, clock));
  SYNCOPATE_ASSIGN_OR_RETURN(probe::Inference found, probe::InferNetwork(*oracle, options));
  SYNCOPATE_RETURN_IF_ERROR(oracle->End());
  return std::optional<probe::Inference>(std::move(found));
}

}  // namespace syncopate::tools
