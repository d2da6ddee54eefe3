#include "base/status.h"

#include "gtest/gtest.h"

namespace syncopate {
namespace {

TEST(StatusTest, CarriesBlastRadiusAndSuspect) {
  const absl::Status plain = absl::UnavailableError("gone");
  EXPECT_FALSE(GetBlast(plain).has_value());
  EXPECT_FALSE(GetSuspect(plain).has_value());
  const absl::Status status = At("all-reduce", WithBlast(plain, BlastRadius::kGroup, 3));
  EXPECT_EQ(status.message(), "all-reduce: gone");
  EXPECT_EQ(GetBlast(status), BlastRadius::kGroup);
  EXPECT_EQ(GetSuspect(status), 3);
  EXPECT_TRUE(WithBlast(absl::OkStatus(), BlastRadius::kJob).ok());
  EXPECT_TRUE(At("x", absl::OkStatus()).ok());
}

}  // namespace
}  // namespace syncopate
