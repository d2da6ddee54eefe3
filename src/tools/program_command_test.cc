#include "tools/program_command.h"

#include <unistd.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two workers exchange their data and add what comes.
constexpr char kPair[] = R"(syncopate program 1
collective all-reduce
workers 2
active 0-1
data 100
scratch 100
worker 0
  0: send data 0 to 1
  1: receive scratch 0 from 1
  2: reduce data 0 from scratch 0 after 0 1
worker 1
  0: send data 0 to 0
  1: receive scratch 0 from 0
  2: reduce data 0 from scratch 0 after 0 1
end
)";

class ProgramCommandTest : public ::testing::Test {
 protected:
  // Runs the check on a file of this text; what it prints and complains stays in out_ and err_.
  int Check(const std::string& text, bool json = false) {
    const std::string file = absl::StrCat(::testing::TempDir(), "/program_", getpid(), ".txt");
    EXPECT_TRUE(WriteFile(file, text).ok());
    std::ostringstream out;
    ::testing::internal::CaptureStderr();
    const int code = RunProgramCheck({.file = file, .json = json}, out);
    err_ = ::testing::internal::GetCapturedStderr();
    out_ = out.str();
    unlink(file.c_str());
    return code;
  }

  std::string out_, err_;
};

TEST_F(ProgramCommandTest, AProgramIsProvedAndDescribed) {
  ASSERT_EQ(Check(kPair), kDone) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("proved      all-reduce of 100 elements among 2 workers"),
                          HasSubstr("steps       6\n"), HasSubstr("rounds      1\n"),
                          HasSubstr("100 sent by the worker that sends most, 200 in all")));
  ASSERT_EQ(Check(kPair, /*json=*/true), kDone);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["collective"], "all-reduce");
  EXPECT_EQ(json["rounds"], 1);
  EXPECT_EQ(json["steps"], 6);
}

TEST_F(ProgramCommandTest, WhatIsWrongIsNamedWithItsPlace) {
  EXPECT_EQ(Check(absl::StrReplaceAll(kPair, {{"workers 2", "workers two"}})), kBadUsage);
  EXPECT_THAT(err_, AllOf(HasSubstr("syncopate program check: "), HasSubstr("line 3")));
  EXPECT_EQ(out_, "");
  // Well-formed, but worker 1 ends without the data of worker 0.
  EXPECT_EQ(Check(absl::StrReplaceAll(
                kPair, {{"  2: reduce data 0 from scratch 0 after 0 1\nend", "end"}})),
            kBadUsage);
  EXPECT_THAT(err_, HasSubstr("worker 1"));
}

TEST_F(ProgramCommandTest, AFileThatIsNotThereIsBadUsage) {
  std::ostringstream out;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunProgramCheck({.file = "/nowhere/program.txt"}, out), kBadUsage);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("/nowhere/program.txt"));
}

}  // namespace
}  // namespace syncopate::tools
