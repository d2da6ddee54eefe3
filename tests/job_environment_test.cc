// Workers learn who they are from real launchers.
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

struct Workers {
  std::set<std::string> jobs;
  std::set<std::string> others;  // all but the job, a line a worker
};

// Runs print_job under `launcher`.
Workers RunUnder(std::vector<std::string> launcher) {
  launcher.push_back(PRINT_JOB_BINARY);
  Subprocess process(launcher);
  EXPECT_EQ(process.Wait(), 0) << process.err();
  Workers workers;
  const std::regex line_form("job (\\S+) (rank .*)");
  const std::vector<std::string> lines = absl::StrSplit(process.out(), '\n');
  for (const std::string& line : lines) {
    std::smatch match;
    if (!std::regex_search(line, match, line_form)) continue;
    workers.jobs.insert(match[1]);
    EXPECT_TRUE(workers.others.insert(match[2]).second) << process.out();
  }
  EXPECT_THAT(workers.jobs, SizeIs(1)) << process.out() << process.err();
  return workers;
}

// All ranks know themselves, and two jobs are told apart.
void ExpectThreeWorkers(const std::vector<std::string>& launcher) {
  const Workers first = RunUnder(launcher);
  EXPECT_THAT(first.others, ElementsAre("rank 0 of 3, local 0 of 3", "rank 1 of 3, local 1 of 3",
                                        "rank 2 of 3, local 2 of 3"));
  EXPECT_NE(RunUnder(launcher).jobs, first.jobs);
}

TEST(JobEnvironmentTest, UnderSyncopateLaunch) {
  ExpectThreeWorkers({SYNCOPATE_BINARY, "launch", "-n", "3", "--no-tag", "--"});
}

TEST(JobEnvironmentTest, UnderOpenMpi) {
  ExpectThreeWorkers({"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "3"});
}

TEST(JobEnvironmentTest, UnderMpich) { ExpectThreeWorkers({"mpirun.mpich", "-n", "3"}); }

TEST(JobEnvironmentTest, UnderMpichBehindAShell) {
  Subprocess process(
      {"mpirun.mpich", "-n", "2", "sh", "-c", absl::StrCat(PRINT_JOB_BINARY, "; true")});
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_EQ(process.Count("job hydra-"), 2) << process.out() << process.err();
}

}  // namespace
}  // namespace syncopate::testing
