// Names and properties of the collectives.
#include "syncopate/collective.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

TEST(CollectiveTest, NamesAreReadBack) {
  for (Collective collective : kCollectives) {
    const std::string name(Name(collective));
    EXPECT_EQ(*ParseCollective(name), collective) << name;
    EXPECT_EQ(*ParseCollective(absl::StrReplaceAll(name, {{"-", ""}})), collective) << name;
  }
  EXPECT_EQ(*ParseCollective("alltoall"), Collective::kAllToAll);
}

TEST(CollectiveTest, UnknownNamesAreRefusedWithTheChoices) {
  for (const char* bad : {"", "?", "All-Reduce", "all-reduce ", "all--reduce"}) {
    const absl::StatusOr<Collective> parsed = ParseCollective(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_THAT(std::string(parsed.status().message()), ::testing::HasSubstr("send-receive"));
  }
}

TEST(CollectiveTest, Properties) {
  int reduces = 0, blocks = 0, roots = 0;
  for (Collective collective : kCollectives) {
    reduces += Reduces(collective);
    blocks += HasBlocks(collective);
    roots += HasRoot(collective);
  }
  EXPECT_EQ(reduces, 3);
  EXPECT_EQ(blocks, 5);
  EXPECT_EQ(roots, 5);
  EXPECT_TRUE(Reduces(Collective::kReduceScatter) && HasBlocks(Collective::kReduceScatter));
  EXPECT_FALSE(HasRoot(Collective::kAllReduce) || HasBlocks(Collective::kBarrier));
}

}  // namespace
}  // namespace syncopate
