#include "worker/program_cache.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "plan/collective/planners.h"
#include "plan/collective/quick_select.h"
#include "plan/collective/select.h"

namespace syncopate::worker {
namespace {

// For larger calls the algorithm is chosen by their own size, not by one that stands for it.
constexpr uint64_t kAlikeBytesMax = 4 << 20;

// A size that stands for those near it: the next one below with two significant binary digits. A
// call with blocks stands for itself, since its blocks have sizes of their own.
uint64_t AlikeElements(const plan::ProgramKey& key) {
  const uint64_t elements = key.request.elements;
  if (elements < 4 || elements * key.element_bytes > kAlikeBytesMax ||
      !key.request.block_elements.empty()) {
    return elements;
  }
  const int digits = std::bit_width(elements);
  return elements >> (digits - 2) << (digits - 2);
}

}  // namespace

// On one host the choice follows from fixed costs and the number of cores, without a topology.
absl::StatusOr<Program> ProgramCache::PlanForHost(const plan::ProgramKey& key) const {
  absl::string_view algorithm = key.algorithm;
  if (algorithm.empty()) {
    HostCosts costs;
    costs.cores = cores_;
    algorithm = plan::QuickSelect(static_cast<int>(key.request.active.size()), costs)
                    .Algorithm(key.request.collective, key.request.elements * key.element_bytes);
  }
  plan::PlannerOptions options;
  options.bytes_per_element = key.element_bytes;
  return plan::PlanBy(algorithm, key.request, options);
}

std::optional<std::vector<int>> ProgramCache::PlacementOf(const plan::ProgramKey& key) const {
  if (!network_ || key.ranks.empty()) return std::nullopt;
  std::vector<int> placement;
  bool one_host = true;
  const auto host_of = [&](int device) {
    // A device that names no host is one by itself.
    const int host = network_->topology.nodes[static_cast<size_t>(device)].host;
    return host >= 0 ? host : device;
  };
  for (const int rank : key.ranks) {
    placement.push_back(network_->placement[static_cast<size_t>(rank)]);
    one_host = one_host && host_of(placement.back()) == host_of(placement.front());
  }
  if (one_host) return std::nullopt;
  return placement;
}

absl::StatusOr<std::shared_ptr<const plan::Selection>> ProgramCache::ChoiceFor(
    plan::ProgramKey key, const Topology& topology, const std::vector<int>& placement) {
  // What does not bear on the choice is cleared, so that all such calls share one entry.
  key.request.elements = AlikeElements(key);
  key.self = 0;
  key.chunk_bytes = 0;
  const auto found = choices_.find(key);
  if (found != choices_.end()) return found->second;
  SYNCOPATE_ASSIGN_OR_RETURN(plan::Selection selection,
                             plan::SelectProgram(key.request, key.element_bytes, topology,
                                                 placement, {.algorithm = key.algorithm}));
  Log(LogLevel::kInfo, Name(key.request.collective), " of about ",
      key.request.elements * key.element_bytes, " bytes: ", selection.why);
  // The program is of the size that stands for others, and the other candidates lost: neither is
  // asked for again.
  selection.program = {};
  selection.candidates.resize(1);
  // Clearing all is enough as a bound: what is still used is planned again.
  if (choices_.size() >= kProgramsMax) choices_.clear();
  auto choice = std::make_shared<const plan::Selection>(std::move(selection));
  choices_[key] = choice;
  return choice;
}

absl::StatusOr<PlannedProgram> ProgramCache::Plan(const plan::ProgramKey& key) {
  const std::optional<std::vector<int>> placement = PlacementOf(key);
  PlannedProgram planned;
  if (!placement || key.request.elements == 0) {
    SYNCOPATE_ASSIGN_OR_RETURN(Program program, PlanForHost(key));
    SYNCOPATE_ASSIGN_OR_RETURN(planned.program,
                               engine::CompileProgram(std::move(program), key.self));
    return planned;
  }
  const bool newer = published_ && key.network_version == published_->first;
  const Topology& topology = newer ? published_->second : network_->topology;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::shared_ptr<const plan::Selection> choice,
                             ChoiceFor(key, topology, *placement));
  absl::StatusOr<Program> program = plan::PlanAlike(*choice, key.request, key.chunk_bytes);
  planned.chunk_bytes =
      key.chunk_bytes > 0 ? key.chunk_bytes : choice->candidates.front().chunk_bytes;
  if (!program.ok() && key.algorithm.empty() && key.chunk_bytes == 0) {
    // A planner from outside may serve the size that stands for those near it, and not this one.
    SYNCOPATE_ASSIGN_OR_RETURN(
        plan::Selection exact,
        plan::SelectProgram(key.request, key.element_bytes, topology, *placement, {}));
    planned.chunk_bytes = exact.candidates.front().chunk_bytes;
    program = std::move(exact.program);
  }
  if (!program.ok()) return program.status();
  SYNCOPATE_ASSIGN_OR_RETURN(planned.program,
                             engine::CompileProgram(*std::move(program), key.self));
  return planned;
}

// Planning runs under the mutex: two threads that ask for the same program plan it once.
absl::StatusOr<PlannedProgram> ProgramCache::Get(const plan::ProgramKey& key) {
  MutexLock lock(&mutex_);
  const auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  SYNCOPATE_ASSIGN_OR_RETURN(PlannedProgram planned, Plan(key));
  if (programs_.size() >= kProgramsMax) programs_.clear();
  programs_[key] = planned;
  return planned;
}

absl::Status ProgramCache::CheckVersion(uint64_t version) {
  if (version == 0 || (network_ && version == network_->topology.version)) return absl::OkStatus();
  if (!network_) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no version ", version, " of the network: the job is on one host"));
  }
  MutexLock lock(&mutex_);
  if (published_ && published_->first == version) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this worker does not plan by version ", version,
                   " of the network, but by version ", network_->topology.version,
                   published_ ? absl::StrCat(" and version ", published_->first) : std::string()));
}

// Programs of the version that is replaced are forgotten. Those of the first version stay: groups
// that do not follow the network's versions are planned by it for the whole job.
void ProgramCache::Publish(uint64_t version, const Topology& topology) {
  MutexLock lock(&mutex_);
  if (published_) {
    absl::erase_if(programs_, [&](const auto& entry) {
      return entry.first.network_version == published_->first;
    });
    absl::erase_if(choices_, [&](const auto& entry) {
      return entry.first.network_version == published_->first;
    });
  }
  published_ = {version, topology};
}

}  // namespace syncopate::worker
