#include "control/slurm_nodes.h"

#include "gtest/gtest.h"

namespace syncopate::control {
namespace {

TEST(SlurmNodesTest, FindsTheFirst) {
  const std::pair<const char*, const char*> cases[] = {{"node1", "node1"},
                                                       {"node1,node2", "node1"},
                                                       {"node[01-03,7]", "node01"},
                                                       {"node[7,9],login", "node7"},
                                                       {"r[1-2]n[003-4]-ib", "r1n003-ib"}};
  for (const auto& [list, first] : cases) {
    const auto node = FirstSlurmNode(list);
    ASSERT_TRUE(node.ok()) << list;
    EXPECT_EQ(*node, first);
  }
}

TEST(SlurmNodesTest, RefusesWhatIsNoList) {
  for (const char* list : {"", ",a", "a[", "a[1", "a]1", "[[1]]"}) {
    EXPECT_FALSE(FirstSlurmNode(list).ok()) << list;
  }
  EXPECT_FALSE(FirstSlurmNode(std::string(1000, 'n')).ok());
}

}  // namespace
}  // namespace syncopate::control
