// Shares inside the smallest groups first, then among groups, and back: the slow links between
// groups carry each share only once per group instead of once per worker.
//
// At each level the members of a group reduce-scatter their range: its n shares, n the size of the
// largest group, are dealt to the members in turn, so that groups of different sizes work together
// and every member has something to do. For each share, its holders in all groups then do the same
// at the next level; at the end the holders hand the results back to their groups.
#include <algorithm>

#include "base/limits.h"
#include "base/status.h"
#include "plan/collective/pipeline.h"
#include "plan/collective/planners.h"
#include "plan/collective/program_builder.h"
#include "plan/collective/shares.h"
#include "plan/collective/variants.h"

namespace syncopate::plan {
namespace {

using Groups = std::vector<std::vector<int>>;

class Hierarchy {
 public:
  Hierarchy(const CollectiveRequest& request, const PlannerOptions& options) {
    for (const Groups& groups : options.levels) AddLevel(request, groups);
    AddLevel(request, {request.active});
    // Whichever share is followed upwards, one member of each group goes on.
    std::vector<int> members = request.active;
    for (size_t level = 0; level < group_of_.size(); ++level) {
      size_t largest = 1;
      std::vector<int> next;
      for (const std::vector<int>& group : GroupsAt(level, members)) {
        largest = std::max(largest, group.size());
        next.push_back(group[0]);
      }
      shares_.push_back(static_cast<uint32_t>(largest));
      chunks_ = std::min<uint64_t>(chunks_ * largest, limits::kChunksMax + 1);
      members = next;
    }
  }

  // Into how many chunks a piece is cut: the product of the shares of all levels.
  uint64_t chunks() const { return chunks_; }

  // Notes the all-reduce of `range` among `members`, who hold it after the levels below.
  void AllReduce(size_t level, const std::vector<int>& members, Chunks range,
                 Pipeline* pipeline) const {
    if (level == group_of_.size()) return;
    const Groups groups = GroupsAt(level, members);
    const uint32_t shares = shares_[level];
    const uint32_t width = range.count / shares;
    const int up = static_cast<int>(level);
    const int down = static_cast<int>(2 * group_of_.size() - 1 - level);
    for (uint32_t share = 0; share < shares; ++share) {
      const Chunks part = Data(range.first + share * width, width);
      std::vector<int> holders;
      for (const std::vector<int>& group : groups) {
        const size_t holder = share % group.size();
        holders.push_back(group[holder]);
        // Start behind the holder, so that not all members send to the same one first.
        for (size_t i = 1; i < group.size(); ++i) {
          const int member = group[(holder + i) % group.size()];
          pipeline->MoveReduce(up, member, group[holder], part);
          pipeline->Move(down, group[holder], member, part);
        }
      }
      AllReduce(level + 1, holders, part, pipeline);
    }
  }

 private:
  void AddLevel(const CollectiveRequest& request, const Groups& groups) {
    std::vector<size_t> group_of(static_cast<size_t>(request.workers), 0);
    for (size_t g = 0; g < groups.size(); ++g) {
      for (int rank : groups[g]) group_of[static_cast<size_t>(rank)] = g;
    }
    group_of_.push_back(std::move(group_of));
    group_count_.push_back(groups.size());
  }

  // The groups of a level, of these members only; without the empty ones.
  Groups GroupsAt(size_t level, const std::vector<int>& members) const {
    Groups groups(group_count_[level]);
    for (int rank : members) {
      groups[group_of_[level][static_cast<size_t>(rank)]].push_back(rank);
    }
    groups.erase(std::remove_if(groups.begin(), groups.end(),
                                [](const std::vector<int>& group) { return group.empty(); }),
                 groups.end());
    return groups;
  }

  std::vector<std::vector<size_t>> group_of_;  // by level and rank
  std::vector<size_t> group_count_;            // by level
  std::vector<uint32_t> shares_;               // by level
  uint64_t chunks_ = 1;
};

absl::StatusOr<Program> PlanHierarchicalAllReduce(const CollectiveRequest& request,
                                                  const PlannerOptions& options) {
  SYNCOPATE_RETURN_IF_ERROR(ValidateRequest(Collective::kAllReduce, request, options));
  const Hierarchy hierarchy(request, options);
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::vector<uint64_t> bounds,
      CutEvenly(request.elements, hierarchy.chunks() * static_cast<uint64_t>(options.pieces)));
  ProgramBuilder builder(request, "hierarchical", std::move(bounds));
  const uint32_t chunks = static_cast<uint32_t>(hierarchy.chunks());
  Pipeline pipeline(chunks, /*scratch_chunks=*/0);
  hierarchy.AllReduce(0, request.active, Data(0, chunks), &pipeline);
  pipeline.Emit(options.pieces, &builder);
  return builder.Finish();
}

uint64_t HierarchicalSteps(uint64_t workers, const PlannerOptions& options) {
  uint64_t peers = 0;  // of a worker, at all levels together
  uint64_t groups = workers;
  for (const Groups& level : options.levels) {
    peers += groups / level.size();
    groups = level.size();
  }
  return 4 * workers * (peers + groups) * static_cast<uint64_t>(options.pieces);
}

}  // namespace

void RegisterHierarchical(PlannerRegistry& registry) {
  registry.Add({.name = "hierarchical",
                .collective = Collective::kAllReduce,
                .summary = "inside groups, then among them: slow links between groups",
                .preference = 70,
                .plan = PlanHierarchicalAllReduce,
                .variants = VariantWithLevels,
                .limit = LimitWithoutGroups,
                .steps = HierarchicalSteps});
}

}  // namespace syncopate::plan
