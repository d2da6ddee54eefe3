// For tests of planners: random requests, and the proof of what a planner makes of them.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_PLANNER_TESTING_H_
#define SYNCOPATE_PLAN_COLLECTIVE_PLANNER_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_validator.h"
#include "plan/collective/planners.h"

namespace syncopate::plan::testing {

inline constexpr int kRandomRequests = 1000;  // for each planner

template <typename T>
void Shuffle(std::vector<T>* values, Random* random) {
  for (size_t i = values->size(); i > 1; --i) {
    std::swap((*values)[i - 1], (*values)[random->Below(i)]);
  }
}

template <typename T>
T OneOf(const std::vector<T>& values, Random* random) {
  return values[random->Below(values.size())];
}

// All of `workers` workers, the lowest rank as root, the highest as target, equal blocks.
inline CollectiveRequest FullRequest(Collective collective, int workers, uint64_t elements) {
  CollectiveRequest request;
  request.collective = collective;
  request.workers = workers;
  request.active.resize(static_cast<size_t>(workers));
  std::iota(request.active.begin(), request.active.end(), 0);
  request.elements = elements;
  if (HasRoot(collective)) request.root = 0;
  if (collective == Collective::kSendReceive) request.target = workers - 1;
  if (HasBlocks(collective)) {
    request.block_elements.assign(request.active.size(), elements / request.active.size());
    request.elements = request.block_elements[0] * request.active.size();
  }
  return request;
}

inline uint64_t RandomElements(Random* random) {
  switch (random->Below(6)) {
    case 0:
      return 0;
    case 1:
      return random->Below(20);
    default:
      return random->Below(5001);
  }
}

inline CollectiveRequest RandomRequest(Collective collective, Random* random) {
  CollectiveRequest request;
  request.collective = collective;
  request.workers = static_cast<int>(random->Between(1, random->Below(25) == 0 ? 40 : 17));
  // Full and nearly full sets are the usual ones.
  const uint64_t out_of_eight = random->Below(2) == 0 ? 0 : random->Below(8);
  for (int rank = 0; rank < request.workers; ++rank) {
    if (random->Below(8) >= out_of_eight) request.active.push_back(rank);
  }
  if (request.active.empty()) {
    request.active.push_back(static_cast<int>(random->Below(request.workers)));
  }
  request.root = OneOf(request.active, random);
  request.target = OneOf(request.active, random);
  if (collective != Collective::kBarrier) request.elements = RandomElements(random);
  if (HasBlocks(collective)) {
    const uint64_t largest = 2 * request.elements / request.active.size() + 1;
    const bool equal = collective == Collective::kAllToAll || random->Below(2) == 0;
    const uint64_t size = random->Below(largest);
    request.elements = 0;
    for (size_t i = 0; i < request.active.size(); ++i) {
      request.block_elements.push_back(equal ? size : random->Below(largest));
      request.elements += request.block_elements.back();
    }
  }
  return request;
}

// Groups of the active ranks, then groups of those groups, and so on; of all kinds of sizes.
inline std::vector<std::vector<std::vector<int>>> RandomLevels(const CollectiveRequest& request,
                                                               Random* random) {
  std::vector<std::vector<std::vector<int>>> levels;
  std::vector<std::vector<int>> below;
  for (int rank : request.active) below.push_back({rank});
  for (uint64_t level = random->Below(4); level > 0; --level) {
    if (random->Below(2) == 0) Shuffle(&below, random);
    const uint64_t size = random->Between(1, 5);
    const bool equal = random->Below(2) == 0;
    std::vector<std::vector<int>> groups;
    uint64_t space = 0;
    for (const std::vector<int>& inner : below) {
      if (space == 0) {
        groups.emplace_back();
        space = equal ? size : static_cast<uint64_t>(random->Between(1, 5));
      }
      groups.back().insert(groups.back().end(), inner.begin(), inner.end());
      --space;
    }
    levels.push_back(groups);
    below = groups;
  }
  return levels;
}

inline PlannerOptions RandomOptions(const CollectiveRequest& request, Random* random) {
  PlannerOptions options;
  if (random->Below(2) == 0) options.pieces = static_cast<int>(random->Between(2, 5));
  if (random->Below(2) == 0) {
    options.order = request.active;
    Shuffle(&options.order, random);
  }
  for (int rank = 0; rank < request.workers; ++rank) {
    if (random->Below(4) == 0) options.servers.push_back(rank);
  }
  Shuffle(&options.servers, random);
  options.levels = RandomLevels(request, random);
  return options;
}

inline std::string Describe(const CollectiveRequest& request, const PlannerOptions& options) {
  return absl::StrCat(Name(request.collective), " of ", request.elements, " elements among ",
                      request.workers, " workers, active ", absl::StrJoin(request.active, ","),
                      ", root ", request.root, ", target ", request.target, ", blocks ",
                      absl::StrJoin(request.block_elements, ","), ", pieces ", options.pieces,
                      ", order ", absl::StrJoin(options.order, ","), ", servers ",
                      absl::StrJoin(options.servers, ","), ", ", options.levels.size(), " levels");
}

// A plan and its proof.
struct Plan {
  CollectiveRequest request;
  PlannerOptions options;
  Program program;
  ProgramProof proof;

  int size() const { return static_cast<int>(request.active.size()); }
  // Of the active worker with this index.
  const std::vector<Step>& StepsOf(size_t index) const {
    return program.steps[static_cast<size_t>(request.active[index])];
  }
  int MessagesFrom(size_t index) const {
    const std::vector<Step>& steps = StepsOf(index);
    return static_cast<int>(std::count_if(
        steps.begin(), steps.end(), [](const Step& step) { return step.kind == StepKind::kSend; }));
  }
  int Messages() const {
    int count = 0;
    for (size_t i = 0; i < request.active.size(); ++i) count += MessagesFrom(i);
    return count;
  }
};

// The function of a planner that must exist.
inline Planner PlannerOf(Collective collective, absl::string_view name) {
  const absl::StatusOr<const PlannerInfo*> planner = FindPlanner(collective, name);
  EXPECT_TRUE(planner.ok()) << planner.status();
  return (*planner)->plan;
}

// Plans and proves; what goes wrong fails the test.
inline Plan PlanAndProve(const Planner& planner, const CollectiveRequest& request,
                         const PlannerOptions& options = {}) {
  Plan plan{request, options, {}, {}};
  absl::StatusOr<Program> program = planner(request, options);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << Describe(request, options);
  if (!program.ok()) return plan;
  plan.program = *std::move(program);
  EXPECT_EQ(plan.program.collective, request.collective);
  EXPECT_EQ(plan.program.active, request.active);
  EXPECT_EQ(plan.program.elements(), request.elements);
  EXPECT_EQ(Validate(plan.program), absl::OkStatus()) << Describe(request, options);
  absl::StatusOr<ProgramProof> proof = ProveProgram(plan.program);
  EXPECT_TRUE(proof.ok()) << proof.status() << "\n" << Describe(request, options);
  if (!proof.ok()) return plan;
  plan.proof = *proof;
  EXPECT_TRUE(plan.proof.same_bits_everywhere) << Describe(request, options);
  if (plan.size() == 1) {
    for (const std::vector<Step>& steps : plan.program.steps) {
      EXPECT_TRUE(steps.empty()) << "one worker alone has nothing to do";
    }
  }
  return plan;
}

// Plans and proves random requests; `check` sees each of them.
inline void ProveRandomPlans(Collective collective, const Planner& planner,
                             const std::function<void(const Plan&)>& check = {}) {
  for (uint64_t seed = 1; seed <= kRandomRequests; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const CollectiveRequest request = RandomRequest(collective, &random);
    const PlannerOptions options = RandomOptions(request, &random);
    const Plan plan = PlanAndProve(planner, request, options);
    if (!::testing::Test::HasFailure() && check) check(plan);
    if (::testing::Test::HasFailure()) return;  // one is enough to look at
  }
}

inline int CeilLog2(int value) {
  int log = 0;
  while ((1 << log) < value) ++log;
  return log;
}

}  // namespace syncopate::plan::testing

#endif  // SYNCOPATE_PLAN_COLLECTIVE_PLANNER_TESTING_H_
