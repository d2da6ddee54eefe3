#include "plan/collective/request.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(const CollectiveRequest& request, const PlannerOptions& options,
                   const char* message) {
  const absl::Status status = ValidateRequest(request.collective, request, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(RequestTest, AcceptsWhatIsFine) {
  for (Collective collective : kCollectives) {
    const uint64_t elements = collective == Collective::kBarrier ? 0 : 40;
    EXPECT_EQ(ValidateRequest(collective, FullRequest(collective, 4, elements), {}),
              absl::OkStatus());
  }
}

TEST(RequestTest, OtherCollective) {
  const CollectiveRequest request = FullRequest(Collective::kReduce, 4, 8);
  EXPECT_THAT(std::string(ValidateRequest(Collective::kAllReduce, request, {}).message()),
              HasSubstr("a planner for all-reduce was asked for reduce"));
}

TEST(RequestTest, Workers) {
  CollectiveRequest request = FullRequest(Collective::kAllReduce, 4, 8);
  request.workers = 0;
  ExpectRefused(request, {}, "workers is 0; expected 1 to 4096");
  request.workers = 5000;
  ExpectRefused(request, {}, "workers is 5000");
}

TEST(RequestTest, Active) {
  CollectiveRequest request = FullRequest(Collective::kAllReduce, 4, 8);
  request.active = {};
  ExpectRefused(request, {}, "no worker is active");
  request.active = {0, 4};
  ExpectRefused(request, {}, "active rank 4 is not one of the 4 workers");
  request.active = {-1, 2};
  ExpectRefused(request, {}, "active rank -1");
  request.active = {0, 2, 1};
  ExpectRefused(request, {}, "but 1 follows 2");
  request.active = {0, 2, 2};
  ExpectRefused(request, {}, "but 2 follows 2");
}

TEST(RequestTest, RootAndTarget) {
  CollectiveRequest request = FullRequest(Collective::kBroadcast, 4, 8);
  request.active = {0, 1, 3};
  request.root = 2;
  ExpectRefused(request, {}, "root 2 is not active");
  request.collective = Collective::kSendReceive;
  request.root = 1;
  request.target = 2;
  ExpectRefused(request, {}, "target 2 is not active");
}

TEST(RequestTest, Elements) {
  CollectiveRequest request = FullRequest(Collective::kAllReduce, 4, (uint64_t{1} << 40) + 1);
  ExpectRefused(request, {}, "elements; at most 1099511627776 are allowed");
  ExpectRefused(FullRequest(Collective::kBarrier, 4, 3), {}, "a barrier has no data");
}

TEST(RequestTest, Blocks) {
  CollectiveRequest request = FullRequest(Collective::kAllGather, 4, 40);
  request.block_elements = {10, 10, 10};
  ExpectRefused(request, {}, "block_elements has 3 entries; expected one for each of the 4");
  request.block_elements = {10, 10, 10, 9};
  ExpectRefused(request, {}, "the blocks have 39 elements, but data has 40");
  request.block_elements = {10, ~uint64_t{0} - 5, 10, 10};
  ExpectRefused(request, {}, "blocks 0 to 1 together exceed the 40 elements");
  request.collective = Collective::kAllToAll;
  request.block_elements = {10, 10, 12, 8};
  ExpectRefused(request, {}, "all-to-all needs equal blocks, but block 2 has 12");
}

TEST(RequestTest, PiecesAndOrder) {
  const CollectiveRequest request = FullRequest(Collective::kAllReduce, 4, 40);
  PlannerOptions options;
  options.pieces = 0;
  ExpectRefused(request, options, "pieces is 0; expected 1 to 65536");
  options.pieces = 1;
  options.bytes_per_element = 0;
  ExpectRefused(request, options, "bytes_per_element is 0; expected 1 or more");
  options.bytes_per_element = 4;
  options.order = {0, 1, 2, 2};
  ExpectRefused(request, options, "order must hold every active rank exactly once");
  options.order = {3, 1, 2, 0};
  EXPECT_EQ(ValidateRequest(Collective::kAllReduce, request, options), absl::OkStatus());
}

TEST(RequestTest, Servers) {
  const CollectiveRequest request = FullRequest(Collective::kAllReduce, 4, 40);
  PlannerOptions options;
  options.servers = {1, 4};
  ExpectRefused(request, options, "server 4 is not one of the 4 workers");
  options.servers = {1, 1};
  ExpectRefused(request, options, "server 1 is listed twice");
}

TEST(RequestTest, Levels) {
  CollectiveRequest request = FullRequest(Collective::kAllReduce, 5, 40);
  request.active = {0, 1, 2, 3};
  PlannerOptions options;
  options.levels = {{{0, 1}, {2, 3}}, {{0, 1, 2, 3}}};
  EXPECT_EQ(ValidateRequest(Collective::kAllReduce, request, options), absl::OkStatus());
  options.levels = {{{0, 1}, {}, {2, 3}}};
  ExpectRefused(request, options, "level 0: group 1 is empty");
  options.levels = {{{0, 1}, {2, 4}}};
  ExpectRefused(request, options, "level 0: group 1: rank 4 is not active");
  options.levels = {{{0, 1}, {2, 3, 1}}};
  ExpectRefused(request, options, "level 0: rank 1 is in group 0 and again in group 1");
  options.levels = {{{0, 1}, {2}}};
  ExpectRefused(request, options, "level 0: active rank 3 is in no group");
  options.levels = {{}};
  ExpectRefused(request, options, "level 0: active rank 0 is in no group");
  options.levels = {{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}};
  ExpectRefused(request, options,
                "level 1: ranks 0 and 1 are together at level 0 and must stay together");
}

TEST(RequestTest, LocalTrees) {
  const CollectiveRequest request = FullRequest(Collective::kAllReduce, 5, 40);
  PlannerOptions options;
  options.local_trees = {{0, {{0, 1}, {1, 2}}}};
  ExpectRefused(request, options, "local tree 0: its root 0 is in no group of the first level");
  options.levels = {{{0, 1, 2}, {3, 4}}};
  EXPECT_EQ(ValidateRequest(Collective::kAllReduce, request, options), absl::OkStatus());
  options.local_trees = {{3, {{3, 4}}}, {0, {{0, 1}, {1, 3}}}};
  ExpectRefused(request, options, "local tree 1: rank 3 is not in the machine of 0");
  options.local_trees = {{0, {{1, 2}, {0, 1}}}};
  ExpectRefused(request, options, "local tree 0: rank 1 has a child before it is reached");
  options.local_trees = {{0, {{0, 1}, {0, 1}}}};
  ExpectRefused(request, options, "local tree 0: rank 1 is reached twice");
  options.local_trees = {{0, {{0, 1}}}};
  ExpectRefused(request, options, "local tree 0: the tree reaches 2 of the 3 workers");
}

}  // namespace
}  // namespace syncopate::plan::testing
