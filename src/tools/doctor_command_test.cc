#include "tools/doctor_command.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace syncopate::tools {
namespace {

using Level = Finding::Level;

const Findings kGood = {{"cores", Level::kOk, "2", ""},
                        {"peer Gloo", Level::kMissing, "no driver", "apt-get install libgloo-dev"}};
const Findings kBad = {{"futex", Level::kBroken, "gone", "bring it back"}};

TEST(DoctorTest, OnlyWhatIsBrokenMakesAMachineUnusable) {
  EXPECT_TRUE(Usable(kGood));
  EXPECT_FALSE(Usable(kBad));
}

TEST(DoctorTest, PrintsAnAlignedTable) {
  EXPECT_EQ(FormatFindings(kGood),
            "cores      ok       2\n"
            "peer Gloo  missing  no driver\n"
            "                    -> apt-get install libgloo-dev\n"
            "usable: workers on this machine can share memory\n");
  EXPECT_THAT(FormatFindings(kBad), ::testing::HasSubstr("not usable"));
}

TEST(DoctorTest, PrintsJson) {
  const nlohmann::json report = nlohmann::json::parse(FindingsToJson(kGood));
  EXPECT_EQ(report["usable"], true);
  EXPECT_EQ(report["findings"][1]["name"], "peer Gloo");
  EXPECT_EQ(report["findings"][1]["level"], "missing");
  EXPECT_EQ(report["findings"][1]["advice"], "apt-get install libgloo-dev");
}

}  // namespace
}  // namespace syncopate::tools
