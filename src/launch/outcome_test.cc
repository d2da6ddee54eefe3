#include "launch/outcome.h"

#include <cerrno>
#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::launch {
namespace {

using Kind = Outcome::Kind;

TEST(OutcomeTest, ReadsAWaitStatus) {
  EXPECT_EQ(OutcomeOf(3, 0).kind, Kind::kDone);
  const Outcome exited = OutcomeOf(3, 7 << 8);
  EXPECT_EQ(exited.kind, Kind::kExited);
  EXPECT_EQ(exited.rank, 3);
  EXPECT_EQ(ExitCode(exited), 7);
  const Outcome killed = OutcomeOf(1, SIGKILL);
  EXPECT_EQ(killed.kind, Kind::kKilled);
  EXPECT_EQ(ExitCode(killed), 137);
}

TEST(OutcomeTest, SaysItInOneLine) {
  EXPECT_EQ(Explain({}, 4, "p", ""), "");
  EXPECT_EQ(Explain({Kind::kKilled, 3, SIGKILL, 3}, 4, "p", ""),
            "rank 3 was killed by signal 9 (SIGKILL); ended the other 3");
  EXPECT_EQ(Explain({Kind::kExited, 0, 7, 0}, 1, "p", ""), "rank 0 exited with code 7");
  EXPECT_EQ(Explain({Kind::kTimedOut}, 4, "p", "10m"),
            "not done after 10m; ended all 4 ranks; give more time with --timeout");
  EXPECT_EQ(Explain({Kind::kInterrupted, -1, SIGINT, 2}, 2, "p", ""), "interrupted; ended 2 ranks");
  EXPECT_EQ(Explain({Kind::kInterrupted, -1, SIGTERM, 1}, 1, "p", ""),
            "interrupted by SIGTERM; ended 1 rank");
  EXPECT_THAT(Explain({Kind::kCannotRun, 0, ENOENT}, 2, "no/such", ""),
              ::testing::StartsWith("cannot run \"no/such\": No such file or directory; "));
}

TEST(OutcomeTest, NamesTheHost) {
  Outcome outcome = {Kind::kExited, 3, 7, 1};
  outcome.host = "h2";
  EXPECT_EQ(Explain(outcome, 4, "p", ""), "rank 3 on h2 exited with code 7; ended the other 1");
  outcome.kind = Kind::kHostFailed;
  outcome.ranks = "2-3";
  outcome.detail = "did not start";
  EXPECT_EQ(Explain(outcome, 4, "p", ""), "host h2 (ranks 2-3) did not start; ended the other 1");
  EXPECT_EQ(ExitCode(outcome), 1);
}

TEST(OutcomeTest, TellsBadInputFromFailure) {
  EXPECT_EQ(ExitCode({}), 0);
  EXPECT_EQ(ExitCode({Kind::kCannotRun, 0, ENOENT}), 2);
  EXPECT_EQ(ExitCode({Kind::kTimedOut}), 1);
  EXPECT_EQ(ExitCode({Kind::kCannotStart, 5, EAGAIN}), 1);
  EXPECT_EQ(ExitCode({Kind::kInterrupted, -1, SIGTERM}), 143);
}

}  // namespace
}  // namespace syncopate::launch
