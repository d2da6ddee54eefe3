#include "tools/bench/spawn.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::tools::bench {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLongNs = 60'000'000'000;

class SpawnTest : public ::testing::Test {
 protected:
  ~SpawnTest() override { std::remove(log_.c_str()); }

  absl::Status Run(const std::string& script, int64_t patience_ns = kLongNs, int fd = -1) {
    LaunchPlan plan;
    plan.arguments = {"/bin/sh", "-c", script};
    plan.environment["WORD"] = "given";
    return RunToEnd(plan, log_, clock_.NowNs() + patience_ns, fd, clock_);
  }

  const Clock& clock_ = MonotonicClock();
  const std::string log_ = absl::StrCat(::testing::TempDir(), "/spawn_test_", getpid());
};

TEST_F(SpawnTest, OutputGoesToTheLogAndTheEnvironmentIsThePlans) {
  EXPECT_EQ(Run("echo first; echo $WORD >&2; echo -----"), absl::OkStatus());
  EXPECT_EQ(LastWords(log_), "given");
}

TEST_F(SpawnTest, AFailureHasItsLastWords) {
  const absl::Status status = Run("echo no network; exit 3");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no network"));
}

TEST_F(SpawnTest, TheDeadlineEndsIt) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(Run("sleep 1000 & wait", 1'000'000)));
}

TEST_F(SpawnTest, TheUserEndsIt) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_TRUE(absl::IsCancelled(Run("sleep 1000", kLongNs, ends[0])));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace syncopate::tools::bench
