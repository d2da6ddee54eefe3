// The checks of everything that reaches a planner, so that planners themselves need none.
#include "plan/collective/request.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"

namespace syncopate::plan {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

absl::Status CheckActive(const CollectiveRequest& request) {
  if (request.workers < 1 || request.workers > limits::kWorkersMax) {
    return InvalidArgumentError(
        StrCat("workers is ", request.workers, "; expected 1 to ", limits::kWorkersMax));
  }
  if (request.active.empty()) return InvalidArgumentError("no worker is active");
  int previous = -1;
  for (int rank : request.active) {
    if (rank < 0 || rank >= request.workers) {
      return InvalidArgumentError(StrCat("active rank ", rank, " is not one of the ",
                                         request.workers, " workers 0 to ", request.workers - 1));
    }
    if (rank <= previous) {
      return InvalidArgumentError(
          StrCat("active ranks must ascend without repeats, but ", rank, " follows ", previous));
    }
    previous = rank;
  }
  return absl::OkStatus();
}

absl::Status CheckBlocks(const CollectiveRequest& request) {
  const std::vector<uint64_t>& blocks = request.block_elements;
  if (blocks.size() != request.active.size()) {
    return InvalidArgumentError(StrCat("block_elements has ", blocks.size(),
                                       " entries; expected one for each of the ",
                                       request.active.size(), " active workers"));
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    // Compared with what is left, so that the sum cannot wrap.
    if (blocks[i] > request.elements - sum) {
      return InvalidArgumentError(StrCat("blocks 0 to ", i, " together exceed the ",
                                         request.elements, " elements of data"));
    }
    sum += blocks[i];
  }
  if (sum != request.elements) {
    return InvalidArgumentError(
        StrCat("the blocks have ", sum, " elements, but data has ", request.elements));
  }
  if (request.collective == Collective::kAllToAll) {
    // Block j of worker i becomes block i of worker j.
    for (size_t i = 1; i < blocks.size(); ++i) {
      if (blocks[i] != blocks[0]) {
        return InvalidArgumentError(StrCat("all-to-all needs equal blocks, but block ", i, " has ",
                                           blocks[i], " elements and block 0 has ", blocks[0]));
      }
    }
  }
  return absl::OkStatus();
}

// OK if `groups` together hold every active rank exactly once. Fills group_of[rank].
absl::Status CheckPartition(const CollectiveRequest& request,
                            const std::vector<std::vector<int>>& groups,
                            std::vector<int>* group_of) {
  group_of->assign(static_cast<size_t>(request.workers), -1);
  size_t members = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].empty()) return InvalidArgumentError(StrCat("group ", g, " is empty"));
    for (int rank : groups[g]) {
      if (!IsActive(request, rank)) {
        return InvalidArgumentError(StrCat("group ", g, ": rank ", rank, " is not active"));
      }
      int& group = (*group_of)[static_cast<size_t>(rank)];
      if (group >= 0) {
        return InvalidArgumentError(
            StrCat("rank ", rank, " is in group ", group, " and again in group ", g));
      }
      group = static_cast<int>(g);
      ++members;
    }
  }
  if (members == request.active.size()) return absl::OkStatus();
  for (int rank : request.active) {
    if ((*group_of)[static_cast<size_t>(rank)] < 0) {
      return InvalidArgumentError(StrCat("active rank ", rank, " is in no group"));
    }
  }
  return absl::OkStatus();
}

// Levels go from machines outward, and what is together inside stays together outside.
absl::Status CheckLevels(const CollectiveRequest& request, const PlannerOptions& options) {
  std::vector<int> group_of;
  for (size_t level = 0; level < options.levels.size(); ++level) {
    SYNCOPATE_RETURN_IF_ERROR(
        At(StrCat("level ", level), CheckPartition(request, options.levels[level], &group_of)));
    if (level == 0) continue;
    for (const std::vector<int>& inner : options.levels[level - 1]) {
      for (int rank : inner) {
        if (group_of[static_cast<size_t>(rank)] != group_of[static_cast<size_t>(inner[0])]) {
          return InvalidArgumentError(StrCat("level ", level, ": ranks ", inner[0], " and ", rank,
                                             " are together at level ", level - 1,
                                             " and must stay together"));
        }
      }
    }
  }
  return absl::OkStatus();
}

// Edges come in an order in which a planner can walk them from the root.
absl::Status CheckLocalTree(const std::vector<int>& machine,
                            const PlannerOptions::LocalTree& tree) {
  std::vector<int> reached = {tree.root};
  for (const auto& [parent, child] : tree.edges) {
    if (std::find(machine.begin(), machine.end(), child) == machine.end()) {
      return InvalidArgumentError(StrCat("rank ", child, " is not in the machine of ", tree.root));
    }
    if (std::find(reached.begin(), reached.end(), parent) == reached.end()) {
      return InvalidArgumentError(
          StrCat("rank ", parent, " has a child before it is reached itself"));
    }
    if (std::find(reached.begin(), reached.end(), child) != reached.end()) {
      return InvalidArgumentError(StrCat("rank ", child, " is reached twice"));
    }
    reached.push_back(child);
  }
  if (reached.size() == machine.size()) return absl::OkStatus();
  return InvalidArgumentError(StrCat("the tree reaches ", reached.size(), " of the ",
                                     machine.size(), " workers of its machine"));
}

absl::Status CheckLocalTrees(const PlannerOptions& options) {
  for (size_t i = 0; i < options.local_trees.size(); ++i) {
    const PlannerOptions::LocalTree& tree = options.local_trees[i];
    const std::vector<int>* machine = nullptr;
    if (!options.levels.empty()) {
      for (const std::vector<int>& group : options.levels[0]) {
        if (std::find(group.begin(), group.end(), tree.root) != group.end()) machine = &group;
      }
    }
    if (machine == nullptr) {
      return InvalidArgumentError(
          StrCat("local tree ", i, ": its root ", tree.root, " is in no group of the first level"));
    }
    SYNCOPATE_RETURN_IF_ERROR(At(StrCat("local tree ", i), CheckLocalTree(*machine, tree)));
  }
  return absl::OkStatus();
}

absl::Status CheckServers(const CollectiveRequest& request, const PlannerOptions& options) {
  std::vector<bool> seen(static_cast<size_t>(request.workers), false);
  for (int rank : options.servers) {
    if (rank < 0 || rank >= request.workers) {
      return InvalidArgumentError(StrCat("server ", rank, " is not one of the ", request.workers,
                                         " workers 0 to ", request.workers - 1));
    }
    if (seen[static_cast<size_t>(rank)]) {
      return InvalidArgumentError(StrCat("server ", rank, " is listed twice"));
    }
    seen[static_cast<size_t>(rank)] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckOrder(const CollectiveRequest& request, const PlannerOptions& options) {
  if (options.order.empty()) return absl::OkStatus();
  std::vector<int> sorted = options.order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != request.active) {
    return InvalidArgumentError("order must hold every active rank exactly once and no other");
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const CollectiveRequest& request, const PlannerOptions& options) {
  if (options.pieces < 1 || static_cast<uint64_t>(options.pieces) > limits::kStepsPerWorkerMax) {
    return InvalidArgumentError(
        StrCat("pieces is ", options.pieces, "; expected 1 to ", limits::kStepsPerWorkerMax));
  }
  if (options.bytes_per_element < 1) {
    return InvalidArgumentError("bytes_per_element is 0; expected 1 or more");
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckOrder(request, options));
  SYNCOPATE_RETURN_IF_ERROR(CheckServers(request, options));
  SYNCOPATE_RETURN_IF_ERROR(CheckLevels(request, options));
  return CheckLocalTrees(options);
}

}  // namespace

bool IsActive(const CollectiveRequest& request, int rank) {
  return std::binary_search(request.active.begin(), request.active.end(), rank);
}

absl::Status ValidateRequest(Collective collective, const CollectiveRequest& request,
                             const PlannerOptions& options) {
  if (request.collective != collective) {
    return InvalidArgumentError(
        StrCat("a planner for ", Name(collective), " was asked for ", Name(request.collective)));
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckActive(request));
  if (request.elements > limits::kElementsMax) {
    return InvalidArgumentError(
        StrCat(request.elements, " elements; at most ", limits::kElementsMax, " are allowed"));
  }
  if (HasRoot(collective) && !IsActive(request, request.root)) {
    return InvalidArgumentError(StrCat("root ", request.root, " is not active"));
  }
  if (collective == Collective::kSendReceive && !IsActive(request, request.target)) {
    return InvalidArgumentError(StrCat("target ", request.target, " is not active"));
  }
  if (collective == Collective::kBarrier && request.elements != 0) {
    return InvalidArgumentError(
        StrCat("a barrier has no data, but ", request.elements, " elements were given"));
  }
  if (HasBlocks(collective)) SYNCOPATE_RETURN_IF_ERROR(CheckBlocks(request));
  return CheckOptions(request, options);
}

}  // namespace syncopate::plan
