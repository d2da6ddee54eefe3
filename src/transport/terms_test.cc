#include "transport/terms.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "syncopate/status.h"

namespace syncopate::transport {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TermsTest, EqualOnesAreFine) {
  EXPECT_TRUE(CompareTerms({}).ok());
  EXPECT_TRUE(CompareTerms({"a"}).ok());
  EXPECT_TRUE(CompareTerms({"", "", ""}).ok());
  EXPECT_TRUE(CompareTerms({"a", "a"}).ok());
}

TEST(TermsTest, TheFirstDifferenceShowsBoth) {
  const absl::Status status = CompareTerms({"", "", "planner x", "planner y"});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetBlast(status), BlastRadius::kJob);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("worker 0 has nothing special"),
                                                   HasSubstr("worker 2 has planner x")));
}

TEST(TermsTest, OddCharactersAreNotPrinted) {
  EXPECT_THAT(std::string(CompareTerms({"a", "\x1b[2J"}).message()), HasSubstr("\\x1b[2J"));
}

}  // namespace
}  // namespace syncopate::transport
