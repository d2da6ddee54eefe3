#include "tools/probe/probe_job.h"

#include <memory>
#include <set>
#include <string>
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

absl::StatusOr<std::optional<probe::Inference>> ProbeTogether(
    transport::Transport& transport, const Clock& clock, const std::string& host,
    const std::string& machine, probe::InferOptions options, Progress* progress) {
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
  if (progress != nullptr) {
    std::set<std::string> hosts;
    for (int rank = 0; rank < oracle->size(); ++rank) hosts.insert(oracle->HostOf(rank));
    if (hosts.size() > 1) {
      progress->Announce(options.budget_seconds > 0
                             ? options.budget_seconds
                             : probe::DefaultBudgetSeconds(static_cast<int>(hosts.size())),
                         absl::StrCat("at most, for ", hosts.size(), " hosts"));
    }
    options.progress = [progress](absl::string_view step, double part) {
      progress->Show(step, part);
    };
  }
  SYNCOPATE_ASSIGN_OR_RETURN(probe::Inference found, probe::InferNetwork(*oracle, options));
  SYNCOPATE_RETURN_IF_ERROR(oracle->End());
  return std::optional<probe::Inference>(std::move(found));
}

}  // namespace syncopate::tools
