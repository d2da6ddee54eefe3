// Jobs that make hundreds of groups, in shared memory and over TCP, while members die. The figures of
// ten thousand are printed by group_churn (group_churn_main.cc).
#include <algorithm>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/forked.h"
#include "tests/group_churn.h"

namespace syncopate {
namespace {

class GroupsTest : public ::testing::TestWithParam<bool> {};

TEST_P(GroupsTest, MembersMeetWhoeverDies) {
  const ChurnOptions options = {.workers = 10,
                                .groups = 600,
                                .size_min = 2,
                                .size_max = 5,
                                .tcp = GetParam(),
                                .death_every = 150,
                                .first_mark = 200,
                                .timed_rounds = 0,
                                .limit = absl::Seconds(120)};
  const std::vector<std::vector<int>> groups = DrawGroups(options);
  const std::vector<uint64_t> deaths = DrawDeaths(options, groups);
  EXPECT_EQ(std::set<std::vector<int>>(groups.begin(), groups.end()).size(), groups.size());
  ASSERT_EQ(std::count(deaths.begin(), deaths.end(), UINT64_MAX), 7) << "three die";
  Shared<ChurnReport> report;
  const absl::Status status = RunChurn(options, *report);
  ASSERT_TRUE(status.ok()) << status;
  // Of every group that nobody has died in, each member has had the result.
  for (int rank = 0; rank < options.size_max; ++rank) {
    uint64_t intact = 0, broken = 0;
    for (uint64_t number = 0; number < groups.size(); ++number) {
      const std::vector<int>& members = groups[number];
      if (!std::binary_search(members.begin(), members.end(), rank)) continue;
      const bool dead = std::any_of(members.begin(), members.end(), [&](int member) {
        return deaths[static_cast<size_t>(member)] <= number;
      });
      ++(dead ? broken : intact);
    }
    const ChurnOfWorker& worker = report->workers[static_cast<size_t>(rank)];
    EXPECT_GE(worker.met, intact);
    EXPECT_EQ(worker.met + worker.lost, intact + broken);
    EXPECT_GT(worker.lost, 0u) << "no fault was felt by worker " << rank;
    // What stays of a closed group is counted by the tests of the parts that keep it (closed_groups_test.cc,
    // shm_session_test.cc, arena_test.cc). Here no more than a few of those that died leave something.
    EXPECT_GT(worker.bytes_first, 0);
    EXPECT_LE(worker.bytes_last, worker.bytes_first + (int64_t{4} << 20));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, GroupsTest, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "tcp" : "shm"; });

}  // namespace
}  // namespace syncopate
