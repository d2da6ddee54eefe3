// The probe on real sockets: random labs whose shape is known, as `syncopate probe --self-test`
// makes them. Needs root and a kernel that can carry labs, else it is skipped.
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"
#include "subprocess.h"

namespace syncopate::testing {
namespace {

bool CannotCarryLabs(const Subprocess& process) {
  return process.err().find("needs root") != std::string::npos ||
         process.err().find("cannot carry labs") != std::string::npos;
}

TEST(ProbeLabTest, FindsRandomLabs) {
  if (geteuid() != 0) GTEST_SKIP() << "labs need root";
  Subprocess probe({SYNCOPATE_BINARY, "probe", "--self-test", "2", "--seed", "3"});
  const int code = probe.Wait();
  if (code != 0 && CannotCarryLabs(probe)) GTEST_SKIP() << probe.err();
  EXPECT_EQ(code, 0) << probe.out() << probe.err();
  EXPECT_NE(probe.out().find("racks right in 2 of 2 labs"), std::string::npos) << probe.out();
}

TEST(ProbeCommandTest, SaysWhatIsMissing) {
  Subprocess nowhere({SYNCOPATE_BINARY, "probe"});
  EXPECT_EQ(nowhere.Wait(), 2);
  EXPECT_NE(nowhere.err().find("name hosts with -H"), std::string::npos) << nowhere.err();
  Subprocess budget({SYNCOPATE_BINARY, "probe", "--budget", "0.1s", "-H", "localhost"});
  EXPECT_EQ(budget.Wait(), 2);
  EXPECT_NE(budget.err().find("--budget"), std::string::npos) << budget.err();
}

TEST(ProbeCommandTest, OneHostNeedsNoMeasurement) {
  Subprocess probe({SYNCOPATE_BINARY, "launch", "-n", "3", "--no-tag", "--", SYNCOPATE_BINARY,
                    "probe", "--json"});
  EXPECT_EQ(probe.Wait(), 0) << probe.err();
  EXPECT_NE(probe.out().find("\"experiments\": 0"), std::string::npos) << probe.out();
  EXPECT_NE(probe.out().find("\"id\": \"worker2\""), std::string::npos) << probe.out();
}

}  // namespace
}  // namespace syncopate::testing
