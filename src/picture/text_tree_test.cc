#include "picture/text_tree.h"

#include "gtest/gtest.h"

namespace syncopate::picture {
namespace {

TEST(TextTreeTest, CharactersAreCountedAndNotBytes) {
  EXPECT_EQ(ColumnsOf(""), 0u);
  EXPECT_EQ(ColumnsOf("├─ größe"), 8u);
  EXPECT_EQ(PaddedTo(6, "└─ ß"), "└─ ß  ");
  EXPECT_EQ(PaddedTo(2, "abc"), "abc");
}

TEST(TextTreeTest, TheLastBranchHasNothingBelowIt) {
  EXPECT_EQ(BranchTo(IndentBelow("", false), true), "│  └─ ");
  EXPECT_EQ(BranchTo(IndentBelow("", true), false), "   ├─ ");
}

}  // namespace
}  // namespace syncopate::picture
