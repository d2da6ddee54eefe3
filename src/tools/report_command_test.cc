#include "tools/report_command.h"

#include <cstdlib>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/temporary_folder_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "observe/run_directory.h"
#include "observe/sample_run_testing.h"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

using ::testing::HasSubstr;

class ReportCommandTest : public ::testing::Test {
 protected:
  ReportCommandTest() {
    for (const char* run_name : {"one", "two"}) {
      auto run = observe::RunDirectory::Create(absl::StrCat(folder_, "/", run_name),
                                               observe::ExistingRun::kRefuse);
      EXPECT_TRUE(run.ok());
      EXPECT_TRUE(run->WriteTimeline(observe::testing::SampleTraces()).ok());
      for (const observe::Metric& metric : observe::testing::SampleMetrics()) {
        EXPECT_TRUE(run->Append(metric).ok());
      }
    }
    one_ = absl::StrCat(folder_, "/one");
    two_ = absl::StrCat(folder_, "/two");
  }
  int Run(const ReportArguments& arguments) {
    std::ostringstream out;
    const int code = RunReport(arguments, out);
    out_ = out.str();
    return code;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  std::string one_, two_, out_;
};

TEST_F(ReportCommandTest, PrintsARunAndWritesAPage) {
  const std::string page = absl::StrCat(folder_, "/one.html");
  EXPECT_EQ(Run({{one_}, false, page}), kDone);
  EXPECT_THAT(out_, HasSubstr("who is late? rank 2"));
  EXPECT_THAT(out_, HasSubstr(absl::StrCat("wrote ", page)));
  EXPECT_THAT(*ReadFile(page, 10 << 20), HasSubstr("<svg"));
}

TEST_F(ReportCommandTest, ComparesSeveral) {
  EXPECT_EQ(Run({{one_, two_}, false, ""}), kDone);
  EXPECT_THAT(out_, HasSubstr("\n  one "));
  EXPECT_THAT(out_, HasSubstr("\n  two "));
}

TEST_F(ReportCommandTest, JsonIsAllThatIsPrinted) {
  EXPECT_EQ(Run({{one_, two_}, true, absl::StrCat(folder_, "/both.html")}), kDone);
  EXPECT_EQ(nlohmann::json::parse(out_)["runs"].size(), 2u);
}

TEST_F(ReportCommandTest, WhatCannotBeReadOrWrittenIsSaid) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run({{absl::StrCat(folder_, "/none")}, false, ""}), kBadUsage);
  EXPECT_EQ(Run({{folder_}, false, ""}), kBadUsage);
  EXPECT_EQ(Run({{one_}, false, absl::StrCat(folder_, "/no/where.html")}), kFailed);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr(absl::StrCat("syncopate report: there is no run \"", folder_,
                                           "/none\": ", folder_, "/none is not a folder; ")));
  EXPECT_THAT(said, HasSubstr("holds no run"));
  EXPECT_THAT(said, HasSubstr("--html: cannot write"));
}

}  // namespace
}  // namespace syncopate::tools
