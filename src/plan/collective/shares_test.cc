#include "plan/collective/shares.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"

namespace syncopate::plan::testing {
namespace {

using ::testing::ElementsAre;

TEST(SharesTest, SmallCutsAreEqualUpToOneElement) {
  EXPECT_THAT(*CutEvenly(10, 4), ElementsAre(0, 3, 6, 8, 10));
  EXPECT_THAT(*CutEvenly(2, 4), ElementsAre(0, 1, 2, 2, 2));
  EXPECT_THAT(*CutEvenly(0, 3), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(*CutEvenly(255, 4), ElementsAre(0, 64, 128, 192, 255));
}

TEST(SharesTest, LargeCutsFallOnCacheLines) {
  for (uint64_t elements : {256u, 257u, 1000u, 4999u, 1u << 20}) {
    const std::vector<uint64_t> bounds = *CutEvenly(elements, 4);
    ASSERT_EQ(bounds.size(), 5u);
    EXPECT_EQ(bounds.front(), 0u);
    EXPECT_EQ(bounds.back(), elements);
    for (size_t i = 1; i < 4; ++i) EXPECT_EQ(bounds[i] % kCutAlignment, 0u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_GE(bounds[i + 1] - bounds[i], elements / 4 - kCutAlignment);
      EXPECT_LE(bounds[i + 1] - bounds[i], elements / 4 + 2 * kCutAlignment);
    }
  }
}

TEST(SharesTest, TooManyPartsAreRefused) {
  EXPECT_TRUE(CutEvenly(10, 1 << 20).ok());
  EXPECT_EQ(CutEvenly(10, (1 << 20) + 1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SharesTest, BlocksAreCutOneByOne) {
  CollectiveRequest request = FullRequest(Collective::kAllGather, 3, 0);
  request.block_elements = {4, 0, 5};
  EXPECT_THAT(*CutBlocks(request, 2), ElementsAre(0, 2, 4, 4, 4, 7, 9));
}

TEST(SharesTest, InOrderTreeIsBinaryAndFlatAndHasEvenLeaves) {
  for (int size = 1; size <= 130; ++size) {
    std::vector<std::vector<int>> children(static_cast<size_t>(size));
    int roots = 0;
    for (int index = 0; index < size; ++index) {
      const int parent = InOrderParent(index, size);
      ASSERT_LT(parent, size);
      if (parent < 0) {
        ++roots;
      } else {
        children[static_cast<size_t>(parent)].push_back(index);
      }
      int depth = 0;
      for (int p = parent; p >= 0; p = InOrderParent(p, size)) {
        ASSERT_LE(++depth, CeilLog2(size + 1) - 1) << index << " of " << size;
      }
    }
    EXPECT_EQ(roots, 1);
    for (int index = 0; index < size; ++index) {
      const std::vector<int>& below = children[static_cast<size_t>(index)];
      if (index % 2 == 0) {
        EXPECT_TRUE(below.empty()) << index << " of " << size;
      } else {
        ASSERT_LE(below.size(), 2u);
        if (below.size() == 2) {
          EXPECT_LT(below[0], index);
          EXPECT_GT(below[1], index);
        }
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::plan::testing
