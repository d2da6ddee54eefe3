#include "strategy/registry.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "strategy/bsp.h"

namespace syncopate::strategy {
namespace {

absl::StatusOr<std::unique_ptr<Strategy>> MakeBspFrom(const StrategyOptions& options) {
  if (options.schedule == nullptr) return absl::InvalidArgumentError("it needs a schedule");
  SYNCOPATE_RETURN_IF_ERROR(Validate(*options.schedule, options.table.size()));
  return MakeBsp({options.rank, options.size, options.table.size()}, options.schedule,
                 {.update_together = options.update_together});
}

// Entries are never moved: others hold pointers to them.
std::deque<StrategyEntry>& Entries() {
  static auto& entries = *new std::deque<StrategyEntry>{
      {.name = "bsp",
       .about = "all workers average their gradients in every iteration, by a schedule",
       .lockstep = true,
       .survives = false,
       .ends_together = true,
       .moves = Moves::kGradients,
       .service = "",
       .data = DataMode::kInStep,
       .model = ModelIs::kParameters,
       .make = MakeBspFrom},
  };
  return entries;
}

}  // namespace

std::vector<Role> StrategyEntry::RolesAmong(int size) const {
  std::vector<Role> roles;
  for (int rank = 0; server >= 0 && rank < size; ++rank) {
    roles.push_back(rank == server ? Role::kServes : Role::kTrains);
  }
  return roles;
}

absl::StatusOr<std::vector<Role>> StrategyEntry::RolesOfLoops(int size) const {
  if (server < 0) return std::vector<Role>();
  const bool trains = server_role == Role::kTrains;
  if (server >= size || (size == 1 && !trains)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "strategy ", name, ": rank ", server, " is its server", trains ? "" : " and does not train",
        ", so ", size, size == 1 ? " worker is" : " workers are", " too few"));
  }
  std::vector<Role> roles;
  if (trains) return roles;
  roles.assign(static_cast<size_t>(size), Role::kTrains);
  roles[static_cast<size_t>(server)] = Role::kServes;
  return roles;
}

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const StrategyEntry& entry : Entries()) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string StrategyList() { return absl::StrJoin(StrategyNames(), ", "); }

absl::StatusOr<const StrategyEntry*> FindStrategy(absl::string_view name) {
  for (const StrategyEntry& entry : Entries()) {
    if (entry.name == name) return &entry;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no strategy \"", name, "\"; there are: ", StrategyList()));
}

absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(absl::string_view name,
                                                       const StrategyOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const StrategyEntry* entry, FindStrategy(name));
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("strategy ", name, ": ", why));
  };
  if (options.rank < 0 || options.rank >= options.size) return refuse("there is no such rank");
  const size_t size = static_cast<size_t>(options.size);
  if (!options.placement.empty() && options.placement.size() != size) {
    return refuse("the placement is not one of all ranks");
  }
  if (!options.roles.empty() && options.roles.size() != size) {
    return refuse("the roles are not those of all ranks");
  }
  if (entry->server >= options.size) {
    return refuse(absl::StrCat("rank ", entry->server, " is its server, in a job of ", options.size,
                               " workers"));
  }
  auto strategy = entry->make(options);
  if (!strategy.ok()) return At(absl::StrCat("strategy ", name), strategy.status());
  return strategy;
}

absl::Status AddStrategy(StrategyEntry entry) {
  if (entry.name.empty() || entry.make == nullptr) {
    return absl::InvalidArgumentError("a strategy needs a name and a function that makes it");
  }
  // Evaluations, checkpoints and schedules of workers in lockstep are collectives of all of them.
  if (entry.lockstep && entry.survives) {
    return absl::InvalidArgumentError(absl::StrCat(
        "strategy ", entry.name,
        ": workers in lockstep cannot go on after a loss; it is one or the ", "other"));
  }
  if (FindStrategy(entry.name).ok()) {
    return absl::AlreadyExistsError(absl::StrCat("there is a strategy ", entry.name));
  }
  Entries().push_back(std::move(entry));
  return absl::OkStatus();
}

}  // namespace syncopate::strategy
