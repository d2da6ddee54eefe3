#include "launch/worker_process.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::launch {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(WorkerEnvironmentTest, NamesTheRank) {
  EXPECT_THAT(
      WorkerEnvironment({"HOME=/h"}, {"j", 5, 8, 1, 4}),
      ElementsAre("HOME=/h", "SYNCOPATE_JOB=j", "SYNCOPATE_RANK=5", "SYNCOPATE_SIZE=8",
                  "SYNCOPATE_LOCAL_RANK=1", "SYNCOPATE_LOCAL_SIZE=4", "RANK=5", "WORLD_SIZE=8",
                  "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4", "OMP_WAIT_POLICY=passive"));
}

TEST(WorkerEnvironmentTest, ThreadsWaitAsTheUserSays) {
  for (const char* said : {"OMP_WAIT_POLICY=active", "GOMP_SPINCOUNT=1000", "KMP_BLOCKTIME=200"}) {
    EXPECT_THAT(WorkerEnvironment({said}, {"j", 0, 2, 0, 2}),
                AllOf(Contains(said), Not(Contains("OMP_WAIT_POLICY=passive"))));
  }
  EXPECT_THAT(WorkerEnvironment({"OMP_NUM_THREADS=2"}, {"j", 0, 2, 0, 2}),
              Contains("OMP_WAIT_POLICY=passive"));
}

TEST(WorkerEnvironmentTest, ReplacesTheVariablesOfAJobAround) {
  EXPECT_THAT(WorkerEnvironment({"SYNCOPATE_RANK=9", "SYNCOPATE_JOB=outer"}, {"inner", 0, 2, 0, 2}),
              AllOf(Contains("SYNCOPATE_RANK=0"), Contains("SYNCOPATE_JOB=inner"),
                    Not(Contains("SYNCOPATE_RANK=9")), Not(Contains("SYNCOPATE_JOB=outer"))));
}

TEST(WorkerEnvironmentTest, DoesNotMixWithWhatTheUserSet) {
  EXPECT_THAT(WorkerEnvironment({"WORLD_SIZE=16", "RANKING=x"}, {"j", 0, 2, 0, 2}),
              AllOf(Contains("WORLD_SIZE=16"), Contains("RANKING=x"), Not(Contains("RANK=0")),
                    Not(Contains("WORLD_SIZE=2"))));
}

TEST(WorkerEnvironmentTest, GivenVariablesWin) {
  EXPECT_THAT(WithVariables({"A=1", "AB=2", "C=3"}, {"A=9", "D="}),
              ElementsAre("AB=2", "C=3", "A=9", "D="));
}

}  // namespace
}  // namespace syncopate::launch
